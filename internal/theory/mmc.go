package theory

import "math"

// An MMc is the queue M/M/c, first come first served: Poisson arrivals,
// exponential service, Servers slots, and nobody refused. At Load >= 1 it has no
// steady state: mean waits and quantiles are +Inf and tails 1.
type MMc struct {
	Servers int     // 1 or more
	Rate    float64 // arrivals per second
	Mean    float64 // mean service time in seconds, above 0
}

func (q MMc) check() {
	needCount("the number of servers", q.Servers, 1)
	needTime("the arrival rate", q.Rate)
	needAbove("the mean service time", q.Mean)
}

// Offered returns the offered load in erlangs: the mean number of busy servers.
func (q MMc) Offered() float64 { return q.Rate * q.Mean }

// Load returns the offered load as a share of the capacity.
func (q MMc) Load() float64 { return q.Offered() / float64(q.Servers) }

// spare is the rate at which a backlog drains: c/mean - rate.
func (q MMc) spare() float64 { return float64(q.Servers)/q.Mean - q.Rate }

// MeanWait returns the mean time in the queue, those who do not wait included.
func (q MMc) MeanWait() float64 {
	q.check()
	if q.Load() >= 1 {
		return math.Inf(1)
	}
	return ErlangC(q.Servers, q.Offered()) / q.spare()
}

// MeanResponse returns the mean of wait and service together.
func (q MMc) MeanResponse() float64 { return q.MeanWait() + q.Mean }

// WaitTail returns P(wait > t): those who wait do so for an exponential time.
func (q MMc) WaitTail(t float64) float64 {
	q.check()
	needNumber(t)
	if t < 0 || q.Load() >= 1 {
		return 1
	}
	return ErlangC(q.Servers, q.Offered()) * math.Exp(-q.spare()*t)
}

// WaitQuantile returns the smallest t with P(wait <= t) >= p.
func (q MMc) WaitQuantile(p float64) float64 {
	q.check()
	needShare("the quantile", p)
	busy := ErlangC(q.Servers, q.Offered())
	switch {
	case p <= 1-busy && p < 1 && q.Load() < 1:
		return 0
	case p == 1 || q.Load() >= 1:
		return math.Inf(1)
	}
	return math.Log(busy/(1-p)) / q.spare()
}

// ResponseTail returns P(wait + service > t).
//
// With m = 1/Mean and s the spare rate, who waits is late with the probability
// exp(-mt) (1 + m (1 - exp(-(s-m)t)) / (s-m)), the tail of the sum of two
// exponential times, written so that s = m is no special case.
func (q MMc) ResponseTail(t float64) float64 {
	q.check()
	needNumber(t)
	switch {
	case t < 0 || q.Load() >= 1:
		return 1
	case math.IsInf(t, 1):
		return 0
	}
	m, s := 1/q.Mean, q.spare()
	waited := math.Exp(-m*t) + m*t*between(m*t, s*t)
	busy := ErlangC(q.Servers, q.Offered())
	return min(1, (1-busy)*math.Exp(-m*t)+busy*waited)
}

// between returns (exp(-x) - exp(-y)) / (y - x), x and y >= 0, which is exp(-x)
// at x = y.
func between(x, y float64) float64 {
	if y < x {
		x, y = y, x
	}
	d := y - x
	if d == 0 {
		return math.Exp(-x)
	}
	return math.Exp(-x) * -math.Expm1(-d) / d
}

// ResponseQuantile returns the smallest t with P(wait + service <= t) >= p, to
// 12 figures; +Inf for p = 1 and for an unstable queue.
func (q MMc) ResponseQuantile(p float64) float64 {
	q.check()
	if q.Load() >= 1 {
		return math.Inf(1)
	}
	return quantile(q.ResponseTail, p, q.Mean)
}
