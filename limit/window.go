package limit

import (
	"iter"
	"time"
)

// A Window is what the core measured between two decisions of a law: an eighth of the
// objective, 5 to 100 ms, longer where nothing happens. A law that needs more samples
// than a window has adds several up.
//
// Service times in it are those of completed and late work, without what is not the
// service's own: the time in the queue, what a client takes to read a body, and the time
// downstream, in something that has a limit of its own. Failed, abandoned, exempt and
// detached work gives none, and neither does what the resource itself refused.
type Window struct {
	Length    time.Duration // how long it was
	Objective time.Duration // of the limiter: the latency that wait and service must meet

	Arrived float64 // units of cost that were offered
	Delayed float64 // of those, what the limit did not admit at once: it had to queue, or was refused
	Peak    int     // the most units that were in use at once
	Running int     // units in use at its end
	Waiting int     // units that wait for the limit at its end: not for a tenant's ceiling, nor an allowance

	// Costliest is the largest cost of a request that was offered in the last minute or two: a
	// limit below that refuses such requests for ever.
	Costliest int

	Ended   int           // requests that ended in it, failed ones included
	Dropped int           // of those, what the resource refused: it is over a limit of its own
	Samples int           // service times in it
	Mean    time.Duration // mean time that a unit of cost was held by them, 0 without samples

	// Own is Mean without the time that the work spent waiting for, or in, something that
	// has a limit of its own: the signal of a law that looks for contention. A slow
	// dependency makes Mean longer, and fewer slots here would not make that shorter.
	Own time.Duration

	// Quiet is the longest time in it without an end while work was in flight: of a
	// process that stood still it is as long as the standstill.
	Quiet time.Duration

	// Pressure is how short of processors the process is, by a signal that was configured:
	// 0 not at all, 1 at what was said to be too much, and beyond. 0 without a signal.
	Pressure float64

	// Epochs are the current epoch and the one before. A service time that is compared with
	// a limit has to be of work that was admitted under that limit, so samples carry the
	// epoch in which they were admitted. Those of older epochs are in the sums above alone.
	Epochs [2]Epoch

	// Times yields the service times in it, rising: the mean of those of a bucket of 9 %,
	// and their number. nil without samples.
	Times iter.Seq2[time.Duration, float64]
}

// An Epoch is what was admitted between two marks of the law.
type Epoch struct {
	Length   time.Duration // how long it was; of the current one, so far
	Age      time.Duration // since its middle: how long, on average, what has not ended is under way
	Admitted float64       // units of cost
	InFlight float64       // units in use when they were admitted, themselves included: the mean
	Arrived  float64       // units of cost that were offered in it
	Delayed  float64       // of those, what was not admitted at once

	// Ended is how many units of cost, of those admitted in it, have ended, whatever way. All
	// of them, in the mean: where a part of the requests is timed, which epoch they were of is
	// an estimate from those, within 1/sqrt(Samples) of itself or better.
	Ended   float64
	Dropped float64       // of those, what the resource refused
	Samples float64       // requests that gave a service time
	Served  float64       // the units of cost of those
	Mean    time.Duration // their mean service time, each weighted by its cost
	Spread  time.Duration // standard deviation of that of one request

	// Abandoned is the units of cost of those whose callers left, and Under how long they had
	// been under way then, in the mean: they would have taken longer.
	Abandoned float64
	Under     time.Duration
}

// Left returns how many units of cost of the epoch have not ended.
func (e *Epoch) Left() float64 { return max(e.Admitted-e.Ended, 0) }

// Quantile returns the q-quantile of the service times in the window, to within 9 %, or 0
// without samples.
func (w *Window) Quantile(q float64) time.Duration {
	if w.Times == nil {
		return 0
	}
	total := 0.0
	for _, n := range w.Times {
		total += n
	}
	seen, at := 0.0, time.Duration(0)
	for t, n := range w.Times {
		at = t
		if seen += n; seen >= q*total {
			break
		}
	}
	return at
}
