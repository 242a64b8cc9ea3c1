package limit_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestVegas(t *testing.T) {
	// The estimate is ceil(limit x (1 - 50/mean)); l is 1.
	why := script(t, limit.Vegas{},
		second{what: "the shortest, at first", mean: 50 * msec, want: 20},
		second{what: "0 is at most 1", mean: 50 * msec, want: 26},
		second{what: "a nanosecond is no queue", mean: 50*msec + 1, want: 32},
		second{what: "0.6 is 1, at most 1", mean: 51 * msec, want: 38},
		second{what: "38 x 3/53 = 2.2 is 3, not below 3", mean: 53 * msec, want: 38},
		second{what: "38 x 2/52 = 1.5 is 2, below 3", mean: 52 * msec, want: 39},
		second{what: "39 x 9/59 = 5.9 is 6, not above 6", mean: 59 * msec, want: 39},
		second{what: "39 x 10/60 = 6.5 is 7, above 6", mean: 60 * msec, want: 38},
		second{what: "less than half in use", mean: 60 * msec, peak: 18, want: 38},
		second{what: "dropped, little in use", mean: 51 * msec, peak: 18, dropped: 1, want: 37},
		second{what: "all dropped", samples: -1, dropped: 10, want: 36},
		second{what: "a shorter one", mean: 25 * msec, want: 36},
		second{what: "36 x 1/2 = 18", mean: 50 * msec, want: 35},
	)
	if want := "vegas: 36 -> 35: queue estimate 18 is above 6; shortest 25ms, now 50ms of 100 samples"; why != want {
		t.Errorf("why: %q, want %q", why, want)
	}
}

// From 100 on it moves by 2, from 1000 on by 3.
func TestVegasDecades(t *testing.T) {
	for from, step := range map[int]int{9: 1, 10: 1, 99: 1, 100: 2, 999: 2, 1000: 3, 10_000: 4} {
		script(t, limit.Vegas{From: from, Max: 20_000},
			second{mean: 50 * msec, want: from},
			second{mean: 50 * msec, dropped: 1, want: from - step})
		script(t, limit.Vegas{From: from, Max: 20_000},
			second{mean: 50 * msec, want: from},
			second{mean: 50 * msec, want: from + 6*step})
	}
}

// The shortest is measured anew at a time of which only the range is known, so that
// instances do not do it together: at limit 20 after 300 to 600 seconds.
func TestVegasProbes(t *testing.T) {
	at := map[int]int{}
	for seed := range uint64(50) {
		state := limit.Vegas{}.Begin(seed)
		play(state, 20, second{mean: 25 * msec, samples: 100, peak: 20})
		// 20 x (1 - 25/50) is a queue of 10, so each second it wants 19, and is set to 20 again;
		// but for the second that is taken as the shortest.
		for i := 2; ; i++ {
			if n := play(state, 20, second{mean: 50 * msec, samples: 100, peak: 20}); n == 20 {
				at[i]++
				if i < 300 || i > 600 {
					t.Errorf("seed %d: after %d s, want 300 to 600", seed, i)
				}
				break
			}
			if i > 1000 {
				t.Fatalf("seed %d: never", seed)
			}
		}
	}
	if len(at) < 30 {
		t.Errorf("50 instances do it at %d different times only", len(at))
	}
}

// Its failure: with times that vary the shortest of them is far below the mean of the
// others, and the limit falls where nobody waits. A second with ten samples is enough.
func TestVegasTakesVarianceForAQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	law := limit.Vegas{From: 40}
	now, _ := law.Start()
	state := law.Begin(1)
	for range 300 {
		sum := 0.0
		for range 10 {
			sum += r.ExpFloat64() * 50
		}
		now = play(state, now, second{mean: time.Duration(sum / 10 * float64(msec)), samples: 10, peak: now})
	}
	if now > 12 { // from 40; means of ten have a deviation of 32 %, so the lowest is soon half of them
		t.Errorf("limit %d: it has become better than it is known to be", now)
	}
}

func ExampleVegas() {
	law := limit.Vegas{}
	now, _ := law.Start()
	state := law.Begin(1)
	for _, mean := range []time.Duration{12, 12, 30} { // ms
		now = state.Next(now, &limit.Window{
			Length: time.Second, Peak: now, Ended: 130, Samples: 130, Own: mean * time.Millisecond,
		}).Limit
		fmt.Printf("%d %s\n", now, cmp.Or(state.Why(), "not moved yet"))
	}
	// Output:
	// 20 not moved yet
	// 26 vegas: 20 -> 26: queue estimate 0 is at most 1; shortest 12ms, now 12ms of 130 samples
	// 25 vegas: 26 -> 25: queue estimate 16 is above 6; shortest 12ms, now 30ms of 130 samples
}
