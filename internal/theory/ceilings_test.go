package theory

import (
	"math"
	"slices"
	"testing"
)

func TestCapacityAndLoss(t *testing.T) {
	near(t, Capacity(60, 0.05), 1200, 1e-13, "60 slots of 50 ms")
	near(t, Capacity(0, 1), 0, 0, "no slots")
	// 150/s, 300/s, 6 slots: 7,990 in a minute of the 9,000 that are possible.
	near(t, 9000*LossCeiling(6, 2), 7990, 1e-4, "a limit of 6 for a minute")
	near(t, LossCeiling(1, 1), 0.5, 1e-13, "one slot at its capacity")
	near(t, LossCeiling(60, 1e9), 1, 1e-6, "all the load there is")
}

// The table of what a refusal may cost at 10 times the capacity.
func TestRefusalCeiling(t *testing.T) {
	for _, c := range []struct{ r, load, want float64 }{
		{0.001, 10, 0.991}, {0.01, 10, 0.909}, {0.05, 10, 0.526}, {0.1, 10, 0}, {0.5, 10, 0}, {0, 1000, 1}, {0.3, 0.7, 0.7}, {0.3, 1, 1},
	} {
		got := RefusalCeiling(c.r, c.load)
		if !(math.Abs(got-c.want) < 5e-4) {
			t.Errorf("RefusalCeiling(%v, %v) = %.4f, want %v", c.r, c.load, got, c.want)
		}
		// What it stands for: the served and the refused fill the capacity.
		if got > 0 && c.load > 1 {
			near(t, got+c.r*(c.load-got), 1, 1e-12, "work at %v, %v", c.r, c.load)
		}
	}
}

func exponential(u float64) float64 { return -math.Log1p(-u) }

// lognormal has the mean 1 and the coefficient of variation cv.
func lognormal(cv float64) func(u float64) float64 {
	s := math.Sqrt(math.Log(1 + cv*cv))
	return func(u float64) float64 { return math.Exp(s*math.Sqrt2*math.Erfinv(2*u-1) - s*s/2) }
}

// The figures that are quoted, and the closed forms: of exponential sizes those
// up to x are the share 1 - exp(-x) with the work 1 - (1+x) exp(-x); of
// lognormal ones, with z the normal quantile, the work up to it is Phi(z - s).
func TestSizeAware(t *testing.T) {
	s := math.Sqrt(math.Log(5))
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	for _, c := range []struct{ rho, exponential, lognormal float64 }{
		{1.5, 1.35, 1.43}, {2, 1.63, 1.80}, {3, 2.09, 2.40}, {10, 4.13, 4.95},
	} {
		root := func(work func(float64) float64, lo, hi float64) float64 {
			for range 200 {
				if mid := (lo + hi) / 2; work(mid) < 1/c.rho {
					lo = mid
				} else {
					hi = mid
				}
			}
			return lo
		}
		e, l := SizeAware(c.rho, 1, exponential), SizeAware(c.rho, 1, lognormal(2))
		x := root(func(x float64) float64 { return 1 - (1+x)*math.Exp(-x) }, 0, 100)
		near(t, e, -c.rho*math.Expm1(-x), 1e-6, "exponential at %v", c.rho)
		z := root(func(z float64) float64 { return phi(z - s) }, -20, 20)
		near(t, l, c.rho*phi(z), 1e-6, "lognormal at %v", c.rho)
		if math.Abs(e-c.exponential) > 0.006 || math.Abs(l-c.lognormal) > 0.005 {
			t.Errorf("at %v: exponential %.4f, lognormal %.4f, want %v and %v", c.rho, e, l, c.exponential, c.lognormal)
		}
	}
	for _, rho := range []float64{0, 0.5, 1} {
		near(t, SizeAware(rho, 1, exponential), rho, 0, "up to the capacity")
	}
	// A scale changes nothing, and nothing is gained where all are alike.
	near(t, SizeAware(3, 0.05, func(u float64) float64 { return 0.05 * exponential(u) }), SizeAware(3, 1, exponential), 1e-12, "50 ms")
	near(t, SizeAware(3, 0.05, func(float64) float64 { return 0.05 }), 1, 1e-4, "fixed size")
}

// The sample against the greedy count it stands for, and against the quantile
// function it was drawn from.
func TestSizeAwareSample(t *testing.T) {
	sample := make([]float64, 100_000)
	for i := range sample {
		sample[i] = exponential((float64(i) + 0.5) / float64(len(sample)))
	}
	for _, rho := range []float64{0.5, 1, 1.5, 3, 10} {
		near(t, SizeAwareSample(rho, sample), SizeAware(rho, 1, exponential), 1e-4, "exponential sample at %v", rho)
	}
	for _, c := range []struct {
		rho    float64
		sorted []float64
		want   float64
	}{
		// Two of 2 ms and one of 4 s at twice the capacity: 2.002 s are left for
		// the long one, which is half of it.
		{2, []float64{0.002, 0.002, 4}, 2 * (2 + 1.998/4) / 3},
		{4, []float64{1, 1, 1, 1}, 1},
		{2, []float64{0, 0, 1}, 2 * 2.5 / 3},
		{3, []float64{0, 0}, 3},
		{3, nil, 1},
		{0.3, nil, 0.3},
		{0.3, []float64{1, 5}, 0.3},
		{1.5, []float64{1}, 1},
	} {
		near(t, SizeAwareSample(c.rho, c.sorted), c.want, 1e-12, "%v at %v", c.sorted, c.rho)
	}
}

// No choice of requests with the same work is larger: brute force over subsets.
func TestSizeAwareAgainstSubsets(t *testing.T) {
	sorted := []float64{0.1, 0.3, 0.3, 0.7, 1.1, 2, 2.5, 9}
	if !slices.IsSorted(sorted) {
		t.Fatal("the sample is not sorted")
	}
	var all float64
	for _, s := range sorted {
		all += s
	}
	for _, rho := range []float64{1.1, 1.7, 3, 8} {
		most := 0
		for set := range 1 << len(sorted) {
			var work float64
			n := 0
			for i, s := range sorted {
				if set>>i&1 == 1 {
					work, n = work+s, n+1
				}
			}
			if work <= all/rho {
				most = max(most, n)
			}
		}
		bound := SizeAwareSample(rho, sorted) / rho * float64(len(sorted))
		if bound < float64(most) || bound >= float64(most+1) {
			t.Errorf("at %v %d whole requests fit, the bound with parts is %v", rho, most, bound)
		}
	}
}

// The sum of the tries, counted layer by layer.
func TestRetryAmplification(t *testing.T) {
	for _, attempts := range []int{1, 2, 3, 4} {
		for layers := range 4 {
			for _, p := range []float64{0, 1e-9, 0.1, 0.5, 0.999, 1 - 1e-12, 1} {
				calls, fails := 1.0, p // of one call at the layer, from the bottom up
				for range layers {
					var tries, reach float64 = 0, 1
					for range attempts {
						tries, reach = tries+reach, reach*fails
					}
					calls, fails = calls*tries, reach
				}
				near(t, RetryAmplification(attempts, layers, p), calls, 1e-12, "%d attempts, %d layers, %v fail", attempts, layers, p)
			}
		}
	}
	near(t, RetryAmplification(4, 3, 1), 64, 0, "3 layers of 4 attempts, nothing works")
	near(t, RetryAmplification(4, 600, 0.5), 2, 1e-12, "more attempts than there are numbers")
}

// RetryLoad is a fixed point, grows with the load and the attempts, and is the
// load itself without retries.
func TestRetryLoad(t *testing.T) {
	for _, attempts := range []int{1, 2, 3, 10} {
		last := 0.0
		for _, load := range []float64{0, 0.5, 1, 1 + 1e-12, 1.01, 1.5, 3, 10, 1e6} {
			x := RetryLoad(attempts, load)
			if x < load*(1-1e-12) || x < last || x > load*float64(attempts)*(1+1e-9) {
				t.Errorf("RetryLoad(%d, %v) = %v after %v", attempts, load, x, last)
			}
			last = x
			if load > 1.001 {
				near(t, x, load*RetryAmplification(attempts, 1, 1-1/x), 1e-6, "fixed point of %d attempts at %v", attempts, load)
			}
		}
		near(t, RetryLoad(1, 3), 3, 1e-12, "no retries")
	}
}

func TestFanOut(t *testing.T) {
	near(t, FanOutSlow(100, 0.01), 0.634, 1e-3, "100 calls, one in a hundred slow")
	near(t, FanOutQuantile(100, 0.5), 0.993, 1e-3, "the median of 100")
	for _, n := range []int{1, 2, 100, 1_000_000} {
		for _, q := range []float64{1e-6, 0.5, 0.99} {
			// The slowest of n is below the quantile q exactly when all are.
			near(t, 1-FanOutSlow(n, 1-FanOutQuantile(n, q)), q, 1e-9, "%d calls, quantile %v", n, q)
		}
	}
	for _, c := range []struct {
		n       int
		p, want float64
	}{{0, 0.5, 0}, {0, 1, 0}, {5, 0, 0}, {5, 1, 1}, {1, 0.3, 0.3}, {2, 1e-18, 2e-18}} {
		near(t, FanOutSlow(c.n, c.p), c.want, 1e-14, "FanOutSlow(%d, %v)", c.n, c.p)
	}
}
