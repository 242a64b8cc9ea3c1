package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// growth is the ratio of neighbouring bounds.
var growth = math.Exp2(1.0 / octave)

// rounding is how far Index may be off a bound, in time: a tick of 2^-30 s, and
// 2^-31 of d, since ticksPerNano and the mantissa are both cut off 32 bits behind
// the point. At an hour that is 1.7 µs.
func rounding(d time.Duration) time.Duration { return 2 + d>>31 }

// floor returns the largest duration that is not above s seconds.
func floor(s float64) time.Duration { return time.Duration(math.Floor(s * 1e9)) }

func TestBoundsGrowByOneRatio(t *testing.T) {
	for i := 1; i < N-1; i++ {
		if r := Bound(i) / Bound(i-1); math.Abs(r-growth) > 1e-12 {
			t.Errorf("Bound(%d)/Bound(%d) = %v, want 2^(1/8) = %v", i, i-1, r, growth)
		}
	}
	// Whole seconds are bounds: what schema 3 means.
	for e := low; e <= high; e++ {
		if b := Bound((e - low) * octave); b != math.Exp2(float64(e)) {
			t.Errorf("bound of exponent %d is %v", e, b)
		}
	}
	if !math.IsInf(Bound(N-1), 1) {
		t.Errorf("the last bucket ends at %v, want +Inf", Bound(N-1))
	}
}

func TestIndexAtEveryBound(t *testing.T) {
	for i := range N - 1 {
		d := floor(Bound(i))
		if below := d - rounding(d); Index(below) != i {
			t.Errorf("Index(%v) just below Bound(%d) = %d", below, i, Index(below))
		}
		if above := d + 1 + rounding(d); Index(above) != i+1 {
			t.Errorf("Index(%v) just above Bound(%d) = %d, want %d", above, i, Index(above), i+1)
		}
	}
}

func TestIndexAtTheEnds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int
	}{
		{math.MinInt64, 0},
		{-1, 0},
		{0, 0},
		{1, 0},
		{953 * time.Nanosecond, 0}, // 2^-20 s = 953.67 ns
		{955 * time.Nanosecond, 1},
		{time.Second, -low * octave},
		{131071 * time.Second, N - 2}, // 2^17 s = 131072 s
		{131073 * time.Second, N - 1},
		{math.MaxInt64, N - 1},
	} {
		if got := Index(c.d); got != c.want {
			t.Errorf("Index(%d ns) = %d, want %d", c.d, got, c.want)
		}
	}
}

func TestIndexNeverFalls(t *testing.T) {
	last := 0
	for d := time.Duration(1); d > 0 && d < 1<<62; d += 1 + d/97 {
		i := Index(d)
		if i < last || i > last+1 {
			t.Fatalf("Index(%v) = %d after %d: steps of 1 %% move at most one bucket", d, i, last)
		}
		last = i
	}
}

func TestMidStaysInside(t *testing.T) {
	for i := range N - 1 {
		for _, f := range []float64{0, 0.25, 0.5, 1} {
			if m := Mid(i, f); m < lower(i) || m > Bound(i)*(1+1e-12) {
				t.Errorf("Mid(%d, %v) = %v, outside (%v, %v]", i, f, m, lower(i), Bound(i))
			}
		}
	}
	if m := Mid(N-1, 0.5); m != 131072 {
		t.Errorf("the overflow bucket stands for %v s, want its lower bound, 131072", m)
	}
}

func TestEmptyHasNoNumbers(t *testing.T) {
	var h Histogram
	if q, ok := h.Quantile(0.5); ok {
		t.Errorf("the median of nothing is %v", q)
	}
	if m, ok := h.Mean(); ok {
		t.Errorf("the mean of nothing is %v", m)
	}
}

func TestMergeAddsAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all, a, b Histogram
	for i := range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(50*time.Millisecond))
		all.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	if a.Counts != all.Counts || a.Count != all.Count {
		t.Errorf("merged counts differ: %d of %d", a.Count, all.Count)
	}
	// Two orders of summing 10,000 floats: each sum is off by at most 10,000 ulp.
	if diff := math.Abs(a.Sum - all.Sum); diff > 10_000*all.Sum*0x1p-52 {
		t.Errorf("merged sum is %v, want %v", a.Sum, all.Sum)
	}
	if b.Count != 6666 {
		t.Errorf("merging changed its argument: %d", b.Count)
	}
}

// Interpolation inside a bucket: where the counts are smooth a quantile is much
// closer than the width of its bucket. The tolerance is three standard errors of
// the exact sample quantile, sqrt(q(1-q)/n)/pdf, and 0.6 % for interpolation: the
// log width of a bucket squared over 8, 0.00094, times the slope of the log density
// in log time, x/mean - 1 = 5.9 at p99.9 of an exponential.
func TestQuantileOfASmoothDistribution(t *testing.T) {
	const n, mean = 200_000, 0.050
	rng := rand.New(rand.NewPCG(3, 4))
	var h Histogram
	for range n {
		h.Add(time.Duration(rng.ExpFloat64() * mean * 1e9))
	}
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 0.999} {
		exact := -mean * math.Log(1-q)
		noise := 3 * math.Sqrt(q*(1-q)/n) * mean / (1 - q)
		got, _ := h.Quantile(q)
		if off := math.Abs(got.Seconds() - exact); off > noise+0.006*exact {
			t.Errorf("p%v = %v, want %.4fs +- %.4fs", q*100, got, exact, noise+0.006*exact)
		}
	}
	// The mean is the sum over the count: nothing of it is lost in buckets.
	if m, _ := h.Mean(); math.Abs(m.Seconds()-mean) > 3*mean/math.Sqrt(n) {
		t.Errorf("mean %v, want 50ms", m)
	}
}

// dumb keeps every duration.
type dumb []time.Duration

// quantile is the nearest rank: the smallest that q of all are not above.
func (m dumb) quantile(q float64) time.Duration {
	s := slices.Sorted(slices.Values(m))
	rank := int(math.Ceil(q * float64(len(s))))
	return s[max(rank, 1)-1]
}

func (m dumb) sum() (s float64) {
	for _, d := range m {
		s += d.Seconds()
	}
	return s
}

// againstDumb says how h differs from what it counted.
func againstDumb(t *testing.T, h *Histogram, m dumb) {
	t.Helper()
	if h.Count != uint64(len(m)) {
		t.Fatalf("%d counted, want %d", h.Count, len(m))
	}
	var total uint64
	for _, n := range h.Counts {
		total += n
	}
	if total != h.Count {
		t.Fatalf("buckets hold %d, Count says %d", total, h.Count)
	}
	if len(m) == 0 {
		return
	}
	if s := m.sum(); math.Abs(h.Sum-s) > 1e-9*s {
		t.Fatalf("sum %v, want %v", h.Sum, s)
	}
	last := time.Duration(-1)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		got, ok := h.Quantile(q)
		if !ok || got < last {
			t.Fatalf("quantile %v of %d is %v (%v), the one before it %v", q, len(m), got, ok, last)
		}
		last = got
		exact := m.quantile(q)
		switch i := Index(exact); i {
		case 0:
			if got.Seconds() > Bound(0) {
				t.Fatalf("quantile %v is %v, want at most the first bound: exact %v", q, got, exact)
			}
		case N - 1:
			if got != 131072*time.Second {
				t.Fatalf("quantile %v is %v, want the last bound: exact %v", q, got, exact)
			}
		default:
			// Both are in bucket i: they differ by less than its width.
			lo, hi := floor(exact.Seconds()/growth), floor(exact.Seconds()*growth)
			slack := rounding(exact) + 1
			if got < lo-slack || got > hi+slack {
				t.Fatalf("quantile %v is %v, exact %v: more than 9.1 %% apart", q, got, exact)
			}
		}
	}
}

func TestAgainstDumbModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var h Histogram
		var m dumb
		for range rng.IntN(300) {
			// Log-uniform over everything a Duration can be.
			d := time.Duration(math.Exp2(rng.Float64() * 63))
			h.Add(d)
			m = append(m, d)
		}
		t.Logf("seed %d", seed) // shown with a failure
		againstDumb(t, &h, m)
	}
}

func FuzzAgainstDumbModel(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 1, 255, 30, 128, 62, 7})
	f.Fuzz(func(t *testing.T, in []byte) {
		// Two bytes are one duration: an exponent and a mantissa.
		var parts [2]Histogram
		var m dumb
		for i := 0; i+1 < len(in); i += 2 {
			exp := in[i] % 63
			d := time.Duration(1)<<exp | time.Duration(in[i+1])<<exp>>8
			if in[i] >= 250 {
				d = -d
			}
			parts[in[i+1]%2].Add(d)
			m = append(m, max(d, 0))
		}
		parts[0].Merge(&parts[1])
		againstDumb(t, &parts[0], m)
	})
}

func FuzzIndexFindsItsBucket(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(954))
	f.Add(int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, n int64) {
		d := time.Duration(n)
		i := Index(d)
		if i < 0 || i >= N {
			t.Fatalf("Index(%d) = %d, outside [0, %d)", n, i, N)
		}
		if d <= 0 {
			return
		}
		slack := rounding(d).Seconds()
		if s := d.Seconds(); s > Bound(i)+slack || s < lower(i)-slack {
			t.Fatalf("Index(%v) = %d, whose bounds are (%v, %v]", d, i, lower(i), Bound(i))
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	var h Histogram
	d := 50 * time.Millisecond
	b.ReportAllocs()
	for b.Loop() {
		h.Add(d)
	}
}
