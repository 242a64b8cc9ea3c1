package verify

import (
	"os"
	"runtime"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// tune sets the Go runtime up for a generator that must not be late, and returns what undoes
// it: few collections, and two threads a core, unless GOMAXPROCS says how many. When a service
// on this machine wants the cores too, the kernel takes a thread off its core for some
// milliseconds, and with it the goroutines that queued there; then there is another one to run
// them.
func tune() (undo func()) {
	back := load.Undisturbed()
	if os.Getenv("GOMAXPROCS") != "" {
		return back
	}
	runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	return func() {
		runtime.SetDefaultGOMAXPROCS()
		back()
	}
}
