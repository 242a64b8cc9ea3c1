package virtual

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/live"
)

const ms = time.Millisecond

// never is a time without an end.
const never = -1

// bins returns a tally of a scene whose bins have the given good answers, a half of them
// quick, of 200 arrivals each.
func bins(s Scene, good func(i int) int) *tally {
	t := newTally(s)
	for i := range t.bins {
		n := good(i)
		t.bins[i] = bin{arrived: 200, good: n, quick: n / 2, goodHere: n, quickly: n / 2, limit: i}
	}
	return t
}

func TestTallyCounts(t *testing.T) {
	s := small()
	s.Phases = []Stage{{2 * second, 2}}
	y := newTally(s)
	one := func(due, took, work time.Duration, e ending) {
		y.arrive(live.Request{Due: due, Work: work}, int(due/ms))
		y.attempt(e, due+took, took, work)
		y.end(due, due, due+took, e)
	}
	one(0, 400*ms, 400*ms, inTime)       // quick
	one(100*ms, 401*ms, 300*ms, inTime)  // not quick
	one(600*ms, 800*ms, 800*ms, late)    // 400 ms of its work in each half
	one(700*ms, 3*ms, 20*ms, refused)    // of no work
	one(1900*ms, 300*ms, 300*ms, inTime) // 100 ms in the window, answered after it
	one(1950*ms, time.Second, time.Hour, refused)
	r := y.result()
	if r.Offered != 6 || r.InTime != 3 || r.TooLate != 1 || r.Rejected != 2 || r.Waiting != 1950 {
		t.Errorf("%+v", r)
	}
	// 6 arrived, of the 200 that two slots could serve.
	if r.Ratio != 3.0/6 || r.Quick != 2.0/6 || r.Steady != 1.0/2 {
		t.Errorf("ratios %v %v %v", r.Ratio, r.Quick, r.Steady)
	}
	if r.P50 != 401 || r.P99 != 800 || r.No50 != 1000 || r.Late != 0.5 || r.Refused != 2.0/6 {
		t.Errorf("%+v", r.Figures)
	}
	// 400 + 300 + 800 + 100 ms were worked in 4 s, and of the three that ended in the window two
	// were in time. In the second half 400 + 100 ms of 2 s, and the one that ended was late.
	if math.Abs(r.Even-1.6/4*2/3) > 1e-9 || r.EvenSteady != 0 {
		t.Errorf("even %v, in the second half %v", r.Even, r.EvenSteady)
	}
	if empty := newTally(s).result(); empty.Ratio != 0 || empty.Even != 0 || empty.P99 != 0 || empty.Refused != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

// Phases of 60, 20 and 60 slots could answer 120, 40 and 120 in a bin.
func TestPhasesSettle(t *testing.T) {
	s := Scene{Work: exponential50, Phases: []Stage{{15 * second, 60}, {15 * second, 20}, {15 * second, 60}}, Deadline: long}
	r := bins(s, func(i int) int {
		switch {
		case i < 150:
			return 120
		case i < 160:
			return 0 // a second of nothing
		case i < 300:
			return 40
		case i < 450:
			return 60
		}
		return 0
	}).result()
	want := []Phase{{60, 1, 0.5, 1, nil, 74.5}, {20, 14.0 / 15, 7.0 / 15, 0.9, nil, 224.5}, {60, 0.5, 0.25, 0.5, nil, 374.5}}
	for i, p := range r.Phases {
		settle := p.Settle
		p.Settle = nil
		if p != want[i] {
			t.Errorf("phase %d: %+v, want %+v", i, p, want[i])
		}
		// Of 2 s 95 % are 1.9: from 0.9 s on.
		if at := []float64{0, 0.9, never}[i]; (settle == nil) != (at == never) || settle != nil && math.Abs(*settle-at) > 1e-9 {
			t.Errorf("phase %d settles at %v, want %v", i, settle, at)
		}
	}
}

func TestRecovery(t *testing.T) {
	s := Scene{Work: exponential50, Phases: []Stage{{20 * second, 60}}, Deadline: long, Stall: &Stall{5 * second, 5 * second}}
	for _, c := range []struct {
		name string
		from int // the first bin that is good again, of 200 answers; of 180 at 0.9
		want float64
	}{
		{"at once", 100, 0},
		{"after a second and a half", 115, 1.5}, // less the bin of ten that the bound forgives
		{"never", 200, never},
	} {
		got := bins(s, func(i int) int {
			if i < 50 || i >= c.from {
				return 200
			}
			return 0
		}).result().Recovered
		if (got == nil) != (c.want == never) || got != nil && math.Abs(*got-c.want) > 0.1+1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
