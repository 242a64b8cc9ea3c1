package goodput

import (
	"fmt"
	"strings"
)

// explainPressure says how short of processors the process is, or that this is not known:
// nothing where no signal is configured.
func explainPressure(b *strings.Builder, s *Stats) {
	switch {
	case s.PressureAbsent:
		fmt.Fprintf(b, "  pressure not known, goes on without: %s\n", s.PressureSays)
	case s.PressureSays != "":
		fmt.Fprintf(b, "  pressure %.2g of what is too much: %s\n", s.Pressure, s.PressureSays)
	}
}
