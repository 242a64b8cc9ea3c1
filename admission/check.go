package admission

import "fmt"

// Check walks the whole state and returns the first invariant that does not
// hold. It is for tests and simulations, after each step: it costs as much as
// there are requests waiting.
func (c *Core) Check() error {
	if err := c.checkQueue(); err != nil {
		return err
	}
	if f := c.first(); f != nil {
		if w := f.line.first(c.order); int(w.cost) <= c.free() && f.row.fits(int(w.cost)) && !f.row.above(f.priority) &&
			(c.allowance.Rate == 0 || c.allowance.covers(c.looked, int(w.cost))) {
			return fmt.Errorf("I2: somebody of cost %d waits while %d are free and %v are allowed", w.cost, c.free(), c.allowance.level(c.looked))
		}
	}
	switch {
	case c.allowance.left > c.allowance.burst():
		return fmt.Errorf("I19: %v are allowed at once, more than a burst of %v", c.allowance.left, c.allowance.burst())
	case c.lent > 0 && (c.waiting > 0 || c.allowance.Rate > 0 || c.inUse+c.lent > c.limit):
		return fmt.Errorf("I7: %d lent with %d waiting, %d of %d in use", c.lent, c.waiting, c.inUse, c.limit)
	case c.waiting > c.cfg.MaxItems:
		return fmt.Errorf("I3: %d wait, more than %d", c.waiting, c.cfg.MaxItems)
	case c.bytes > c.cfg.MaxBytes:
		return fmt.Errorf("I3: %d bytes wait, more than %d", c.bytes, c.cfg.MaxBytes)
	case c.depth > c.derivation.Depth:
		return fmt.Errorf("I11: depth %d in force exceeds the derived %d", c.depth, c.derivation.Depth)
	case c.reach < c.depth || c.reach > c.depth && !c.derivation.Tight && !c.derivation.Chances:
		return fmt.Errorf("I3: depth %d for who has a deadline, %d for the others, tight %v", c.reach, c.depth, c.derivation.Tight)
	case c.inUse < c.running:
		return fmt.Errorf("I12: %d requests run on %d units", c.running, c.inUse)
	case c.absence.is && (c.lent > 0 || c.free() > 0):
		return fmt.Errorf("I20: %d lent, %d free, with nothing to run work on", c.lent, c.free())
	case c.waiting == 0 && c.cfg.Order == Auto && c.order != FIFO:
		return fmt.Errorf("I8: order %s with nobody waiting", c.order)
	}
	if s := c.hint.seconds; s != 0 && (s < minRetryAfter || s > maxRetryAfter) {
		return fmt.Errorf("I10: retry after %d s", s)
	}
	sum := uint64(c.waiting + c.running)
	for _, n := range c.counts.outcomes {
		sum += n
	}
	if sum != c.counts.arrivals {
		return fmt.Errorf("I4: %d arrivals, but outcomes, waiting and running add up to %d", c.counts.arrivals, sum)
	}
	return nil
}

// checkQueue compares the sums with the lists, and the lists with their order.
func (c *Core) checkQueue() error {
	var all sums
	for i := range c.lanes {
		var of sums
		for j, t := range c.rows {
			if t == nil {
				continue
			}
			if t.index != j || (t.n > 0 || t.inUse > 0) && !t.active {
				return fmt.Errorf("rows: tenant %q at %d has index %d, active %v", t.ID, j, t.index, t.active)
			}
			if err := c.checkFlow(&t.flows[i], &of); err != nil {
				return err
			}
		}
		l := &c.lanes[i]
		if of.n != l.n || of.cost != l.cost || of.retries != l.retries || of.parkedCost != l.parked || l.giving != 0 {
			return fmt.Errorf("queue: %s counts %d of cost %d, %d retries, has %+v", Priority(i+1), l.n, l.cost, l.retries, of)
		}
		if of.flows != len(l.aside) {
			return fmt.Errorf("queue: %d flows of %s are parked, %d set aside", of.flows, Priority(i+1), len(l.aside))
		}
		if !(l.offered >= 0 && l.offered < maxRate*1e9) || !(l.level >= 0) || !(l.served >= 0) {
			return fmt.Errorf("forecast: %s is offered %v, served %v, level %v", Priority(i+1), l.offered, l.served, l.level)
		}
		if err := l.check(); err != nil {
			return err
		}
		if l.reserve > 0 && l.credit < 0 || l.reserve == 0 && l.credit != 0 {
			return fmt.Errorf("I13: %s has earned %v of a reserve of %v", Priority(i+1), l.credit, l.reserve)
		}
		all.add(of)
	}
	if all.n != c.waiting || all.cost != c.cost || all.bytes != c.bytes || all.parked != c.parked || all.parkedCost != c.parkedCost {
		return fmt.Errorf("queue: sums %d/%d/%d, parked %d/%d, lists %+v",
			c.waiting, c.cost, c.bytes, c.parked, c.parkedCost, all)
	}
	if all.keys != len(c.latest) {
		return fmt.Errorf("I16: %d of those that wait have a key, %d are kept", all.keys, len(c.latest))
	}
	return c.checkRows()
}

type sums struct {
	n, cost, retries, keys, parked, parkedCost, flows int

	bytes int64
}

func (s *sums) add(o sums) {
	s.n, s.cost, s.retries, s.bytes = s.n+o.n, s.cost+o.cost, s.retries+o.retries, s.bytes+o.bytes
	s.keys, s.flows = s.keys+o.keys, s.flows+o.flows
	s.parked, s.parkedCost = s.parked+o.parked, s.parkedCost+o.parkedCost
}

// checkFlow adds up a flow, and that who waits of it competes unless its tenant has
// all that it may have.
func (c *Core) checkFlow(f *flow, of *sums) error {
	var mine sums
	if f.buckets == nil {
		if err := c.checkLine(f, &mine); err != nil {
			return err
		}
	}
	for i := range f.buckets {
		b := &f.buckets[i]
		var one sums
		if err := c.checkLine(b, &one); err != nil {
			return err
		}
		if (b.at >= 0) != b.waits() || b.at >= 0 && f.fair.heap[b.at] != b || b.parked {
			return fmt.Errorf("I13: bucket %d with %d waiting is at %d", i, b.line.n, b.at)
		}
		mine.add(one)
	}
	if err := f.fair.check(); err != nil {
		return err
	}
	l := &c.lanes[f.priority-1]
	switch {
	case mine.n != f.line.n || mine.cost != f.line.cost:
		return fmt.Errorf("queue: a flow of %q counts %d of cost %d, has %d of %d", f.row.ID, f.line.n, f.line.cost, mine.n, mine.cost)
	case f.at >= 0 && (l.heap[f.at] != f || f.parked), f.parked && !f.waits(), (f.at >= 0 || f.parked) != f.waits():
		return fmt.Errorf("I13: a flow of %q with %d waiting is at %d, parked %v", f.row.ID, f.line.n, f.at, f.parked)
	case f.parked:
		if w := f.leaf().line.first(c.order); f.row.fits(int(w.cost)) && !f.row.above(f.priority) {
			return fmt.Errorf("I2: tenant %q of %d in use waits with cost %d for its ceiling %d", f.row.ID, f.row.inUse, w.cost, f.row.ceiling)
		}
		mine.parked, mine.parkedCost, mine.flows = mine.n, mine.cost, 1
	}
	of.add(mine)
	return nil
}

func (s *fair) check() error {
	for i, f := range s.heap {
		if i > 0 && f.precedes(s.heap[(i-1)/2]) {
			return fmt.Errorf("I13: the order of virtual time is broken at %d", i)
		}
		if !(f.tag >= 0) || !(f.charge > 0) {
			return fmt.Errorf("I13: a start tag of %v with a charge of %v", f.tag, f.charge)
		}
	}
	return nil
}

// checkLine compares a line with its sums.
func (c *Core) checkLine(f *flow, s *sums) error {
	l, retries, cohorts := &f.line, 0, 0
	for w := l.head; w != nil; w = w.next {
		s.n, s.cost, s.bytes = s.n+1, s.cost+int(w.cost), s.bytes+w.bytes
		if w.verdict != Queued || w.priority != f.priority || w.flow != f {
			return fmt.Errorf("queue: a waiter of %s, decided %v, in a line of %s", w.priority, w.verdict, f.priority)
		}
		if w.retry {
			retries++
		}
		if w.cohort > 0 {
			cohorts++
		}
		if a := &c.absence; a.is && (w.offered > a.since && w.alarm > a.ends(w) || w.offered < a.since && a.told && w.alarm > c.now) { // else its alarm is about to tell it why
			return fmt.Errorf("I20: somebody offered at %v waits until %v, with nothing to run it on since %v, at most %v", w.offered, w.alarm, a.since, a.bound)
		}
		if w.keyed != nil {
			if s.keys++; c.latest[*w.keyed] != w {
				return fmt.Errorf("I16: two wait about %v", *w.keyed)
			}
		}
		if (w.heap >= 0) != (c.order == EDF) || w.heap >= 0 && l.edf[w.heap] != w {
			return fmt.Errorf("queue: heap index %d under %s", w.heap, c.order)
		}
		if w.next == nil && l.tail != w {
			return fmt.Errorf("queue: the tail of a line of %s is not its last", f.priority)
		}
	}
	s.retries = retries
	for w := l.rhead; w != nil; w = w.rnext {
		retries--
	}
	for j := range l.edf {
		if j > 0 && before(l.edf[j], l.edf[(j-1)/2]) {
			return fmt.Errorf("I8: heap order broken at %d", j)
		}
	}
	if s.n != l.n || s.cost != l.cost || retries != 0 || cohorts != l.cohorts || c.order == EDF && len(l.edf) != l.n {
		return fmt.Errorf("queue: a line of %s counts %d of cost %d, has %d of %d, heap %d", f.priority, l.n, l.cost, s.n, s.cost, len(l.edf))
	}
	return l.check()
}

// checkRows compares the tenants with the limiter.
func (c *Core) checkRows() error {
	inUse := 0
	for _, t := range c.rows {
		if t == nil {
			continue
		}
		inUse += t.inUse
		if t.inUse < 0 {
			return fmt.Errorf("I14: tenant %q has %d in use", t.ID, t.inUse)
		}
	}
	if inUse > c.inUse || c.cfg.Tenants == nil && inUse > 0 {
		return fmt.Errorf("I14: tenants have %d in use of %d", inUse, c.inUse)
	}
	return nil
}
