package rivals_test

import (
	"testing"
	"time"

	"github.com/goodput/goodput/internal/rivals"
	"github.com/goodput/goodput/limit"
)

// mixed is a window in which one was as short as least, and the others took 80 ms.
func mixed(length time.Duration, samples, peak int, least time.Duration) *limit.Window {
	w := span{length: length, service: 80 * ms, samples: samples, peak: peak}.window()
	w.Times = func(yield func(time.Duration, float64) bool) {
		_ = yield(50*time.Microsecond, 1) && // too short to be one
			yield(least, 1) && yield(80*ms, float64(samples-1))
	}
	return w
}

func named(t *testing.T, name string, from int) *game {
	t.Helper()
	law, err := rivals.Named(name, from)
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, law, 1)
}

func (g *game) sees(w *limit.Window, want int) {
	g.Helper()
	if g.now = g.state.Next(g.now, w).Limit; g.now != want {
		g.Errorf("limit %d, want %d (%s)", g.now, want, g.state.Why())
	}
}

// The port adds one only when the limit was reached, and takes a second with more than 100
// samples for one, but for the first, which ends with its 101st.
func TestPortOfAIMD(t *testing.T) {
	g := named(t, "gcl_aimd", 0)
	g.sees(mixed(50*ms, 100, 10, 10*ms), 10)
	g.sees(mixed(50*ms, 1, 10, 10*ms), 11)
	g.sees(mixed(950*ms, 400, 11, 10*ms), 11)
	g.sees(mixed(50*ms, 1, 11, 10*ms), 12)
	g.sees(mixed(time.Second, 400, 11, 10*ms), 12) // of 12
	for range 3 {
		g.sees(mixed(time.Second, 33, 12, 10*ms), 12) // 99 in three seconds
	}
	g.sees(mixed(time.Second, 33, 12, 10*ms), 13)
	w := mixed(time.Second, 400, 13, 10*ms)
	w.Dropped = 1
	g.sees(w, 11)
}

// What it looks at is the shortest time that is not below 100 us.
func TestPortOfVegas(t *testing.T) {
	g := named(t, "gcl_vegas", 0)
	g.sees(mixed(time.Second, 400, 20, 10*ms), 20)
	g.sees(mixed(time.Second, 400, 20, 10*ms), 26)
	g.why("vegas: 20 -> 26: queue estimate 0 is at most 1; shortest 10ms, now 10ms of 400 samples")
	g.sees(mixed(time.Second, 400, 26, 20*ms), 25)
	g.why("shortest 10ms, now 20ms")
}

// Without a tolerance 26 ms after 20 ms is a queue.
func TestPortOfGradient2(t *testing.T) {
	g := named(t, "gcl_gradient2", 100)
	g.sees(mixed(time.Second, 400, 100, 20*ms), 100)
	g.sees(mixed(time.Second, 400, 100, 26*ms), 99) // 100.8 x (1 - .2 (1 - 23/26)) + .8 = 99.3
	g.why("gradient 0.88 = 1 x long 23ms / now 26ms")
}
