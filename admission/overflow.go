package admission

// A pick is how far makeRoom has come in choosing who of a flow gives way.
type pick struct {
	round uint64 // of Core.picks; another one means that nothing is chosen yet
	cost  int    // of those chosen
	retry *Waiter
	next  *Waiter
}

// gone is what those chosen so far leave free.
type gone struct {
	items, cost int
	own         int // of the newcomer's tenant and priority
	bytes       int64
}

// makeRoom picks who gives way to a newcomer, if the policy and their ranks allow
// it, or returns why there is no place. Nobody is displaced in vain: victims are
// evicted, by evictVictims, only once they are found to be enough.
func (c *Core) makeRoom(r *Request, f *flow, d *Decision) Reason {
	c.picks++
	var g gone
	if w := c.replaced(r); w != nil {
		c.mark(w, f, &g)
	}
	if c.planned && !c.foresee(r, f, d, &g) {
		c.unmark()
		return NoBudget
	}
	own, lack := c.ownLack(r, f, &g), c.lack(r, &g)
	if own == None && lack == None {
		return None
	}
	if c.cfg.Overflow != RefuseNewest && c.cfg.Overflow != Block {
		c.chooseVictims(r, f, &g)
	}
	if c.ownLack(r, f, &g) == None && c.lack(r, &g) == None {
		return None
	}
	c.unmark()
	if lack == None {
		lack = own
	}
	if lack == QueueFull && c.outranked(r) {
		return Shed
	}
	return lack
}

// chooseVictims chooses who gives way until there is room or nobody is left who would.
func (c *Core) chooseVictims(r *Request, f *flow, g *gone) {
	c.markDoomed(f, g)
	for c.bucketLack(r, f) != None {
		w := c.ofLine(r, f)
		if w == nil {
			return
		}
		c.mark(w, f, g)
	}
	for c.ownLack(r, f, g) != None {
		w := c.ofOwn(r, f)
		if w == nil {
			return
		}
		c.mark(w, f, g)
	}
	for c.lack(r, g) != None {
		w := c.lowest(r, f, g)
		if w == nil {
			return
		}
		c.mark(w, f, g)
	}
}

func (c *Core) mark(w *Waiter, f *flow, g *gone) {
	w.victim = true
	w.flow.line.choose(w, true)
	c.victims = append(c.victims, w)
	g.items++
	g.bytes += w.bytes
	if !w.flow.whole().parked {
		g.cost += int(w.cost)
	}
	if w.flow.whole() == f.whole() {
		g.own += int(w.cost)
	}
	c.picking(w.flow).cost += int(w.cost)
	if w.flow.group != nil {
		c.picking(w.flow.group).cost += int(w.cost)
	}
	c.lanes[w.priority-1].giving += int(w.cost)
}

func (c *Core) unmark() {
	for i, w := range c.victims {
		c.lanes[w.priority-1].giving = 0
		w.flow.line.choose(w, false)
		w.victim, c.victims[i] = false, nil
	}
	c.victims = c.victims[:0]
}

// picking returns the pick of a flow in this round.
func (c *Core) picking(f *flow) *pick {
	if p := &f.pick; p.round != c.picks {
		*p = pick{round: c.picks, retry: f.line.rhead, next: f.line.last(c.order)}
	}
	return &f.pick
}

// replaced returns who waits about the same as a newcomer, under LatestOnly.
func (c *Core) replaced(r *Request) *Waiter {
	if c.cfg.Overflow != LatestOnly || r.Key == "" {
		return nil
	}
	return c.latest[c.keyOf(r)]
}

// keyOf returns what a request is about. Without Tenants all are one.
func (c *Core) keyOf(r *Request) keyed {
	if c.cfg.Tenants == nil {
		return keyed{key: r.Key}
	}
	return keyed{r.Tenant, r.Key}
}

// ownLack returns QueueFull if the newcomer's tenant would fill more of the queue than
// its own part. One request may always wait.
func (c *Core) ownLack(r *Request, f *flow, g *gone) Reason {
	if why := c.bucketLack(r, f); why != None {
		return why
	}
	cost := f.whole().line.cost - g.own
	if cost <= 0 || c.cfg.Overflow == Block || cost+r.Cost <= c.ownDepth(r, f) {
		return None
	}
	return QueueFull
}

// bucketLack returns QueueFull if a newcomer without a row would fill more of the queue
// than there is for its bucket.
func (c *Core) bucketLack(r *Request, f *flow) Reason {
	cost := f.line.cost
	if f.group == nil || cost == 0 || c.cfg.Overflow == Block {
		return None
	}
	if cost -= c.picking(f).cost; cost <= 0 || cost+r.Cost <= c.bucketDepth(f) {
		return None
	}
	return QueueFull
}

// crowded reports whether a newcomer lacks room for items or bytes, which those that
// wait for a ceiling take as well.
func (c *Core) crowded(r *Request, g *gone) bool {
	return c.waiting-g.items+1 > c.cfg.MaxItems || c.bytes-g.bytes > c.cfg.MaxBytes-r.Bytes
}

// lack returns what would be exceeded if the newcomer queued after those chosen had
// left. What waits for the ceiling of a tenant delays nobody else and is not counted.
func (c *Core) lack(r *Request, g *gone) Reason {
	waiting := c.waiting - g.items
	switch {
	case waiting+1 > c.cfg.MaxItems:
		return QueueFull
	case c.bytes-g.bytes > c.cfg.MaxBytes-r.Bytes:
		return BytesFull
	case c.cfg.Overflow == Block:
		return None
	case waiting == 0 && c.depth > 0:
		return None // one request may wait alone even if its cost exceeds the depth: else it never could
	case c.cost-c.parkedCost-g.cost+r.Cost > c.widest(r):
		return QueueFull
	}
	return None
}

// evictVictims tells those that makeRoom chose. The newcomer is in the queue by now.
func (c *Core) evictVictims(r *Request, f *flow) {
	for i, w := range c.victims {
		why := c.over(w)
		switch {
		case why == None && w.keyed != nil && c.latest[*w.keyed] != w:
			why = Replaced
		case why == None:
			why, w.ground = Displaced, c.groundOf(w, r, f)
		}
		c.lanes[w.priority-1].giving = 0
		c.tell(w, why)
		c.victims[i] = nil
	}
	c.victims = c.victims[:0]
}

// markDoomed chooses whoever is doomed at the old end of a queue: as a rule they
// are there. Whoever is doomed elsewhere is told by its alarm.
func (c *Core) markDoomed(f *flow, g *gone) {
	for i := range c.lanes {
		if len(c.lanes[i].heap) > maxVisits {
			continue
		}
		for _, whole := range c.lanes[i].heap {
			for leaf := range whole.leaves() {
				for w := leaf.line.head; w != nil && c.over(w) != None; w = w.next {
					if !w.victim {
						c.mark(w, f, g)
					}
				}
			}
		}
	}
}

// leaves yields the flows in which somebody waits: the flow itself, or its buckets.
func (f *flow) leaves() func(func(*flow) bool) {
	return func(yield func(*flow) bool) {
		if f.buckets == nil {
			yield(f)
			return
		}
		for _, b := range f.fair.heap {
			if !yield(b) {
				return
			}
		}
	}
}

// lowest returns who gives way next to a newcomer, of all tenants; nil if nobody
// ranks below it. First the priorities below its own, from the lowest, each down to
// its reserve; then of its own priority the tenant who would be served last, if that is
// after the newcomer; then, if its priority has less than its reserve, those above.
func (c *Core) lowest(r *Request, f *flow, g *gone) *Waiter {
	crowded := c.crowded(r, g)
	if c.cfg.Overflow == EvictOldest {
		return c.oldest(f, crowded)
	}
	own, depth := int(f.priority)-1, float64(min(c.derivation.Depth, c.cfg.MaxItems))
	for i := priorities - 1; i > own; i-- {
		if w := c.fromLane(&c.lanes[i], depth, crowded); w != nil {
			return w
		}
	}
	if w := c.fromOwnLane(r, f, crowded); w != nil {
		return w
	}
	if l := &c.lanes[own]; l.reserve > 0 && (l.cost == 0 || float64(l.cost+r.Cost) <= l.reserve*depth) {
		for i := own - 1; i >= 0; i-- {
			if w := c.fromLane(&c.lanes[i], depth, crowded); w != nil {
				return w
			}
		}
	}
	return nil
}

// fromLane returns who of another priority gives way: of the tenant that would be
// served last. The reserve of the priority stays, and the last that is within it.
func (c *Core) fromLane(l *lane, depth float64, crowded bool) *Waiter {
	if l.cost <= l.giving {
		return nil
	}
	whole := c.rearmost(nil, l.heap, l.stuck(crowded))
	if whole == nil {
		return nil
	}
	leaf := whole
	if whole.buckets != nil {
		leaf = c.rearmost(nil, whole.fair.heap)
	}
	w := c.hindmost(leaf, nil)
	if w == nil || float64(l.cost-l.giving-int(w.cost)) < l.reserve*depth {
		return nil
	}
	return w
}

// fromOwnLane returns who of the newcomer's own priority gives way.
func (c *Core) fromOwnLane(r *Request, f *flow, crowded bool) *Waiter {
	l, mine := &c.lanes[f.priority-1], f.whole()
	if whole := c.rearmost(mine, l.heap, l.stuck(crowded)); whole != nil {
		leaf := whole
		if whole.buckets != nil {
			leaf = c.rearmost(nil, whole.fair.heap)
		}
		if w := c.hindmost(leaf, nil); w != nil && c.tail(whole)-float64(w.cost)*whole.charge > l.starts(mine) {
			return w
		}
	}
	return c.ofOwn(r, f)
}

// ofOwn returns who of the newcomer's own tenant and priority gives way.
func (c *Core) ofOwn(r *Request, f *flow) *Waiter {
	if f.group != nil {
		of := &f.group.fair
		if b := c.rearmost(f, of.heap); b != nil {
			if w := c.hindmost(b, nil); w != nil && c.tail(b)-float64(w.cost)*b.charge > of.starts(f) {
				return w
			}
		}
	}
	return c.ofLine(r, f)
}

// ofLine returns who gives way of the very line that a newcomer joins.
func (c *Core) ofLine(r *Request, f *flow) *Waiter {
	if c.cfg.Overflow != EvictOldest {
		return c.hindmost(f, r)
	}
	for w := f.line.head; w != nil; w = w.next {
		if !w.victim {
			return w
		}
	}
	return nil
}

// tail is the virtual time at which what is left of a flow will have been served.
func (c *Core) tail(f *flow) float64 {
	return f.tag + float64(f.line.cost-c.picking(f).cost)*f.charge
}

// rearmost returns the flow that will have been served last, but for one; of
// equals the one that began to wait last.
func (c *Core) rearmost(but *flow, lists ...[]*flow) *flow {
	var last *flow
	for _, flows := range lists {
		for _, f := range flows {
			if f == but || f.line.cost <= c.picking(f).cost {
				continue
			}
			if last == nil || c.tail(f) > c.tail(last) || c.tail(f) == c.tail(last) && f.since > last.since {
				last = f
			}
		}
	}
	return last
}

// maxCohortVisits bounds the search for the latest cohort in a flow. Flows of an
// overload are short.
const maxCohortVisits = 256

// hindmost returns who of a flow gives way first: of the highest rank, the oldest
// of retries, else the last in the order, or the longest where sizes are trusted. If
// there is a newcomer to the flow, only who ranks below it, or under NewestFirst is older.
func (c *Core) hindmost(f *flow, r *Request) *Waiter {
	if c.foresees(f) {
		return c.longestOf(f, r)
	}
	if f.line.cohorts > 0 || r != nil && r.Cohort > 0 {
		return c.latestCohort(f, r)
	}
	p, retry := c.picking(f), r != nil && r.Attempt > 1
	if !retry || c.order == NewestFirst {
		for w := p.retry; w != nil; w = w.rnext {
			if !w.victim && (!retry || w.arrival <= r.Arrival) {
				p.retry = w // not past it: it may not be chosen
				return w
			}
		}
	}
	if r != nil && (retry || c.order != NewestFirst) {
		return nil // nobody else of its own rank gives way
	}
	for ; p.next != nil; p.next = p.next.inward(c.order) {
		if w := p.next; r != nil && w.arrival > r.Arrival {
			return nil // from here on all are younger than the newcomer
		} else if !w.victim && !w.retry {
			return w
		}
	}
	return nil
}

// latestCohort is hindmost where users have cohorts.
func (c *Core) latestCohort(f *flow, r *Request) (last *Waiter) {
	most := -1
	if r != nil {
		most = rank(r.Attempt > 1, uint8(r.Cohort)) - 1
		if c.order != NewestFirst {
			most++
		}
	}
	visits := 0
	see := func(w *Waiter) {
		if n := rank(w.retry, w.cohort); !w.victim && n > most && (r == nil || n > rank(r.Attempt > 1, uint8(r.Cohort)) || w.arrival <= r.Arrival) {
			last, most = w, n
		}
	}
	for w := f.line.rhead; w != nil && visits < maxCohortVisits; w = w.rnext {
		visits++
		see(w)
	}
	for w := f.line.last(c.order); w != nil && visits < maxCohortVisits; w = w.inward(c.order) {
		if visits++; !w.retry {
			see(w)
		}
	}
	return last
}

// oldest returns who gives way next under EvictOldest: who arrived first, of those
// of the newcomer's own tenant and of the tenants that would be served after it.
func (c *Core) oldest(f *flow, crowded bool) (oldest *Waiter) {
	for i := range c.lanes {
		l := &c.lanes[i]
		start := l.starts(&f.row.flows[i])
		for _, flows := range [2][]*flow{l.heap, l.stuck(crowded)} {
			for _, whole := range flows {
				if whole.row == f.row || c.tail(whole) > start {
					oldest = whole.older(oldest)
				}
			}
		}
	}
	return oldest
}

// older returns the oldest of a flow that is not chosen, or the other if that is older.
func (f *flow) older(than *Waiter) *Waiter {
	for leaf := range f.leaves() {
		w := leaf.line.head
		for w != nil && w.victim {
			w = w.next
		}
		if w != nil && (than == nil || w.arrival < than.arrival || w.arrival == than.arrival && w.seq < than.seq) {
			than = w
		}
	}
	return than
}

// outranked reports whether everybody who waits ranks above the newcomer.
func (c *Core) outranked(r *Request) bool {
	own := int(r.Priority) - 1
	for i := own; i < priorities; i++ {
		l := &c.lanes[i]
		if i == own && r.Attempt > 1 && l.retries == 0 {
			continue // first attempts rank above a retry
		}
		if l.n > 0 {
			return false
		}
	}
	return c.waiting > 0
}

// givesWay returns who would be displaced first, whoever comes, of those that the
// test picks; there must be one.
func (c *Core) givesWay(test func(*Waiter) bool) *Waiter {
	for i := priorities - 1; i >= 0; i-- {
		for _, t := range c.rows {
			if t == nil || t.n == 0 {
				continue
			}
			for leaf := range t.flows[i].leaves() {
				for w := leaf.line.rhead; w != nil; w = w.rnext {
					if test(w) {
						return w
					}
				}
				for w := leaf.line.last(c.order); w != nil; w = w.inward(c.order) {
					if test(w) {
						return w
					}
				}
			}
		}
	}
	panic("admission: nobody waits who could give way")
}

// evict tells everybody that the test picks.
func (c *Core) evict(why Reason, test func(*Waiter) bool) {
	for i := range c.lanes {
		for _, t := range c.rows {
			if t == nil || t.n == 0 {
				continue
			}
			c.told = c.told[:0]
			for leaf := range t.flows[i].leaves() {
				for w := leaf.line.head; w != nil; w = w.next {
					if test(w) {
						c.told = append(c.told, w)
					}
				}
			}
			for _, w := range c.told {
				c.tell(w, why)
			}
		}
	}
	clear(c.told[:cap(c.told)])
}
