package verify

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The burst of a trace is not sent beyond the rate, in any second, and the run is no answer.
func TestNotMoreInASecondThanTheRate(t *testing.T) {
	var burst []time.Duration
	for i := range 1000 {
		burst = append(burst, time.Duration(i)*time.Microsecond)
	}
	burst = append(burst, 10*time.Second)
	var mu sync.Mutex
	var at []time.Time
	s := slotted(4, 8, 20*time.Millisecond)
	r := measured(t, given(func(c *Config) { c.Arrivals, c.Trace, c.MaxRate, c.MaxRequests = "log", burst, 600, 3059 }), func(ctx context.Context) load.Answer {
		mu.Lock()
		at = append(at, time.Now())
		mu.Unlock()
		return s.send(ctx)
	})
	most, from := 0, 0
	for i := range at {
		for at[i].Sub(at[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	// 600 + 5 sqrt(600) = 722, and up to 50 a second of those that ask whether it is calm.
	if most > 722+50 || most < 600 || !strings.Contains(r.Void, "--max-rate 600 allows") {
		t.Errorf("%d in a second; void %q", most, r.Void)
	}
}

// Random arrivals of exactly the rate are not held back, and no window of a second, wherever
// it begins, has more than there is room for.
func TestPace(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			p := newPace(100, 1) // 150 in a second
			var at []time.Time
			for range 3000 { // and 200 at once now and then
				gap := rng.ExpFloat64() / 100
				if rng.IntN(200) == 0 {
					for range 200 {
						if p.admit() {
							at = append(at, time.Now())
						}
					}
				}
				time.Sleep(time.Duration(gap * float64(time.Second)))
				if p.admit() {
					at = append(at, time.Now())
				}
			}
			for i := 150; i < len(at); i++ {
				if at[i].Sub(at[i-150]) < time.Second {
					t.Fatalf("seed %d: 151 from %v on in %v", seed, at[i-150], at[i].Sub(at[i-150]))
				}
			}
			even := newPace(100, 1)
			for range 3000 {
				time.Sleep(time.Duration(rng.ExpFloat64() / 100 * float64(time.Second)))
				even.admit()
			}
			if n := even.heldBack(); n > 0 || p.heldBack() == 0 {
				t.Errorf("seed %d: %d of a random load were held back, and %d of bursts", seed, n, p.heldBack())
			}
		})
	}
}

// What is sent once more counts, and is not sent beyond the caps.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			rate float64
			max  int64
			want int
		}{"requests": {1000, 7, 7}, "rate": {1, 1000, 6}} { // 1 + 5 sqrt(1)
			r := &run{cfg: Config{Settings: Settings{MaxRequests: tc.max}}, pace: newPace(tc.rate, 1)}
			n := 0
			for range 20 {
				if r.again() {
					n++
				}
			}
			if n != tc.want || r.sent.Load() != 20 {
				t.Errorf("%s: %d of 20, want %d", name, n, tc.want)
			}
		}
	})
}
