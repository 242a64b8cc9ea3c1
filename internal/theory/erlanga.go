package theory

// An ErlangA is the queue M/M/c+M: as MMc, but who waits loses patience after an
// exponential time and leaves. It is stable at any load (Palm 1957; Garnett,
// Mandelbaum and Reiman 2002).
type ErlangA struct {
	Servers  int     // 1 or more
	Rate     float64 // arrivals per second
	Mean     float64 // mean service time in seconds, above 0
	Patience float64 // mean patience in seconds, above 0
}

// queue returns P(a request waits) and the mean number of requests that wait.
//
// With c busy and j waiting, requests go at the rate c/Mean + j/Patience. The
// states up to c are those of Erlang's loss system. Beyond, with w(j) the
// product of Rate over that rate, busy is b times the sum of all w(j), over 1 +
// b times the sum from j = 1 on.
func (q ErlangA) queue() (busy, length float64) {
	MMc{q.Servers, q.Rate, q.Mean}.check()
	needAbove("the mean patience", q.Patience)
	b := ErlangB(q.Servers, q.Rate*q.Mean)
	if b == 0 {
		return 0, 0
	}
	one := 1.0 // what 1 is after rescaling
	w, sum, first := 1.0, 1.0, 0.0
	for j := 1; ; j++ {
		f := q.Rate / (float64(q.Servers)/q.Mean + float64(j)/q.Patience)
		w *= f
		sum += w
		first += float64(j) * w
		// The ratio of the terms only falls: the rest is below a geometric sum.
		if f < 1 && w*float64(j+1) <= 1e-17*(1-f)*(1-f)*first {
			break
		}
		if sum > 1e200 {
			w, sum, first, one = w/1e200, sum/1e200, first/1e200, one/1e200
		}
	}
	all := one + b*(sum-one)
	return min(1, b*sum/all), b * first / all
}

// Busy returns the probability that a request finds all servers busy.
func (q ErlangA) Busy() float64 { busy, _ := q.queue(); return busy }

// Abandon returns the share of all requests that leave before they are served.
func (q ErlangA) Abandon() float64 {
	_, length := q.queue()
	if q.Rate == 0 {
		return 0
	}
	return min(1, length/q.Patience/q.Rate)
}

// MeanWait returns the mean time in the queue of all requests, those included
// who find a server and those who leave (Little).
func (q ErlangA) MeanWait() float64 {
	_, length := q.queue()
	if q.Rate == 0 {
		return 0
	}
	return length / q.Rate
}
