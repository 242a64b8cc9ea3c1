package sim

import "errors"

// Run plays s with seed. The error is the sentence of Scenario.Validate.
func Run(s Scenario, seed uint64) (*Result, error) {
	return nil, errors.New("sim: under construction")
}

// With returns s with the policy of every tier replaced by p, for a comparison.
func (s Scenario) With(p Policy) Scenario { return s }

// Ceilings returns the ceilings of s for seed.
func (s Scenario) Ceilings(seed uint64) (Ceilings, error) { return Ceilings{}, nil }

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (s Scenario) Validate() error { return nil }
