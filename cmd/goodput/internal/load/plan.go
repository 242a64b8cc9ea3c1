// Package load offers requests to a service at a rate that does not depend on
// its answers, and says what became of them.
//
// A closed loop (N clients, each sends when it has its answer) slows down with
// the service it measures and can never show an overload. This is an open loop:
// the arrivals are a function of a Plan alone, computed from its seed, and a
// request is sent when it is due, whatever the service does.
//
// Three rules keep the numbers honest:
//
//   - Latency counts from the instant at which a request was due, not from the
//     one at which somebody got round to send it. A service that freezes is
//     charged for everybody who arrived meanwhile.
//   - The generator measures its own lateness (sent - due) and the arrivals that
//     it could not send, and voids the run when either distorts the answer. See
//     Result.Void.
//   - The window is the Plan's: all of its arrivals are followed to their end,
//     which their deadline bounds, and rates are per second of the window.
package load

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Bounds of a Plan: 10 million calls of about 1 KiB is what a run may touch.
const (
	maxRate     = 1e6
	maxDuration = time.Hour
	maxArrivals = 10_000_000
	maxAttempts = 10

	// DefaultMaxInFlight is 65,536 requests in flight: the streams of a few
	// HTTP/2 connections and about 1 GB of goroutines at the very worst.
	DefaultMaxInFlight = 1 << 16

	// DefaultTolerance is how late the 99th percentile of the sends may be:
	// five times the 1 ms to which a sleep is exact.
	DefaultTolerance = 5 * time.Millisecond
)

// A Plan says what arrives when. Two runs of one Plan have the same arrivals.
type Plan struct {
	Rate     float64       // arrivals per second
	Duration time.Duration // of the window in which they arrive
	Seed     uint64        // of the arrivals
	Constant bool          // evenly spaced; default Poisson, as independent users are

	// Trace, if not nil, are the arrivals in place of Poisson ones: instants from any origin
	// on, in order. They are stretched or pressed together so that Rate is their mean, and
	// begin again when they end before Duration.
	Trace []time.Duration

	// Like, if not nil, says whether an answer below 500 that is no refusal is one that the
	// service gives. It is called from many goroutines at once.
	Like func(Answer) bool

	// Attempts is how often a request is sent at the most, the first time included, while it
	// is refused, fails or is lost and its deadline is not over: 1 to 10, default 1. Between
	// attempts a caller waits as Backoff says. What is counted of each, and what of all of
	// them together, is in Result.
	Attempts int

	// Backoff returns how long to wait before attempt n, 2 or more, given the answer to the
	// one before. Required with Attempts above 1.
	Backoff func(n int, before Answer) time.Duration

	// Least is what must be left of the deadline for another attempt: who has less than a
	// service takes asks for what cannot be had. 0: any time will do.
	Least time.Duration

	// Follow, if positive, is how long one in 16 of those that reach their deadline, at most
	// 64 at once, are left on the connection to see whether an answer still comes. For the
	// run they have given up all the same.
	Follow time.Duration

	// Deadline is when a caller gives up, counted from the instant at which
	// its request was due. Required: without it a run might not end.
	Deadline time.Duration

	// MaxInFlight bounds the requests in flight. An arrival beyond it is
	// dropped, counted and never sent. Default DefaultMaxInFlight.
	MaxInFlight int

	// Tolerance is the lateness, at its 99th percentile, from which on the run
	// is void. Default DefaultTolerance; see ToleranceFor.
	Tolerance time.Duration
}

// ToleranceFor returns how late a generator may be that judges an objective: 1 %
// of it, so that lateness moves no verdict by more, and no less than a sleep is
// exact to.
func ToleranceFor(objective time.Duration) time.Duration {
	return max(DefaultTolerance, objective/100)
}

// Validate returns one sentence about the first field that is out of range, or
// nil.
func (p Plan) Validate() error {
	switch {
	case !(p.Rate > 0 && p.Rate <= maxRate): // NaN fails too
		return fmt.Errorf("rate %v/s is out of range: more than 0, at most %.0f", p.Rate, maxRate)
	case p.Duration <= 0 || p.Duration > maxDuration:
		return fmt.Errorf("duration %v is out of range: more than 0, at most %v", p.Duration, maxDuration)
	case p.Rate*p.Duration.Seconds() > maxArrivals:
		return fmt.Errorf("%.0f/s for %v are more than %d requests", p.Rate, p.Duration, maxArrivals)
	case p.Deadline <= 0 || p.Deadline > maxDuration:
		return fmt.Errorf("deadline %v is out of range: more than 0, at most %v", p.Deadline, maxDuration)
	case p.MaxInFlight < 0 || p.MaxInFlight > 1<<20:
		return fmt.Errorf("max in flight %d is out of range: 1 to %d, or 0 for %d", p.MaxInFlight, 1<<20, DefaultMaxInFlight)
	case p.Tolerance < 0:
		return fmt.Errorf("tolerance %v is negative", p.Tolerance)
	case p.Attempts < 0 || p.Attempts > maxAttempts:
		return fmt.Errorf("%d attempts are out of range: 1 to %d, or 0 for 1", p.Attempts, maxAttempts)
	case p.Attempts > 1 && p.Backoff == nil:
		return fmt.Errorf("%d attempts need a backoff: how long to wait between two", p.Attempts)
	case p.Least < 0:
		return fmt.Errorf("least %v is negative", p.Least)
	case p.Follow < 0 || p.Follow > maxDuration:
		return fmt.Errorf("follow %v is out of range: at most %v, or 0 for not at all", p.Follow, maxDuration)
	case p.Trace != nil:
		return p.validateTrace()
	}
	return nil
}

func (p Plan) validateTrace() error {
	n := len(p.Trace)
	switch {
	case p.Constant:
		return errors.New("arrivals are constant or those of a trace, not both")
	case n == 1:
		return fmt.Errorf("the trace has one arrival, and that has no rate: it takes 2 to %d", maxArrivals)
	case n < 2 || n > maxArrivals:
		return fmt.Errorf("the trace has %d arrivals: it takes 2 to %d", n, maxArrivals)
	}
	for i := 1; i < n; i++ {
		if p.Trace[i] < p.Trace[i-1] {
			return fmt.Errorf("arrival %d of the trace, %v, is before the one that precedes it, %v", i+1, p.Trace[i], p.Trace[i-1])
		}
	}
	// Less than 0 is more than 292 years, which no Duration holds.
	switch span := p.Trace[n-1] - p.Trace[0]; {
	case span == 0:
		return fmt.Errorf("all %d arrivals of the trace are at one instant, which has no rate", n)
	case span < 0:
		return fmt.Errorf("the trace from %v to %v has no rate: it lasts 292 years at most", p.Trace[0], p.Trace[n-1])
	}
	return nil
}

func (p Plan) withDefaults() Plan {
	if p.MaxInFlight == 0 {
		p.MaxInFlight = DefaultMaxInFlight
	}
	if p.Tolerance == 0 {
		p.Tolerance = DefaultTolerance
	}
	if p.Attempts == 0 {
		p.Attempts = 1
	}
	return p
}

// Settled is when whoever came before the load has ended, or left.
func (p Plan) Settled() time.Duration { return min(p.Deadline, p.Duration/2) }

// arrivalStream keeps the arrivals apart from other draws of the same seed.
const arrivalStream = 1

// Arrivals yields the due instants, counted from the start of the run, in order.
// It depends on the Plan alone.
//
// Constant: exactly Rate x Duration of them, the i-th due at i / Rate, each
// computed from i, so that no error adds up. Poisson: gaps are exponential with
// mean 1 / Rate, until the window is over; the count varies with the seed by
// about its square root. Trace: see Plan.Trace; the first is due at once.
func (p Plan) Arrivals() iter.Seq[time.Duration] {
	gap := float64(time.Second) / p.Rate
	if p.Constant {
		n := int(math.Round(p.Rate * p.Duration.Seconds()))
		return func(yield func(time.Duration) bool) {
			for i := range n {
				if !yield(nanos(float64(i) * gap)) {
					return
				}
			}
		}
	}
	if p.Trace != nil {
		return p.replay
	}
	return func(yield func(time.Duration) bool) {
		rng := rand.New(rand.NewPCG(p.Seed, arrivalStream))
		// Gaps are rounded before they are added: integers add up to the same
		// sum on every platform.
		for due := nanos(rng.ExpFloat64() * gap); due < p.Duration; due += nanos(rng.ExpFloat64() * gap) {
			if !yield(due) {
				return
			}
		}
	}
}

// replay yields the arrivals of a trace. Its n instants have n - 1 gaps between them and one
// of the mean length before it begins again: n / Rate in all, so that Rate is the mean of each
// round.
func (p Plan) replay(yield func(time.Duration) bool) {
	n, first := len(p.Trace), p.Trace[0]
	gap := float64(time.Second) / p.Rate
	scale := float64(n-1) * gap / float64(p.Trace[n-1]-first)
	for round := 0; ; round++ {
		began := math.Round(float64(round) * float64(n) * gap)
		for _, at := range p.Trace {
			// Rounded before it is added, as above. A float until it is known to be short:
			// a slow rate stretches a trace beyond what a Duration holds.
			due := began + math.Round(float64(at-first)*scale)
			if due >= float64(p.Duration) {
				return
			}
			if !yield(time.Duration(due)) {
				return
			}
		}
	}
}

func nanos(f float64) time.Duration { return time.Duration(math.Round(f)) }
