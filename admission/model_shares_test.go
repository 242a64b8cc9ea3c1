package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// The part of the model that shares: start-time fair queueing by its definition,
// token buckets, ceilings, and what a reserve earns.

// An owner is a tenant: one row, all others, or without tenants everybody.
type owner struct {
	Tenant      // the weight in force
	row    *row // of the core, to find its numbers
	turns  [priorities]turn
	inner  [priorities][]turn  // of the others: their buckets
	v      [priorities]float64 // virtual time between them
	inUse  int
	left   float64       // of its quota
	at     time.Duration // when that was right
	gone   bool

	arrivals, refused, overQuota uint64
	granted                      int
}

// A turn is when it is whose: the start tag while it waits, else the finish tag.
type turn struct {
	tag    float64
	since  int // when it began to wait
	waits  bool
	parked bool // for the ceiling of its tenant
}

func (t *turn) before(u *turn) bool {
	return t.tag < u.tag || t.tag == u.tag && t.since < u.since
}

func newOwner(t Tenant, r *row, buckets int) *owner {
	o := &owner{row: r, left: t.Quota.burst()}
	for i := range o.inner {
		o.inner[i] = make([]turn, buckets)
	}
	o.Tenant = t
	return o
}

// above reports whether something of a higher priority waits for the ceiling.
func (o *owner) above(p Priority) bool {
	for pr := Critical; pr < p; pr++ {
		if o.turns[pr-1].parked {
			return true
		}
	}
	return false
}

func (o *owner) fits(cost int) bool { return o.MaxInUse == 0 || o.inUse+cost <= o.MaxInUse }

// takeable is the most that one request may cost.
func (o *owner) takeable() int {
	most := limit.Max
	if o.MaxInUse > 0 {
		most = o.MaxInUse
	}
	if o.Quota.Rate > 0 {
		most = min(most, int(o.Quota.burst()))
	}
	return most
}

// fill brings the quota up to now.
func (o *owner) fill(now time.Duration) {
	if o.Quota.Rate > 0 {
		o.left = min(o.left+o.Quota.Rate*(now-o.at).Seconds(), o.Quota.burst())
	}
	o.at = now
}

// lacks returns the time until the quota has enough.
func (o *owner) lacks(now time.Duration, cost int) time.Duration {
	if o.fill(now); o.Quota.Rate == 0 || o.left >= float64(cost) {
		return 0
	}
	return time.Duration(math.Ceil((float64(cost) - o.left) / o.Quota.Rate * 1e9))
}

func (o *owner) spend(cost int) {
	if o.Quota.Rate > 0 {
		o.left = min(o.left-float64(cost), o.Quota.burst())
	}
}

func (o *owner) refund(now time.Duration, cost int) {
	o.fill(now)
	o.spend(-cost)
}

// own finds out whose p is, of which bucket and of which priority.
func (m *model) own(p *place) {
	if p.owner = m.owners[0]; m.cfg.Tenants != nil {
		if p.owner = m.named[p.Tenant]; p.owner == nil {
			p.owner = m.rest
		}
		if p.owner.Highest > p.Priority {
			p.Priority = p.owner.Highest
		}
	}
	p.owner.arrivals++
	if inner := p.owner.inner[p.Priority-1]; len(inner) > 0 {
		best := math.Inf(1)
		for _, b := range m.deal(p.Tenant, len(inner)) {
			if start := m.bucketStart(p, b) + float64(m.waiting(p.owner, b, p.Priority)); start < best {
				p.bucket, best = b, start
			}
		}
	}
}

// deal returns the hand of an id: each card is one of those still in the deck.
func (m *model) deal(id string, buckets int) (hand []int) {
	deck := make([]int, buckets)
	for i := range deck {
		deck[i] = i
	}
	hash := hashOf(id)
	for range m.cfg.Tenants.hand() {
		i := int(hash % uint64(len(deck)))
		hand = append(hand, deck[i])
		deck = append(deck[:i], deck[i+1:]...)
		hash = mix(hash + 1)
	}
	return hand
}

// waiting is the cost that waits in a line.
func (m *model) waiting(o *owner, bucket int, pr Priority) int {
	return m.cost(func(q *place) bool { return q.owner == o && q.bucket == bucket && q.Priority == pr })
}

// start is the start tag of the next that is served of an owner and priority.
func (m *model) start(o *owner, pr Priority) float64 { return max(m.v[pr-1], o.turns[pr-1].tag) }

// bucketStart is the same between the buckets of the others.
func (m *model) bucketStart(p *place, bucket int) float64 {
	return max(p.owner.v[p.Priority-1], p.owner.inner[p.Priority-1][bucket].tag)
}

func (p *place) turn() *turn { return &p.owner.turns[p.Priority-1] }

// join has the owner of p, and its bucket, wait for a turn.
func (m *model) join(p *place) {
	if inner := p.owner.inner[p.Priority-1]; len(inner) > 0 && !inner[p.bucket].waits {
		inner[p.bucket] = turn{tag: m.bucketStart(p, p.bucket), since: m.seq, waits: true}
	}
	if t := p.turn(); !t.waits {
		*t = turn{tag: m.start(p.owner, p.Priority), since: m.seq, waits: true}
	}
}

// part has them wait no more if nobody is left.
func (m *model) part(p *place) {
	if inner := p.owner.inner[p.Priority-1]; len(inner) > 0 {
		inner[p.bucket].waits = m.waiting(p.owner, p.bucket, p.Priority) > 0
	}
	p.turn().waits = m.cost(func(q *place) bool { return q.turn() == p.turn() }) > 0
}

// unpark has an owner compete again that waited for its ceiling. It gets nothing for
// the time in which it did not.
func (m *model) unpark(o *owner) {
	for i := range o.turns {
		if t := &o.turns[i]; t.parked {
			t.parked, t.tag = false, m.start(o, Priority(i+1))
		}
	}
}

// take accounts for a grant.
func (m *model) take(p *place) {
	m.inUse, m.runs = m.inUse+p.Cost, m.runs+1
	m.spend(p.Cost)
	i := p.Priority - 1
	if inner := p.owner.inner[i]; len(inner) > 0 {
		p.owner.v[i] = m.bucketStart(p, p.bucket)
		inner[p.bucket].tag = p.owner.v[i] + float64(p.Cost)
	}
	m.v[i] = m.start(p.owner, p.Priority)
	p.turn().tag = m.v[i] + float64(p.Cost)*(1/p.owner.Weight)
	p.owner.granted += p.Cost
	if m.cfg.Tenants != nil {
		p.owner.inUse += p.Cost
		p.era = m.era
	}
	for pr := Critical; pr <= Background; pr++ {
		reserve := m.reserve(pr)
		if reserve == 0 {
			continue
		}
		most := 8 * m.num.perCost
		if q := m.next(pr); q != nil {
			most = max(most, float64(q.Cost))
		}
		step := reserve * float64(p.Cost)
		m.credit[pr-1] = min(m.credit[pr-1]+step, most+step)
		if pr == p.Priority {
			m.credit[pr-1] = max(m.credit[pr-1]-float64(p.Cost), 0)
		}
	}
}

func (m *model) reserve(pr Priority) float64 { return m.cfg.Reserve.of()[pr-1] }

// account closes the account of who ran.
func (m *model) account(p *place, e End) {
	if p == nil || p.era == 0 || p.era != m.era {
		return
	}
	p.owner.inUse -= p.Cost
	m.unpark(p.owner)
	if e.Charge <= 0 || e.Charge == p.Cost {
		return
	}
	m.seen["corrected"]++
	more := min(e.Charge, limit.Max) - p.Cost
	if inner := p.owner.inner[p.Priority-1]; len(inner) > 0 {
		inner[p.bucket].tag = max(inner[p.bucket].tag+float64(more), 0)
	}
	p.turn().tag = max(p.turn().tag+float64(more)*(1/p.owner.Weight), 0)
	p.owner.fill(m.now)
	p.owner.spend(more)
	p.owner.granted += more
}

// predict is how long p would wait: what must depart before it, over the rate of the slots,
// what the allowance lacks for it and them, or what of its own is before it at the speed of
// its tenant. The second is how long it waits for the allowance alone.
func (m *model) predict(p *place) (wait, allowed time.Duration) {
	if m.limit == 0 || m.away.is {
		return 0, 0
	}
	own := 0
	replaced := 0
	for _, q := range m.line(p.owner, p.bucket, p.Priority) {
		if m.order == FIFO || m.order == EDF && q.due() <= p.due() {
			own += q.Cost
			if k := m.key(p); k != nil && q.keyed != nil && *k == *q.keyed {
				replaced = q.Cost
			}
		}
	}
	if of := p.owner.inner[p.Priority-1]; len(of) > 0 {
		start, others := m.bucketStart(p, p.bucket)+float64(own), 0.0
		for b := range of {
			if t := &of[b]; b != p.bucket && t.waits && t.tag < start {
				others += min(float64(m.waiting(p.owner, b, p.Priority)), start-t.tag)
			}
		}
		own += int(others)
	}
	own -= replaced
	units := p.Cost + own + m.overtakers(p, own)
	units += m.cost(func(q *place) bool { return q.Priority < p.Priority && !q.turn().parked })
	long := max(float64(max(units-m.free(), 0))/m.num.slots, m.lacks(units))
	most := m.num.slots
	if m.quota.Rate > 0 {
		most = min(most, m.quota.Rate)
	}
	if e := m.of(p).entitled * m.num.growth; e < most && own > 0 {
		long = max(long, float64(own)/e)
	}
	return seconds(long), seconds(m.lacks(units))
}

// overtakers is the cost of other tenants that is served before what is behind the given cost
// of the tenant of p.
func (m *model) overtakers(p *place, own int) int {
	before := 0.0
	start := m.start(p.owner, p.Priority) + float64(own)*(1/p.owner.Weight)
	for _, o := range m.owners {
		if t := &o.turns[p.Priority-1]; o != p.owner && t.waits && !t.parked && t.tag < start {
			cost := m.cost(func(q *place) bool { return q.turn() == t })
			before += min(float64(cost), (start-t.tag)/(1/o.Weight))
		}
	}
	return int(before)
}

// waits returns the cost that waits of a tenant in a priority.
func (m *model) waits(o *owner, pr Priority) int {
	return m.cost(func(q *place) bool { return q.owner == o && q.Priority == pr })
}
