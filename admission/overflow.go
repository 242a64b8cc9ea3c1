package admission

// makeRoom picks who gives way to a newcomer, if the policy and their ranks allow
// it, or returns why there is no place. Nobody is displaced in vain: victims are
// evicted, by evictVictims, only once they are found to be enough.
func (c *Core) makeRoom(r *Request) Reason {
	lack := c.lack(r, 0, 0, 0)
	if lack == None {
		return None
	}
	var items, cost int
	var bytes int64
	for w := range c.candidates(r) {
		if w.victim {
			continue // doomed, and of a lower rank besides
		}
		w.victim = true
		c.victims = append(c.victims, w)
		items, cost, bytes = items+1, cost+int(w.cost), bytes+w.bytes
		if c.lack(r, items, cost, bytes) == None {
			return None
		}
	}
	for i, w := range c.victims {
		w.victim, c.victims[i] = false, nil
	}
	c.victims = c.victims[:0]
	if lack == QueueFull && c.outranked(r) {
		return Shed
	}
	return lack
}

// lack returns what would be exceeded if the newcomer queued after the given
// items, cost and bytes had left.
func (c *Core) lack(r *Request, items, cost int, bytes int64) Reason {
	waiting := c.waiting - items
	switch {
	case waiting+1 > c.cfg.MaxItems:
		return QueueFull
	case c.bytes-bytes > c.cfg.MaxBytes-r.Bytes:
		return BytesFull
	case c.cfg.Overflow == Block:
		return None
	case waiting == 0 && c.depth > 0:
		return None // one request may wait alone even if its cost exceeds the depth: else it never could
	case c.cost-cost+r.Cost > c.depthFor(r):
		return QueueFull
	}
	return None
}

func (c *Core) evictVictims() {
	for i, w := range c.victims {
		why := c.over(w)
		if why == None {
			why = Displaced
		}
		c.tell(w, why)
		c.victims[i] = nil
	}
	c.victims = c.victims[:0]
}

// candidates yields who would give up its place for the newcomer, in the order
// of Overflow. It does not change the queue.
func (c *Core) candidates(r *Request) func(yield func(*Waiter) bool) {
	return func(yield func(*Waiter) bool) {
		switch c.cfg.Overflow {
		case RefuseNewest, Block:
			return
		case EvictOldest:
			c.oldestFirst(yield)
			return
		}
		c.displaceable(r, yield)
	}
}

// oldestFirst merges the lines by root arrival.
func (c *Core) oldestFirst(yield func(*Waiter) bool) {
	var at [priorities]*Waiter
	for i := range c.lines {
		at[i] = c.lines[i].head
	}
	for {
		oldest := -1
		for i, w := range at {
			if w != nil && (oldest < 0 || w.arrival < at[oldest].arrival ||
				w.arrival == at[oldest].arrival && w.seq < at[oldest].seq) {
				oldest = i
			}
		}
		if oldest < 0 || !yield(at[oldest]) {
			return
		}
		at[oldest] = at[oldest].next
	}
}

// displaceable yields the doomed, then who ranks below the newcomer from the
// lowest priority up, retries before first attempts, and under NewestFirst who
// is older, of its own rank, the oldest first.
func (c *Core) displaceable(r *Request, yield func(*Waiter) bool) {
	// The doomed are at the old end of a list, as a rule. Whoever is doomed
	// elsewhere and does not rank below is told by its alarm.
	for i := range c.lines {
		for w := c.lines[i].head; w != nil && c.over(w) != None; w = w.next {
			if !yield(w) {
				return
			}
		}
	}
	own := int(r.Priority) - 1
	retry := r.Attempt > 1
	for i := priorities - 1; i >= own; i-- {
		l := &c.lines[i]
		for w := l.rhead; w != nil; w = w.rnext { // retries, the oldest first
			if i == own && retry && (c.order != NewestFirst || w.arrival > r.Arrival) {
				continue
			}
			if !yield(w) {
				return
			}
		}
		if i == own && (retry || c.order != NewestFirst) {
			return // nobody else of its own rank gives way
		}
		for w := l.last(c.order); w != nil; w = w.inward(c.order) {
			if i == own && w.arrival > r.Arrival {
				return // NewestFirst: from here on all are younger than the newcomer
			}
			if !w.retry && !yield(w) {
				return
			}
		}
	}
}

// outranked reports whether everybody who waits ranks above the newcomer.
func (c *Core) outranked(r *Request) bool {
	own := int(r.Priority) - 1
	for i := own; i < priorities; i++ {
		l := &c.lines[i]
		if i == own && r.Attempt > 1 && l.rhead == nil {
			continue // first attempts rank above a retry
		}
		if l.n > 0 {
			return false
		}
	}
	return c.waiting > 0
}

// hindmost returns who would be displaced first, whoever comes, of those that
// the test picks; there must be one.
func (c *Core) hindmost(pick func(*Waiter) bool) *Waiter {
	for i := priorities - 1; i >= 0; i-- {
		l := &c.lines[i]
		for w := l.rhead; w != nil; w = w.rnext {
			if pick(w) {
				return w
			}
		}
		for w := l.last(c.order); w != nil; w = w.inward(c.order) {
			if pick(w) {
				return w
			}
		}
	}
	panic("admission: nobody waits who could give way")
}

// evict tells everybody that the test picks.
func (c *Core) evict(why Reason, pick func(*Waiter) bool) {
	for i := range c.lines {
		for w := c.lines[i].head; w != nil; {
			next := w.next
			if pick(w) {
				c.tell(w, why)
			}
			w = next
		}
	}
}
