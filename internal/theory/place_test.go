package theory

import (
	"math"
	"testing"
)

// Depth 480 of 60 slots with 50 ms is the rule of thumb for 400 ms. The quantile
// of its last place: P(E > t) is below 1e-25 there, so t solves
// exp(-t/50ms) (60/59)^480 = 1 %.
func TestLastPlaceOfTheRuleOfThumb(t *testing.T) {
	want := 0.05 * (math.Log(100) + 480*math.Log(60.0/59))
	near(t, PlaceQuantile(480, 60, 0.05, 0.99), want, 1e-11, "p99 at place 480")
	near(t, want, 0.6336, 1e-4, "what is quoted")
	near(t, PlaceFixed(480, 60, 0.05), 0.450, 1e-13, "fixed service at place 480")
}

// The depths that are quoted: 201 for 400 ms; for 2 s 2,105, which exp(-40)
// (60/59)^d = 1 % gives at d = 2105.9. With a fixed service 420 and 2,340.
func TestDepthOfAnObjective(t *testing.T) {
	for _, c := range []struct {
		objective float64
		want      int
		ok        bool
		fixed     int
	}{
		{0.4, 201, true, 420}, {2, 2105, true, 2340}, {0.2, 0, false, 180}, {0.2302, 0, false, 216}, {0.2304, 0, true, 216},
	} {
		got, ok := PlaceDepth(60, 0.05, c.objective, 0.99)
		if got != c.want || ok != c.ok {
			t.Errorf("PlaceDepth for %v s = %d, %v, want %d, %v", c.objective, got, ok, c.want, c.ok)
		}
		if ok && !(PlaceTail(got, 60, 0.05, c.objective) <= 0.01 && PlaceTail(got+1, 60, 0.05, c.objective) > 0.01) {
			t.Errorf("for %v s, depth %d is not the last that meets it", c.objective, got)
		}
		// The longest response of a fixed service, and of one place more.
		if PlaceFixed(c.fixed, 60, 0.05) > c.objective+1e-12 || PlaceFixed(c.fixed+1, 60, 0.05) <= c.objective {
			t.Errorf("for %v s, %d is not the depth for a fixed service", c.objective, c.fixed)
		}
	}
	// Depth 2,400 for a deadline of 2 s keeps a fifth: 21.7 % in a simulation
	// of a queue that is not always full.
	near(t, 1-MMcK{60, 2400, 3600, 0.05}.ResponseTail(2), 0.2143, 1e-3, "in time at depth 2,400")
	near(t, 1-PlaceTail(2400, 60, 0.05, 2), 0.2117, 1e-3, "in time at place 2,400")
}

// The closed form against the convolution of the departures with the service.
func TestPlaceTailAgainstConvolution(t *testing.T) {
	for _, c := range []struct {
		d, slots int
	}{{0, 1}, {5, 1}, {0, 60}, {1, 60}, {480, 60}, {3, 2}, {200, 2}, {40, 5000}} {
		const mean = 0.05
		rate := float64(c.slots) / mean
		for _, f := range []float64{0.5, 1, 2} {
			x := f * (mean + float64(c.d)/rate)
			// P(S > x), or S = u and the departures take longer than x - u.
			want := math.Exp(-x/mean) + integral(func(u float64) float64 {
				return math.Exp(-u/mean) / mean * ErlangTail(c.d, rate, x-u)
			}, x, 20_000)
			if got := PlaceTail(c.d, c.slots, mean, x); !(math.Abs(got-want) < 1e-8) {
				t.Errorf("PlaceTail(%d, %d, %v, %v) = %.12f, want %.12f", c.d, c.slots, mean, x, got, want)
			}
		}
	}
}

// Deeper is later, more slots are sooner, later is less likely; and the edges.
func TestPlaceTailIsMonotone(t *testing.T) {
	for _, c := range []int{1, 2, 3, 60, 100_000} {
		for _, d := range []int{0, 1, 50, 5000} {
			last := 1.0
			for x := 0.0; x < 40; x += 0.37 {
				p := PlaceTail(d, c, 0.05, x)
				// Rounding: 12 figures.
				if !(p >= 0 && p <= last*(1+1e-11)) {
					t.Fatalf("P(response > %v) at place %d of %d = %v after %v", x, d, c, p, last)
				}
				if deeper := PlaceTail(d+1, c, 0.05, x); deeper < p*(1-1e-11) {
					t.Fatalf("place %d of %d, %v s: %v, but %v one deeper", d, c, x, p, deeper)
				}
				if more := PlaceTail(d, c+1, 0.05, x); more > p*(1+1e-11) {
					t.Fatalf("place %d of %d, %v s: %v, but %v with one slot more", d, c, x, p, more)
				}
				last = p
			}
		}
	}
	inf := math.Inf(1)
	for _, c := range []struct{ got, want float64 }{
		{PlaceTail(5, 2, 1, -1), 1},
		{PlaceTail(5, 2, 1, 0), 1},
		{PlaceTail(5, 2, 1, inf), 0},
		{PlaceTail(5, 2, 1e-300, 1e300), 0},
		{PlaceTail(0, 7, 1, 2), math.Exp(-2)},
		{PlaceQuantile(5, 2, 1, 1), inf},
		{PlaceQuantile(5, 2, 1, 0), 0},
	} {
		near(t, c.got, c.want, 1e-13, "at the edge")
	}
}
