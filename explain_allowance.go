package goodput

import (
	"fmt"
	"strings"
)

// explainAllowance says what is left of the allowance, and which of the two rates bounds
// what can be served: nothing without an allowance.
func explainAllowance(b *strings.Builder, s *Stats) {
	a := s.Allowance
	if a.Rate == 0 {
		return
	}
	fmt.Fprintf(b, "  allowed  %.6g/s, burst %.6g: %.3g left", a.Rate, a.Burst, s.AllowanceLeft)
	if slots, binds := s.Derivation.SlotRate(); binds {
		fmt.Fprintf(b, "; it is what bounds the rate, the slots could serve %.4g/s\n", slots)
	} else {
		fmt.Fprintf(b, "; the slots are what bounds the rate, they serve %.4g/s\n", slots)
	}
}

func (s *Stats) rateBinds() bool {
	_, binds := s.Derivation.SlotRate()
	return binds
}
