package admission

import (
	"math"
	"time"
)

// The depth in force: the derived one, but what keeps the slots busy in an overload
// that lasts, and further for a few slots whose deadlines keep the objective.

const (
	// holds is for how many objectives a queue stands at its full depth before
	// the depth shrinks. A burst that the full depth can absorb drains sooner:
	// without the hold a burst of 0.2 s loses 4.6 % instead of 0.7 %.
	holds = 2

	// tightSlots is the number of requests at once below which a limiter may be
	// tight: the derived depth is less than what keeps the slots busy at tightLoad
	// times their capacity, so that they cannot be busy and meet the percentile of the
	// objective as well. One slot of 50 ms and 400 ms: a queue of the derived depth, 1, keeps
	// it busy for 80 % of the time at 1.5 times its capacity; with 4 slots it is
	// 99 %. Deadlines help where they are within the objective: they keep it
	// without a bound on the depth. With them 96 % of one slot is used, but the no
	// comes later, when the odds are gone.
	tightSlots = 4
	tightLoad  = 1.2

	// tightPercentile is that of the service time which must fit the remaining
	// budget in a tight limiter. The time until somebody is served varies so much
	// there that the last percent of certainty costs more slots than it saves: two
	// slots in front of the Azure trace serve 3 points more at 0.95 than at 0.99.
	tightPercentile = 0.95

	// tightHolds is for how many objectives the queue of a tight limiter stands before
	// those with a deadline are bound by more than their odds. Its load says little
	// over two objectives: two slots in front of 0.8 s of work serve 25 requests in
	// 10 s.
	tightHolds = 8

	// tightOdds is the least chance of a slot in time with which somebody may queue
	// in a tight limiter.
	tightOdds = 0.05
)

// slotRate is the cost per second that the slots can serve.
func (c *Core) slotRate() float64 { return float64(c.limit) / c.service.hold() }

// rate is the cost per second that can be served.
func (c *Core) rate() float64 { return min(c.slotRate(), c.allowed) }

// rho is the load: offered cost over what can be served.
func (c *Core) rho() float64 {
	if c.limit == 0 {
		return math.Inf(1) // any offer is an overload
	}
	if c.usual > 0 {
		return c.load.rate / min(c.usual/c.service.hold(), c.allowed)
	}
	return c.load.rate / c.rate()
}

// retune sets the depth in force. While the queue stands and more is offered
// than can be served, more depth would serve nobody: it would only make
// everybody wait. See Standing. That ends with the load: neither a moment without a
// refusal, which a queue that is too short never has, nor slots that are idle, which one
// that is too short has in every overload, but make it deeper: see idleness.
func (c *Core) retune() {
	rho := c.rho()
	if c.overload && (rho < 1 || c.search) {
		c.overload = false
	}
	c.weighIdleness()
	c.depth = c.derivation.Depth
	if c.overload && !c.derivation.Fixed && rho > 1 && c.limit > 0 {
		c.depth = min(c.depth, c.deepened(c.busyDepth(c.throughTheDoor(rho))))
	}
	// A deadline within the objective keeps it, whatever the depth is. In a tight
	// limiter that is used: the odds decide, and in a standing overload what keeps
	// the slots busy.
	c.reach = c.depth
	switch {
	case c.derivation.Chances && !c.overload:
		c.reach = maxItems
	case !c.derivation.Tight:
	case c.overload && rho > 1 && c.now-c.stood >= tightHolds*c.cfg.Objective:
		c.reach = max(c.depth, c.deepened(c.busyDepth(rho)))
	default:
		c.reach = maxItems
	}
	c.apportion()
}

// busyDepth is Standing in units of cost, of which a request occupies perCost, or where
// the allowance binds what keeps that in use: it is all that there is of one or the other.
func (c *Core) busyDepth(rho float64) int {
	return c.busyPart(1, 1, rho, c.load.perCost)
}

// busyPart is busyDepth for served out of all that can be, in requests of another cost.
func (c *Core) busyPart(served, all, rho, perCost float64) int {
	if c.binds() {
		return spacedDepth(c.allowance.burst()*served/all, rho, perCost)
	}
	return busyDepth(float64(c.limit)*served/all, rho, perCost)
}

func busyDepth(slots, rho, perCost float64) int {
	return int(min(math.Ceil(float64(Standing(max(slots/perCost, 1), rho))*perCost), maxItems))
}

// unreachableLoad is the load for which the depth is taken when the objective
// cannot be met whatever the depth is: half as much again as the slots serve.
const unreachableLoad = 1.5

// derive computes the derived depth and what follows from it.
func (c *Core) derive() {
	c.derivedAt = c.now
	q := c.cfg.Percentile
	_, c.cv2 = c.service.moments()
	top := c.service.quantile(q)
	hold := c.service.hold()
	pace := pace{slots: float64(c.limit) / hold, limit: c.limit, cv2: c.cv2, allowed: c.allowance.Rate}
	rate := pace.rate()
	size, cost := c.service.request()
	objective := c.cfg.Objective.Seconds()
	d := Derivation{
		Limit: c.limit, Mean: seconds(hold), Rate: rate,
		Objective: c.cfg.Objective, Percentile: q, Service: seconds(top * size),
		Samples: int(c.service.samples), Declared: c.cfg.Service,
		Rule: int(math.Round(min(rate*objective, maxItems))),
	}
	if d.Allowance = c.cfg.Allowance; d.Allowance.Rate > 0 {
		d.Allowance.Burst = d.Allowance.burst()
	}
	if c.service.priorWeight() > 0 {
		d.Prior = priorMean(c.cfg.Service, c.cfg.Objective)
	} else if d.Declared > 0 {
		d.Drifted = math.Abs(hold/d.Declared.Seconds()-1) > driftTolerated
	}
	most := c.cfg.MaxItems
	if c.cfg.Depth != 0 {
		most = 0 // only whether the objective can be met
	}
	c.growth = c.foreseen(objective - top*size)
	if d.Growth = c.growth; c.limit > 0 {
		d.RuleLatency = c.ruleLatency(d.Rule, pace, d.Service)
		pace.slots *= c.growth
		d.Depth, d.Reachable = c.service.deepest(pace, objective, 1-q, c.guess(rate), most)
		if !d.Reachable {
			d.Depth = min(c.busyDepth(max(c.rho(), unreachableLoad)), most)
		}
	}
	if c.cfg.Depth != 0 {
		d.Fixed, d.Depth = true, max(c.cfg.Depth, 0)
	} else {
		few := c.limit > 0 && float64(c.limit) < tightSlots*cost
		d.Tight = few && d.Depth < c.busyDepth(tightLoad)
		d.Chances = !d.Tight && c.chances(top*size)
	}
	if c.quantile = top; d.Tight && q > tightPercentile {
		q = tightPercentile
		c.quantile = c.service.quantile(q)
	}
	c.needed = q
	c.judgeSizes(&d, q)
	c.derivation = d
	c.retune()
}

// guess is the depth in which a rate that has changed would result.
func (c *Core) guess(rate float64) int {
	if old := c.derivation; old.Rate > 0 {
		return int(min(float64(old.Depth)*rate/old.Rate, maxItems))
	}
	return 0
}

// ruleLatency is for the eyes alone and costs more than all the rest, so it is
// computed once a second, or when the rule itself has moved, or the service at the
// percentile, as it does when the samples take over from the prior. 5 % is what a
// reader would see, and more than one window of samples moves either.
func (c *Core) ruleLatency(rule int, of pace, service time.Duration) time.Duration {
	if old := c.derivation; c.now-c.ruledAt < time.Second && old.RuleLatency > 0 &&
		math.Abs(float64(rule-old.Rule)) < 0.05*float64(old.Rule) &&
		math.Abs(float64(service-old.Service)) < 0.05*float64(old.Service) {
		return old.RuleLatency
	}
	c.ruledAt = c.now
	return seconds(c.service.latency(rule, of, c.cfg.Percentile))
}

// depthFor returns how deep a request may queue. Those that the deadline keeps within
// the objective reach further, but only while all are such: others, bound by the depth,
// would find the queue full for ever.
func (c *Core) depthFor(r *Request) int {
	if c.keepsObjective(r) && c.now-c.others >= tightHolds*c.cfg.Objective {
		if c.planned {
			return maxItems // the schedule lets nobody in who would be late
		}
		return c.reach
	}
	return c.depth
}

// keepsObjective reports whether the deadline of r alone keeps it within the objective.
func (c *Core) keepsObjective(r *Request) bool {
	return r.Deadline != Never && r.Deadline-c.now <= c.cfg.Objective
}

// widest is the depth of the whole queue for a newcomer.
func (c *Core) widest(r *Request) int { return max(c.derivation.Depth, c.depthFor(r)) }

// ownDepth is how much of the queue the tenant of a newcomer may fill in its priority:
// the part of the depth that it has of the slots, so that it is served from there within
// the objective, its MaxQueue, and if it asks for more than its share in an overload, what
// keeps that share busy: who does not has a burst, and a burst may be as deep as the
// objective allows.
func (c *Core) ownDepth(r *Request, f *flow) int {
	part := 1.0
	if m := f.row.MaxQueue; m > 0 {
		part = m
	}
	if rate := c.rate(); !c.derivation.Fixed && rate > 0 {
		part = min(part, c.entitled(f)/rate)
	}
	own := c.widest(r)
	if part < 1 {
		own = int(math.Ceil(part*float64(own) - 1e-9))
	}
	if f.group == nil && c.short(f) {
		own = min(own, max(f.row.stands[f.priority-1], c.depthFor(r)))
	}
	return own
}

// short reports whether the tenant of a flow has no more of the queue than keeps its share
// busy.
func (c *Core) short(f *flow) bool { return c.greedy(f) && !c.derivation.Fixed && c.limit > 0 }

// bucketDepth is how much of the queue a bucket of the ids without a row may fill. It is
// one of those, and not all of them, that has a short queue in an overload: a quiet id must
// find a place beside one that floods. The hand of one that floods has what keeps the share
// of all busy.
func (c *Core) bucketDepth(f *flow) int {
	if !c.short(f) {
		return maxItems
	}
	return (f.row.stands[f.priority-1] + c.hand - 1) / max(c.hand, 1)
}

// sated reports whether enough of the tenant of a flow waits to keep its share busy.
func (c *Core) sated(f *flow) bool {
	if f.group != nil {
		return f.line.cost >= c.bucketDepth(f)
	}
	return f.line.cost >= f.row.stands[f.priority-1]
}
