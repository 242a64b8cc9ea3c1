package plan

import (
	"math"
	"sort"
)

// How many requests a second get through layers that hold their slots while they
// wait for one another.
//
// A layer in an overload always has all its slots in use: a closed queueing
// network, in which each request does the work of the layer itself, then waits for
// what is further in, and is replaced by the next. What is further in is one
// station whose rate depends on how many are in it, computed in the same way from
// the innermost layer outwards (the flow-equivalent server of Chandy, Herzog and
// Woo, "Parametric analysis of queuing networks", IBM J. Res. Dev. 19, 1975; exact
// for exponential service). Where one layer is far narrower than the others the
// result is slots / time held; where two are equally narrow, each at times waits
// for the other, and it is some percent less.

// A curve says how many calls a second are answered while so many are in progress.
// It never falls, and takes +Inf.
type curve func(calls float64) float64

// mostCustomers bounds the tables: a larger network is scaled to so many customers,
// slots and all. A scaled one loses a little more to chance, 1/sqrt(4096) = 1.6 %
// where two layers are equally narrow, and nothing elsewhere.
const mostCustomers = 4096

// negligible is the weight, beside the largest, below which a state is left out.
const negligible = 1e-12

// servers is the curve of c slots that hold each call for mean seconds.
func servers(c, mean float64) curve {
	return func(calls float64) float64 { return min(calls, c) / mean }
}

// within returns the curve of calls that each take delay seconds of their own
// beside what is further in, at most so many at once.
func within(slots, delay float64, further curve) curve {
	scale := max(1, slots/mostCustomers)
	n := max(1, int(math.Round(slots/scale)))
	rate := make([]float64, n+1) // of j customers further in
	for j := 1; j <= n; j++ {
		rate[j] = further(float64(j)*scale) / scale
	}
	through := make([]float64, n+1)
	for m := 1; m <= n; m++ {
		through[m] = throughput(m, delay, rate)
	}
	return func(calls float64) float64 {
		at := min(calls/scale, float64(n))
		i := min(int(at), n-1)
		return scale * (through[i] + (through[i+1]-through[i])*(at-float64(i)))
	}
}

// throughput is that of m customers. With j of them further in the network has the
// weight delay^(m-j)/(m-j)! x 1/(rate[1] ... rate[j]), so that one more changes it
// by (m-j) / (delay x rate[j+1]), which falls with j: the weights have one peak,
// from where this goes down both sides.
func throughput(m int, delay float64, rate []float64) float64 {
	if delay == 0 {
		return rate[m]
	}
	more := func(j int) float64 { return float64(m-j) / (delay * rate[j+1]) }
	peak := sort.Search(m, func(j int) bool { return more(j) <= 1 })
	sum, done := 1.0, rate[peak]
	for j, w := peak, 1.0; j < m && w > negligible; j++ {
		w *= more(j)
		sum += w
		done += w * rate[j+1]
	}
	for j, w := peak-1, 1.0; j >= 0 && w > negligible; j-- {
		w /= more(j)
		sum += w
		done += w * rate[j]
	}
	return done / sum
}

// spread returns the curve, in requests, of n calls each, whose slowest takes
// slowest seconds and the mean of which takes mean. A call that has its answer
// waits for the slowest, slowest - mean on average: its slot further in is free
// meanwhile.
func spread(n int, slowest, mean float64, further curve) curve {
	if n == 1 {
		return further
	}
	calls := float64(n)
	top := further(math.Inf(1))
	if math.IsInf(top, 1) {
		return func(requests float64) float64 { return requests / slowest }
	}
	// With three times the calls that top x slowest keep busy, nothing but the calls
	// themselves limits the rate.
	all := within(math.Ceil(3*top*slowest)+calls, max(0, slowest-mean), further)
	return func(requests float64) float64 { return all(requests*calls) / calls }
}

// after returns the time of own work and then of the slowest of n calls, each of
// which takes what further says, as samples.
//
// Sample i has the quantiles u = (i + 1/2)/N of its own work and v = i times the
// golden ratio, modulo 1, of what is further in: pairs that fill the square evenly,
// without the noise of chance. The slowest of n is at most x with the n-th power of
// the chance that one is: its v-quantile is that of one at v^(1/n).
func after(own, further *work, n int) *work {
	if further == nil {
		return own
	}
	if own == nil {
		own = &work{sorted: []float64{0}}
	}
	w := &work{sorted: make([]float64, strata), mean: own.mean + further.longest(n)}
	var sum, squares float64
	for i := range w.sorted {
		u := (float64(i) + 0.5) / strata
		_, v := math.Modf(float64(i)*(math.Phi-1) + 0.5)
		s := own.quantile(u) + further.quantile(math.Pow(v, 1/float64(n)))
		w.sorted[i] = s
		sum += s
		squares += s * s
	}
	sort.Float64s(w.sorted)
	mean := sum / strata
	w.cv2 = max(0, squares/strata/(mean*mean)-1)
	for i := range w.sorted {
		w.sorted[i] *= w.mean / mean // what 100,000 pairs leave, less than a thousandth
	}
	return w
}

// longest returns the mean of the slowest of n.
func (w *work) longest(n int) float64 {
	if n == 1 {
		return w.mean
	}
	sum := 0.0
	for i := range strata {
		sum += w.quantile(math.Pow((float64(i)+0.5)/strata, 1/float64(n)))
	}
	return sum / strata
}

// quantile returns the sample at u, 0 <= u < 1.
func (w *work) quantile(u float64) float64 {
	return w.sorted[min(int(u*float64(len(w.sorted))), len(w.sorted)-1)]
}
