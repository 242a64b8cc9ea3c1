package pressure

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// What this machine has, read as it is. A machine without a quota, which most are that
// are no container, has no level, and says so.
func TestCGroupOfThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/cgroup"); err != nil {
		t.Skipf("there are no cgroups here: %v", err)
	}
	c := new(CGroup)
	c.Level()
	t.Logf("at first: %v", c)
	if len(c.groups) == 0 {
		if level, ok := c.Level(); ok {
			t.Errorf("level %v without a quota", level)
		}
		t.Skipf("there is no quota here: %v", c)
	}
	time.Sleep(span + pause) // wall clock: the kernel's periods pass by it
	level, ok := c.Level()
	used, known := c.Usage()
	t.Logf("level %.3g (%v), usage %.3g (%v): %v", level, ok, used, known, c)
	if !ok || level < 0 || level > 1/defaultShare {
		t.Errorf("level %v, %v with a quota: %v", level, ok, c)
	}
	if known && used < 0 {
		t.Errorf("%v of the quota is used", used)
	}
}

// medianWait returns the least of five medians of how long 800 goroutines waited that were
// started at once on one processor. The runtime notes one wait in eight, about 100.
func medianWait(t *testing.T) float64 {
	t.Helper()
	least := 0.0
	for i := range 5 {
		s := &Scheduler{Quantile: 0.5, TooMuch: 10 * time.Millisecond}
		s.Level() // the base
		var wg sync.WaitGroup
		for range 800 {
			wg.Go(func() {})
		}
		wg.Wait()
		for s.readAt = (time.Time{}); ; s.readAt = (time.Time{}) {
			if level, ok := s.Level(); ok {
				t.Log(s)
				if i == 0 || level < least {
					least = level
				}
				break
			}
			runtime.Gosched()
		}
	}
	return least
}

// Where more goroutines compute than there are processors, whoever comes next waits for
// their time slices, 10 ms each. Eight of them on one processor are 80 ms, without them
// it is what 800 short goroutines take, below a millisecond. The test asks for a factor
// of four only: the least of five is the one that the machine disturbed least.
func TestBusyGoroutinesRaiseTheLevel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	idle := medianWait(t)
	var stop sync.WaitGroup
	done := make(chan struct{})
	for range 8 {
		stop.Go(func() {
			for i := 0; ; i++ {
				if i%1024 == 0 {
					select {
					case <-done:
						return
					default:
					}
				}
			}
		})
	}
	busy := medianWait(t) // wall clock: time slices are
	close(done)
	stop.Wait()
	if busy < 4*idle {
		t.Errorf("level %.3g with eight goroutines that compute, %.3g without", busy, idle)
	}
}
