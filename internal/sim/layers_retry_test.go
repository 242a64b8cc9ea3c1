package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// layered is three layers that each send what fails four times, before a database of 60
// slots of 50 ms at the given load, half of whose work fails from 10 s to 70 s.
func layered(load float64, retry Retry) Scenario {
	core := func(n int) Policy {
		return Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(n), Objective: 400 * ms}}
	}
	s := Scenario{
		Warmup: 10 * time.Second, Length: 75 * time.Second, Bins: 75,
		Classes: []Class{{Arrivals: Arrivals{Rate: load * capacity}, Deadlines: []Deadline{{2 * time.Second, 1}}}},
	}
	for i := range 3 {
		s.Tiers = append(s.Tiers, Tier{Policy: core(1000), Service: Dist{Kind: Fixed, Mean: ms}, Next: &Fan{Tier: i + 1, Retry: retry}})
	}
	s.Tiers = append(s.Tiers, Tier{
		Policy: core(slots), Service: exponential50,
		Faults: []Fault{{10 * time.Second, time.Minute, 0.5}},
	})
	return s
}

// C069: three layers of four attempts are 64 calls at the bottom for one at the door in
// the worst case. Half of the calls failing there is 1 + 1/2 + 1/4 + 1/8 = 1.9 times the
// load while there is room for it, and at 0.7 of the capacity there is not: what is
// refused is tried again, and 0.7 become twenty times the capacity. With a budget of a
// tenth in each layer they are 1.1^3 = 1.33 of it, and never more.
//
// Tolerances: the calls to a layer are 50,000 and more, of which a tenth is exact but for
// the window that begins before the fault does: 1/60 of a tenth. What is counted has five
// seconds after the fault: 1.33 becomes 1.31.
func TestLayersOfRetries_C069(t *testing.T) {
	for _, c := range []struct {
		name        string
		retry       Retry
		least, most float64 // calls at the bottom for each request
		extra       float64 // the most in any layer
	}{
		{"no retries", Retry{}, 1, 1, 0},
		{"without budgets", Retry{Attempts: 4, Backoff: 10 * ms}, 20, 64, 3},
		{"with budgets", Retry{Attempts: 4, Backoff: 10 * ms, Budget: Budget{Ratio: 0.1}}, 1.25, 1.35, 0.102},
		{"with all there is", Retry{Attempts: 4, Backoff: 10 * ms, Budget: Budget{Ratio: 0.1}, Throttle: Throttle{K: 2}, Obey: true}, 1.25, 1.35, 0.102},
	} {
		for seed := range uint64(2) {
			r := play(t, layered(0.7, c.retry), seed)
			factor := float64(r.Tiers[3].Arrivals) / float64(r.Total.Requests)
			t.Logf("%s, seed %d: %.2f calls at the bottom for each request, extra in the layers %.3f, %.3f, %.3f; %.3f in time", c.name, seed, factor,
				r.Tiers[1].Extra(), r.Tiers[2].Extra(), r.Tiers[3].Extra(), float64(r.Total.InTime)/float64(r.Total.Requests))
			if factor < c.least || factor > c.most {
				t.Errorf("%s, seed %d: %.3f calls at the bottom for each request, want %v to %v", c.name, seed, factor, c.least, c.most)
			}
			for i := range r.Tiers {
				if extra := r.Tiers[i].Extra(); extra > c.extra {
					t.Errorf("%s, seed %d: layer %d gets %.3f more than without retries, want %v at most", c.name, seed, i+1, extra, c.extra)
				}
			}
			if after, back := recovery(r, 70*time.Second); !back || after > time.Second {
				t.Errorf("%s, seed %d: back %v, %v after the fault", c.name, seed, back, after)
			}
		}
	}
}

// A layer behind another one is slow: the slots outside are held for longer, and their
// own part of it is what it was, so that the law of that limit hears the same.
func TestSlowBehind(t *testing.T) {
	heard := func(further time.Duration) (held, own time.Duration, elsewhere float64) {
		law := &hears{}
		s := plain(0.5, exponential50, 0, 0)
		s.Warmup, s.Length = 0, 20*time.Second
		s.Tiers[0].Policy.Core = &admission.Config{Limit: law, Objective: time.Second}
		s.Tiers[0].Slots = 600 // the limit is not what bounds it
		s.Tiers[0].Service = Dist{Kind: Fixed, Mean: 10 * ms}
		s.Tiers[0].Next = &Fan{Tier: 1}
		s.Tiers = append(s.Tiers, Tier{Policy: fifo(600, 0), Service: Dist{Kind: Fixed, Mean: further}})
		r := play(t, s, 1)
		return law.last.Mean, law.last.Own, r.Tiers[0].Stats.Elsewhere
	}
	// A mean is a sum of seconds in floating point: a nanosecond is more than it loses.
	near := func(got, want time.Duration) bool { return got >= want-1 && got <= want+1 }
	for _, further := range []time.Duration{20 * ms, 200 * ms} {
		held, own, elsewhere := heard(further)
		want := further.Seconds() / (further + 10*ms).Seconds()
		if !near(held, further+10*ms) || !near(own, 10*ms) || elsewhere < want-1e-9 || elsewhere > want+1e-9 {
			t.Errorf("%v further in: held %v, of its own %v, elsewhere %v; want %v, 10ms, %v", further, held, own, elsewhere, further+10*ms, want)
		}
	}
}

// hears is a law that remembers the last window with samples.
type hears struct{ last limit.Window }

func (*hears) Start() (int, error) { return 600, nil }

func (h *hears) Begin(uint64) limit.State { return h }

func (h *hears) Next(now int, w *limit.Window) limit.Move {
	if w.Samples > 0 {
		h.last = *w
	}
	return limit.Move{Limit: now}
}

func (*hears) Why() string { return "" }
