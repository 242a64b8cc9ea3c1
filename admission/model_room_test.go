package admission

import (
	"math"
	"slices"
)

// Who gives way to whom, in the model.

// room returns who must go for p, or why there is no room.
func (m *model) room(p *place) (gone []*place, why Reason) {
	if q := m.same(p); q != nil {
		gone = append(gone, q)
	}
	gone, ok := m.inTime(p, gone)
	if !ok {
		return nil, NoBudget
	}
	own, lack := m.ownLack(p, gone), m.lack(p, gone)
	if own == None && lack == None {
		return gone, None
	}
	if m.cfg.Overflow != RefuseNewest && m.cfg.Overflow != Block {
		gone = append(gone, m.doomed(gone)...)
		for _, step := range []struct {
			lacks func(*place, []*place) Reason
			next  func(*place, []*place) *place
		}{{m.bucketLack, m.ofLine}, {m.ownLack, m.ofOwn}, {m.lack, m.lowest}} {
			for step.lacks(p, gone) != None {
				q := step.next(p, gone)
				if q == nil {
					break
				}
				gone = append(gone, q)
			}
			if step.lacks(p, gone) != None {
				break
			}
		}
	}
	if m.ownLack(p, gone) == None && m.lack(p, gone) == None {
		return gone, None
	}
	if lack == None {
		lack = own
	}
	outranked := len(m.queue) > 0
	for _, q := range m.queue {
		sheltered := q.Priority == p.Priority && p.retry() && !slices.ContainsFunc(m.queue, func(q *place) bool {
			return q.Priority == p.Priority && q.retry()
		})
		outranked = outranked && (q.Priority < p.Priority || sheltered)
	}
	if lack == QueueFull && outranked {
		return nil, Shed
	}
	return nil, lack
}

// doomed returns who is over at the old ends of the lines that compete.
func (m *model) doomed(but []*place) (doomed []*place) {
	for _, p := range m.queue {
		for _, q := range m.line(p.owner, p.bucket, p.Priority) {
			if m.over(q) == None || q.turn().parked {
				break
			}
			if !slices.Contains(but, q) && !slices.Contains(doomed, q) {
				doomed = append(doomed, q)
			}
		}
	}
	return doomed
}

// left is the cost of those that the test picks once some are gone.
func (m *model) left(gone []*place, pick func(*place) bool) int {
	return m.cost(func(q *place) bool { return pick(q) && !slices.Contains(gone, q) })
}

func (m *model) lack(p *place, gone []*place) Reason {
	n, bytes := len(m.queue)-len(gone), m.bytes()
	for _, q := range gone {
		bytes -= q.Bytes
	}
	switch {
	case n+1 > m.cfg.MaxItems:
		return QueueFull
	case bytes+p.Bytes > m.cfg.MaxBytes:
		return BytesFull
	case m.cfg.Overflow == Block:
		return None
	case n == 0 && m.num.depth > 0:
		return None
	case m.left(gone, func(q *place) bool { return !q.turn().parked })+p.Cost > m.widest(p):
		return QueueFull
	}
	return None
}

// depth is the one in force for p.
func (m *model) depth(p *place) int {
	if p.Deadline != Never && p.Deadline-m.now <= m.cfg.Objective && m.now-m.others >= 8*m.cfg.Objective {
		if m.planned() {
			return maxItems
		}
		return m.num.reach // the deadline keeps the objective, and that of all who came lately
	}
	return m.num.depth
}

// widest is that of a burst.
func (m *model) widest(p *place) int { return max(m.num.full, m.depth(p)) }

// ownLack is whether the tenant of p would fill more of the queue than its own part.
func (m *model) ownLack(p *place, gone []*place) Reason {
	if m.bucketLack(p, gone) != None {
		return QueueFull
	}
	own := m.left(gone, func(q *place) bool { return q.turn() == p.turn() })
	if own == 0 || m.cfg.Overflow == Block {
		return None
	}
	part, derived := 1.0, !m.num.fixed && m.limit > 0
	if p.owner.MaxQueue > 0 {
		part = p.owner.MaxQueue
	}
	if derived {
		part = min(part, m.of(p).entitled/m.num.rate)
	}
	most := m.widest(p)
	if part < 1 {
		most = int(math.Ceil(part*float64(most) - 1e-9))
	}
	if derived && m.of(p).greedy && len(p.owner.inner[p.Priority-1]) == 0 {
		most = min(most, max(m.depth(p), m.of(p).stands))
	}
	if own+p.Cost <= most {
		return None
	}
	return QueueFull
}

// bucketLack is whether p, without a row, would fill more than its bucket may.
func (m *model) bucketLack(p *place, gone []*place) Reason {
	cost := m.left(gone, func(q *place) bool { return q.turn() == p.turn() && q.bucket == p.bucket })
	if len(p.owner.inner[p.Priority-1]) == 0 || cost == 0 || m.cfg.Overflow == Block || cost+p.Cost <= m.bucketDepth(p) {
		return None
	}
	return QueueFull
}

// bucketDepth is what keeps the share of all of the others busy, over a hand of buckets.
func (m *model) bucketDepth(p *place) int {
	if !m.of(p).greedy || m.num.fixed || m.limit == 0 {
		return maxItems
	}
	hand := m.cfg.Tenants.hand()
	return (m.of(p).stands + hand - 1) / hand
}

// sated is whether enough of the tenant of p waits to keep its share busy.
func (m *model) sated(p *place) bool {
	if len(p.owner.inner[p.Priority-1]) > 0 {
		return m.waiting(p.owner, p.bucket, p.Priority) >= m.bucketDepth(p)
	}
	return m.waits(p.owner, p.Priority) >= m.of(p).stands
}

// crowded is whether p lacks items or bytes, of which those that are parked have some too.
func (m *model) crowded(p *place, gone []*place) bool {
	bytes := m.bytes() + p.Bytes
	for _, q := range gone {
		bytes -= q.Bytes
	}
	return len(m.queue)-len(gone)+1 > m.cfg.MaxItems || bytes > m.cfg.MaxBytes
}

// kept is how deep a queue reserves are a part of.
func (m *model) kept() float64 { return float64(min(m.num.full, m.cfg.MaxItems)) }

// lowest returns who gives way next, of all.
func (m *model) lowest(p *place, gone []*place) *place {
	if m.cfg.Overflow == EvictOldest {
		return m.oldest(p, gone)
	}
	for pr := Background; pr > p.Priority; pr-- {
		if q := m.fromBelow(pr, p, gone); q != nil {
			return q
		}
	}
	if o := m.rearmost(p.Priority, p.owner, p, gone); o != nil {
		q := m.hindmost(m.rearmostLine(o, p.Priority, -1, gone), nil, gone)
		if m.tail(o, p.Priority, gone)-float64(q.Cost)*(1/o.Weight) > m.newStart(p.owner, p.Priority) {
			m.seen["displaced by tag"]++
			return q
		}
	}
	if q := m.ofOwn(p, gone); q != nil {
		return q
	}
	mine := m.cost(func(q *place) bool { return q.Priority == p.Priority })
	if bound := m.reserve(p.Priority) * m.kept(); bound > 0 && (mine == 0 || float64(mine+p.Cost) <= bound) {
		for pr := p.Priority - 1; pr >= Critical; pr-- {
			if q := m.fromBelow(pr, p, gone); q != nil {
				return q
			}
		}
	}
	return nil
}

// fromBelow returns who of another priority gives way, down to its reserve.
func (m *model) fromBelow(pr Priority, p *place, gone []*place) *place {
	o := m.rearmost(pr, nil, p, gone)
	if o == nil {
		return nil
	}
	q := m.hindmost(m.rearmostLine(o, pr, -1, gone), nil, gone)
	if left := m.left(gone, func(q *place) bool { return q.Priority == pr }); float64(left-q.Cost) < m.reserve(pr)*m.kept() {
		return nil
	}
	return q
}

// ofOwn returns who of the same tenant and priority gives way.
func (m *model) ofOwn(p *place, gone []*place) *place {
	i := p.Priority - 1
	if l := m.rearmostLine(p.owner, p.Priority, p.bucket, gone); l != nil {
		q := m.hindmost(l, nil, gone)
		t := &p.owner.inner[i][q.bucket]
		tail := t.tag + float64(m.left(gone, func(o *place) bool { return o.owner == p.owner && o.bucket == q.bucket && o.Priority == p.Priority }))
		if start := m.bucketStart(p, p.bucket) + float64(m.waiting(p.owner, p.bucket, p.Priority)); tail-float64(q.Cost) > start {
			m.seen["displaced by tag of a bucket"]++
			return q
		}
	}
	return m.ofLine(p, gone)
}

// ofLine returns who gives way of the very line that p joins.
func (m *model) ofLine(p *place, gone []*place) *place {
	l := m.line(p.owner, p.bucket, p.Priority)
	if m.cfg.Overflow == EvictOldest {
		for _, q := range l {
			if !slices.Contains(gone, q) {
				return q
			}
		}
		return nil
	}
	return m.hindmost(l, p, gone)
}

// newStart is the start tag of one more request at the end of an owner.
func (m *model) newStart(o *owner, pr Priority) float64 {
	t := &o.turns[pr-1]
	return m.start(o, pr) + float64(m.cost(func(q *place) bool { return q.turn() == t }))*(1/o.Weight)
}

// tail is when the last of an owner will have been served, in virtual time.
func (m *model) tail(o *owner, pr Priority, gone []*place) float64 {
	t := &o.turns[pr-1]
	return t.tag + float64(m.left(gone, func(q *place) bool { return q.turn() == t }))*(1/o.Weight)
}

// rearmost returns the owner whose last would be served last, but for one.
func (m *model) rearmost(pr Priority, but *owner, p *place, gone []*place) (last *owner) {
	crowded := m.crowded(p, gone)
	for _, o := range m.owners {
		t := &o.turns[pr-1]
		if o == but || !t.waits || t.parked && !crowded || m.left(gone, func(q *place) bool { return q.turn() == t }) == 0 {
			continue
		}
		if last != nil {
			a, b := m.tail(o, pr, gone), m.tail(last, pr, gone)
			if a < b || a == b && t.since < last.turns[pr-1].since {
				continue
			}
		}
		last = o
	}
	return last
}

// rearmostLine returns the line of an owner whose last would be served last, but for
// one bucket; nil if there is none.
func (m *model) rearmostLine(o *owner, pr Priority, but int, gone []*place) (last []*place) {
	inner := o.inner[pr-1]
	if len(inner) == 0 && but < 0 {
		return m.line(o, 0, pr)
	}
	var tail float64
	var since int
	for b := range inner {
		left := m.left(gone, func(q *place) bool { return q.owner == o && q.bucket == b && q.Priority == pr })
		if b == but || left == 0 {
			continue
		}
		if t := inner[b].tag + float64(left); last == nil || t > tail || t == tail && inner[b].since > since {
			last, tail, since = m.line(o, b, pr), t, inner[b].since
		}
	}
	return last
}

// hindmost returns who of a line gives way first, of those not gone: the highest
// rank; of equals the oldest offer of retries, else the last in the order. For a
// newcomer, only who ranks below it, or under NewestFirst is its equal and older.
func (m *model) hindmost(line []*place, p *place, gone []*place) (last *place) {
	if m.planned() {
		return m.longest(line, p, gone)
	}
	newest := m.order == NewestFirst
	var all []*place
	for _, q := range m.queue {
		if q.retry() && slices.Contains(line, q) {
			all = append(all, q)
		}
	}
	l := slices.Clone(line)
	if !newest {
		slices.Reverse(l)
	}
	for _, q := range l {
		if !q.retry() {
			all = append(all, q)
		}
	}
	for _, q := range all {
		if slices.Contains(gone, q) || p != nil && q.rank() <= p.rank() && !(newest && q.rank() == p.rank() && q.Arrival <= p.Arrival) {
			continue
		}
		if last == nil || q.rank() > last.rank() {
			last = q
		}
	}
	return last
}

// rank orders by who is shed first: retries, then later cohorts, those without first.
func (p *place) rank() int {
	n := p.Cohort
	if n == 0 {
		n = Cohorts + 1
	}
	if p.retry() {
		n += 1000
	}
	return n
}

// oldest returns who arrived first, of the tenant of p and of those that would be
// served after it.
func (m *model) oldest(p *place, gone []*place) (oldest *place) {
	crowded := m.crowded(p, gone)
	for _, q := range m.queue {
		if slices.Contains(gone, q) || q.turn().parked && !crowded ||
			q.owner != p.owner && m.tail(q.owner, q.Priority, gone) <= m.newStart(p.owner, q.Priority) {
			continue
		}
		if oldest == nil || q.Arrival < oldest.Arrival || q.Arrival == oldest.Arrival && q.seq < oldest.seq {
			oldest = q
		}
	}
	return oldest
}
