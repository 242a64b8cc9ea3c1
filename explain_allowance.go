package goodput

import "fmt"

// explainAllowance says what is left of the allowance, and which of the two rates bounds
// what can be served: nothing without an allowance.
func explainAllowance(f *facts, s *Stats) {
	a := s.Allowance
	if a.Rate == 0 {
		return
	}
	slots, binds := s.Derivation.SlotRate()
	bound := fmt.Sprintf("the slots are what bounds the rate, they serve %.4g/s", slots)
	if binds {
		bound = fmt.Sprintf("it is what bounds the rate, the slots could serve %.4g/s", slots)
	}
	f.add("allowed", "%.6g/s, burst %.6g: %.3g left; %s", a.Rate, a.Burst, s.AllowanceLeft, bound)
}

func (s *Stats) rateBinds() bool {
	_, binds := s.Derivation.SlotRate()
	return binds
}
