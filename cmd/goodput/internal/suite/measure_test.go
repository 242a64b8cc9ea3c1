package suite

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/hist"
)

// In bins of 0.5 s, with 2000 in time in each: a law that has half of it for 3 s, and another
// dip of a second at 8 s that is too short to take 5 % of 2 s.
func TestSettled(t *testing.T) {
	reference := make([]float64, 40)
	for i := range reference {
		reference[i] = 2000
	}
	dip := func(spans ...[3]float64) *outcome { // from, to, share
		o := &outcome{bin: 0.5, ends: append([]float64(nil), reference...), seeds: []uint64{1}}
		for _, s := range spans {
			for i := int(s[0] / o.bin); i < int(s[1]/o.bin); i++ {
				o.ends[i] *= s[2]
			}
		}
		return o
	}
	for _, c := range []struct {
		name  string
		o     *outcome
		cv    float64
		after float64
		want  float64
	}{
		{"at once", dip(), 1, 0, 0},
		{"half of it for 3 s", dip([3]float64{0, 3, 0.5}), 1, 0, 3},
		{"half of it for 3 s and 0.96 for a while", dip([3]float64{0, 3, 0.5}, [3]float64{8, 12, 0.96}), 1, 0, 3},
		{"a second of 0.8 late is 0.9 of 2 s", dip([3]float64{0, 3, 0.5}, [3]float64{8, 9, 0.8}), 1, 0, 8.5},
		{"the same of work that varies: 4.5 s are looked at", dip([3]float64{8, 9, 0.8}), 1.5, 0, 0},
		{"since an instant", dip([3]float64{0, 3, 0.5}, [3]float64{10, 12, 0.5}), 1, 10, 2},
		{"nothing since an instant", dip([3]float64{0, 3, 0.5}), 1, 10, 0},
		{"never", dip([3]float64{0, 20, 0.9}), 1, 0, math.NaN()},
		{"work that varies so much that 20 s say nothing", dip(), 4, 0, math.NaN()},
	} {
		got := c.o.settled(reference, c.cv, c.after)
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: settled after %v s, want %v", c.name, got, c.want)
		}
	}
	if got := dip([3]float64{5, 10, 0.5}).between(5, 15); got != 3000 {
		t.Errorf("%v a second, want 3000: half of 4000 for half of the time", got)
	}
}

// The share below a duration is that of a distribution that is known, to within a bucket.
func TestBelow(t *testing.T) {
	var h hist.Histogram
	for i := range 1000 {
		h.Add(time.Duration(i+1) * time.Millisecond)
	}
	for _, ms := range []int{10, 100, 400, 777, 2000} {
		got, want := below(&h, time.Duration(ms)*time.Millisecond), float64(min(ms, 1000))
		// A bucket has 9 % of what is below it; spread as its logarithm the error is an eighth
		// of that, squared: below 1 %, and one for the edges.
		if math.Abs(got-want) > 0.01*want+1 {
			t.Errorf("%.1f of 1000 are below %d ms, want %v", got, ms, want)
		}
	}
}

// What is worse depends on what is asked for; never is worst.
func TestBound(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		b    bound
		v, w float64
		want bool
	}{
		{atLeast(1), 1, 2, true},
		{atLeast(1), 2, 1, false},
		{atMost(1), 1, 2, false},
		{atMost(1), 2, 1, true},
		{atMost(1), 2, 2, false},
		{atMost(1), nan, 2, true},
		{atMost(1), 2, nan, false},
		{atLeast(1), nan, 0, true},
	} {
		if got := c.b.worse(c.v, c.w); got != c.want {
			t.Errorf("%v: %v is worse than %v: %v", c.b, c.v, c.w, got)
		}
	}
	if atLeast(1).holds(nan) || atMost(1).holds(nan) || !atLeast(1).holds(1) || !atMost(1).holds(1) || atMost(1).holds(1.1) || atLeast(1).holds(0.9) {
		t.Error("a bound is kept by what is on it and on the right side of it, not by what is no number")
	}
}
