package plan

import (
	"math"
	"testing"
	"time"
)

// A sample has the moments and the quantiles of its distribution. Of the strata the
// last is a quantile at 1 - 5e-6, which cuts the variance of a lognormal with CV 2 by
// 1 % and its mean by less than 0.01 %.
func TestServices(t *testing.T) {
	for _, c := range []struct {
		s       Service
		p99     float64
		cv      float64
		classes int
	}{
		{fixed50, 0.05, 0, 1},
		{exp50, 0.05 * math.Log(100), 1, 1},
		{logn50, 0.428, 2, 1},
		{Service{Mean: 50 * ms, Shape: Tailed, P99: 50 * ms}, 0.05, 0, 1},
		// sigma = z - sqrt(z^2 - 2 ln 6) = 0.976; CV = sqrt(exp(sigma^2) - 1)
		{Service{Mean: 50 * ms, Shape: Tailed, P99: 300 * ms}, 0.3, 1.261, 1},
		// 0.98 exponential of 32.65 ms and 0.02 of 900 ms: E[S^2] = 0.01829.
		{Service{Mean: 50 * ms, Shape: Tailed, P99: 900 * ms}, 0.9, math.Sqrt((0.98*2*0.032653*0.032653+0.02*0.81)/0.0025 - 1), 2},
	} {
		if err := c.s.Validate(); err != nil {
			t.Errorf("%v: %v", c.s, err)
			continue
		}
		w := mix([]Class{{Service: c.s, Share: 1}})
		near(t, c.s.String()+" mean", w.mean, 0.05, 1e-6)
		near(t, c.s.String()+" p99", newServer(w, 1, 0.99).alone(), c.p99, 0.001)
		near(t, c.s.String()+" CV", math.Sqrt(w.cv2), c.cv, 0.01)
		if n := len(c.s.classes()); n != c.classes {
			t.Errorf("%v has %d classes", c.s, n)
		}
	}
}

func TestWork(t *testing.T) {
	w := mix([]Class{{Service: exp50, Share: 1}})
	near(t, "the slowest tenth of exponential work", w.slowest(0.1), 0.1*(1+math.Log(10)), 0.001)
	near(t, "longer than 200 ms", w.longer(0.2), math.Exp(-4), 0.001)
	if f := mix([]Class{{Service: fixed50, Share: 1}}); f.longer(0.05) != 0 || f.longer(0.049) != 1 {
		t.Errorf("longer than 50 ms of 50 ms: %v", f.longer(0.05))
	}
	two := mix([]Class{{"a", Service{Mean: 10 * ms, Shape: Fixed}, 3}, {"b", Service{Mean: 50 * ms, Shape: Fixed}, 1}})
	near(t, "mean of two", two.mean, 0.02, 1e-9)
	near(t, "CV of two", two.cv2, 0.75, 1e-6) // (0.75 x 10^2 + 0.25 x 50^2)/20^2 - 1
	near(t, "part of the slower", two.slowest(0.25), 0.625, 1e-6)
	near(t, "twice as long", two.stretched(2).mean, 0.04, 1e-9)
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		brief(0.0499): "49.9ms", brief(8.3333): "8.33s", brief(41.666): "41.7s", brief(190): "3m10s", brief(3600): "1h", brief(180): "3m",
		brief(0): "0s", brief(-1): "0s", brief(math.NaN()): "0s", brief(1e-12): "0s", brief(1e12): "over a year", brief(7.5e-5): "75µs", brief(43200): "12h",
		figures(1200): "1200", figures(66.6667): "66.67", figures(0.26667): "0.2667", figures(0): "0", figures(1048576e6): "1048576000000",
		percent(0.2166): "21.7 %", percent(0): "0 %", percent(1): "100 %", percent(0.99999): "> 99.99 %", percent(1e-5): "< 0.01 %", percent(0.99123): "99.12 %",
		size(20_100_000): "20.1MB", size(1): "1B", size(1e9): "1GB", size(5e14): "500TB",
		quantileName(0.99): "p99", quantileName(0.999): "p99.9", miss(0.99): "1 %", miss(0.999): "0.1 %",
		fineQuantile(math.Pow(0.99, 0.01)): "p99.99", fineQuantile(math.Pow(0.99, 0.1)): "p99.9", fineQuantile(0.5): "p50",
		plural(1, "slot"): "1 slot", plural(60, "slot"): "60 slots",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if d := seconds(1e30); d != math.MaxInt64 || seconds(0.05) != 50*time.Millisecond {
		t.Errorf("seconds: %v", d)
	}
}
