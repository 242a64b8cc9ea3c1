package theory

import "math"

// An MMcK is the queue M/M/c/K, first come first served: as MMc, but at most
// Depth requests wait and whoever finds the queue full is refused. K, the most
// that are inside, is Servers + Depth. It is stable at any load; up
// to 1e9 is allowed. All
// distributions are those of the requests that were accepted.
type MMcK struct {
	Servers int     // 1 or more
	Depth   int     // how many may wait, 0 or more
	Rate    float64 // arrivals per second
	Mean    float64 // mean service time in seconds, above 0
}

func (q MMcK) check() {
	MMc{q.Servers, q.Rate, q.Mean}.check()
	needCount("the depth", q.Depth, 0)
	needLoad(q.Load())
}

// Load returns the offered load as a share of the capacity.
func (q MMcK) Load() float64 { return q.Rate * q.Mean / float64(q.Servers) }

// geometric returns 1 + r + ... + r^(n-1).
func geometric(r float64, n int) float64 {
	if n == 0 || r == 0 {
		return min(1, float64(n))
	}
	x := math.Log(r)
	if x == 0 {
		return float64(n)
	}
	return math.Expm1(float64(n)*x) / math.Expm1(x)
}

// low returns the probability that nobody waits, and busy P(exactly c inside),
// from which each waiting request is one more factor of the load.
//
// Up to c inside the probabilities are those of Erlang's loss system, of which
// busy is ErlangB; beyond they are geometric. Above a load of 1 everything is
// divided by load^Depth, which keeps the numbers finite.
func (q MMcK) low() (low, full float64) {
	b, r := ErlangB(q.Servers, q.Rate*q.Mean), q.Load()
	if r <= 1 {
		all := 1 + b*r*geometric(r, q.Depth)
		return 1 / all, b * math.Pow(r, float64(q.Depth)) / all
	}
	less := math.Pow(r, -float64(q.Depth))
	all := less + b*geometric(1/r, q.Depth)
	return less / all, b / all
}

// State returns the probability that n requests are inside: served or waiting.
// It is 0 for an n that cannot be.
func (q MMcK) State(n int) float64 {
	q.check()
	if n < 0 || n > q.Servers+q.Depth {
		return 0
	}
	low, full := q.low()
	if n > q.Servers {
		return full * math.Pow(q.Load(), float64(n-q.Servers-q.Depth))
	}
	a := q.Rate * q.Mean
	return low * math.Exp(logPoisson(n, a)-logPoissonBelow(q.Servers+1, a))
}

// waiting returns P(exactly j wait and all servers are busy), for each j from 0
// to Depth.
func (q MMcK) waiting() []float64 {
	p := make([]float64, q.Depth+1)
	_, full := q.low()
	for j := range p {
		p[j] = full * math.Pow(q.Load(), float64(j-q.Depth))
	}
	if q.Load() == 0 { // the power above is Inf; nobody is inside
		clear(p)
	}
	return p
}

// Loss returns the share of the requests that are refused.
func (q MMcK) Loss() float64 {
	q.check()
	_, full := q.low()
	return full
}

// Throughput returns the completions per second: the arrivals less the refused.
func (q MMcK) Throughput() float64 { return q.Rate * (1 - q.Loss()) }

// MeanWait returns the mean time in the queue of an accepted request (Little).
func (q MMcK) MeanWait() float64 {
	q.check()
	if q.Rate == 0 {
		return 0
	}
	var length float64
	for j, p := range q.waiting() {
		length += float64(j) * p
	}
	return length / q.Throughput()
}

// WaitTail returns P(wait > t) of an accepted request: who finds j waiting and
// all servers busy waits for j+1 departures, an Erlang distributed time.
func (q MMcK) WaitTail(t float64) float64 {
	q.check()
	needNumber(t)
	if t < 0 {
		return 1
	}
	return q.late(func(j int) float64 { return ErlangTail(j, float64(q.Servers)/q.Mean, t) }, 0)
}

// ResponseTail returns P(wait + service > t) of an accepted request.
func (q MMcK) ResponseTail(t float64) float64 {
	q.check()
	needNumber(t)
	if t < 0 {
		return 1
	}
	return q.late(func(j int) float64 { return PlaceTail(j, q.Servers, q.Mean, t) }, math.Exp(-t/q.Mean))
}

// late sums over what an accepted request finds: place(j) is the probability of
// being late at the j-th place of the queue, free the one of finding a server.
func (q MMcK) late(place func(j int) float64, free float64) float64 {
	p := q.waiting()
	accepted := 1 - p[q.Depth]
	var wait, sum float64
	for j, w := range p[:q.Depth] {
		wait += w
		if w > 1e-18*accepted { // below, it moves no figure
			sum += w * place(j+1)
		}
	}
	return min(1, (sum+max(0, accepted-wait)*free)/accepted)
}

// WaitQuantile returns the smallest t with P(wait <= t) >= p, of an accepted
// request; +Inf for p = 1.
func (q MMcK) WaitQuantile(p float64) float64 { return quantile(q.WaitTail, p, q.Mean) }

// ResponseQuantile returns the smallest t with P(wait + service <= t) >= p, of
// an accepted request; +Inf for p = 1.
func (q MMcK) ResponseQuantile(p float64) float64 { return quantile(q.ResponseTail, p, q.Mean) }
