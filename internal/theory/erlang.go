package theory

import "math"

// ErlangB returns the probability that all c servers are busy when a erlangs
// (arrival rate x mean service) are offered and nobody waits: the share of the
// requests that a limit without a queue refuses. It holds for any distribution
// of the service time (Erlang 1917, Sevastyanov 1957). The recursion is exact
// and takes c steps.
//
// c is 0 or more, a is 0 or more; +Inf is allowed and gives 1.
func ErlangB(c int, a float64) float64 {
	needCount("the number of servers", c, 0)
	if math.IsInf(a, 1) {
		return 1
	}
	needTime("the offered load in erlangs", a)
	b := 1.0
	for n := 1; n <= c; n++ {
		b = a * b / (float64(n) + a*b)
	}
	return b
}

// ErlangC returns the probability that a request finds all c servers busy and
// waits, in an M/M/c queue without bound (Erlang 1917). At a >= c the queue
// grows for ever and the answer is 1.
func ErlangC(c int, a float64) float64 {
	needCount("the number of servers", c, 1)
	b := ErlangB(c, a)
	if a >= float64(c) {
		return 1
	}
	return b / (1 - a/float64(c)*(1-b))
}
