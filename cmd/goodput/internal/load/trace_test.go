package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTraceArrivals(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tc := range []struct {
		name  string
		trace []time.Duration
		rate  float64
		long  time.Duration
		want  []time.Duration
	}{
		{"as it was", []time.Duration{0, s, 2 * s}, 1, 3 * s, []time.Duration{0, s, 2 * s}},
		{"from any origin", []time.Duration{-5 * s, -4 * s, -3 * s}, 1, 3 * s, []time.Duration{0, s, 2 * s}},
		{"twice as fast, and again", []time.Duration{7 * s, 8 * s}, 2, 2 * s, []time.Duration{0, 500 * ms, s, 1500 * ms}},
		{"the window ends first", []time.Duration{0, s, 2 * s, 3 * s}, 1, 1500 * ms, []time.Duration{0, s}},
		// Four in 3 gaps of 1 s, and one more gap before it begins again: 4 s.
		{"in bursts", []time.Duration{0, 0, 0, s}, 1, 8 * s, []time.Duration{0, 0, 0, 3 * s, 4 * s, 4 * s, 4 * s, 7 * s}},
		{"since 1970", []time.Duration{math.MaxInt64 - 2, math.MaxInt64 - 1, math.MaxInt64}, 10, 300 * ms, []time.Duration{0, 100 * ms, 200 * ms}},
		{"once in 300 years", []time.Duration{0, 1}, 1e-10, time.Hour, []time.Duration{0}},
	} {
		p := Plan{Rate: tc.rate, Duration: tc.long, Deadline: s, Trace: tc.trace}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := slices.Collect(p.Arrivals()); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

// Whatever the trace: in order, in the window, and Rate is the mean of all whole rounds.
func TestTraceKeepsTheRate(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := Plan{Rate: 1 + 1000*rng.Float64(), Deadline: time.Second}
		at := time.Duration(rng.Int64N(1e18))
		for range 2 + rng.IntN(50) {
			p.Trace = append(p.Trace, at)
			at += time.Duration(rng.ExpFloat64() * math.Pow(10, float64(rng.IntN(9)))) // bursts and lulls
		}
		if p.Trace[0] == p.Trace[len(p.Trace)-1] {
			continue
		}
		rounds := 1 + rng.IntN(4)
		want := rounds * len(p.Trace)
		p.Duration = time.Duration(float64(want) / p.Rate * 1e9)
		due := slices.Collect(p.Arrivals())
		// The end of the window is rounded to 1 ns: the first of another round may be in it.
		if n := len(due); n != want && n != want+1 || !slices.IsSorted(due) || due[0] != 0 || due[n-1] >= p.Duration {
			t.Errorf("seed %d: %d arrivals, want %d; from %v to %v of %v", seed, n, want, due[0], due[n-1], p.Duration)
		}
	}
}

func TestTraceValidate(t *testing.T) {
	for _, tc := range []struct {
		want  string
		trace []time.Duration
	}{
		{"has 0 arrivals: it takes 2 to 10000000", []time.Duration{}},
		{"has one arrival", []time.Duration{1}},
		{"arrival 3 of the trace, 1ns, is before", []time.Duration{0, 2, 1}},
		{"all 3 arrivals of the trace are at one instant", []time.Duration{5, 5, 5}},
		{"292 years at most", []time.Duration{math.MinInt64, 0, math.MaxInt64}},
		{"not both", []time.Duration{0, 1}},
	} {
		p := Plan{Rate: 1, Duration: time.Second, Deadline: time.Second, Trace: tc.trace, Constant: tc.want == "not both"}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want a sentence with %q", tc.trace, err, tc.want)
		}
	}
}
