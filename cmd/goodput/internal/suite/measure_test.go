package suite

import (
	"math"
	"reflect"
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

// The runs of a law are added up, and the limits averaged.
func TestTogether(t *testing.T) {
	one := outcome{
		seeds: []uint64{1}, length: 10, requests: 100, inTime: 60, refused: 30, within: 50, bin: 5, ends: []float64{20, 40},
		mean: 8, dev: 1, inFlight: 10, peak: 20, least: 0.5, most: 2, simulated: 110,
	}
	one.latency.Add(time.Second)
	two := outcome{
		seeds: []uint64{2}, length: 10, requests: 200, inTime: 70, refused: 100, within: 60, bin: 5, ends: []float64{30, 40},
		mean: 10, dev: 3, inFlight: 20, peak: 30, least: 0.4, most: 1, simulated: 220,
	}
	two.latency.Add(2 * time.Second)
	want := outcome{
		seeds: []uint64{1, 2}, length: 20, requests: 300, inTime: 130, refused: 130, within: 110, bin: 5, ends: []float64{50, 80},
		mean: 9, dev: 2, inFlight: 15, peak: 30, least: 0.4, most: 2, simulated: 330,
	}
	want.latency.Add(time.Second)
	want.latency.Add(2 * time.Second)
	if got := together([]outcome{one, two}); !reflect.DeepEqual(*got, want) {
		t.Errorf("together they are\n%+v, want\n%+v", *got, want)
	}
	if one.ends[0] != 20 {
		t.Error("the first run is another one afterwards")
	}
	c := Case{Name: "step", Down: 5 * time.Second, Low: 5, Scene: load(1, 10*time.Second).Scenario}
	c.Scene.Length = 10 * time.Second
	r := c.row("auto", together([]outcome{one, two}), &want)
	// 80 in time in the second half of two runs of which the new capacity is 5/s, over 10 s.
	if r.Ratio != 1 || r.Offered != 15 || r.Goodput != 6.5 || r.Refused != 130.0/300 || math.Abs(r.FirstTen-0.8) > 1e-9 {
		t.Errorf("the row is %+v", r)
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

// In the mean a ratio above 1 counts as 1.
func TestRatios(t *testing.T) {
	s := Suite{Laws: []string{Fixed, Auto}, Cases: make([]Case, 2), Rows: []Row{{Ratio: 1}, {Ratio: 1.4}, {Ratio: 1}, {Ratio: 0.6}}}
	j := judge{suite: &s}
	if worst, mean := j.ratios(1); worst != 0.6 || mean != 0.8 {
		t.Errorf("the worst is %v and the mean %v, want 0.6 and 0.8", worst, mean)
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
