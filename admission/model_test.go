package admission

import (
	"math"
	"slices"
	"time"
)

// A model is the core again, as plainly as it can be said: one slice of those
// who wait, searched for every question. It decides by itself; of the core it
// knows only the numbers that were measured.
type model struct {
	cfg    Config         // with defaults
	num    numbersInForce // those after the call, for all but the order
	before numbersInForce
	now    time.Duration
	limit  int
	inUse  int
	runs   int
	lent   int
	probe  int // exempt requests in flight
	drain  bool

	queue  []*place // in the order of offer
	order  Order
	stood  time.Duration
	others time.Duration    // when somebody last had to wait whose deadline does not keep the objective
	budget [2]time.Duration // the shortest, the longest since the queue was empty
	passed [priorities]int
	seq    int

	told   []*place // who was decided, in order
	counts counts
}

// numbersInForce are what the model takes from the core.
type numbersInForce struct {
	quantile, rate     float64
	depth, reach, full int
	fixed              bool                // the depth is configured
	greedy             [priorities]bool    // asks for more than its share in an overload
	stands             [priorities]int     // what then keeps its share busy
	part               [priorities]float64 // of the slots, that it would be served
	tight              bool
	cv2                float64 // of the departures of requests
	patience, hopeless time.Duration
	sized              bool // it is known what a unit of size takes
	sizes              sizesInForce
}

func numbersOf(c *Core) numbersInForce {
	_, cost := c.service.request()
	n := numbersInForce{
		quantile: c.quantile, rate: c.rate(), depth: c.depth, reach: c.reach, full: c.derivation.Depth,
		fixed: c.derivation.Fixed, tight: c.derivation.Tight, cv2: c.cv2 * cost,
		patience: c.patience(), hopeless: c.hopeless(), sized: c.service.samples > 0, sizes: sizesOf(c),
	}
	for i := range n.part {
		f := &c.rows[everybody].flows[i]
		n.greedy[i], n.stands[i], n.part[i] = c.greedy(f), f.row.stands[i], c.entitled(f)/c.rate()
	}
	return n
}

// A place is a request that waits or has waited.
type place struct {
	Request
	seq            int
	offered, bound time.Duration
	alarm          time.Duration
	verdict        Verdict
	reason         Reason
}

func (p *place) due() time.Duration { return min(p.Deadline, p.bound) }
func (p *place) retry() bool        { return p.Attempt > 1 }

func newModel(cfg Config, num numbersInForce) *model {
	m := &model{order: FIFO, num: num, stood: Never, others: -8 * MaxObjective}
	m.limit, _ = cfg.Limit.Start()
	m.configure(cfg)
	return m
}

func (m *model) configure(cfg Config) {
	m.cfg = cfg.WithDefaults()
	if m.cfg.Order != Auto {
		m.order = m.cfg.Order
	}
}

// tick is given the numbers before the call and after it.
func (m *model) tick(now time.Duration, before, after numbersInForce) {
	m.now, m.num, m.before = max(m.now, now), after, before
}

func (m *model) reorder() {
	before := m.before
	if len(m.queue) == 0 || m.cfg.Order != Auto {
		return
	}
	want := m.order
	if before.sizes.trusted() {
		want = EDF
	} else if m.order == FIFO && m.now-m.stood >= before.patience {
		if o := m.standing(); o == EDF || m.age() >= before.hopeless {
			want = o
		}
	}
	if want != m.order {
		m.order = want
		after := m.num
		m.num = before // the call itself comes only now
		m.dispatch()
		m.num = after
	}
}

// age is that of whoever waits longest among the heads of the priorities.
func (m *model) age() (age time.Duration) {
	for pr := Critical; pr <= Background; pr++ {
		if l := m.line(pr); len(l) > 0 {
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

// line returns those of a priority by root arrival, then offer.
func (m *model) line(pr Priority) (l []*place) {
	for _, p := range m.queue {
		if p.Priority == pr {
			l = append(l, p)
		}
	}
	slices.SortStableFunc(l, func(a, b *place) int { return int(min(1, max(-1, a.Arrival-b.Arrival))) })
	return l
}

func (m *model) sums() (cost int, bytes int64) {
	for _, p := range m.queue {
		cost, bytes = cost+p.Cost, bytes+p.Bytes
	}
	return cost, bytes
}

func (m *model) free() int { return m.limit - m.inUse - m.lent }

// late reports whether a wait that is predicted is longer than the time for it, and
// with too few slots for a prediction, whether that is nearly certain.
func (m *model) late(predicted, spare time.Duration) bool {
	if predicted <= spare {
		return false
	}
	if !m.num.tight || spare < 0 {
		return true
	}
	queue := departing(int(math.Round(predicted.Seconds()*m.num.rate)), m.num.rate, m.num.cv2)
	return queue.longer(spare.Seconds()) > 0.95
}

func (m *model) over(p *place) Reason {
	switch {
	case m.now >= p.Deadline:
		return Deadline
	case p.Deadline != Never && p.Deadline-m.now < m.need(p.Size):
		return Doomed
	case m.now >= p.bound:
		return WaitBound
	}
	return None
}

func (m *model) arm(p *place) {
	p.alarm = p.bound
	if p.Deadline != Never {
		p.alarm = min(p.alarm, p.Deadline-m.need(p.Size)+1)
	}
}

// offer returns the verdict, the reason, and the place of who waits.
func (m *model) offer(r Request) (Verdict, Reason, *place) {
	if r.Exempt && m.probe < m.cfg.Exempt {
		m.probe++
		m.counts.exempt++
		return Admitted, None, nil
	}
	m.counts.arrivals++
	r.Cost = max(r.Cost, 1)
	if r.Size <= 0 {
		r.Size = r.Cost
	}
	if r.Priority == 0 {
		r.Priority = Default
	}
	r.Arrival = min(r.Arrival, m.now)
	if why := m.atTheDoor(r); why != None {
		return m.refuse(why)
	}
	if len(m.queue) == 0 && r.Cost <= m.free() {
		m.inUse, m.runs = m.inUse+r.Cost, m.runs+1
		m.counts.immediate++
		return Admitted, None, nil
	}
	if !r.NoWait && (r.Deadline == Never || r.Deadline-m.now > m.cfg.Objective) {
		m.others = m.now
	}
	p := &place{Request: r, offered: m.now, bound: Never, verdict: Queued}
	if r.Deadline == Never {
		p.bound = m.now + m.cfg.MaxWait
	}
	switch {
	case r.NoWait:
		return m.refuse(QueueFull)
	case m.limit == 0 && m.num.depth == 0:
		return m.refuse(Unavailable)
	case r.Deadline != Never && m.planned() && r.Deadline-m.now < m.need(r.Size):
		return m.refuse(NoBudget)
	case r.Deadline != Never && !m.planned() && m.late(m.predict(p), r.Deadline-m.now-m.need(r.Size)):
		return m.refuse(NoBudget)
	}
	victims, ok := m.inTime(p)
	if !ok {
		return m.refuse(NoBudget)
	}
	victims, why := m.room(p, victims)
	if why != None {
		return m.refuse(why)
	}
	m.push(p)
	for _, v := range victims {
		if why = m.over(v); why == None {
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
	return p.verdict, p.reason, p
}

func (m *model) atTheDoor(r Request) Reason {
	switch {
	case m.drain:
		return Draining
	case r.Deadline <= m.now:
		return Deadline
	case m.limit > 0 && r.Cost > m.limit:
		return TooCostly
	case r.Bytes > m.cfg.MaxBytes:
		return TooLarge
	}
	return None
}

func (m *model) refuse(why Reason) (Verdict, Reason, *place) {
	m.count(why)
	return Refused, why, nil
}

func (m *model) count(why Reason) {
	m.counts.refusals[why]++
	m.counts.outcomes[why.Outcome()]++
}

func (m *model) predict(p *place) time.Duration {
	if m.limit == 0 {
		return 0
	}
	units, own := p.Cost-m.free(), 0
	for _, q := range m.queue {
		switch {
		case q.Priority < p.Priority:
			units += q.Cost
		case q.Priority > p.Priority || m.order == NewestFirst:
		case m.order == FIFO || q.due() <= p.due():
			units += q.Cost
			own += q.Cost
		}
	}
	wait := float64(max(units, 0)) / m.num.rate
	if part := m.num.part[p.Priority-1]; part < 1 && len(m.queue) > 0 {
		wait = max(wait, float64(own)/(part*m.num.rate)) // at the speed of its own priority
	}
	return seconds(wait)
}

// room returns who must go for p, or why there is no room.
func (m *model) room(p *place, victims []*place) ([]*place, Reason) {
	own, lack := m.ownLack(p, victims), m.lack(p, victims)
	if own == None && lack == None {
		return victims, None
	}
	who, doomed := m.givesWay(p)
	for _, q := range who[:doomed] {
		if !slices.Contains(victims, q) {
			victims = append(victims, q)
		}
	}
	next := func(same bool) bool { // of its own priority alone, or anybody
		for _, q := range who {
			if !slices.Contains(victims, q) && (!same || q.Priority == p.Priority) {
				victims = append(victims, q)
				return true
			}
		}
		return false
	}
	for m.ownLack(p, victims) != None && next(true) {
	}
	for m.lack(p, victims) != None && next(false) {
	}
	if m.ownLack(p, victims) == None && m.lack(p, victims) == None {
		return victims, None
	}
	if lack == None {
		lack = own
	}
	outranked := len(m.queue) > 0
	for _, q := range m.queue {
		sheltered := q.Priority == p.Priority && p.retry() && !m.hasRetry(p.Priority)
		outranked = outranked && (q.Priority < p.Priority || sheltered)
	}
	if lack == QueueFull && outranked {
		return nil, Shed
	}
	return nil, lack
}

func (m *model) hasRetry(pr Priority) bool {
	return slices.ContainsFunc(m.queue, func(q *place) bool { return q.Priority == pr && q.retry() })
}

func (m *model) lack(p *place, without []*place) Reason {
	n, cost, bytes := len(m.queue)+1-len(without), p.Cost, p.Bytes
	c, b := m.sums()
	cost, bytes = cost+c, bytes+b
	for _, v := range without {
		cost, bytes = cost-v.Cost, bytes-v.Bytes
	}
	_, full := m.depths(p)
	switch {
	case n > m.cfg.MaxItems:
		return QueueFull
	case bytes > m.cfg.MaxBytes:
		return BytesFull
	case m.cfg.Overflow == Block:
		return None
	case n == 1 && m.num.depth > 0:
		return None
	case cost <= full:
		return None
	}
	return QueueFull
}

// depths returns the depth in force for p, and the one of a burst.
func (m *model) depths(p *place) (depth, full int) {
	depth = m.num.depth
	if p.Deadline != Never && p.Deadline-m.now <= m.cfg.Objective && m.now-m.others >= 8*m.cfg.Objective {
		if depth = m.num.reach; m.planned() { // the deadline keeps the objective, and that of all who came lately
			depth = maxItems
		}
	}
	return depth, max(m.num.full, depth)
}

// ownLack is whether the priority of p would fill more of the queue than its part of
// the slots serves within the objective.
func (m *model) ownLack(p *place, without []*place) Reason {
	own := 0
	for _, q := range m.queue {
		if q.Priority == p.Priority && !slices.Contains(without, q) {
			own += q.Cost
		}
	}
	depth, most := m.depths(p)
	if part := m.num.part[p.Priority-1]; !m.num.fixed && m.limit > 0 && part < 1 {
		most = int(math.Ceil(part*float64(most) - 1e-9))
	}
	if m.num.greedy[p.Priority-1] && !m.num.fixed && m.limit > 0 {
		most = min(most, max(depth, m.num.stands[p.Priority-1]))
	}
	if own == 0 || m.cfg.Overflow == Block || own+p.Cost <= most {
		return None
	}
	return QueueFull
}

// givesWay returns who gives way to p, in that order, and how many of them are
// doomed, who go together.
func (m *model) givesWay(p *place) (who []*place, doomed int) {
	add := func(q *place) {
		if !slices.Contains(who, q) {
			who = append(who, q)
		}
	}
	switch m.cfg.Overflow {
	case RefuseNewest, Block:
		return nil, 0
	}
	for pr := Critical; pr <= Background; pr++ {
		for _, q := range m.line(pr) {
			if m.over(q) == None {
				break
			}
			add(q)
		}
	}
	doomed = len(who)
	if m.cfg.Overflow == EvictOldest {
		all := slices.Clone(m.queue)
		slices.SortStableFunc(all, func(a, b *place) int { return int(min(1, max(-1, a.Arrival-b.Arrival))) })
		for _, q := range all {
			add(q)
		}
		return who, doomed
	}
	newest := m.order == NewestFirst
	for pr := Background; pr >= p.Priority; pr-- {
		if m.planned() {
			for _, q := range m.longestFirst(pr) {
				if pr > p.Priority || m.givesWayTo(q, p) {
					add(q)
				}
			}
			continue
		}
		for _, q := range m.queue { // retries in the order of offer
			if q.Priority == pr && q.retry() && (pr > p.Priority || !p.retry() || newest && q.Arrival <= p.Arrival) {
				add(q)
			}
		}
		l := m.line(pr)
		if !newest {
			slices.Reverse(l)
		}
		for _, q := range l {
			if !q.retry() && (pr > p.Priority || newest && !p.retry() && q.Arrival <= p.Arrival) {
				add(q)
			}
		}
	}
	return who, doomed
}

func (m *model) push(p *place) {
	m.seq++
	p.seq = m.seq
	m.arm(p)
	budget := p.due() - m.now
	if len(m.queue) == 0 {
		m.stood, m.budget = m.now, [2]time.Duration{budget, budget}
	}
	m.budget = [2]time.Duration{min(m.budget[0], budget), max(m.budget[1], budget)}
	if m.cfg.Order == Auto && (m.order == NewestFirst && m.standing() == EDF || m.num.sizes.trusted()) {
		m.order = EDF
	}
	m.queue = append(m.queue, p)
}

func (m *model) leave(p *place, v Verdict, why Reason) {
	p.verdict, p.reason = v, why
	m.queue = slices.DeleteFunc(m.queue, func(q *place) bool { return q == p })
	if len(m.line(p.Priority)) == 0 {
		m.passed[p.Priority-1] = 0
	}
	if len(m.queue) == 0 {
		m.stood = Never
		if m.cfg.Order == Auto {
			m.order = FIFO
		}
	}
	if v == Refused {
		m.count(why)
	}
}

func (m *model) tell(p *place, why Reason) {
	m.leave(p, Refused, why)
	m.told = append(m.told, p)
}

// best returns who of a priority goes first.
func (m *model) best(pr Priority) *place {
	l := m.line(pr)
	switch {
	case len(l) == 0:
		return nil
	case m.order == NewestFirst:
		return l[len(l)-1]
	case m.order == FIFO:
		return l[0]
	}
	slices.SortStableFunc(l, func(a, b *place) int { return int(min(1, max(-1, a.due()-b.due()))) })
	return l[0]
}

func (m *model) first() *place {
	var top *place
	for pr := Critical; pr <= Background; pr++ {
		p := m.best(pr)
		if p != nil && m.passed[pr-1] >= 32 {
			return p
		}
		if top == nil {
			top = p
		}
	}
	return top
}

func (m *model) dispatch() {
	for len(m.queue) > 0 {
		p := m.first()
		if why := m.over(p); why != None {
			m.tell(p, why)
			continue
		}
		if p.Cost > m.free() {
			return
		}
		m.leave(p, Admitted, None)
		m.told = append(m.told, p)
		m.inUse, m.runs = m.inUse+p.Cost, m.runs+1
		m.counts.dequeued++
		m.passed[p.Priority-1] = 0
		for pr := p.Priority + 1; pr <= Background; pr++ {
			if len(m.line(pr)) > 0 {
				m.passed[pr-1]++
			}
		}
	}
}
