package theory

import "math"

// MG1Wait returns the mean wait of a single server, first come first served,
// with Poisson arrivals at rate per second and service of the given mean and
// squared coefficient of variation (variance / mean^2): Pollaczek (1930) and
// Khinchine (1932), rho (1 + cv2) / (2 (1 - rho)) x mean. +Inf at a load of 1
// or more.
func MG1Wait(rate, mean, cv2 float64) float64 {
	needTime("the arrival rate", rate)
	needTime("the mean service time", mean)
	needTime("the squared coefficient of variation", cv2)
	load := rate * mean
	if load >= 1 {
		return math.Inf(1)
	}
	return load * (1 + cv2) / (2 * (1 - load)) * mean
}

// GGcWait approximates the mean wait of c servers when arrivals and service have
// the squared coefficients of variation ca2 and cs2: the wait of the M/M/c queue
// x (ca2 + cs2)/2 (Allen and Cunneen; Allen, Probability, Statistics and
// Queueing Theory, 1990, 5.3). It is exact for M/M/c and M/G/1, good to some
// percent near a load of 1, and poor (tens of percent) at low load or for
// arrivals far more regular than Poisson ones. q.Rate and q.Mean are as in MMc.
func GGcWait(q MMc, ca2, cs2 float64) float64 {
	needTime("the squared coefficient of variation of the arrivals", ca2)
	needTime("the squared coefficient of variation of the service", cs2)
	w := q.MeanWait()
	if math.IsInf(w, 1) {
		return w // also when nothing varies: the backlog grows
	}
	return w * (ca2 + cs2) / 2
}

// An MD1 is the queue M/D/1, first come first served: Poisson arrivals and one
// server that takes the same time for everybody.
type MD1 struct {
	Rate float64 // arrivals per second
	Time float64 // service time in seconds, above 0
}

func (q MD1) check() {
	needTime("the arrival rate", q.Rate)
	needAbove("the service time", q.Time)
}

// MeanWait returns the mean time in the queue; +Inf at a load of 1 or more.
func (q MD1) MeanWait() float64 { q.check(); return MG1Wait(q.Rate, q.Time, 0) }

// inside returns the probabilities that 0 ... n are inside. Where a departure
// leaves j behind, the next one leaves j - 1 (at least 0) plus the arrivals
// during one service. Upward and downward crossings of the level j balance:
//
//	p(j+1) P(A = 0) = p(0) P(A > j) + sum over i = 1..j of p(i) P(A > j+1-i)
//
// A the arrivals in one service time. All terms are positive, so nothing
// cancels; and departures see what time sees (M/G/1).
func (q MD1) inside(n int) []float64 {
	load := q.Rate * q.Time
	var more []float64 // more[k] is P(A > k), until it no longer counts
	for k := 0; ; k++ {
		v := math.Exp(logPoissonFrom(k+1, load))
		if v < 1e-30 {
			break
		}
		more = append(more, v)
	}
	p := make([]float64, n+1)
	p[0] = 1 - load
	none := math.Exp(-load)
	for j := range n {
		var up float64
		if j < len(more) {
			up = p[0] * more[j]
		}
		for i := max(1, j+2-len(more)); i <= j; i++ {
			up += p[i] * more[j+1-i]
		}
		p[j+1] = up / none
	}
	return p
}

// WaitTail returns P(wait > t); 1 at a load of 1 or more.
//
// Erlang (1909) and Crommelin (1932) give it as an alternating sum, which loses
// all its figures beyond some twenty service times. This is the form of Franx
// (A simple solution for the M/D/c waiting time distribution, Operations
// Research Letters 29, 2001), whose terms are positive: with (k-1) Time <= t <
// k Time and y = Rate (k Time - t),
//
//	P(wait <= t) = sum over j = 0..k-1 of P(at most k-1-j wait) exp(-y) y^j/j!
//
// The work is proportional to t/Time, at most 40/-ln(load). Below about 1e-14
// the result is rounding.
func (q MD1) WaitTail(t float64) float64 {
	q.check()
	needNumber(t)
	switch {
	case t < 0 || q.Rate*q.Time >= 1:
		return 1
	case math.IsInf(t, 1) || q.Rate == 0:
		return 0
	}
	if t/q.Time*math.Log(q.Rate*q.Time) < -40 {
		return 0 // P(wait > t) <= load^(t/Time) (Kingman 1964), here below 1e-17
	}
	k := int(t/q.Time) + 1
	y := max(0, q.Rate*(float64(k)*q.Time-t))
	most := q.inside(k)
	for i := 1; i < len(most); i++ {
		most[i] += most[i-1] // P(at most i inside): i-1 wait
	}
	var sum float64
	for j := range k {
		pmf := math.Exp(logPoisson(j, y))
		if pmf == 0 {
			break // y < 1: the terms only fall
		}
		sum += most[k-j] * pmf
	}
	return max(0, 1-sum)
}
