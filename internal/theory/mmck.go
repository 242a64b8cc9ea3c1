package theory

import "math"

// An MMcK is the queue M/M/c/K, first come first served: as MMc, but at most
// Depth requests wait and whoever finds the queue full is refused. K, the most
// that are inside, is Servers + Depth. It is stable at any load; up to 1e9 is
// allowed. Waits and responses are those of the requests that were accepted.
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

// geometric returns 1 + r + ... + r^(n-1), also where r is so near to 1 that
// (r^n - 1)/(r - 1) is not.
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

// An inside is what the distribution of the number inside is made of.
//
// Up to c inside the probabilities are those of Erlang's loss system, which is
// full with the probability b, its loss; from there each one that waits is one
// more factor r, the load.
type inside struct {
	b, r, depth float64
	low, full   float64 // P(at most c inside), P(all places are taken)
}

func (q MMcK) inside() inside {
	q.check()
	in := inside{b: ErlangB(q.Servers, q.Rate*q.Mean), r: q.Load(), depth: float64(q.Depth)}
	if in.r <= 1 {
		all := 1 + in.b*in.r*geometric(in.r, q.Depth)
		in.low, in.full = 1/all, in.b*math.Pow(in.r, in.depth)/all
		return in
	}
	// Everything is divided by r^Depth, so that it stays finite.
	less := math.Pow(in.r, -in.depth)
	all := less + in.b*geometric(1/in.r, q.Depth)
	in.low, in.full = less/all, in.b/all
	return in
}

// waiting returns P(all servers are busy and j wait), counted from the end at
// which the probability is.
func (in inside) waiting(j int) float64 {
	if in.r <= 1 {
		return in.low * in.b * math.Pow(in.r, float64(j))
	}
	return in.full * math.Pow(in.r, float64(j)-in.depth)
}

// State returns the probability that n requests are inside: served or waiting.
// It is 0 for an n that cannot be.
func (q MMcK) State(n int) float64 {
	in := q.inside()
	c, a := q.Servers, q.Rate*q.Mean
	switch {
	case n < 0 || n > c+q.Depth:
		return 0
	case n >= c:
		return in.waiting(n - c)
	case in.r < 1:
		return in.low * math.Exp(logPoisson(n, a)-logPoissonBelow(c+1, a))
	}
	p := in.waiting(0)
	for k := c; k > n; k-- { // at a high load the Poisson distribution is far away
		p *= float64(k) / a
	}
	return p
}

// Loss returns the share of the requests that are refused.
func (q MMcK) Loss() float64 {
	return q.inside().full
}

// Throughput returns the completions per second: the arrivals less the refused.
func (q MMcK) Throughput() float64 { return q.Rate * (1 - q.Loss()) }

// MeanWait returns the mean time in the queue of an accepted request (Little).
func (q MMcK) MeanWait() float64 {
	in := q.inside()
	if q.Rate == 0 {
		return 0
	}
	var length float64
	for j := 1; j <= q.Depth; j++ {
		length += float64(j) * in.waiting(j)
	}
	return length / (q.Rate * (1 - in.full))
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
	in := q.inside()
	accepted := 1 - in.full
	var wait, sum float64
	for j := range q.Depth {
		w := in.waiting(j)
		wait += w
		if w > 1e-30*accepted { // below, it moves nothing above 1e-18
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
