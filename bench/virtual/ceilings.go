package virtual

import (
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/internal/theory"
	"github.com/goodput/goodput/limit"
)

// scenario is s as the simulator takes it, with the requests of seed and goodput/fixed at
// the door. Attempts beyond the first are left out: package sim has clients of its own.
func (s Scene) scenario(seed uint64) sim.Scenario {
	tier := sim.Tier{
		Name: "backend", Slots: s.Phases[0].Slots, Service: s.Work.dist(),
		Policy: sim.Policy{Name: "goodput/fixed", Core: &admission.Config{Limit: limit.Fixed(s.Phases[0].Slots), Objective: objective}},
	}
	at := time.Duration(0)
	for i, st := range s.Phases {
		if i > 0 {
			tier.SlotSteps = append(tier.SlotSteps, sim.SlotStep{At: at, Slots: st.Slots})
		}
		at += time.Duration(st.Length)
	}
	if s.Stall != nil {
		tier.Speed.Stalls = []sim.Stall{{At: time.Duration(s.Stall.At), For: time.Duration(s.Stall.For)}}
	}
	all := slices.Collect(s.Requests(seed)) // not Pull, which would leave a goroutine behind
	return sim.Scenario{
		Name: s.Name, Length: s.length(), Tiers: []sim.Tier{tier},
		Classes: []sim.Class{{Deadlines: []sim.Deadline{{After: time.Duration(s.Deadline), Share: 1}}, Patience: sim.Leaves}},
		Trace: func(j *sim.Job) bool {
			if len(all) == 0 {
				return false
			}
			var q live.Request
			q, all = all[0], all[1:]
			*j = sim.Job{At: q.Due, Service: q.Work}
			return true
		},
	}
}

// ceiling is what nobody can exceed in s, for the requests of seed.
func (s Scene) ceiling(seed uint64) (Ceiling, error) {
	c := Ceiling{Scene: s.Name, Blind: 1}
	if s.Attempts > 1 {
		c.Missing = []string{"all: callers ask again with the whole deadline, and nothing bounds a request with all its attempts"}
		return c, nil
	}
	bound, err := s.scenario(seed).Ceilings(seed)
	if err != nil {
		return c, err
	}
	// Ceilings are shares of the capacity of the work that came, and ratios of a table are
	// of its mean: within 0.65 %, as the ratios themselves.
	c.SizeAware, c.Clairvoyant = round(bound.SizeAware), round(bound.Clairvoyant)
	if len(s.Phases) == 1 {
		c.NoQueue = round(theory.LossCeiling(s.Phases[0].Slots, s.Load) / min(s.Load, 1))
	} else {
		c.Missing = append(c.Missing, "no queue: Erlang's formula is about slots that stay")
	}
	return c, nil
}
