package admission

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A model is the core again, as plainly as it can be said: one slice of those
// who wait, searched for every question. It decides by itself; of the core it
// knows only the numbers that were measured.
type model struct {
	cfg       Config         // with defaults
	num       numbersInForce // those after the call, for all but the order
	before    numbersInForce
	now       time.Duration
	limit     int
	inUse     int
	asked     time.Duration // when the law last was
	moved     time.Duration // when the limit last was
	movedFrom int
	search    bool // the law says that it searches
	held      bool // the law is not asked
	runs      int
	lent      int
	probe     int     // exempt requests in flight
	quota     Quota   // the allowance in force
	allowed   float64 // of it, as of now
	drain     bool
	away      away // nothing to run work on

	queue  []*place // in the order of offer
	order  Order
	stood  time.Duration
	others time.Duration    // when somebody last had to wait whose deadline does not keep the objective
	budget [2]time.Duration // the shortest, the longest since the queue was empty
	passed [priorities]int
	seq    int

	owners []*owner            // everybody, then all others and whoever is or was known by name
	named  map[string]*owner   // those configured
	rest   *owner              // all others; nil before there are tenants
	era    int                 // of the shares: those of an earlier one are nobody's
	v      [priorities]float64 // virtual time between owners
	credit [priorities]float64 // what each reserve has earned
	seen   map[string]int      // what has happened, for the sake of the test

	told   []*place // who was decided, in order
	counts counts
}

// numbersInForce are what the model takes from the core.
type numbersInForce struct {
	quantile, needed   float64
	services           []point // the distribution that quantile is of
	total              float64
	rate, slots        float64 // cost per second that can be served, and that the slots could or, in a search, will
	growth             float64 // by how much more that is: 1 without one
	depth, reach, full int
	fixed              bool // the depth is configured
	overload           bool
	tight              bool
	cv2                float64 // of the departures of requests
	patience, hopeless time.Duration
	sized              bool // it is known what a unit of size takes
	sizes              sizesInForce
	perCost            float64 // cost of a request
	rows               map[*row][priorities]rowNumbers
}

// rowNumbers are about one tenant and priority.
type rowNumbers struct {
	greedy   bool    // asks for more than its share in an overload
	stands   int     // what then keeps its share busy
	entitled float64 // cost per second that it would be served
	cut      float64 // the cohorts of 128 that can be served
}

func numbersOf(c *Core) numbersInForce {
	_, cost := c.service.request()
	n := numbersInForce{
		quantile: c.quantile, needed: c.needed, services: slices.Clone(c.service.points), total: c.service.total, rate: c.rate(), slots: c.slotRate() * c.growth, growth: c.growth, depth: c.depth, reach: c.reach, full: c.derivation.Depth,
		overload: c.overload, fixed: c.derivation.Fixed, tight: c.derivation.Tight, cv2: c.cv2 * cost, perCost: c.load.perCost,
		patience: c.patience(), hopeless: c.hopeless(), sized: c.service.samples > 0,
		sizes: sizesOf(c), rows: map[*row][priorities]rowNumbers{},
	}
	for _, t := range c.rows {
		if t == nil {
			continue
		}
		var of [priorities]rowNumbers
		for i := range of {
			f := &t.flows[i]
			of[i] = rowNumbers{c.greedy(f), t.stands[i], c.entitled(f), c.cut(t, i)}
		}
		n.rows[t] = of
	}
	return n
}

// of returns the numbers about the tenant and priority of p.
func (m *model) of(p *place) rowNumbers { return m.num.rows[p.owner.row][p.Priority-1] }

// A place is a request that waits or has waited.
type place struct {
	Request
	seq            int
	owner          *owner // whose it is
	bucket         int    // among the others; 0 elsewhere
	era            int    // of its share, once it runs; 0: on nobody's account
	keyed          *keyed // what a newer one would replace it for
	offered, bound time.Duration
	alarm          time.Duration
	verdict        Verdict
	reason         Reason
	wait           time.Duration // until its quota has enough, if it was refused for that
}

func (p *place) due() time.Duration { return min(p.Deadline, p.bound) }
func (p *place) retry() bool        { return p.Attempt > 1 }

func newModel(cfg Config, c *Core) *model {
	m := &model{order: FIFO, num: numbersOf(c), stood: Never, others: -8 * MaxObjective, seen: map[string]int{}, era: 1}
	m.limit, _ = cfg.Limit.Start()
	_, m.search = cfg.Limit.(wanders)
	m.owners = []*owner{newOwner(Tenant{Weight: 1}, c.rows[everybody], 0)}
	m.configure(cfg, c)
	return m
}

func (m *model) configure(cfg Config, c *Core) {
	m.cfg = cfg.WithDefaults()
	m.allow(m.cfg.Allowance)
	m.share(c)
	if m.cfg.Order != Auto {
		m.setOrder(m.cfg.Order)
	}
}

// setOrder puts an order in force: who waited for the ceiling of a tenant may be
// another one now.
func (m *model) setOrder(o Order) {
	if o == m.order {
		return
	}
	m.order = o
	for _, t := range m.owners {
		m.unpark(t)
	}
}

// tick is given the numbers before the call and after it.
func (m *model) tick(now time.Duration, before, after numbersInForce) {
	m.accrue(now)
	m.num, m.before = after, before
	m.before.perCost = after.perCost // the clock of the meters comes first
}

func (m *model) reorder() {
	before := m.before
	if len(m.queue) == 0 || m.cfg.Order != Auto {
		return
	}
	want := m.order
	if before.sizes.trusted() {
		want = EDF
	} else if m.order == FIFO && !m.away.is && m.now-max(m.stood, m.away.over) >= before.patience {
		if o := m.standing(); o == EDF || m.age(false) >= before.hopeless {
			want = o
		}
	}
	if want != m.order {
		m.setOrder(want)
		after := m.num
		m.num = before // the call itself comes only now
		m.dispatch()
		m.num = after
	}
}

// age is that of whoever waits longest among the heads of the queues; those that wait
// for the ceiling of their tenant count for whoever looks, not for the order.
func (m *model) age(parked bool) (age time.Duration) {
	for _, p := range m.queue {
		if l := m.line(p.owner, p.bucket, p.Priority); parked || !p.turn().parked {
			age = max(age, m.now-l[0].offered)
		}
	}
	return age
}

func (m *model) standing() Order {
	if float64(m.budget[1]) > 1.1*float64(m.budget[0]) {
		return EDF
	}
	return NewestFirst
}

// line returns those of one owner, bucket and priority by root arrival, then offer.
func (m *model) line(o *owner, bucket int, pr Priority) (l []*place) {
	for _, p := range m.queue {
		if p.owner == o && p.bucket == bucket && p.Priority == pr {
			l = append(l, p)
		}
	}
	slices.SortStableFunc(l, func(a, b *place) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return l
}

// cost adds up the cost of those of the queue that the test picks.
func (m *model) cost(pick func(*place) bool) (sum int) {
	for _, p := range m.queue {
		if pick(p) {
			sum += p.Cost
		}
	}
	return sum
}

func (m *model) bytes() (sum int64) {
	for _, p := range m.queue {
		sum += p.Bytes
	}
	return sum
}

func (m *model) free() int {
	if free := m.limit - m.inUse - m.lent; free < 0 || !m.away.is {
		return free
	}
	return 0
}

// late reports whether a wait that is predicted is longer than the time for it, and
// with too few slots for a prediction, whether that is nearly certain.
func (m *model) late(predicted, allowed, spare time.Duration) bool {
	if predicted <= spare {
		return false
	}
	if !m.num.tight || spare < 0 || allowed > spare {
		return true
	}
	queue := departing(int(math.Round(predicted.Seconds()*m.num.slots)), pace{slots: m.num.slots, limit: m.limit, cv2: m.num.cv2})
	return queue.longer(spare.Seconds()) > 0.95
}

func (m *model) over(p *place) Reason {
	switch {
	case m.now >= p.Deadline:
		return Deadline
	case p.Deadline != Never && p.Deadline-m.now < m.needs(p):
		return Doomed
	case m.hopeless(p):
		return Unavailable
	case m.now >= p.bound:
		return WaitBound
	}
	return None
}

func (m *model) arm(p *place) {
	p.alarm = p.bound
	if p.Deadline != Never {
		p.alarm = min(p.alarm, p.Deadline-max(m.needs(p)-1, 0))
	}
	if m.away.is {
		p.alarm = min(p.alarm, max(p.offered, m.away.since)+m.away.bound)
	}
}

// offer returns the place, with the verdict and the reason. A probe has none.
func (m *model) offer(r Request) *place {
	p := &place{Request: r, offered: m.now, bound: Never, verdict: Admitted}
	if r.Exempt && m.probe < m.cfg.Exempt {
		m.probe++
		m.counts.exempt++
		return p
	}
	m.counts.arrivals++
	p.Cost = max(r.Cost, 1)
	if r.Size <= 0 {
		p.Size = p.Cost
	}
	if r.Priority == 0 {
		p.Priority = Default
	}
	p.Arrival = min(r.Arrival, m.now)
	if r.Cohort < 0 || r.Cohort > Cohorts {
		p.Cohort = 0
	}
	m.own(p)
	if why := m.atTheDoor(p); why != None {
		return m.refuse(p, why)
	}
	if p.wait = p.owner.lacks(m.now, p.Cost); p.wait > 0 {
		p.owner.overQuota++
		return m.refuse(p, OverQuota)
	}
	if m.first() == nil && m.cost(func(q *place) bool { return q.owner == p.owner }) == 0 && p.Cost <= m.free() && p.owner.fits(p.Cost) && m.allows(p.Cost) {
		m.counts.immediate++
		p.owner.spend(p.Cost)
		if m.cfg.Tenants == nil {
			m.inUse, m.runs = m.inUse+p.Cost, m.runs+1
			m.spend(p.Cost)
		} else {
			m.take(p)
		}
		return p
	}
	if r.NoWait {
		return m.refuse(p, m.full(QueueFull))
	}
	return m.enqueue(p)
}

func (m *model) enqueue(p *place) *place {
	p.verdict = Queued
	if p.Deadline == Never || p.Deadline-m.now > m.cfg.Objective {
		m.others = m.now
	}
	if p.Deadline == Never {
		p.bound = m.now + m.cfg.MaxWait
	}
	left := p.Deadline - m.now - m.needs(p)
	predicted, allowed := m.predict(p)
	switch {
	case m.limit == 0 && m.num.depth == 0:
		return m.refuse(p, Unavailable)
	case p.Deadline != Never && (m.planned() && left < 0 || !m.planned() && m.late(predicted, allowed, left)):
		return m.refuse(p, m.full(NoBudget))
	case p.Cohort > 0 && m.of(p).greedy && m.sated(p) && float64(p.Cohort-1) >= 1.125*m.of(p).cut:
		m.seen["shed at the door"]++
		return m.refuse(p, Shed)
	}
	same := m.same(p)
	victims, why := m.room(p)
	if why != None {
		return m.refuse(p, m.full(why))
	}
	p.owner.spend(p.Cost)
	m.push(p, same)
	for _, v := range victims {
		switch why = m.over(v); {
		case why == None && v == same:
			why = Replaced
		case why == None:
			why = Displaced
		}
		m.tell(v, why)
	}
	m.dispatch()
	m.told = slices.DeleteFunc(m.told, func(q *place) bool { return q == p })
	if p.verdict == Admitted { // past somebody costlier, without a wait
		m.counts.dequeued--
		m.counts.immediate++
	}
	return p
}

// same returns who waits about the same as p, under LatestOnly.
func (m *model) same(p *place) *place {
	k := m.key(p)
	for _, q := range m.queue {
		if k != nil && q.keyed != nil && *q.keyed == *k {
			return q
		}
	}
	return nil
}

func (m *model) key(p *place) *keyed {
	switch {
	case m.cfg.Overflow != LatestOnly || p.Key == "":
		return nil
	case m.cfg.Tenants == nil:
		return &keyed{key: p.Key}
	}
	return &keyed{p.Tenant, p.Key}
}

func (m *model) atTheDoor(p *place) Reason {
	switch {
	case m.drain:
		return Draining
	case p.Deadline <= m.now:
		return Deadline
	case m.limit > 0 && p.Cost > m.limit, p.Cost > p.owner.takeable(), m.beyond(p):
		return TooCostly
	case p.Bytes > m.cfg.MaxBytes:
		return TooLarge
	}
	return None
}

func (m *model) refuse(p *place, why Reason) *place {
	p.verdict, p.reason = Refused, why
	m.count(p, why)
	return p
}

func (m *model) count(p *place, why Reason) {
	p.owner.refused++
	m.counts.refusals[why]++
	m.counts.outcomes[why.Outcome()]++
}

func (m *model) push(p, same *place) {
	m.seq++
	p.seq = m.seq
	if p.keyed = m.key(p); same != nil {
		p.Arrival = min(p.Arrival, same.Arrival) // its place
	}
	budget := p.due() - m.now
	if len(m.queue) == 0 {
		m.stood, m.budget = m.now, [2]time.Duration{budget, budget}
	}
	m.budget = [2]time.Duration{min(m.budget[0], budget), max(m.budget[1], budget)}
	if m.cfg.Order == Auto && (m.order == NewestFirst && m.standing() == EDF || m.num.sizes.trusted()) {
		m.setOrder(EDF)
	}
	m.unpark(p.owner) // it may fit where the first of before did not
	m.queue = append(m.queue, p)
	m.join(p)
	m.arm(p)
}

// needs is need, but for a tenant that asks for no more than its share in an overload:
// then nothing.
func (m *model) needs(p *place) time.Duration {
	if m.cfg.Tenants != nil && m.num.overload && !m.of(p).greedy {
		m.seen["not doomed for others"]++
		return 0
	}
	return m.need(p)
}

func (m *model) leave(p *place, v Verdict, why Reason) {
	m.unpark(p.owner)
	p.verdict, p.reason = v, why
	m.queue = slices.DeleteFunc(m.queue, func(q *place) bool { return q == p })
	m.part(p)
	if m.cost(func(q *place) bool { return q.Priority == p.Priority }) == 0 {
		m.passed[p.Priority-1] = 0
	}
	if len(m.queue) == 0 {
		m.stood = Never
		if m.cfg.Order == Auto {
			m.order = FIFO
		}
	}
	if v == Refused {
		p.owner.refund(m.now, p.Cost)
		m.count(p, why)
	}
}

func (m *model) tell(p *place, why Reason) {
	m.leave(p, Refused, why)
	m.told = append(m.told, p)
}

// best returns who of a line goes first.
func (m *model) best(o *owner, bucket int, pr Priority) *place {
	l := m.line(o, bucket, pr)
	switch m.order {
	case NewestFirst:
		return l[len(l)-1]
	case EDF:
		slices.SortStableFunc(l, func(a, b *place) int { return cmp.Compare(a.due(), b.due()) })
	}
	return l[0]
}

// next returns who of a priority goes first: of the owner, and of its bucket, with the
// least start tag. Nil: nobody waits, or only for the ceiling of a tenant.
func (m *model) next(pr Priority) *place {
	var first *owner
	for _, o := range m.owners {
		if t := &o.turns[pr-1]; t.waits && !t.parked && (first == nil || t.before(&first.turns[pr-1])) {
			first = o
		}
	}
	if first == nil {
		return nil
	}
	bucket := 0
	for b := range first.inner[pr-1] {
		if t := &first.inner[pr-1][b]; t.waits && (!first.inner[pr-1][bucket].waits || t.before(&first.inner[pr-1][bucket])) {
			bucket = b
		}
	}
	return m.best(first, bucket, pr)
}

func (m *model) first() *place {
	var top, earned *place
	for pr := Critical; pr <= Background; pr++ {
		p := m.next(pr)
		switch {
		case p == nil:
			continue
		case m.passed[pr-1] >= 32:
			return p
		case top == nil:
			top = p
		}
		if earned == nil && m.reserve(pr) > 0 && m.credit[pr-1] >= float64(p.Cost) {
			earned = p
		}
	}
	if earned != nil {
		if earned != top {
			m.seen["granted by reserve"]++
		}
		return earned
	}
	return top
}

func (m *model) dispatch() {
	for p := m.first(); p != nil; p = m.first() {
		if why := m.over(p); why != None {
			m.tell(p, why)
			continue
		}
		if !p.owner.fits(p.Cost) || p.owner.above(p.Priority) {
			p.turn().parked = true
			m.seen["parked"]++
			continue
		}
		if p.Cost > m.free() {
			return
		}
		if !m.allows(p.Cost) {
			m.seen["waits for the allowance"]++
			return
		}
		m.leave(p, Admitted, None)
		m.told = append(m.told, p)
		m.take(p)
		m.counts.dequeued++
		m.passed[p.Priority-1] = 0
		for pr := p.Priority + 1; pr <= Background; pr++ {
			if m.next(pr) != nil {
				m.passed[pr-1]++
			}
		}
	}
}
