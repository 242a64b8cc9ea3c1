package live

import (
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
)

// plays is how often the model plays a plan: a law that is random is begun with another
// seed each time, so the deviation says how far a run may be from the mean.
const plays = 8

// Model plays p against the law of c in simulated time and fills in what r has of it. The
// requests, their work and the slots are those of the run; work takes longer by what
// the sleeps of the run overran. So what differs is what a network, a scheduler and the
// runtime of goodput do, and the dice of the law.
func Model(c Contestant, p Plan, r *Result) error {
	s := scenario(c, p, r.Speed)
	ratios, quicks := make([]float64, plays), make([]float64, plays)
	phases := make([][]float64, len(p.Phases))
	for n := range plays {
		s.Trace = trace(p, r.Speed)
		played, err := sim.Run(s, p.Seed+uint64(n))
		if err != nil {
			return err
		}
		t := newTally(p)
		for i, b := range played.Series[:min(len(played.Series), len(t.bins))] {
			t.bins[i].Arrived, t.bins[i].Good = int(b.Arrivals), int(b.InTime)
		}
		ratios[n], _ = t.ratios(0, p.Length(), r.Speed)
		quicks[n] = ratios[n] * below(&played.Total.Good, p.Objective)
		begin := time.Duration(0)
		for i, ph := range p.Phases {
			one, _ := t.ratios(begin, begin+ph.Length, r.Speed)
			phases[i] = append(phases[i], one)
			begin += ph.Length
		}
	}
	r.Model, r.Quiet = estimate(ratios), estimate(quicks)
	for i := range phases {
		r.Phases[i].Model = estimate(phases[i])
	}
	return nil
}

// scenario is p as the simulator takes it, without its requests.
func scenario(c Contestant, p Plan, speed float64) sim.Scenario {
	core := &admission.Config{Limit: c.Law, Objective: p.Objective}
	if c.NoQueue {
		core.Depth = admission.NoQueue
	}
	tier := sim.Tier{
		Name: "backend", Slots: p.Phases[0].Slots,
		Policy:  sim.Policy{Name: c.Name, Core: core},
		Service: sim.Dist{Kind: sim.Exponential, Mean: time.Duration(float64(p.Service) / speed)},
	}
	at := time.Duration(0)
	for i, ph := range p.Phases {
		if i > 0 {
			tier.SlotSteps = append(tier.SlotSteps, sim.SlotStep{At: at, Slots: ph.Slots})
		}
		at += ph.Length
	}
	return sim.Scenario{
		Name: p.Name, Length: p.Length(), Bins: int(p.Length() / binLength),
		Tiers:   []sim.Tier{tier},
		Classes: []sim.Class{{Deadlines: []sim.Deadline{{After: p.Deadline, Share: 1}}, Patience: sim.Leaves}},
	}
}

// trace hands out the requests of p, with work that takes as long as at that speed.
func trace(p Plan, speed float64) func(*sim.Job) bool {
	all := slices.Collect(p.Requests()) // not Pull, which would leave a goroutine behind
	return func(j *sim.Job) bool {
		if len(all) == 0 {
			return false
		}
		r := all[0]
		all = all[1:]
		*j = sim.Job{At: r.Due, Service: max(time.Duration(float64(r.Work)/speed), 1)}
		return true
	}
}

// An Estimate is the mean of several plays and their standard deviation.
type Estimate struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

func estimate(v []float64) *Estimate {
	mean, dev := spread(v)
	return &Estimate{mean, dev}
}

// below returns the part of h that is at most d, interpolated inside a bucket.
func below(h *hist.Histogram, d time.Duration) float64 {
	if h.Count == 0 {
		return 0
	}
	n, last := 0.0, hist.Index(d)
	for _, c := range h.Counts[:last] {
		n += float64(c)
	}
	from := 0.0
	if last > 0 {
		from = hist.Bound(last - 1)
	}
	n += float64(h.Counts[last]) * (d.Seconds() - from) / (hist.Bound(last) - from)
	return n / float64(h.Count)
}
