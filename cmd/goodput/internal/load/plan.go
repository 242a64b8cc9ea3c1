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
	return p
}

// arrivalStream keeps the arrivals apart from other draws of the same seed.
const arrivalStream = 1

// Arrivals yields the due instants, counted from the start of the run, in order.
// It depends on the Plan alone.
//
// Constant: exactly Rate x Duration of them, the i-th due at i / Rate, each
// computed from i, so that no error adds up. Poisson: gaps are exponential with
// mean 1 / Rate, until the window is over; the count varies with the seed by
// about its square root.
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

func nanos(f float64) time.Duration { return time.Duration(math.Round(f)) }
