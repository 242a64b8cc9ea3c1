package demo

import (
	"os"
	"runtime"
	"runtime/debug"
)

// tune sets the Go runtime up for a process that is client, proxy and service in
// one, and returns what undoes it. What the environment says (GOGC, GOMEMLIMIT,
// GOMAXPROCS) is left alone. The effect on the generator's lateness, p99 at 10x
// (12,000 requests/s) on two cores, medians of three runs or more:
//
// Collections: few, since they take cores from a generator that must not be
// late. 3.6 ms late at 400 %, 2.0 ms at 1600 %. The limit is for the direct run,
// whose 22,000 goroutines and 80 MB of live heap would make that 1.3 GB.
//
// Threads: when other processes want the cores too, the kernel takes a thread
// off its core for some milliseconds, and with it the goroutines that queued
// there. With two threads a core there is another one to run them: 1.9 ms late
// instead of 3.6 ms, and beside a busy neighbour 15 ms instead of 170 ms.
func tune() (undo func()) {
	return settings(
		setting{"GOGC", func() func() {
			old := debug.SetGCPercent(1600)
			return func() { debug.SetGCPercent(old) }
		}},
		setting{"GOMEMLIMIT", func() func() {
			old := debug.SetMemoryLimit(640 << 20)
			return func() { debug.SetMemoryLimit(old) }
		}},
		threads,
	)
}

// tuneLive is for the live demo, whose load is a sixth and which shares a machine with a browser
// for as long as somebody watches: threads, and no memory.
func tuneLive() (undo func()) { return settings(threads) }

var threads = setting{"GOMAXPROCS", func() func() {
	runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	return runtime.SetDefaultGOMAXPROCS
}}

// A setting is what is set up, unless the environment has the variable.
type setting struct {
	variable string
	apply    func() (undo func())
}

func settings(all ...setting) (undo func()) {
	var undos []func()
	for _, s := range all {
		if os.Getenv(s.variable) == "" {
			undos = append(undos, s.apply())
		}
	}
	return func() {
		for _, undo := range undos {
			undo()
		}
	}
}
