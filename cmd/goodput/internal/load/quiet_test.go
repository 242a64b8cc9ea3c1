package load

import (
	"runtime"
	"testing"
)

// 64 MB of garbage are no reason to collect it while Undisturbed holds, and are one before. The
// collector is asked once, so that what other tests left is no matter.
func TestUndisturbed(t *testing.T) {
	var sink []byte
	cycles := func() uint32 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 64 {
			sink = make([]byte, 1<<20)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	if n := cycles(); n == 0 {
		t.Skip("GOGC of the environment is in force")
	}
	back := Undisturbed()
	if n := cycles(); n != 0 {
		t.Errorf("%d cycles", n)
	}
	back()
	if n := cycles(); n == 0 {
		t.Error("no cycle: what was held is not given back")
	}
	_ = sink
}
