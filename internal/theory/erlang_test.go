package theory

import (
	"math"
	"testing"
)

// near fails unless got is want to within the relative tolerance.
func near(t *testing.T, got, want, tolerance float64, format string, args ...any) {
	t.Helper()
	if got == want {
		return
	}
	if d := math.Abs(got - want); !(d <= tolerance*math.Abs(want)) {
		args = append(args, got, want, d/math.Abs(want), tolerance)
		t.Errorf(format+" = %.15g, want %.15g: off by %.2g, allowed is %.2g", args...)
	}
}

// Values of the published tables and of the figures that are quoted.
func TestErlangB(t *testing.T) {
	for _, c := range []struct {
		slots int
		load  float64
		want  float64
	}{
		{1, 1, 0.5}, {8, 8, 0.2356}, {60, 60, 0.0963}, {1, 0, 0}, {60, 180, 0.6694}, {6, 12, 0.5561},
		{0, 3, 1}, {0, 0, 1}, {5, math.Inf(1), 1}, {10, 4.461, 0.01}, {100, 84.064, 0.01},
	} {
		if got := ErlangB(c.slots, c.load); !(math.Abs(got-c.want) < 5e-5) {
			t.Errorf("ErlangB(%d, %v) = %.5f, want %v", c.slots, c.load, got, c.want)
		}
	}
}
