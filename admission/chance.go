package admission

import (
	"sort"
	"time"
)

// The doomed test for budgets that are shorter than the quantile of the service.
//
// Who has such a budget would be doomed with a free slot too, and is admitted to one. So
// that it had to wait is not what dooms it, unless the wait takes a part of its chance:
// it had P(service <= budget), and has P(service <= what is left). The doomed test keeps
// the loss to 1 - q, q the percentile of the objective: what must be left is the quantile
// q of those services that fit the whole budget. Where all services fit that is the
// quantile of the service itself.
//
// It matters where a few hang. Of work that is cut at its deadline the service time is the
// deadline, and 3 % of it make the p99 of the service the deadline of all: whoever had to
// wait was doomed, though the others took 20 ms of their second.

const (
	// fits is by how much a service must be shorter than a budget to count as one that
	// fits: more than a bucket of the histogram (9.1 %), within which what was cut at the
	// deadline is not told from the deadline.
	fits = 1.1

	// worthwhile is the least chance that a budget must have had for its owner to wait
	// where its budget is below the quantile: below it the slot is more likely lost than
	// not, and who waits with it takes it from others.
	worthwhile = 0.5

	// rivalled is the part that its chance must be of the best that anybody has who
	// waits, while more is offered than can be served: a slot then always has somebody
	// else, and where budgets of 100 ms and 1 s share 60 slots of 50 ms at 3x, letting both
	// wait alike would cost 5 points of the goodput. The p95 is the least that the doomed
	// test asks for: see tightPercentile.
	rivalled = 0.95
)

// bearable returns the time per unit of size that must be left, in seconds, of a whole
// budget so short that need, the quantile of the service, does not fit it; need if its
// chance was not worthwhile.
func (c *Core) bearable(whole, unit, need float64) float64 {
	chance := c.service.within(whole / fits)
	if chance < worthwhile || c.overload && chance < rivalled*c.service.within(c.longest.Seconds()/unit/fits) {
		return need
	}
	return min(need, c.service.quantile(c.needed*chance))
}

// chances reports whether the service at the percentile, in seconds, leaves the objective
// nothing to wait, or next to nothing, while most of it fits. The derived depth is then
// next to nothing too, and those whose deadline is within the objective may queue beyond
// it: the doomed test says how long they can wait.
func (c *Core) chances(service float64) bool {
	size, _ := c.service.request()
	objective := c.cfg.Objective.Seconds()
	return c.limit > 0 && objective < fits*service && c.service.within(objective/size/fits) >= worthwhile
}

// within returns the part of the services that take at most t seconds per unit of size.
func (e *estimate) within(t float64) float64 {
	i := sort.Search(len(e.points), func(i int) bool { return e.points[i].at+e.points[i].reach >= t })
	if i == len(e.points) {
		return 1
	}
	p := &e.points[i]
	seen := p.below
	if from := p.at - p.reach; p.reach > 0 && t > from {
		seen += p.weight * (t - from) / (2 * p.reach)
	} else if t >= p.at {
		seen += p.weight
	}
	return seen / e.total
}

// whole is the budget that w had when it came.
func (w *Waiter) whole() time.Duration {
	if w.deadline == Never {
		return Never
	}
	return w.deadline - w.offered
}

// whole is the budget that r has now.
func (r *Request) whole(now time.Duration) time.Duration {
	if r.Deadline == Never {
		return Never
	}
	return r.Deadline - now
}
