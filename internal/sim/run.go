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

// With returns s with the policies of its tiers replaced, for a comparison: by one for
// all of them, or by one for each. What a resource can do and what in time means stay
// as they were.
func (s Scenario) With(policies ...Policy) Scenario {
	tiers := make([]Tier, len(s.Tiers))
	for i, t := range s.Tiers {
		t.Objective = t.objective()
		if t.Slots == 0 {
			t.Slots = t.slots() // else a policy without a limit would have no end of them
		}
		t.Policy = policies[min(i, len(policies)-1)]
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
	if c := t.cores(); c != nil {
		start, _ := c.WithDefaults().Limit.Start()
		return n * start
	}
	return n * max(t.Policy.Baseline.Limit, 0)
}

// finish sums up.
func (w *world) finish() {
	r := w.result
	r.Total.Name = "total"
	w.fold()
	for i := range r.Classes {
		r.Total.add(&r.Classes[i])
	}
	w.capacity()
	w.countGroups()
	w.average()
}

// Objective returns what in time means for a request without a deadline at the
// first tier.
func (s *Scenario) Objective() time.Duration { return s.Tiers[0].objective() }
