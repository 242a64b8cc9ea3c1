package live

import (
	"time"

	"github.com/goodput/goodput"
)

// since returns by how much a counter has risen. One that fell belongs to another limiter than
// before, or to another way of counting: nothing is known of it then, and a rate is never
// below zero.
func since(was, is uint64) float64 {
	if is < was {
		return 0
	}
	return float64(is - was)
}

// ratesOf returns the rates between two snapshots that were taken elapsed apart. The time is
// what has passed and not what should have: a busy machine drops ticks, and those that it does
// not drop are late. Without any time between them all rates are 0.
func ratesOf(was, is *goodput.Stats, elapsed time.Duration) Rates {
	per := func(a, b uint64) float64 {
		if elapsed <= 0 {
			return 0
		}
		return since(a, b) / elapsed.Seconds()
	}
	r := Rates{
		Offered:  per(was.Arrivals, is.Arrivals),
		Admitted: per(was.Immediate, is.Immediate) + per(was.Dequeued, is.Dequeued),
		Goodput:  per(was.Outcomes[goodput.Completed], is.Outcomes[goodput.Completed]),
		Outcomes: map[string]float64{},
		Reasons:  map[string]float64{},
	}
	for o := goodput.Pending + 1; int(o) < len(is.Outcomes); o++ {
		rate := per(was.Outcomes[o], is.Outcomes[o])
		r.Outcomes[o.String()] = rate
		switch o {
		case goodput.Rejected, goodput.Expired:
			r.Refused += rate
		case goodput.Cancelled: // it left before it began
		default:
			r.Throughput += rate
		}
	}
	for reason := goodput.None + 1; int(reason) < len(is.Refusals); reason++ {
		r.Reasons[reason.String()] = per(was.Refusals[reason], is.Refusals[reason])
	}
	if is.Observe {
		r.Shadow = map[string]float64{}
		for reason := goodput.None + 1; int(reason) < len(is.Refusals); reason++ {
			r.Shadow[reason.String()] = per(was.Shadow.Refusals[reason], is.Shadow.Refusals[reason])
		}
	}
	if r.Offered > 0 {
		// Who ends in this tick may have arrived in the one before.
		r.InTime = new(min(r.Goodput/r.Offered, 1))
	}
	return r
}
