package admission

import (
	"fmt"
	"math"
	"slices"

	"github.com/goodput/goodput/limit"
)

// The calls of the model other than offer.

func (m *model) release(e End, p *place) {
	if e.Exempt {
		m.probe--
		return
	}
	m.inUse, m.runs = m.inUse-max(e.Cost, 1), m.runs-1
	m.counts.outcomes[e.Outcome]++
	if e.Charge > 0 {
		m.spend(min(e.Charge, limit.Max) - max(e.Cost, 1))
	}
	m.account(p, e)
	m.dispatch()
}

func (m *model) cancel(p *place, why Reason) bool {
	if p.verdict != Queued {
		return true
	}
	after := m.num
	m.num = m.before // the queue is looked at only once p is decided
	if why == None {
		if why = m.over(p); why == None {
			m.arm(p)
			m.num = after
			return false
		}
	}
	m.num = after
	m.leave(p, Refused, why)
	m.reorder()
	m.dispatch()
	return true
}

func (m *model) callLimit(n int) {
	if n != m.limit {
		m.counts.called++
		if n > m.limit {
			m.counts.calledUp++
		}
	}
	m.setLimit(n)
}

func (m *model) setLimit(n int) {
	if n != m.limit {
		m.counts.limitChanges++
		if n > m.limit {
			m.counts.raised++
		}
		m.moved, m.movedFrom = m.now, m.limit
	}
	m.limit = n
	m.dropAll(TooCostly, func(p *place) bool {
		return n > 0 && p.Cost > n || m.beyond(p) || p.owner.MaxInUse > 0 && p.Cost > p.owner.MaxInUse
	})
	m.dispatch()
}

func (m *model) dropAll(why Reason, pick func(*place) bool) {
	for _, p := range slices.Clone(m.queue) {
		if pick(p) {
			m.tell(p, why)
		}
	}
}

func (m *model) reconfigure(cfg Config, c *Core, limit int, dropped []*place) error {
	if m.cfg.Order != Auto && cfg.Order == Auto {
		m.setOrder(FIFO)
	}
	m.configure(cfg, c)
	for len(m.queue) > m.cfg.MaxItems {
		if err := m.crop(&dropped, QueueFull); err != nil {
			return err
		}
	}
	for m.bytes() > m.cfg.MaxBytes {
		if err := m.crop(&dropped, BytesFull); err != nil {
			return err
		}
	}
	m.callLimit(limit)
	return nil
}

// crop tells the next of those that the core says have no place any more. Which tenant
// that is matters little; nobody of a lower priority stays, and no retry before a first
// attempt of its own line.
func (m *model) crop(dropped *[]*place, why Reason) error {
	if len(*dropped) == 0 {
		return fmt.Errorf("the core keeps more than its caps")
	}
	p := (*dropped)[0]
	*dropped = (*dropped)[1:]
	for _, q := range m.queue {
		same := q.turn() == p.turn() && q.bucket == p.bucket
		if (why != BytesFull || q.Bytes > 0) && (q.Priority > p.Priority || same && q.retry() && !p.retry()) {
			return fmt.Errorf("%s with attempt %d has to leave while %s with attempt %d stays", p.Priority, p.Attempt, q.Priority, q.Attempt)
		}
	}
	m.tell(p, why)
	return nil
}

// share makes the owners what the configuration says.
func (m *model) share(c *Core) {
	for i := range m.credit {
		if m.reserve(Priority(i+1)) == 0 {
			m.credit[i] = 0
		}
	}
	m.owners = slices.DeleteFunc(m.owners, func(o *owner) bool { return o.gone && o.inUse == 0 && m.holds(o) == 0 })
	t := m.cfg.Tenants
	if t == nil {
		for _, o := range m.owners {
			o.inUse, o.MaxInUse = 0, 0 // slots of theirs may end where nobody sees whose they are
			m.unpark(o)
			o.gone = o != m.owners[0]
		}
		if m.named != nil {
			m.era++
		}
		m.named, m.rest = nil, nil
		return
	}
	if m.rest == nil || len(m.rest.inner[0]) != t.buckets() {
		if m.rest != nil {
			m.rest.gone, m.rest.ID = true, "\x00"
		}
		m.rest = newOwner(t.Others, c.rows[c.rest], t.buckets())
		m.rest.at = m.now
		m.owners = append(m.owners, m.rest)
	}
	m.set(m.rest, t.Others)
	m.named = map[string]*owner{}
	for _, tenant := range t.Rows {
		i := slices.IndexFunc(m.owners, func(o *owner) bool { return o.ID == tenant.ID })
		if i < 0 {
			i = len(m.owners)
			m.owners = append(m.owners, newOwner(tenant, c.table[tenant.ID], 0))
			m.owners[i].at = m.now
		} else if m.owners[i].gone {
			m.seen["revived"]++
		}
		m.set(m.owners[i], tenant)
		m.named[tenant.ID] = m.owners[i]
	}
	for _, o := range m.owners[1:] {
		o.gone = o != m.rest && m.named[o.ID] != o
	}
}

// set takes what the configuration says about an owner.
func (m *model) set(o *owner, t Tenant) {
	if t.Quota != o.Quota {
		o.fill(m.now) // at the old rate
		if o.left = min(o.left, t.Quota.burst()); o.Quota.Rate == 0 {
			o.left = t.Quota.burst()
		}
	}
	m.weigh(o, t.weight())
	o.Tenant, o.Weight, o.gone = t, t.weight(), false
	m.unpark(o)
}

// setWeight clamps to what New would accept beside the weights of the others.
func (m *model) setWeight(id string, w float64) {
	if m.cfg.Tenants == nil {
		return
	}
	o := m.named[id]
	if o == nil {
		o = m.rest
	}
	within := w
	if math.IsNaN(w) {
		within = 1
	}
	within = min(max(within, 1e-12), 1e12)
	for _, p := range m.owners[1:] {
		if p != o && !p.gone {
			within = min(max(within, p.Weight/1e6), p.Weight*1e6)
		}
	}
	if within != w {
		m.counts.clamped++
		m.seen["clamped"]++
	}
	m.weigh(o, within)
	m.dispatch()
}

// weigh charges by the new weight what was granted under the old one and not waited for.
func (m *model) weigh(o *owner, w float64) {
	for i := range o.turns {
		if t := &o.turns[i]; t.tag > m.v[i] && o.Weight > 0 {
			t.tag = m.v[i] + (t.tag-m.v[i])*o.Weight/w
		}
	}
	o.Weight = w
}

// holds is how many of an owner wait.
func (m *model) holds(o *owner) (n int) {
	for _, p := range m.queue {
		if p.owner == o {
			n++
		}
	}
	return n
}

func (m *model) lend() int {
	if len(m.queue) > 0 || m.drain || m.lent > 0 || m.cfg.Tenants != nil || m.cfg.Reserve != (Reserve{}) || m.quota.Rate > 0 {
		return 0
	}
	m.lent = max(0, m.free())
	return m.lent
}

func (m *model) settle(s Settlement) {
	for o, n := range s.Ended {
		m.counts.outcomes[o] += uint64(n)
		m.runs -= int(n)
	}
	m.inUse, m.lent = m.inUse+m.lent-s.Free, 0
	m.runs += int(s.Admitted)
	m.counts.arrivals += uint64(s.Admitted)
	m.counts.immediate += uint64(s.Admitted)
	m.dispatch()
}

// stats are those that the model knows.
func (m *model) stats() Stats {
	s := Stats{
		Limit: m.limit, InUse: m.inUse, Running: m.runs, Waiting: len(m.queue),
		WaitingCost: m.cost(func(*place) bool { return true }), WaitingBytes: m.bytes(),
		Exempt: m.probe, Age: m.age(true), Order: m.order, Draining: m.drain,
		Arrivals: m.counts.arrivals, Immediate: m.counts.immediate, Dequeued: m.counts.dequeued,
		Outcomes: m.counts.outcomes, Refusals: m.counts.refusals,
		ExemptAdmitted: m.counts.exempt, LimitChanges: m.counts.limitChanges,
		LimitFrom: m.movedFrom, LimitAsked: m.now - m.asked, LimitSearch: m.search, LimitHeld: m.held && Moves(m.cfg.Limit), LimitRaised: m.counts.raised,
		LimitCalled: m.counts.called, LimitCalledUp: m.counts.calledUp,
		Absent: m.away.is, MaxAbsence: m.cfg.MaxAbsence,
	}
	s.LimitMin, s.LimitMax = limit.Bounds(m.cfg.Limit)
	if m.away.is {
		s.AbsentFor, s.MaxAbsence = m.now-m.away.since, m.away.bound
	}
	if s.LimitChanges > 0 {
		s.LimitMoved = m.now - m.moved
	}
	if m.quota.Rate > 0 {
		s.Allowance, s.AllowanceLeft = Quota{m.quota.Rate, m.quota.burst()}, m.allowed
	}
	for _, p := range m.queue {
		s.WaitingBy[p.Priority-1] += p.Cost
	}
	if t := m.cfg.Tenants; t != nil {
		s.Tenants.Rows, s.Tenants.Clamped = len(t.Rows), m.counts.clamped
		s.Tenants.Capped = m.cost(func(p *place) bool { return p.turn().parked })
	}
	return s
}
