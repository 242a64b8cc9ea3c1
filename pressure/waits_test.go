package pressure

import (
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// buckets are in seconds, as the runtime's: below 0, then up to 1, 2, 4 and 8 ms, then any.
var buckets = []float64{math.Inf(-1), 0, 0.001, 0.002, 0.004, 0.008, math.Inf(1)}

func counted(n ...uint64) *metrics.Float64Histogram {
	return &metrics.Float64Histogram{Counts: n, Buckets: buckets}
}

// What is known after a reading is the quantile of what came since the one before that
// had enough.
func TestWaitsAreDifferences(t *testing.T) {
	const ms = time.Millisecond
	top := uint64(math.MaxUint64)
	type step struct {
		after  time.Duration
		counts *metrics.Float64Histogram
		level  time.Duration
		n      uint64
		known  bool
	}
	for _, c := range []struct {
		name  string
		q     float64
		steps []step
	}{
		{"what was before the first reading does not count", 0.5, []step{
			{0, counted(0, 0, 0, 0, 0, 1e9), 0, 0, false},
			{5 * ms, counted(0, 100, 0, 0, 0, 1e9), ms / 2, 100, true},
		}},
		{"enough waits at once", 0.9, []step{
			{0, counted(0, 0, 0, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 80, 0, 20, 0, 0), 3 * ms, 100, true}, // the 90th: half of the bucket of 2 to 4 ms
		}},
		{"too few are added up", 0.99, []step{
			{0, counted(0, 0, 0, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 0, 60, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 0, 99, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 0, 100, 0, 0, 0), ms + 99*ms/100, 100, true},
		}},
		{"but no longer than a second", 0.99, []step{
			{0, counted(0, 0, 0, 0, 0, 0), 0, 0, false},
			{500 * ms, counted(0, 0, 4, 0, 0, 0), 0, 0, false},
			{500 * ms, counted(0, 0, 4, 0, 0, 0), ms + 3*ms/4, 4, true}, // the second longest of four
			{999 * ms, counted(0, 0, 4, 0, 8, 0), ms + 3*ms/4, 4, true}, // as it was
			{1 * ms, counted(0, 0, 4, 0, 8, 0), 4*ms + 7*ms/2, 8, true}, // the second longest of eight
		}},
		{"one wait alone is no pressure", 0.99, []step{
			{0, counted(0, 0, 0, 0, 0, 0), 0, 0, false},
			{time.Second, counted(0, 0, 0, 0, 0, 1), 0, 1, true},
			{time.Second, counted(0, 4, 0, 0, 0, 2), ms, 5, true},
		}},
		{"nobody has waited", 0.99, []step{
			{0, counted(0, 7, 0, 0, 0, 0), 0, 0, false},
			{time.Second, counted(0, 7, 0, 0, 0, 0), 0, 0, true},
		}},
		{"a bucket without an end, or a beginning", 0.5, []step{
			{0, counted(0, 0, 0, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 0, 0, 0, 0, 4), 8 * ms, 4, true},
			{5 * ms, counted(4, 0, 0, 0, 0, 4), 0, 4, true},
		}},
		{"a counter that wraps", 0.5, []step{
			{0, counted(0, 0, top-9, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 0, 10, 0, 0, 0), ms + ms/2, 20, true},
		}},
		{"counts that begin anew: nothing is said about what is not known", 0.5, []step{
			{0, counted(0, 0, 500, 0, 0, 0), 0, 0, false},
			{5 * ms, counted(0, 0, 510, 0, 0, 0), ms + ms/2, 10, true},
			{5 * ms, counted(0, 0, 3, 0, 0, 0), ms + ms/2, 10, true}, // as it was
			{5 * ms, counted(0, 0, 3, 0, 10, 0), 6 * ms, 10, true},
		}},
		{"other buckets", 0.5, []step{
			{0, counted(0, 0, 500, 0, 0, 0), 0, 0, false},
			{5 * ms, &metrics.Float64Histogram{Counts: []uint64{4, 4}, Buckets: []float64{0, 1, 2}}, 0, 0, false},
			{5 * ms, &metrics.Float64Histogram{Counts: []uint64{4, 8}, Buckets: []float64{0, 1, 2}}, 1500 * ms, 4, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w waits
			now := time.Now()
			for i, s := range c.steps {
				now = now.Add(s.after)
				w.add(now, s.counts, c.q)
				// A quantile is a float of seconds, and a nanosecond is below its last digit.
				if d := w.level - s.level; d < -1 || d > 1 || w.n != s.n || w.known != s.known {
					t.Errorf("reading %d: %v of %d, %v, want %v of %d, %v", i, w.level, w.n, w.known, s.level, s.n, s.known)
				}
			}
		})
	}
}

// The quantile of a histogram of random waits is within a bucket of that of the waits
// themselves, sorted.
func TestWaitsQuantileAgainstSorting(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		h := counted(make([]uint64, len(buckets)-1)...)
		var w waits
		now := time.Now()
		w.add(now, h, 0.5)
		q := 0.5 + 0.49*rng.Float64()
		sorted := make([]float64, 2+rng.IntN(300))
		for i := range sorted {
			v := rng.ExpFloat64() * 0.002
			sorted[i] = v
			h.Counts[slices.IndexFunc(buckets, func(b float64) bool { return b > v })-1]++
		}
		slices.Sort(sorted)
		w.add(now.Add(span), h, q)
		rank := int(math.Ceil(min(q*float64(len(sorted)), float64(len(sorted)-1))))
		want := sorted[rank-1]
		hi := slices.IndexFunc(buckets, func(b float64) bool { return b > want })
		// Rounding in the last step of the arithmetic may be a nanosecond.
		if got := w.level.Seconds(); got < buckets[hi-1]-1e-9 || got > buckets[hi]+1e-9 {
			t.Fatalf("seed %d: the %.3g-quantile of %d waits is %v, by the histogram %v", seed, q, len(sorted), want, got)
		}
	}
}
