package theory

import "math"

// The response time at a place of the queue, with every slot busy and first
// come first served: who takes the d-th place waits until d requests have
// departed and is then served. Place 0 is a free slot. Under an overload that
// lasts, everybody who is accepted takes the last place, so that the depth of
// the queue decides the latency of all.

// PlaceTail returns P(d departures + own service > t) for c slots with
// exponential service of the given mean in seconds.
//
// With m = 1/mean, the departures take an Erlang(d, cm) time E, and
// P(E + S > t) = P(E > t) + exp(-mt) (c/(c-1))^d P(Erlang(d, (c-1)m) <= t):
// integrate exp(-m(t-u)) against the density of E. With one slot the service is
// one departure more.
func PlaceTail(d, c int, mean, t float64) float64 {
	needCount("the place", d, 0)
	needCount("the number of servers", c, 1)
	needAbove("the mean service time", mean)
	needNumber(t)
	switch {
	case t < 0:
		return 1
	case math.IsInf(t/mean*float64(c), 1):
		return 0
	case c == 1:
		return ErlangTail(d+1, 1/mean, t)
	}
	x := t / mean
	served := logPoissonFrom(d, float64(c-1)*x) - x - float64(d)*math.Log1p(-1/float64(c))
	return min(1, ErlangTail(d, float64(c)/mean, t)+math.Exp(served))
}

// PlaceQuantile returns the smallest t with P(d departures + own service <= t)
// >= q; +Inf for q = 1. At depth 480 of 60 slots with 50 ms, the 99th percentile
// is 50 ms (ln 100 + 480 ln(60/59)) = 633.6 ms.
func PlaceQuantile(d, c int, mean, q float64) float64 {
	return quantile(func(t float64) float64 { return PlaceTail(d, c, mean, t) }, q, mean*(1+float64(d)/float64(c)))
}

// PlaceDepth returns the largest d with P(d departures + own service > t) <=
// 1 - q: the deepest queue whose last place still meets t at the quantile q. It
// returns false if the service alone does not. q is above 0 and below 1.
func PlaceDepth(c int, mean, t, q float64) (int, bool) {
	needShare("the quantile", q)
	needAbove("the quantile", q)
	needAbove("what may be late, 1 less the quantile,", 1-q)
	needTime("the time", t)
	late := func(d int) bool { return PlaceTail(d, c, mean, t) > 1-q }
	if late(0) {
		return 0, false
	}
	lo, hi := 0, 1
	for !late(hi) {
		lo, hi = hi, 2*hi
	}
	for lo+1 < hi {
		if mid := lo + (hi-lo)/2; late(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo, true
}

// PlaceFixed returns the longest response at place d when service always takes
// mean seconds and the c slots end evenly spread: d mean/c + mean.
func PlaceFixed(d, c int, mean float64) float64 {
	needCount("the place", d, 0)
	needCount("the number of servers", c, 1)
	needTime("the mean service time", mean)
	return mean + float64(d)*mean/float64(c)
}
