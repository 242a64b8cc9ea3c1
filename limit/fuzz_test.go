package limit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// bounded are laws with what their limits stay within.
var bounded = []struct {
	law       limit.Law
	low, high int
}{
	{limit.Fixed(60), 60, 60},
	{limit.Auto{Min: 3, Max: 500}, 3, 500},
	{limit.Auto{Shared: true}, 1, 10_000},
	{limit.AIMD{}, 20, 200},
	{limit.AIMD{From: 3, Min: 2, Max: 5, Backoff: 0.5, Timeout: msec}, 2, 5},
	{limit.Vegas{}, 1, 1000},
	{limit.Vegas{From: 10, Min: 10, Max: 5000, Alpha: 0.1, Beta: 0.2, Smoothing: 0.3, Probe: 1, Window: 100 * msec}, 10, 5000},
	{limit.Gradient2{}, 20, 200},
	{limit.Gradient2{From: 7, Min: 7, Max: limit.Max, Queue: 1e6, Long: 10, Window: 100 * msec}, 7, limit.Max},
}

// unbounded is a law without bounds of its own.
type unbounded struct{ limit.Law }

// What a law says of its bounds is what FuzzLaws holds it to.
func TestBounds(t *testing.T) {
	for _, c := range bounded {
		if low, high := limit.Bounds(c.law); low != c.low || high != c.high {
			t.Errorf("%v: %d to %d, want %d to %d", c.law, low, high, c.low, c.high)
		}
	}
	if low, high := limit.Bounds(unbounded{limit.Fixed(7)}); low != 1 || high != limit.Max {
		t.Errorf("of a law without: %d to %d", low, high)
	}
}

// FuzzLaws hands every law the same windows, of which some are nothing that a core
// could have measured. Its limits stay within its bounds, are the same for the same
// windows, and the reason begins with its name and has no NaN in it (C029).
func FuzzLaws(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed*31))
	}
	f.Fuzz(func(t *testing.T, seed uint64, garbage uint8) {
		for _, c := range bounded {
			start, err := c.law.Start()
			if err != nil {
				t.Fatal(err)
			}
			a, b := c.law.Begin(seed), c.law.Begin(seed)
			draw, same := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))
			set := rand.New(rand.NewPCG(seed, 2))
			now := start
			for i := range 400 {
				w, v := wild(draw, now, garbage), wild(same, now, garbage)
				if set.IntN(40) == 0 { // someone sets it
					now = int(set.Uint64()) >> set.IntN(64)
				}
				m, n := a.Next(now, &w), b.Next(now, &v)
				if m != n || a.Why() != b.Why() {
					t.Fatalf("seed %d, %v, window %d: %+v, %q, and %+v, %q", seed, c.law, i, m, a.Why(), n, b.Why())
				}
				if now = m.Limit; now < c.low || now > c.high {
					t.Fatalf("seed %d, %v, window %d: limit %d is not within %d to %d after %+v", seed, c.law, i, now, c.low, c.high, w)
				}
				if why := a.Why(); why != "" && !strings.HasPrefix(why, fmt.Sprint(c.law)+": ") || strings.Contains(why, "NaN") {
					t.Fatalf("seed %d, %v: why %q", seed, c.law, why)
				}
			}
		}
	})
}

// wild draws a window of an instance with limit slots, garbage of 255 times one of which
// some values are what nothing can be.
func wild(r *rand.Rand, now int, garbage uint8) limit.Window {
	if uint8(r.IntN(255)) >= garbage {
		n := r.IntN(50)
		mean := time.Duration(r.ExpFloat64() * 50 * float64(msec))
		w := limit.Window{
			Length: 50 * msec, Objective: 400 * msec, Arrived: float64(r.IntN(100)), Peak: r.IntN(2*max(min(now, 1000), 1) + 1),
			Ended: n, Samples: n, Mean: mean, Own: mean, Dropped: max(r.IntN(20)-18, 0),
		}
		w.Delayed = w.Arrived * r.Float64()
		w.Times = func(yield func(time.Duration, float64) bool) { yield(mean, float64(n)) }
		return w
	}
	odd := func() int { return []int{0, -1, math.MinInt, math.MaxInt, 1, r.IntN(1 << 40)}[r.IntN(6)] }
	long := func() time.Duration { return time.Duration(odd()) }
	real := func() float64 {
		return []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, r.ExpFloat64()}[r.IntN(7)]
	}
	w := limit.Window{
		Length: long(), Objective: long(), Arrived: real(), Delayed: real(), Peak: odd(), Running: odd(),
		Ended: odd(), Dropped: odd(), Samples: odd(), Mean: long(), Own: long(), Quiet: long(), Pressure: real(),
	}
	for i := range w.Epochs {
		w.Epochs[i] = limit.Epoch{
			Length: long(), Age: long(), Admitted: real(), InFlight: real(), Arrived: real(), Delayed: real(),
			Ended: real(), Dropped: real(), Samples: real(), Served: real(), Mean: long(), Spread: long(),
		}
	}
	at, n := long(), real()
	w.Times = func(yield func(time.Duration, float64) bool) {
		_ = yield(at, n) && yield(-at, 1) && yield(msec, math.NaN())
	}
	return w
}
