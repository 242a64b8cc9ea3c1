package goodput

import (
	"cmp"
	"strconv"
	"strings"
)

// explainPressure says how short of processors the process is, or that this is not known:
// nothing where no signal is configured.
func explainPressure(f *facts, s *Stats) {
	switch {
	case s.PressureAbsent:
		f.add("pressure", "not known, goes on without: %s", s.PressureSays)
	case s.PressureSays != "":
		f.add("pressure", "%s of what is too much: %s", pressureFigure(s.Pressure), s.PressureSays)
	}
}

// pressureFigure returns a level in two decimals, and in as many more as it takes to be on
// the same side as the level of where a law acts: from 0.8 on it does not raise the limit,
// and beyond 1 it lowers it. So 1.004 is not 1.
func pressureFigure(level float64) string {
	for decimals := 2; ; decimals++ {
		s := strconv.FormatFloat(level, 'f', decimals, 64)
		read, _ := strconv.ParseFloat(s, 64)
		// 17 decimals tell apart all numbers from 0.5 to 2 that a float64 can be.
		if decimals == 17 || cmp.Compare(read, 0.8) == cmp.Compare(level, 0.8) && cmp.Compare(read, 1) == cmp.Compare(level, 1) {
			return strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
	}
}
