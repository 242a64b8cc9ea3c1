package theory

import (
	"fmt"
	"math"
)

// Capacity returns the requests per second that slots serve when each is busy
// all the time with requests of the mean service time in seconds.
func Capacity(slots int, mean float64) float64 {
	needCount("the number of slots", slots, 0)
	needAbove("the mean service time", mean)
	return float64(slots) / mean
}

// LossCeiling returns the goodput, as a share of the capacity, of c slots
// without a queue: load (1 - ErlangB). load is a share of the capacity, up
// to 1e9.
func LossCeiling(c int, load float64) float64 {
	needCount("the number of servers", c, 1)
	needLoad(load)
	return load * (1 - ErlangB(c, load*float64(c)))
}

// RefusalCeiling returns the most goodput, as a share of the capacity, when a
// refusal costs the share r of what a request costs and takes it from the same
// resource: of the load L, G are served and L - G refused, so G + r (L - G) = 1
// and G = (1 - r L)/(1 - r). Below a load of 1 everything is served; once
// refusing takes all, at L >= 1/r, it is 0. r is from 0 to below 1.
func RefusalCeiling(r, load float64) float64 {
	needShare("the cost of a refusal, as a share of a request,", r)
	needAbove("what a refusal spares, 1 less its cost,", 1-r)
	needTime("the load", load)
	if load <= 1 {
		return load
	}
	return max(0, (1-r*load)/(1-r))
}

// SizeAware returns the fluid bound for who knows the size of each request and
// serves only the shortest: the requests served per second, as a multiple of the
// capacity of a policy that is blind to size. It is the linear program
//
//	serve the share x(u) of the requests at the quantile u, 0 <= x(u) <= 1, with
//	rho x integral of x(u) quantile(u) du <= mean, and rho x integral of x(u) du most
//
// whose solution is x = 1 up to the u where the work is all that can be done. No
// policy does better in the long run, whatever the number of slots and the
// patience. rho is the load, mean the mean service time and quantile its
// inverse distribution function on (0, 1), which is not negative and never
// falls; it is integrated in 16384 steps, good to 5 figures where it is smooth.
// For a distribution with jumps take SizeAwareSample. Up to a load of 1 all is
// served and the result is rho.
func SizeAware(rho, mean float64, quantile func(u float64) float64) float64 {
	needTime("the load", rho)
	needTime("the mean service time", mean)
	if rho <= 1 || mean == 0 {
		return rho
	}
	// u = v^2 (3 - 2v): the steps shrink at both ends, where quantiles are steep.
	const steps = 1 << 14
	var work float64
	for i := range steps {
		v := (float64(i) + 0.5) / steps
		u := v * v * (3 - 2*v)
		size := quantile(u)
		needTime("a quantile of the service time", size)
		add := size * 6 * v * (1 - v) / steps
		if left := mean/rho - work; add >= left {
			v = (float64(i) + left/add) / steps
			return rho * v * v * (3 - 2*v)
		}
		work += add
	}
	return rho
}

// SizeAwareSample is SizeAware for measured service times in seconds, sorted and
// not negative; the last one served counts in part. An empty sample gives rho up
// to 1.
func SizeAwareSample(rho float64, sorted []float64) float64 {
	needTime("the load", rho)
	var all float64
	for i, s := range sorted {
		needTime("a service time", s)
		if i > 0 && sorted[i-1] > s {
			panic(fmt.Sprintf("theory: the sample is not sorted: %v after %v", s, sorted[i-1]))
		}
		all += s
	}
	if rho <= 1 || len(sorted) == 0 {
		return min(rho, 1)
	}
	n := float64(len(sorted))
	left := all / rho
	for i, s := range sorted {
		if s >= left && s > 0 {
			return rho * (float64(i) + left/s) / n
		}
		left -= s
	}
	return rho
}

// RetryAmplification returns how often the bottom of the layers is called for
// one call at the top, when each layer tries up to attempts times in all and
// each call of the bottom fails with the probability failure, independently.
// The layers together stop at the first success or after attempts^layers tries,
// hence (1 - failure^n)/(1 - failure) with n = attempts^layers: n at failure 1.
func RetryAmplification(attempts, layers int, failure float64) float64 {
	needCount("the number of attempts", attempts, 1)
	needCount("the number of layers", layers, 0)
	needShare("the probability of a failure", failure)
	n := math.Pow(float64(attempts), float64(layers))
	switch failure {
	case 0:
		return 1
	case 1:
		return n
	}
	return math.Expm1(n*math.Log(failure)) / (failure - 1)
}

// RetryLoad returns the load that arrives when the first attempts alone are load
// (a share of the capacity), refused requests are tried up to attempts times in
// all, and a share 1/x of what arrives is served, x the result. It solves x =
// load x RetryAmplification(attempts, 1, 1 - 1/x), which at a load above 1 is
// x = 1/(1 - p), p = (1 - 1/load)^(1/attempts). Up to a load of 1 nothing is
// refused and it is load.
func RetryLoad(attempts int, load float64) float64 {
	needCount("the number of attempts", attempts, 1)
	needTime("the load", load)
	if load <= 1 {
		return load
	}
	// 1 - p as -expm1(ln p): p is near 1 at a high load.
	return -1 / math.Expm1(math.Log1p(-1/load)/float64(attempts))
}

// FanOutSlow returns the probability that at least one of n independent calls is
// slow when each is with the probability p: 1 - (1 - p)^n. One call in a hundred
// slow makes 63 % of the requests with 100 calls slow (Dean and Barroso, The
// Tail at Scale, 2013).
func FanOutSlow(n int, p float64) float64 {
	needCount("the number of calls", n, 0)
	needShare("the probability of a slow call", p)
	if n == 0 {
		return 0
	}
	return -math.Expm1(float64(n) * math.Log1p(-p))
}

// FanOutQuantile returns the quantile of one call that decides the quantile q of
// the slowest of n independent calls: q^(1/n). The median of 100 calls is the
// 99.3rd percentile of one.
func FanOutQuantile(n int, q float64) float64 {
	needCount("the number of calls", n, 1)
	needShare("the quantile", q)
	return math.Pow(q, 1/float64(n))
}
