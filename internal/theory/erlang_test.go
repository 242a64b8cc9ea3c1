package theory

import (
	"math"
	"math/big"
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

// integral returns the integral of f from 0 to b by Simpson's rule in n steps,
// n even. Its error is below b^5/(180 n^4) x the largest fourth derivative.
func integral(f func(float64) float64, b float64, n int) float64 {
	h := b / float64(n)
	sum := f(0) + f(b)
	for i := 1; i < n; i++ {
		sum += float64(2+2*(i%2)) * f(float64(i)*h)
	}
	return sum * h / 3
}

// Values of the published tables and of the figures that are quoted.
func TestErlangB(t *testing.T) {
	for _, c := range []struct {
		slots int
		load  float64
		want  float64
	}{
		{1, 1, 0.5},
		{8, 8, 0.2356},
		{60, 60, 0.0963},
		{1, 0, 0},
		{60, 180, 0.6694},
		{6, 12, 0.5561},
		{0, 3, 1},
		{0, 0, 1},
		{5, math.Inf(1), 1},
		{10, 4.461, 0.01},
		{100, 84.064, 0.01},
	} {
		if got := ErlangB(c.slots, c.load); !(math.Abs(got-c.want) < 5e-5) {
			t.Errorf("ErlangB(%d, %v) = %.5f, want %v", c.slots, c.load, got, c.want)
		}
	}
}

// The recursion against the sum that defines it, in exact fractions; and for
// many servers against the Poisson distribution, P(c)/P(<= c).
func TestErlangBAgainstSums(t *testing.T) {
	for _, c := range []int{1, 2, 7, 30, 100} {
		for _, a := range []int64{1, 3, 29, 100, 1000} {
			term, sum := big.NewRat(1, 1), big.NewRat(1, 1)
			for n := 1; n <= c; n++ {
				term = new(big.Rat).Mul(term, big.NewRat(a, int64(n)))
				sum.Add(sum, term)
			}
			want, _ := new(big.Rat).Quo(term, sum).Float64()
			near(t, ErlangB(c, float64(a)), want, 1e-13, "ErlangB(%d, %d)", c, a)
		}
	}
	for _, c := range []int{1000, 100_000, 1_000_000} {
		for _, load := range []float64{0.999, 1, 1.01, 3} {
			a := load * float64(c)
			want := math.Exp(logPoisson(c, a) - logPoissonBelow(c+1, a))
			near(t, ErlangB(c, a), want, 1e-9, "ErlangB(%d, %v)", c, a)
		}
	}
}

// Erlang C against its direct sum, its known special case of one server, and
// from a load of 1 on.
func TestErlangC(t *testing.T) {
	for _, a := range []float64{0, 1e-9, 0.3, 0.999} {
		near(t, ErlangC(1, a), a, 1e-13, "ErlangC(1, %v)", a)
	}
	for _, c := range []int{2, 5, 40} {
		for _, load := range []float64{0.1, 0.7, 0.99} {
			a := load * float64(c)
			term, sum := 1.0, 1.0 // a^n/n!
			for n := 1; n < c; n++ {
				term *= a / float64(n)
				sum += term
			}
			all := term * a / float64(c) / (1 - load) // of the states where one waits on arrival
			near(t, ErlangC(c, a), all/(sum+all), 1e-13, "ErlangC(%d, %v)", c, a)
		}
	}
	for _, a := range []float64{3, 4, math.Inf(1)} {
		if got := ErlangC(3, a); got != 1 {
			t.Errorf("ErlangC(3, %v) = %v, want 1", a, got)
		}
	}
}

// Both Poisson sums against exact arithmetic in 400 bits: far out on each side
// relative accuracy must remain.
func TestPoissonSums(t *testing.T) {
	for _, x := range []float64{1e-6, 0.5, 7, 63.5, 300, 2000} {
		for _, n := range []int{0, 1, 2, 8, 63, 64, 65, 100, 299, 301, 700, 2600} {
			if float64(n) > 40*x+200 {
				continue // beyond what 400 bits sum
			}
			below, from := poissonExactly(n, x)
			near(t, logPoissonBelow(n, x), below, 2e-13, "ln P(Poisson(%v) < %d)", x, n)
			near(t, logPoissonFrom(n, x), from, 2e-13, "ln P(Poisson(%v) >= %d)", x, n)
		}
	}
}

// poissonExactly sums e^-x x^k/k! to 1 in 4000 bits: both sums are divided by
// the sum of all, so that e^-x is not needed.
func poissonExactly(n int, x float64) (below, from float64) {
	const bits = 4000
	v := new(big.Float).SetPrec(bits).SetFloat64(x)
	term := new(big.Float).SetPrec(bits).SetInt64(1)
	lo, hi := new(big.Float).SetPrec(bits), new(big.Float).SetPrec(bits)
	for k := 0; k < n || float64(k) < 20*x+400; k++ {
		if k > 0 {
			term.Quo(term.Mul(term, v), new(big.Float).SetPrec(bits).SetInt64(int64(k)))
		}
		if k < n {
			lo.Add(lo, term)
		} else {
			hi.Add(hi, term)
		}
	}
	all := new(big.Float).SetPrec(bits).Add(lo, hi)
	return logOf(lo.Quo(lo, all)), logOf(hi.Quo(hi, all))
}

// logOf returns ln f of a float that may be too small for float64, or too near
// to 1 for its logarithm.
func logOf(f *big.Float) float64 {
	if f.Sign() == 0 {
		return math.Inf(-1)
	}
	if off, _ := new(big.Float).Sub(f, big.NewFloat(1)).Float64(); math.Abs(off) < 0.5 {
		return math.Log1p(off)
	}
	m := new(big.Float)
	e := f.MantExp(m)
	v, _ := m.Float64()
	return math.Log(v) + float64(e)*math.Ln2
}

// The Erlang tail against the integral of its density, its mean, and at the
// edges.
func TestErlangTail(t *testing.T) {
	for _, n := range []int{2, 7, 480} {
		const rate = 1200.0
		mean := float64(n) / rate
		density := func(u float64) float64 { return rate * math.Exp(logPoisson(n-1, rate*u)) }
		for _, f := range []float64{0.5, 1, 1.2} {
			want := 1 - integral(density, f*mean, 20_000)
			// Simpson with 20,000 steps is exact to 1e-12 here, absolutely.
			if got := ErlangTail(n, rate, f*mean); !(math.Abs(got-want) < 1e-11) {
				t.Errorf("ErlangTail(%d, %v, %v) = %.14f, want %.14f", n, rate, f*mean, got, want)
			}
		}
	}
	for _, c := range []struct {
		n       int
		rate, t float64
		want    float64
	}{
		{0, 5, 0, 0},
		{0, 5, -1, 1},
		{3, 5, -1, 1},
		{3, 5, 0, 1},
		{3, 0, 1, 1},
		{3, 0, math.Inf(1), 1},
		{3, 5, math.Inf(1), 0},
		{3, 1e200, 1e200, 0},
		{1, 2, 3, math.Exp(-6)},
	} {
		near(t, ErlangTail(c.n, c.rate, c.t), c.want, 1e-14, "ErlangTail(%d, %v, %v)", c.n, c.rate, c.t)
	}
}

// What means nothing panics, NaN above all.
func TestMisusePanics(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := MMc{2, 1, 1}
	for name, f := range map[string]func(){
		"ErlangB servers":   func() { ErlangB(-1, 1) },
		"ErlangB load":      func() { ErlangB(1, -1) },
		"ErlangB NaN":       func() { ErlangB(1, nan) },
		"ErlangC servers":   func() { ErlangC(0, 1) },
		"ErlangTail n":      func() { ErlangTail(-1, 1, 1) },
		"ErlangTail NaN":    func() { ErlangTail(1, 1, nan) },
		"MMc rate":          func() { MMc{1, nan, 1}.MeanWait() },
		"MMc mean":          func() { MMc{1, 1, 0}.MeanWait() },
		"MMc infinite":      func() { MMc{1, inf, 1}.MeanWait() },
		"MMc quantile":      func() { good.WaitQuantile(2) },
		"MMc quantile NaN":  func() { good.ResponseQuantile(nan) },
		"MMc time NaN":      func() { good.WaitTail(nan) },
		"MMcK depth":        func() { MMcK{1, -1, 1, 1}.Loss() },
		"MMcK load":         func() { MMcK{1, 1, 1e10, 1}.Loss() },
		"MD1 time":          func() { MD1{1, 0}.MeanWait() },
		"MG1 cv2":           func() { MG1Wait(1, 0.5, -1) },
		"GGc ca2":           func() { GGcWait(good, nan, 1) },
		"ErlangA patience":  func() { ErlangA{1, 1, 1, 0}.Busy() },
		"PlaceTail place":   func() { PlaceTail(-1, 1, 1, 1) },
		"PlaceDepth 1":      func() { PlaceDepth(1, 1, 1, 1) },
		"PlaceDepth 0":      func() { PlaceDepth(1, 1, 1, 0) },
		"PlaceFixed mean":   func() { PlaceFixed(1, 1, nan) },
		"Capacity mean":     func() { Capacity(1, 0) },
		"LossCeiling load":  func() { LossCeiling(1, inf) },
		"RefusalCeiling 1":  func() { RefusalCeiling(1, 2) },
		"RefusalCeiling":    func() { RefusalCeiling(nan, 2) },
		"SizeAware rho":     func() { SizeAware(nan, 1, nil) },
		"SizeAware NaN":     func() { SizeAware(2, 1, func(float64) float64 { return nan }) },
		"sample unsorted":   func() { SizeAwareSample(2, []float64{2, 1}) },
		"sample NaN":        func() { SizeAwareSample(2, []float64{nan}) },
		"retries":           func() { RetryAmplification(0, 1, 0.5) },
		"retries failure":   func() { RetryAmplification(2, 1, nan) },
		"RetryLoad":         func() { RetryLoad(0, 1) },
		"FanOutSlow":        func() { FanOutSlow(1, 1.1) },
		"FanOutQuantile":    func() { FanOutQuantile(0, 0.5) },
		"Clairvoyant":       func() { Clairvoyant([]Job{{Service: -1}}) },
		"Pool without any":  func() { Pool(nil, nil, 0) },
		"Pool negative job": func() { Pool([]Job{{Deadline: -1}}, nil, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
