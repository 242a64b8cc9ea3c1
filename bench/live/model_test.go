package live

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/limit"
)

// A limit that is told is worth what its slots are: all of them, or half. 20 s of 1,200
// answers a second of exponential work vary by sqrt(24,000) = 0.65 %, and at the end a
// queue of at most 100 or so is not answered, another 0.5 %. Four deviations.
func TestModelOfToldLimits(t *testing.T) {
	p := Cold(3, 60, 50*time.Millisecond, 20*second, 3)
	for n, want := range map[int]float64{60: 1, 30: 0.5} {
		r := newTally(p).result("x", 0.8, 0, false) // sleeps overrun by a quarter
		if err := Model(Contestant{Law: limit.Fixed(n)}, p, r); err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(r.Model.Mean - want); d > 0.005+4*0.0065 {
			t.Errorf("fixed(%d): ratio %.3f, want %.2f", n, r.Model.Mean, want)
		}
		if r.Quiet.Mean < 0.9*r.Model.Mean || r.Quiet.Mean > r.Model.Mean {
			t.Errorf("fixed(%d): %.3f in 400 ms of %.3f in 2 s", n, r.Quiet.Mean, r.Model.Mean)
		}
	}
}

// At 1x, 60 slots without a queue refuse a tenth of what comes (Erlang's loss formula:
// 0.0963), and with one hardly anything.
func TestModelWithoutAQueue(t *testing.T) {
	p := Cold(1, 60, 50*time.Millisecond, 20*second, 5)
	ratio := func(c Contestant) float64 {
		r := newTally(p).result("x", 1, 0, false)
		if err := Model(c, p, r); err != nil {
			t.Fatal(err)
		}
		return r.Model.Mean
	}
	with, without := ratio(Contestant{Law: limit.Fixed(60)}), ratio(Contestant{Law: limit.Fixed(60), NoQueue: true})
	// The load and the work of a seed vary by 0.65 % each, 0.9 % both, and where slots
	// are scarce all of that is felt: four deviations.
	if math.Abs(without-0.904) > 4*0.009 || with < without+0.05 {
		t.Errorf("%.3f with a queue, %.3f without", with, without)
	}
}

// In the second phase a limit of 60 before 20 slots serves as much, and in the others
// one of 20 before 60 a third.
func TestModelOfSteps(t *testing.T) {
	p := Step(1.5, 60, 50*time.Millisecond, 10*second, 4)
	r := newTally(p).result("x", 1, 0, false)
	if err := Model(Contestant{Law: limit.Fixed(20)}, p, r); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.0 / 3, 1, 1.0 / 3} {
		// 4,000 answers: 1.6 % of them, four times, and a queue of a few dozen.
		if d := math.Abs(r.Phases[i].Model.Mean - want); d > want*(4*0.016+0.01) {
			t.Errorf("phase %d: ratio %.3f, want %.3f", i, r.Phases[i].Model.Mean, want)
		}
	}
}

func TestBelow(t *testing.T) {
	var h hist.Histogram
	for i := 1; i <= 1000; i++ {
		h.Add(time.Duration(i) * time.Millisecond)
	}
	for _, ms := range []int{10, 100, 400, 999} {
		// Evenly spread inside a bucket, as these are: to within one of them.
		if got, want := below(&h, time.Duration(ms)*time.Millisecond), float64(ms)/1000; math.Abs(got-want) > 0.0015 {
			t.Errorf("%v below %d ms, want %v", got, ms, want)
		}
	}
	if below(new(hist.Histogram), second) != 0 {
		t.Error("something is below in an empty one")
	}
}
