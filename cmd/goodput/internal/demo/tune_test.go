package demo

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// The live demo has two threads a core, and no memory for them: it runs for as long as somebody
// watches. What the environment says is left alone, and what was set up is undone.
func TestTheLiveDemoTakesThreadsAndNoMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	before := runtime.NumCPU() + 1 // twice that is no default
	runtime.GOMAXPROCS(before)
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	memory := func() int64 { return debug.SetMemoryLimit(-1) }
	p, m := percent(), memory()

	t.Setenv("GOMAXPROCS", "7")
	undo := tuneLive()
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("the environment has set it, and it is %d", n)
	}
	undo()

	t.Setenv("GOMAXPROCS", "")
	undo = tuneLive()
	if n := runtime.GOMAXPROCS(0); n != 2*before {
		t.Errorf("GOMAXPROCS is %d, want %d", n, 2*before)
	}
	if percent() != p || memory() != m {
		t.Errorf("GOGC %d where it was %d, GOMEMLIMIT %d where it was %d", percent(), p, memory(), m)
	}
	undo()
	if n := runtime.GOMAXPROCS(0); n == 2*before {
		t.Errorf("it stays at %d", n)
	}
}
