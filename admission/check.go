package admission

import "fmt"

// Check walks the whole state and returns the first invariant that does not
// hold. It is for tests and simulations, after each step: it costs as much as
// there are requests waiting.
func (c *Core) Check() error {
	if err := c.checkQueue(); err != nil {
		return err
	}
	switch w := c.first(); {
	case w != nil && int(w.cost) <= c.free():
		return fmt.Errorf("I2: somebody of cost %d waits while %d are free", w.cost, c.free())
	case c.lent > 0 && (c.waiting > 0 || c.inUse+c.lent > c.limit):
		return fmt.Errorf("I7: %d lent with %d waiting, %d of %d in use", c.lent, c.waiting, c.inUse, c.limit)
	case c.waiting > c.cfg.MaxItems:
		return fmt.Errorf("I3: %d wait, more than %d", c.waiting, c.cfg.MaxItems)
	case c.bytes > c.cfg.MaxBytes:
		return fmt.Errorf("I3: %d bytes wait, more than %d", c.bytes, c.cfg.MaxBytes)
	case c.depth > c.derivation.Depth:
		return fmt.Errorf("I11: depth %d in force exceeds the derived %d", c.depth, c.derivation.Depth)
	case c.reach < c.depth || c.reach > c.depth && !c.derivation.Tight:
		return fmt.Errorf("I3: depth %d for who has a deadline, %d for the others, tight %v", c.reach, c.depth, c.derivation.Tight)
	case c.inUse < c.running:
		return fmt.Errorf("I12: %d requests run on %d units", c.running, c.inUse)
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
	var n, cost int
	var bytes int64
	for i := range c.lines {
		l := &c.lines[i]
		ln, lcost, retries := 0, 0, 0
		for w := l.head; w != nil; w = w.next {
			ln, lcost, bytes = ln+1, lcost+int(w.cost), bytes+w.bytes
			if w.verdict != Queued || int(w.priority)-1 != i {
				return fmt.Errorf("queue: a waiter of %s, decided %v, in line %d", w.priority, w.verdict, i)
			}
			if w.retry {
				retries++
			}
			if (w.heap >= 0) != (c.order == EDF) || w.heap >= 0 && l.edf[w.heap] != w {
				return fmt.Errorf("queue: heap index %d under %s", w.heap, c.order)
			}
			if w.next == nil && l.tail != w {
				return fmt.Errorf("queue: the tail of line %d is not its last", i)
			}
		}
		for w := l.rhead; w != nil; w = w.rnext {
			retries--
		}
		for j := range l.edf {
			if j > 0 && before(l.edf[j], l.edf[(j-1)/2]) {
				return fmt.Errorf("I8: heap order broken at %d", j)
			}
		}
		if ln != l.n || lcost != l.cost || retries != 0 || c.order == EDF && len(l.edf) != l.n {
			return fmt.Errorf("queue: line %d counts %d of cost %d, has %d of %d, heap %d", i, l.n, l.cost, ln, lcost, len(l.edf))
		}
		n, cost = n+ln, cost+lcost
	}
	if n != c.waiting || cost != c.cost || bytes != c.bytes {
		return fmt.Errorf("queue: sums %d/%d/%d, lists %d/%d/%d", c.waiting, c.cost, c.bytes, n, cost, bytes)
	}
	return nil
}
