package admission

import (
	"math"
	"time"
)

const (
	// aging guards the lower priorities against starvation by strictness: after
	// 32 grants that passed over a priority in which somebody waits, the next
	// one is theirs. That leaves the higher ones 97 % of the slots.
	aging = 32

	// maxPatience bounds how long a queue stands before its order changes.
	maxPatience = time.Second

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

	// budgetsDiffer is the ratio of the longest to the shortest budget above
	// which deadlines are taken to differ. Hops and clocks make equal deadlines
	// differ by a few percent.
	budgetsDiffer = 1.1
)

// tick moves the clock and closes the windows that ended.
func (c *Core) tick(now time.Duration) {
	if c.lent > 0 {
		panic("admission: settle what was lent before any other call")
	}
	c.now = max(c.now, now)
	c.hint.roll(c.now, c.counts.refused, c.counts.ended)
	if c.load.roll(c.now) {
		c.retune()
	}
}

// enter starts every call that may decide.
func (c *Core) enter(now time.Duration) {
	c.tick(now)
	c.reorder()
}

// reorder brings the order and the depth in force up to date.
func (c *Core) reorder() {
	if c.waiting == 0 {
		return
	}
	stood := c.now - c.stood
	if c.order == FIFO && c.cfg.Order == Auto && stood >= c.patience() {
		if o := c.standingOrder(); o == EDF || c.age() >= c.hopeless() {
			c.setOrder(o)
			c.dispatch() // who is first now may fit slots that were too few for who was (I2)
		}
	}
	if c.waiting > 0 && !c.overload && stood >= holds*c.cfg.Objective && c.rho() > 1 {
		c.overload = true
		c.retune()
	}
}

// patience is how long a queue stands before the order changes: as long as the
// objective leaves for waiting, at least a mean service time.
func (c *Core) patience() time.Duration {
	spare := c.cfg.Objective - c.derivation.Service
	return min(max(spare, seconds(c.service.hold())), maxPatience)
}

// hopeless is the age at which whoever is first under FIFO would miss the
// objective even with a service of mean length: from here on FIFO would serve
// everybody late. A queue of the derived depth does not get there; it does when
// the service has slowed, when the depth is fixed or blocks, or when nothing
// moves. Until then FIFO loses nothing that newest-first would save, and near
// capacity newest-first costs: at load 1.0 with deadlines of 400 ms it refuses
// 2.6 % where FIFO refuses 0.9 %, and the p99 with 2 s deadlines is 500 ms for
// 270 (60 slots, 50 ms exponential).
func (c *Core) hopeless() time.Duration {
	return max(c.cfg.Objective-seconds(c.service.hold()), c.patience())
}

// age is how long the first of those that wait has waited.
func (c *Core) age() time.Duration {
	var age time.Duration
	for i := range c.lines {
		if w := c.lines[i].head; w != nil {
			age = max(age, c.now-w.offered)
		}
	}
	return age
}

func (c *Core) standingOrder() Order {
	if float64(c.longest) > budgetsDiffer*float64(c.shortest) {
		return EDF
	}
	return NewestFirst
}

func (c *Core) setOrder(o Order) {
	if c.order == EDF && o != EDF {
		for i := range c.lines {
			c.lines[i].stopEDF()
		}
	}
	if c.order != EDF && o == EDF {
		for i := range c.lines {
			c.lines[i].startEDF()
		}
	}
	c.order = o
}

// rate is the cost per second that the slots can serve.
func (c *Core) rate() float64 { return float64(c.limit) / c.service.hold() }

// rho is the load: offered cost over what the slots can serve.
func (c *Core) rho() float64 {
	if c.limit == 0 {
		return math.Inf(1) // any offer is an overload
	}
	return c.load.rate / c.rate()
}

// retune sets the depth in force. While the queue stands and more is offered
// than can be served, more depth would serve nobody: it would only make
// everybody wait. See Standing.
func (c *Core) retune() {
	rho := c.rho()
	if c.overload && rho < 1 {
		c.overload = false
	}
	c.depth = c.derivation.Depth
	if c.overload && !c.derivation.Fixed && rho > 1 && c.limit > 0 {
		c.depth = min(c.depth, c.busyDepth(rho))
	}
	// A deadline within the objective keeps it, whatever the depth is. In a tight
	// limiter that is used: the odds decide, and in a standing overload what keeps
	// the slots busy.
	c.reach = c.depth
	switch {
	case !c.derivation.Tight:
	case c.overload && rho > 1 && c.now-c.stood >= tightHolds*c.cfg.Objective:
		c.reach = max(c.depth, c.busyDepth(rho))
	default:
		c.reach = maxItems
	}
}

// busyDepth is Standing in units of cost: a request occupies perCost slots.
func (c *Core) busyDepth(rho float64) int {
	per := c.load.perCost
	return int(min(math.Ceil(float64(Standing(float64(c.limit)/per, rho))*per), maxItems))
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
	hold, rate := c.service.hold(), c.rate()
	size, cost := c.service.request()
	objective := c.cfg.Objective.Seconds()
	d := Derivation{
		Limit: c.limit, Mean: seconds(hold), Rate: rate,
		Objective: c.cfg.Objective, Percentile: q, Service: seconds(top * size),
		Samples: int(c.service.samples), Declared: c.cfg.Service,
		Rule: int(math.Round(min(rate*objective, maxItems))),
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
	if c.limit > 0 {
		d.Depth, d.Reachable = c.service.deepest(rate, c.cv2, objective, 1-q, c.guess(rate), most)
		d.RuleLatency = c.ruleLatency(d.Rule, rate, d.Service)
		if !d.Reachable {
			d.Depth = min(c.busyDepth(max(c.rho(), unreachableLoad)), most)
		}
	}
	if c.cfg.Depth != 0 {
		d.Fixed, d.Depth = true, max(c.cfg.Depth, 0)
	} else {
		few := c.limit > 0 && float64(c.limit) < tightSlots*cost
		d.Tight = few && d.Depth < c.busyDepth(tightLoad)
	}
	if c.quantile = top; d.Tight && q > tightPercentile {
		c.quantile = c.service.quantile(tightPercentile)
	}
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
func (c *Core) ruleLatency(rule int, rate float64, service time.Duration) time.Duration {
	if old := c.derivation; c.now-c.ruledAt < time.Second && old.RuleLatency > 0 &&
		math.Abs(float64(rule-old.Rule)) < 0.05*float64(old.Rule) &&
		math.Abs(float64(service-old.Service)) < 0.05*float64(old.Service) {
		return old.RuleLatency
	}
	c.ruledAt = c.now
	return seconds(c.service.latency(rule, rate, c.cv2, c.cfg.Percentile))
}

// free is the number of units that could be granted; negative while a limit
// that shrank waits for the work in flight.
func (c *Core) free() int { return c.limit - c.inUse - c.lent }

func (c *Core) grant(cost int) {
	if cost > c.free() {
		panic("admission: I1: a grant exceeds the limit")
	}
	c.inUse += cost
	c.running++
}

// need is the service time that must fit a remaining budget.
// Before there are samples nobody knows what a unit of size is, and it is that of
// any request.
func (c *Core) need(size int) time.Duration {
	if c.service.samples == 0 {
		size = 1
	}
	return seconds(c.quantile * float64(size))
}

// predict returns how long a newcomer would wait: the units that must depart
// before its own are free, over the rate.
func (c *Core) predict(r *Request) time.Duration {
	units := r.Cost - c.free()
	due := min(r.Deadline, c.bound(r))
	for i := range c.lines[:r.Priority] { // its own priority and those above
		l := &c.lines[i]
		if i == int(r.Priority)-1 {
			units += l.ahead(c.order, due)
		} else {
			units += l.cost
		}
	}
	if units <= 0 {
		return 0
	}
	return seconds(float64(units) / c.rate())
}

// spent reports whether the predicted wait leaves too little of the budget. In a
// tight limiter the prediction is off by so much that only bad odds count.
func (c *Core) spent(r *Request, d *Decision) bool {
	spare := r.Deadline - c.now - d.Service
	if d.PredictedWait <= spare || spare < 0 || !c.derivation.Tight {
		return d.PredictedWait > spare
	}
	_, cost := c.service.request()
	units := int(math.Round(d.PredictedWait.Seconds() * c.rate()))
	queue := departing(units, c.rate(), c.cv2*cost)
	return queue.longer(spare.Seconds()) > 1-tightOdds
}

// depthFor returns how deep a request may queue. Those that the deadline keeps within
// the objective reach further, but only while all are such: others, bound by the depth,
// would find the queue full for ever.
func (c *Core) depthFor(r *Request) int {
	if c.keepsObjective(r) && c.now-c.others >= tightHolds*c.cfg.Objective {
		return c.reach
	}
	return c.depth
}

// keepsObjective reports whether the deadline of r alone keeps it within the objective.
func (c *Core) keepsObjective(r *Request) bool {
	return r.Deadline != Never && r.Deadline-c.now <= c.cfg.Objective
}

// bound is when the wait of a request without a deadline ends.
func (c *Core) bound(r *Request) time.Duration {
	if r.Deadline != Never {
		return Never
	}
	return c.now + c.cfg.MaxWait
}

// push queues a request for which there is room.
func (c *Core) push(r *Request) *Waiter {
	c.seq++
	w := c.spare
	if w == nil {
		w = &Waiter{}
	} else {
		c.spare = w.next
	}
	*w = Waiter{
		seq: c.seq, arrival: r.Arrival, offered: c.now, deadline: r.Deadline, bound: c.bound(r),
		bytes: r.Bytes, cost: int32(r.Cost), size: int32(r.Size), priority: r.Priority,
		retry: r.Attempt > 1, verdict: Queued,
	}
	c.arm(w)
	budget := w.due() - c.now
	if c.waiting == 0 {
		c.stood, c.shortest, c.longest = c.now, budget, budget
	}
	c.shortest, c.longest = min(c.shortest, budget), max(c.longest, budget)
	if c.order == NewestFirst && c.cfg.Order == Auto && c.standingOrder() == EDF {
		c.setOrder(EDF)
	}
	c.line(w).push(w, c.order == EDF)
	c.waiting++
	c.cost += int(w.cost)
	c.bytes += w.bytes
	return w
}

func (c *Core) line(w *Waiter) *line { return &c.lines[w.priority-1] }

// arm sets the alarm: the first instant at which over gives a reason.
func (c *Core) arm(w *Waiter) {
	w.alarm = w.bound
	if w.deadline != Never {
		w.alarm = min(w.alarm, w.deadline-c.need(int(w.size))+1)
	}
}

// over returns why a waiter can no longer be served, None if it can.
func (c *Core) over(w *Waiter) Reason {
	switch {
	case c.now >= w.deadline:
		return Deadline
	case w.deadline != Never && w.deadline-c.now < c.need(int(w.size)):
		return Doomed
	case c.now >= w.bound:
		return WaitBound
	}
	return None
}

// leave takes w out of the queue.
func (c *Core) leave(w *Waiter, v Verdict, why Reason) {
	l := c.line(w)
	l.remove(w)
	if l.n == 0 {
		l.passed = 0
	}
	c.waiting--
	c.cost -= int(w.cost)
	c.bytes -= w.bytes
	w.verdict, w.reason, w.decided = v, why, c.now
	if c.waiting == 0 {
		c.stood = Never
		if c.cfg.Order == Auto {
			c.setOrder(FIFO)
		}
	}
}

// drop ends a waiter without a slot.
func (c *Core) drop(w *Waiter, why Reason) {
	c.leave(w, Refused, why)
	c.count(why)
}

// tell drops a waiter and has Next return it.
func (c *Core) tell(w *Waiter, why Reason) {
	c.drop(w, why)
	c.decided = append(c.decided, w)
}

// undecide takes a newcomer, whose fate Offer itself returns, back out of what
// Next will return. It is among the last that were decided.
func (c *Core) undecide(w *Waiter) {
	for i := len(c.decided) - 1; i >= c.taken; i-- {
		if c.decided[i] == w {
			c.decided = append(c.decided[:i], c.decided[i+1:]...)
			return
		}
	}
}

// first returns who goes first: the highest priority in which somebody waits,
// or one that was passed over too often.
func (c *Core) first() *Waiter {
	var top *Waiter
	for i := range c.lines {
		l := &c.lines[i]
		if l.n == 0 {
			continue
		}
		if l.passed >= aging {
			return l.first(c.order)
		}
		if top == nil {
			top = l.first(c.order)
		}
	}
	return top
}

// dispatch grants what fits, in order, and drops on the way who can no longer
// be served. It leaves the queue work-conserving (I2).
func (c *Core) dispatch() {
	for c.waiting > 0 {
		w := c.first()
		if why := c.over(w); why != None { // I5
			c.tell(w, why)
			continue
		}
		if int(w.cost) > c.free() {
			return
		}
		c.leave(w, Admitted, None)
		c.grant(int(w.cost))
		c.counts.dequeued++
		c.decided = append(c.decided, w)
		for i := range c.lines {
			switch l := &c.lines[i]; {
			case i == int(w.priority)-1:
				l.passed = 0
			case i >= int(w.priority) && l.n > 0:
				l.passed++
			}
		}
	}
}

func (c *Core) refuse(why Reason) Decision { return c.refuseWith(Decision{}, why) }

func (c *Core) refuseWith(d Decision, why Reason) Decision {
	c.count(why)
	d.Verdict, d.Reason = Refused, why
	return d
}

// count is the one place where a request that never started gets its outcome.
func (c *Core) count(why Reason) {
	c.counts.refusals[why]++
	o := why.Outcome()
	c.counts.outcomes[o]++
	if why.RetryCanWin() && why != Draining {
		c.counts.refused++
	}
}

func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/1e9/2 { // also +Inf; half, so that a sum with now does not overflow
		return math.MaxInt64 / 2
	}
	return time.Duration(s * float64(time.Second))
}
