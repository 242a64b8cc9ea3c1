package sim

import (
	"slices"
	"time"
)

const (
	defaultBins = 120
	maxBins     = 2000
)

// Run plays s with seed. The error is the sentence of Scenario.Validate.
func Run(s Scenario, seed uint64) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	w, err := newWorld(&s, seed)
	if err != nil {
		return nil, err
	}
	w.run()
	return w.result, nil
}

// With returns s with the policy of every tier replaced by p, for a comparison.
// What in time means stays as it was.
func (s Scenario) With(p Policy) Scenario {
	tiers := make([]Tier, len(s.Tiers))
	for i, t := range s.Tiers {
		t.Objective = t.objective()
		if t.Slots == 0 {
			t.Slots = t.slots() // else a policy without a limit would have no end of them
		}
		t.Policy = p
		tiers[i] = t
	}
	s.Tiers = tiers
	return s
}

// slots returns how many requests of cost 1 the resource of t serves at once, or 0
// if nothing bounds them.
func (t *Tier) slots() int {
	if t.Slots > 0 {
		return t.Slots
	}
	n := max(t.Instances, 1)
	if c := t.Policy.Core; c != nil {
		start, _ := c.Limit.Start()
		return n * start
	}
	return n * max(t.Policy.Baseline.Limit, 0)
}

// finish sums up.
func (w *world) finish() {
	r := w.result
	r.Total.Name = "total"
	for i := range r.Classes {
		r.Total.add(&r.Classes[i])
	}
	w.capacity()
}

// capacity fills in what the resources can do of the mix that came.
//
// Tiers that share requests are one system, whose narrowest tier bounds it. Systems
// that share none do not slow one another down: where one of them is overloaded, the
// capacity of the whole is what each can do of its own.
func (w *world) capacity() {
	r := w.result
	work, visits := w.load()
	offered := 0.0
	for i := range r.Classes {
		offered += float64(r.Classes[i].Requests) / r.Window.Seconds()
	}
	system := w.systems()
	busiest := make([]float64, len(w.tiers)) // of each system: slots wanted over slots there are
	for i, t := range w.tiers {
		slots := t.slots()
		if slots == 0 || work[i] == 0 {
			continue
		}
		best := 0.0
		for n := 1; n <= slots; n++ {
			best = max(best, float64(n)/t.Contention.at(n, 0))
		}
		best *= newTimeline(t.Speed, stream(r.Seed, streamSpeed, i)).mean(w.Warmup, w.Length)
		r.Tiers[i].Capacity = best / work[i] * visits[i]
		busiest[system[i]] = max(busiest[system[i]], offered*work[i]/best)
	}
	top := slices.Max(busiest)
	switch {
	case top == 0: // nothing is bounded: everything that comes can be done
		r.Capacity = offered
	case top <= 1:
		r.Capacity = offered / top
	default:
		for i, c := range w.classes {
			mine := float64(r.Classes[i].Requests) / r.Window.Seconds()
			r.Capacity += mine / max(busiest[system[c.entry.index]], 1)
		}
	}
}

// systems returns, for each tier, the first tier of those that it shares requests with.
func (w *world) systems() []int {
	first := make([]int, len(w.tiers))
	for i := range first {
		first[i] = i
	}
	for range w.tiers { // as often as a chain may be long
		for i, t := range w.tiers {
			if t.Next != nil {
				least := min(first[i], first[t.Next.Tier])
				first[i], first[t.Next.Tier] = least, least
			}
		}
	}
	return first
}

// load returns, for each tier, the seconds of its slots that a request of a client
// takes and how often it goes there, mean over what came.
func (w *world) load() (work, visits []float64) {
	work, visits = make([]float64, len(w.tiers)), make([]float64, len(w.tiers))
	total := 0.0
	for i, c := range w.classes {
		n := float64(w.result.Classes[i].Requests)
		if n == 0 {
			continue
		}
		total += n
		mean := c.traced.Seconds() / n // of recorded work
		if w.Trace == nil || c.traced == 0 {
			mean = w.workOf(i).average().Seconds() * c.meanSize()
		}
		mean *= float64(max(c.Cost, 1))
		times, t := n, c.entry
		for {
			work[t.index] += times * mean
			visits[t.index] += times
			if t.Next == nil {
				break
			}
			times *= float64(max(t.Next.N, 1))
			t = w.tiers[t.Next.Tier]
			mean = t.Tier.Service.average().Seconds()
		}
	}
	if total > 0 {
		for i := range work {
			work[i] /= total
			visits[i] /= total
		}
	}
	return work, visits
}

func (c *class) meanSize() float64 {
	if len(c.Sizes) == 0 {
		return 1
	}
	sum, last := 0.0, 0.0
	for i, s := range c.Sizes {
		sum += float64(s.Units) * (c.sizes[i] - last)
		last = c.sizes[i]
	}
	return sum
}

// Objective returns what in time means for a request without a deadline at the
// first tier.
func (s *Scenario) Objective() time.Duration { return s.Tiers[0].objective() }
