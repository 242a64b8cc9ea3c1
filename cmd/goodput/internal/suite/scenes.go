package suite

import (
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// What scenarios are made of. Where nothing else is said a resource has 60 slots, work takes
// 50 ms, exponential, the objective is 400 ms, and clients care for 2 s.

const (
	slots     = 60
	service   = 50 * time.Millisecond
	objective = 400 * time.Millisecond
	deadline  = 2 * time.Second
)

var exponential = sim.Dist{Kind: sim.Exponential, Mean: service}

// lognormal has a coefficient of variation of cv; 0 is work that is always as long.
func lognormal(cv float64) sim.Dist {
	if cv == 0 {
		return sim.Dist{Kind: sim.Fixed, Mean: service}
	}
	return sim.Dist{Kind: sim.Lognormal, Mean: service, CV: cv}
}

// bimodal is 50 ms on average too, with a coefficient of variation of 2.7: 90 % of the work
// takes 5 ms and the rest 455 ms.
var bimodal = sim.Dist{Kind: sim.Modal, Modes: []sim.Mode{{Value: 5 * time.Millisecond, Share: 9}, {Value: 455 * time.Millisecond, Share: 1}}}

// A scene is a scenario in the making: one tier, one class.
type scene struct{ sim.Scenario }

// overload is so many times the requests that so many slots can serve, for length.
func overload(times float64, slots int, work sim.Dist, length time.Duration) *scene {
	return &scene{sim.Scenario{
		Length: length,
		Tiers:  []sim.Tier{{Name: "main", Objective: objective, Slots: slots, Service: work}},
		Classes: []sim.Class{{
			Name:      "all",
			Arrivals:  sim.Arrivals{Rate: times * rate(slots, work)},
			Deadlines: []sim.Deadline{{After: deadline, Share: 1}},
		}},
	}}
}

// load is overload of the usual resource.
func load(times float64, length time.Duration) *scene {
	return overload(times, slots, exponential, length)
}

// rate is what so many slots serve, per second.
func rate(slots int, work sim.Dist) float64 { return float64(slots) / mean(work).Seconds() }

func mean(work sim.Dist) time.Duration {
	if work.Kind == sim.Modal {
		sum, n := 0.0, 0.0
		for _, m := range work.Modes {
			sum += float64(m.Value) * m.Share
			n += m.Share
		}
		return time.Duration(sum / n)
	}
	return work.Mean
}

func (s *scene) slotsAt(at time.Duration, n int) *scene {
	s.Tiers[0].SlotSteps = append(s.Tiers[0].SlotSteps, sim.SlotStep{At: at, Slots: n})
	return s
}

func (s *scene) speedAt(at time.Duration, factor float64) *scene {
	s.Tiers[0].Speed.Steps = append(s.Tiers[0].Speed.Steps, sim.SpeedStep{At: at, Factor: factor})
	return s
}

// slowing makes work take so many times as long at the end as at the start, in a
// straight line of 360 steps: 10 s each in an hour.
func (s *scene) slowing(times float64) *scene {
	const steps = 360
	for i := 1; i < steps; i++ {
		part := float64(i) / steps
		s.speedAt(time.Duration(part*float64(s.Length)), 1/(1+(times-1)*part))
	}
	return s
}

// pausing lets nothing move for a while of each period.
func (s *scene) pausing(period, still time.Duration) *scene {
	for at := period - still; at < s.Length; at += period {
		s.Tiers[0].Speed.Stalls = append(s.Tiers[0].Speed.Stalls, sim.Stall{At: at, For: still})
	}
	return s
}

// stalled lets nothing move for once.
func (s *scene) stalled(at, still time.Duration) *scene {
	s.Tiers[0].Speed.Stalls = append(s.Tiers[0].Speed.Stalls, sim.Stall{At: at, For: still})
	return s
}

// loadAt changes what is offered to so many times what the slots can serve at first.
func (s *scene) loadAt(at time.Duration, times float64) *scene {
	t, a := &s.Tiers[0], &s.Classes[0].Arrivals
	a.Changes = append(a.Changes, sim.Change{At: at, Rate: times * rate(t.Slots, t.Service)})
	return s
}

// within is for work that takes longer than usual.
func (s *scene) within(objective, deadline time.Duration) *scene {
	s.Tiers[0].Objective = objective
	for i := range s.Classes {
		s.Classes[i].Deadlines[0].After = deadline
	}
	return s
}

// retrying lets each client try three times, after so long, always the same: nothing spreads
// them.
func (s *scene) retrying(backoff time.Duration) *scene {
	s.Classes[0].Retry = sim.Retry{Attempts: 3, Backoff: backoff, Max: max(backoff, time.Nanosecond), NoJitter: true}
	return s
}

// probed adds a health probe of 1 ms a second, which nothing tells from a request.
func (s *scene) probed() *scene {
	probe := s.Classes[0]
	probe.Name = "probes"
	probe.Arrivals = sim.Arrivals{Process: sim.Constant, Rate: 1}
	probe.Service = sim.Dist{Kind: sim.Fixed, Mean: time.Millisecond}
	s.Classes = append(s.Classes, probe)
	return s
}

// A fleet is 50 instances over one database of 200 slots, offered 1.5 times what that
// serves. It counts the last minute: what an instance has is a mean over that long.
func fleet(length time.Duration) *scene {
	s := overload(1.5, 200, exponential, length)
	s.Tiers[0].Instances = 50
	s.Warmup = length - time.Minute
	return s
}

// mixed is a fleet of two halves. Each instance is a tier before a database that nothing else
// limits. The second half has so many times the traffic, or work that takes so many times
// as long, 50 ms; both together are offered 1.5 times what the database serves.
func mixed(length time.Duration, traffic, longer float64) *scene {
	s := fleet(length)
	database := s.Tiers[0]
	database.Name, database.Instances = "database", 0
	database.Policy = sim.Policy{Name: "none", Baseline: &sim.Baseline{Limit: sim.Unbounded}}
	light := s.Classes[0]
	s.Tiers, s.Classes = nil, nil
	wanted := 1.5 * float64(database.Slots) / (1/longer + traffic) // slots, over the work of the second half
	for i, half := range []struct {
		name         string
		times, parts float64
	}{{"light", 1, longer}, {"heavy", traffic, 1}} {
		work := sim.Dist{Kind: sim.Exponential, Mean: time.Duration(float64(service) / half.parts)}
		// An instance itself does next to nothing: what it waits for is the database.
		s.Tiers = append(s.Tiers, sim.Tier{
			Name: half.name, Objective: objective, Instances: 25, Slots: 100_000,
			Service: sim.Dist{Kind: sim.Fixed, Mean: 10 * time.Microsecond}, Next: &sim.Fan{Tier: 2, Service: work},
		})
		class := light
		class.Name, class.Tier = half.name, i
		class.Arrivals.Rate = wanted / service.Seconds() * half.times
		s.Classes = append(s.Classes, class)
	}
	s.Tiers = append(s.Tiers, database)
	return s
}

// endpoints are two behind one limiter: one works for 50 ms on the slots, the other for 10 ms
// and then waits 300 ms for something that has a limit of its own, and room. 1600/s and
// 500/s are (1600 x 50 ms + 500 x 10 ms) / 60 = 1.42 times what the slots can do. So
// 0.706 of it is served, with 60 at the slots and 500/s x 0.706 x 300 ms = 106 beyond, give
// or take 10, since they come by chance: with 183 in flight the slots are busy 95 % of
// the time, and with more the work waits for them.
func endpoints(length time.Duration) *scene {
	s := load(1, length)
	s.Tiers[0].Next = &sim.Fan{Tier: 1}
	s.Tiers = append(s.Tiers, sim.Tier{
		Name: "dependency", Objective: objective, Slots: 1000,
		Service: sim.Dist{Kind: sim.Fixed, Mean: 300 * time.Millisecond},
		Policy:  sim.Policy{Name: "its own", Baseline: &sim.Baseline{Limit: 1000, Depth: 0}},
	})
	local, far := s.Classes[0], s.Classes[0]
	local.Name, local.Arrivals.Rate, local.Local = "local", 1600, true
	far.Name, far.Arrivals.Rate = "far", 500
	far.Service = sim.Dist{Kind: sim.Exponential, Mean: 10 * time.Millisecond}
	s.Classes = []sim.Class{local, far}
	return s
}
