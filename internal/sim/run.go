package sim

import "time"

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

// capacity fills in what the resources can do of the mix that came, and the least
// of it: the capacity of the whole.
func (w *world) capacity() {
	r := w.result
	work, visits := w.load()
	for i, t := range w.tiers {
		slots := t.slots()
		if slots == 0 || work[i] == 0 {
			continue
		}
		best := 0.0
		for n := 1; n <= slots; n++ {
			best = max(best, float64(n)/t.Contention.at(n, 0))
		}
		speed := newTimeline(t.Speed, stream(r.Seed, streamSpeed, i)).mean(w.Warmup, w.Length)
		perSecond := best * speed / work[i] // requests of clients
		r.Tiers[i].Capacity = perSecond * visits[i]
		if r.Capacity == 0 || perSecond < r.Capacity {
			r.Capacity = perSecond
		}
	}
	if r.Capacity == 0 { // no bound: everything that comes can be done
		r.Capacity = float64(r.Total.Requests) / r.Window.Seconds()
	}
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
		if c.entry.Slots == 0 {
			mean *= float64(max(c.Cost, 1))
		}
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
