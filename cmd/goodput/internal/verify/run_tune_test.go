package verify

import (
	"os"
	"runtime"
	"testing"
)

// What a run sets up is set back after it, and what the environment says is left alone.
func TestTune(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	t.Setenv("GOMAXPROCS", "") // Setenv sets it back; Unsetenv alone would not
	os.Unsetenv("GOMAXPROCS")
	runtime.SetDefaultGOMAXPROCS()
	before := runtime.GOMAXPROCS(0)
	undo := tune()
	if got := runtime.GOMAXPROCS(0); got != 2*before {
		t.Errorf("%d threads of %d", got, before)
	}
	undo()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d threads after it, %d before", got, before)
	}
	t.Setenv("GOMAXPROCS", "3")
	undo = tune()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d threads, although the environment has its own", got)
	}
	undo()
}
