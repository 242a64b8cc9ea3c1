package goodputhttp

import (
	"net/http"
	"strconv"
	"time"
)

// A Dialect is the header in which a service is told how much time is left. Whichever
// is chosen, those that a request has already are brought up to date and never made
// longer: the time that a request itself allows runs from its start, over all attempts.
type Dialect uint8

// Dialects. The names of the headers and their units are in the package comment.
const (
	// DialectOfCaller is the default: as Budget.Forward. A request that has none of the
	// headers gets those in which the request that it is made for had its own; else
	// grpc-timeout if it is gRPC and x-envoy-expected-rq-timeout-ms if not.
	DialectOfCaller Dialect = iota
	DialectGRPC             // grpc-timeout, to the nanosecond
	DialectConnect          // connect-timeout-ms
	DialectEnvoy            // x-envoy-expected-rq-timeout-ms
	DialectSeconds          // Expect-Within
	DialectNone             // nothing is added, for services of others, whom it does not concern

	numChoices
)

// minBudget is the shortest time that is worth sending: the least that the headers in
// milliseconds can say. Below it they would have to say more than there is.
const minBudget = time.Millisecond

// readDeadline fills in c.limit, what the headers of the request itself allow, and which
// headers are to be written.
func (c *call) readDeadline(now time.Time) {
	c.start = now
	c.limit.grpc = c.grpc
	c.limit.read(c.req.Header, now, nil)
	switch d := c.dep.Deadline; d {
	case DialectOfCaller:
		if c.limit.given != 0 {
			break
		}
		if b := c.callersBudget(); b != nil {
			c.limit.given, c.limit.server = b.given, b.server
		}
	case DialectNone:
		c.silent = c.limit.given == 0
	default:
		c.limit.given |= 1 << (d - DialectGRPC)
	}
}

// callersBudget returns what the request that this one is made for was given. Its headers
// of gRPC are for gRPC.
func (c *call) callersBudget() *Budget {
	v, ok := c.req.Context().Value(visitKey{}).(*visit)
	if !ok || v.grpc != c.grpc {
		return nil
	}
	return &v.budget
}

// budget returns until when the server has to have answered, as it will be told: the
// earlier of what the headers of the request allow and of deadline, less the way there
// and back. The zero time is no deadline.
func (c *call) budget(deadline time.Time, ok bool) Budget {
	b := c.limit
	if ok {
		b.shorten(deadline.Add(-or(c.dep.HopMargin, HopMargin)), "context")
	}
	return b
}

// tooLate reports whether nothing is left of b at now.
func tooLate(b *Budget, now time.Time) bool {
	return !b.Deadline.IsZero() && b.Deadline.Sub(now) < minBudget
}

// The headers in which a server learns that it is not the first attempt: Server sheds those
// first, and others may. grpc-previous-rpc-attempts is gRFC A6.
const (
	attemptHeader     = "Goodput-Attempt"
	grpcAttemptHeader = "Grpc-Previous-Rpc-Attempts"
)

// maxAttempt is the highest number of an attempt that is believed and handed on.
const maxAttempt = 999

// priorAttempts returns how many attempts its sender says were made of a request before this
// one: in a Server that is its client, in a Transport somebody for whom we are a proxy.
func priorAttempts(h http.Header, grpc bool) int {
	name, first := attemptHeader, 1
	if grpc {
		name, first = grpcAttemptHeader, 0
	}
	v := h[name]
	if len(v) == 0 {
		return 0
	}
	n, ok := digits(v[0], 3)
	if !ok {
		return 0
	}
	return max(int(n)-first, 0)
}

// header returns the header to send with the n-th attempt: that of the request if there
// is nothing to say. The values of the names are shared, so nobody may write to them.
func (c *call) header(a *attempt, b *Budget, now time.Time, n int) http.Header {
	forward, number := !b.Deadline.IsZero() && !c.silent, c.prior+n
	if !forward && number == 1 {
		return c.req.Header
	}
	h := make(http.Header, len(c.req.Header)+2)
	for name, values := range c.req.Header {
		h[name] = values
	}
	if forward {
		write := b.given
		if write == 0 {
			write = b.added()
		}
		b.forward(h, write, now, b.Deadline.Sub(now), &a.values)
	}
	if number > 1 {
		name := attemptHeader
		if c.grpc {
			name = grpcAttemptHeader
			number--
		}
		h[name] = []string{strconv.Itoa(min(number, maxAttempt))}
	}
	return h
}
