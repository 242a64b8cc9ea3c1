package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestGradient2(t *testing.T) {
	why := script(t, limit.Gradient2{From: 100},
		second{what: "the long average is this", mean: 50 * msec, want: 100},                                     // 100.8
		second{what: "up to 1.5 times it", mean: 60 * msec, want: 101},                                           // 101.6; long 55
		second{what: "long 80, g = 1.5 x 80/130 = 0.92", mean: 130 * msec, want: 100},                            // 100.84
		second{what: "long 135, g = 1.5 x 135/300 = 0.675", mean: 300 * msec, want: 95},                          // 95.08
		second{what: "less than half in use", mean: 300 * msec, peak: 47, want: 95},                              // long 168
		second{what: "a drop changes nothing", mean: 100 * msec, dropped: 50, want: 95},                          // 95.88
		second{what: "long 420, g = 1.5 x 420/2000 is below 0.5, taken as 0.5", mean: 2 * time.Second, want: 87}, // 95.88 - .2(47.94-4)
		second{what: "all dropped", samples: -1, dropped: 100, want: 87},
	)
	if want := "gradient2: 95 -> 87: gradient 0.50 = 1.5 x long 420ms / now 2e+03ms of 100 samples, + 4"; why != want {
		t.Errorf("why: %q, want %q", why, want)
	}
}

// It climbs by 0.8 a second: from 20 to 60 takes 50 s.
func TestGradient2Climbs(t *testing.T) {
	law := limit.Gradient2{}
	now, _ := law.Start()
	state := law.Begin(1)
	for i := 1; i <= 50; i++ {
		now = play(state, now, second{mean: 50 * msec, samples: 100, peak: now})
		if want := 20 + float64(i)*0.8; float64(now) > want+1e-6 || float64(now) < want-1.000001 {
			t.Fatalf("after %d s: %d, want %.1f rounded down", i, now, want)
		}
	}
}

// Its failure: a dependency that becomes twice as slow looks like a queue. The limit goes
// from 106 to 34 within a minute, though the capacity has not changed.
func TestGradient2TakesASlowDependencyForAQueue(t *testing.T) {
	law := limit.Gradient2{From: 106}
	state := law.Begin(1)
	now := 106
	for range 1000 { // too little in use to move, and enough to learn
		now = play(state, now, second{mean: 50 * msec, samples: 100, peak: 50})
	}
	for range 60 {
		now = play(state, now, second{mean: 100 * msec, samples: 100, peak: now})
	}
	if now < 31 || now > 37 {
		t.Errorf("limit %d after a minute, known to be 34", now)
	}
}

// With the mean always above what is tolerated the allowance is added all the same, and
// the limit stays where both are equal: Queue / (1 - g) (C032).
func TestGradient2StaysInABand(t *testing.T) {
	// The long average would follow in an hour: the ratio is held at 0.8 of it.
	law := limit.Gradient2{From: 100, Long: 1_000_000, Tolerance: 1}
	state := law.Begin(1)
	now := 100
	for range 20 {
		now = play(state, now, second{mean: 80 * msec, samples: 100, peak: now})
	}
	for i := range 3600 {
		now = play(state, now, second{mean: 100 * msec, samples: 100, peak: now})
		// 4 / (1 - 0.8) = 20, and the average has come 0.7 % of the way.
		if i > 200 && (now < 19 || now > 22) {
			t.Fatalf("after %d s: %d, want 20", i, now)
		}
	}
}

// What is back to normal after a long overload is normal soon: the long average, ten times
// the mean, is halved in 14 s and not in a quarter of an hour.
func TestGradient2Drift(t *testing.T) {
	// The limit shows the gradient, so the average is looked at through a slow second.
	after := func(drift float64) int {
		law := limit.Gradient2{From: 200, Drift: drift}
		state := law.Begin(1)
		now := 200
		for range 50 {
			now = play(state, now, second{mean: time.Second, samples: 100, peak: 90})
		}
		for range 14 {
			now = play(state, now, second{mean: 100 * msec, samples: 100, peak: 90})
		}
		return play(state, now, second{mean: time.Second, samples: 100, peak: 200})
	}
	// Long 1 s is 0.47 s then, g = 0.7: 200 - 0.2 (60 - 4) = 188. Without drift 0.96, g = 1.
	if with, without := after(0), after(1); with < 185 || with > 191 || without != 200 {
		t.Errorf("with drift %d, want 188; without %d, want 200", with, without)
	}
}

func ExampleGradient2() {
	law := limit.Gradient2{From: 60}
	now, _ := law.Start()
	state := law.Begin(1)
	for _, mean := range []time.Duration{50, 50, 50, 250} { // ms
		now = state.Next(now, &limit.Window{
			Length: time.Second, Peak: now, Ended: 900, Samples: 900, Own: mean * time.Millisecond,
		}).Limit
	}
	fmt.Println(now)
	fmt.Println(state.Why())
	// Output:
	// 58
	// gradient2: 62 -> 58: gradient 0.60 = 1.5 x long 100ms / now 250ms of 900 samples, + 4
}
