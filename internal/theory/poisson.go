package theory

import "math"

// Sums over the Poisson distribution: n departures of slots that are busy all
// the time take an Erlang distributed time, and P(Erlang(n, rate) > t) is
// P(Poisson(rate t) < n). Everything below is a sum of positive terms that
// starts at its largest, so that it keeps 12 figures far out in the tail, where
// the alternating and the recursive forms lose all of them.

// logPoisson returns ln P(Poisson(x) = n).
func logPoisson(n int, x float64) float64 {
	switch {
	case n < 0:
		return math.Inf(-1)
	case x == 0 && n == 0:
		return 0
	case x == 0:
		return math.Inf(-1)
	case n < 64:
		l, _ := math.Lgamma(float64(n) + 1)
		return float64(n)*math.Log(x) - x - l
	}
	// Stirling, with the large terms taken together: n ln x - x - ln n! is
	// n (ln(1+s) - s) less the rest of the series, s = (x-n)/n. From 64 on the
	// first term that is left out, 1/(1680 n^7), is below 2e-16.
	k := float64(n)
	s, log := (x-k)/k, math.Log(x/k)
	if s > -0.5 { // near x = n the logarithm is that of nearly 1
		log = math.Log1p(s)
	}
	rest := 1/(12*k) - 1/(360*k*k*k) + 1/(1260*k*k*k*k*k)
	return k*(log-s) - 0.5*math.Log(2*math.Pi*k) - rest
}

// logPoissonFrom returns ln P(Poisson(x) >= n).
func logPoissonFrom(n int, x float64) float64 {
	if n <= 0 {
		return 0
	}
	if float64(n) <= x {
		return math.Log1p(-math.Exp(logPoissonBelow(n, x)))
	}
	sum, term := 1.0, 1.0
	for k := n + 1; term > sum*1e-17; k++ {
		term *= x / float64(k)
		sum += term
	}
	return logPoisson(n, x) + math.Log(sum)
}

// logPoissonBelow returns ln P(Poisson(x) < n).
func logPoissonBelow(n int, x float64) float64 {
	if n <= 0 {
		return math.Inf(-1)
	}
	if float64(n) > x {
		return math.Log1p(-math.Exp(logPoissonFrom(n, x)))
	}
	sum, term := 1.0, 1.0
	for k := n - 1; k > 0 && term > sum*1e-17; k-- {
		term *= float64(k) / x
		sum += term
	}
	return logPoisson(n-1, x) + math.Log(sum)
}

// ErlangTail returns P(n departures take longer than t seconds) when they leave
// at rate per second with exponential gaps: the tail of the Erlang distribution.
// No departure takes no time.
func ErlangTail(n int, rate, t float64) float64 {
	needCount("the number of departures", n, 0)
	needTime("the rate", rate)
	needNumber(t)
	switch {
	case t < 0:
		return 1
	case n == 0:
		return 0
	case rate == 0:
		return 1
	}
	x := rate * t
	if math.IsInf(x, 1) {
		return 0
	}
	return math.Exp(logPoissonBelow(n, x))
}
