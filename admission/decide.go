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
	if c.overload {
		c.idles()
	}
	c.hint.roll(c.now, c.counts.refused, c.counts.ended)
	if c.load.roll(c.now) {
		c.roll()
	}
}

// enter starts every call that may decide.
func (c *Core) enter(now time.Duration) {
	c.tick(now)
	c.reorder()
	c.lapse()
	if c.allowance.Rate > 0 {
		c.dispatch() // what the allowance has come to meanwhile
	}
}

// reorder brings the order and the depth in force up to date.
func (c *Core) reorder() {
	if c.waiting == 0 {
		return
	}
	if o := c.wanted(c.now - max(c.stood, c.absence.over)); o != c.order {
		c.setOrder(o)
		c.dispatch() // who is first now may fit slots that were too few for who was (I2)
	}
	if c.waiting > 0 && !c.overload && c.standsFor() >= holds*c.cfg.Objective && c.rho() > 1 {
		c.overload = true
		c.idleness = idleness{from: c.now, at: c.now, factor: max(c.idleness.factor, 1)}
		c.retune()
	}
}

// wanted returns the order for a queue that has stood for so long with something to run it on.
func (c *Core) wanted(stood time.Duration) Order {
	switch {
	case c.cfg.Order != Auto:
		return c.order
	case c.service.sizes.trusted():
		return EDF
	case c.order != FIFO || c.absence.is || stood < c.patience(): // no order serves anybody in an absence
		return c.order
	}
	if o := c.standingOrder(); o == EDF || c.age() >= c.hopeless() {
		return o
	}
	return FIFO
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
	for i := range c.lanes {
		for _, whole := range c.lanes[i].heap {
			for leaf := range whole.leaves() {
				age = max(age, c.now-leaf.line.head.offered)
			}
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
	was := c.order
	if c.order = o; was == o {
		return
	}
	for _, t := range c.rows {
		if t == nil || t.n == 0 {
			continue
		}
		for i := range t.flows {
			if !t.flows[i].waits() {
				continue
			}
			for leaf := range t.flows[i].leaves() {
				switch {
				case o == EDF:
					leaf.line.startEDF()
				case was == EDF:
					leaf.line.stopEDF()
				}
			}
		}
		c.unpark(t) // another one is first
	}
}

// free is the number of units that could be granted; negative while a limit
// that shrank waits for the work in flight. With nothing to run it on none is (I20).
func (c *Core) free() int {
	free := c.limit - c.inUse - c.lent
	if c.absence.is {
		return min(free, 0)
	}
	return free
}

func (c *Core) grant(cost int) {
	if cost > c.free() {
		panic("admission: I1: a grant exceeds the limit")
	}
	if c.allowance.Rate > 0 {
		if !c.allows(cost) {
			panic("admission: I19: a grant exceeds the allowance")
		}
		c.draw(cost)
	}
	if c.inUse == 0 {
		c.tide.endedAt = c.now
	}
	c.inUse += cost
	c.running++
	c.tide.admit(float64(cost), float64(c.inUse))
	c.tide.peak = max(c.tide.peak, c.inUse)
}

// need is the service time that must fit a remaining budget.
// Before there are samples nobody knows what a unit of size is, and it is that of
// any request. Where sizes are trusted it is the quantile of what others took, relative
// to what was predicted for them. A size that is not exact varies the most where it is
// large, and that would be longer than anybody was ever served, so while there are slots
// for all it is at most the quantile of all service times, unless more is predicted. In an
// overload it is not: there is always somebody else to serve, and the queue ends where
// the deadlines do, so that what is let through on a guess is late.
// Of a whole budget that this does not fit, less must be left: see chance.go. Where sizes
// are trusted it is what others took that would have to be shorter, not this one.
func (c *Core) need(size int, whole time.Duration) time.Duration {
	n, unit := c.quantile, 1.0
	switch z := &c.service.sizes; {
	case c.service.samples == 0 || z.use == SizeIgnored:
	case z.trusted():
		p := z.predict(size)
		return seconds(min(n*p, max(c.most, p)))
	default:
		unit = float64(size)
	}
	if budget := float64(whole) / 1e9 / unit; whole != Never && budget < fits*n { // Seconds would divide twice
		n = c.bearable(budget, unit, n)
	}
	return seconds(n * unit)
}

// needs is need for a request of a flow: nothing where its tenant asks for no more than
// its share beside others that do. Somebody waits all the time then, and the doomed test
// is for when somebody does: a deadline shorter than the quantile, which nearly always is
// enough, would be refused for the whole of an overload that is not its tenant's. And there
// is nobody to serve instead, as within its share the tenant is served whatever comes.
func (c *Core) needs(f *flow, size int, whole time.Duration) time.Duration {
	if c.cfg.Tenants != nil && c.overload && !c.greedy(f) {
		return 0
	}
	return c.need(size, whole)
}

// bound is when the wait of a request without a deadline ends.
func (c *Core) bound(r *Request) time.Duration {
	if r.Deadline != Never {
		return Never
	}
	return c.now + c.cfg.MaxWait
}

// push queues a request for which there is room.
func (c *Core) push(r *Request, f *flow) *Waiter {
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
		retry: r.Attempt > 1, cohort: uint8(r.Cohort), verdict: Queued, flow: f,
	}
	if c.cfg.Overflow == LatestOnly && r.Key != "" {
		c.keep(w, c.keyOf(r))
	}
	budget := w.due() - c.now
	if c.waiting == 0 {
		c.stood, c.shortest, c.longest = c.now, budget, budget
	}
	c.shortest, c.longest = min(c.shortest, budget), max(c.longest, budget)
	if c.cfg.Order == Auto && (c.order == NewestFirst && c.standingOrder() == EDF || c.service.sizes.trusted()) {
		c.setOrder(EDF)
	}
	c.unpark(f.row) // it may fit where the first of before did not
	f.line.push(w, c.order == EDF)
	f.line.plan(w, c.service.sizes.trusted())
	c.queued(w, 1)
	if f.group != nil && f.line.n == 1 {
		f.group.fair.add(f)
	}
	if whole := f.whole(); whole.at < 0 {
		c.lanes[w.priority-1].add(whole)
	}
	c.arm(w)
	return w
}

// keep has w stand for what it is about, in the place of whoever did.
func (c *Core) keep(w *Waiter, k keyed) {
	if c.latest == nil {
		c.latest = map[keyed]*Waiter{}
	}
	w.keyed = &k
	if old := c.latest[k]; old != nil {
		w.arrival = min(w.arrival, old.arrival)
	}
	c.latest[k] = w
}

// queued keeps the sums: sign is 1 for who came to wait, -1 for who has left its line.
func (c *Core) queued(w *Waiter, sign int) {
	cost := sign * int(w.cost)
	f, l := w.flow, &c.lanes[w.priority-1]
	c.waiting, l.n, f.row.n = c.waiting+sign, l.n+sign, f.row.n+sign
	c.cost, l.cost, f.row.cost = c.cost+cost, l.cost+cost, f.row.cost+cost
	c.bytes += int64(sign) * w.bytes
	if l.sized += float64(cost) * float64(w.size); l.n == 0 {
		l.sized = 0 // what rounding has left
	}
	if w.retry {
		l.retries += sign
	}
	if f.group != nil {
		f.group.line.n += sign
		f.group.line.cost += cost
	}
}

// arm sets the alarm: the first instant at which over gives a reason.
func (c *Core) arm(w *Waiter) {
	w.alarm = w.bound
	if w.deadline != Never {
		w.alarm = min(w.alarm, w.deadline-max(c.needs(w.flow, int(w.size), w.whole())-1, 0))
	}
	if c.absence.is {
		w.alarm = min(w.alarm, c.absence.ends(w))
	}
}

// over returns why a waiter can no longer be served, None if it can.
func (c *Core) over(w *Waiter) Reason {
	switch {
	case c.now >= w.deadline:
		return Deadline
	case w.deadline != Never && w.deadline-c.now < c.needs(w.flow, int(w.size), w.whole()):
		return Doomed
	case c.absence.is && c.now >= c.absence.ends(w):
		return Unavailable
	case c.now >= w.bound:
		return WaitBound
	}
	return None
}

// leave takes w out of the queue.
func (c *Core) leave(w *Waiter, v Verdict, why Reason) {
	f, l := w.flow, &c.lanes[w.priority-1]
	c.unpark(f.row) // the sums of what is parked change, and who is first
	f.line.remove(w)
	c.queued(w, -1)
	if f.group != nil && !f.waits() {
		f.group.fair.drop(f)
	}
	if whole := f.whole(); !whole.waits() {
		l.drop(whole)
	}
	if l.n == 0 {
		l.passed = 0
	}
	if w.keyed != nil && c.latest[*w.keyed] == w {
		delete(c.latest, *w.keyed)
	}
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
	if q := &w.flow.row.quota; q.Rate > 0 {
		q.refill(c.now)
		q.spend(-int(w.cost)) // it had nothing for it
	}
	c.count(w.flow, why)
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

// first returns the flow whose first goes first: of the highest priority in which
// somebody waits, of one that has less than its reserve, or of one that was passed over
// too often; nil if nobody waits, or only for the ceiling of a tenant.
func (c *Core) first() *flow {
	var top, earned *flow
	for i := range c.lanes {
		l := &c.lanes[i]
		if len(l.heap) == 0 {
			continue
		}
		f := l.heap[0].leaf()
		if l.passed >= aging {
			return f
		}
		if top == nil {
			top = f
		}
		if earned == nil && l.reserve > 0 && l.credit >= float64(f.line.first(c.order).cost) {
			earned = f
		}
	}
	if earned != nil {
		return earned
	}
	return top
}

// dispatch grants what fits, in order, and drops on the way who can no longer
// be served. It leaves the queue work-conserving (I2).
func (c *Core) dispatch() {
	for c.waiting > c.parked {
		f := c.first()
		w := f.line.first(c.order)
		if why := c.over(w); why != None { // I5
			c.tell(w, why)
			continue
		}
		if !f.row.fits(int(w.cost)) || f.row.above(f.priority) {
			c.park(f.whole())
			continue
		}
		if int(w.cost) > c.free() {
			return
		}
		if !c.allows(int(w.cost)) {
			c.looked = c.now
			return
		}
		c.leave(w, Admitted, None)
		w.share = c.take(f, int(w.cost))
		c.counts.dequeued++
		c.decided = append(c.decided, w)
		for i := range c.lanes {
			switch l := &c.lanes[i]; {
			case i == int(w.priority)-1:
				l.passed = 0
			case i >= int(w.priority) && len(l.heap) > 0:
				l.passed++
			}
		}
	}
}

// carry is how many requests of mean cost a priority may save up of its reserve while
// none of it waits: enough that a queue of one or two, as it is in an overload, loses
// nothing of it between two arrivals.
const carry = 8

// take grants cost to a flow, and returns whose account it is on.
func (c *Core) take(f *flow, cost int) Share {
	if !f.row.fits(cost) {
		panic("admission: I14: a grant exceeds the ceiling of its tenant")
	}
	c.grant(cost)
	c.charge(f, cost)
	for i := range c.lanes {
		l := &c.lanes[i]
		if l.reserve == 0 {
			continue
		}
		most := carry * c.load.perCost
		if len(l.heap) > 0 {
			most = max(most, float64(l.heap[0].leaf().line.first(c.order).cost))
		}
		step := l.reserve * float64(cost)
		l.credit = min(l.credit+step, most+step) // past it, or the last step to a costly one is lost
		if i == int(f.priority)-1 {
			l.credit = max(l.credit-float64(cost), 0)
		}
	}
	if c.cfg.Tenants == nil {
		return 0
	}
	f.row.inUse += cost
	return c.shareOf(f)
}

func (c *Core) refuse(f *flow, why Reason) Decision { return c.refuseWith(f, Decision{}, why) }

func (c *Core) refuseWith(f *flow, d Decision, why Reason) Decision {
	c.count(f, why)
	d.Verdict, d.Reason = Refused, why
	return d
}

// count is the one place where a request that never started gets its outcome.
func (c *Core) count(f *flow, why Reason) {
	f.row.refused++
	c.counts.refusals[why]++
	o := why.Outcome()
	c.counts.outcomes[o]++
	if why.RetryCanWin() && why != OverQuota {
		c.counts.refused++
	}
}

func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/1e9/2 { // also +Inf; half, so that a sum with now does not overflow
		return math.MaxInt64 / 2
	}
	return time.Duration(s * float64(time.Second))
}
