package admission

import (
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput/limit"
)

// A row is one tenant being served: one of Tenants.Rows, all others together, or,
// without tenants, everybody.
type row struct {
	Tenant
	index   int
	gone    bool // no longer configured; it stays until nothing of it waits or runs
	active  bool // in Core.active
	ceiling int  // MaxInUse in force; 0: none but the limit
	flows   [priorities]flow

	inUse   int     // units of cost that run. Invariant: at most the ceiling after a grant; 0 without tenants
	n, cost int     // that wait
	quota   account // what is left of its quota

	// What it asks for in each priority, in cost per second, as Core.load measures
	// it, and what of the current bin has not been added yet.
	rate, pending [priorities]float64
	served        [priorities]float64 // of that, as of the last apportion
	greedy        [priorities]bool    // it asks for more than its share in an overload, as of then
	counts        [priorities]bool    // its weight is in lane.weight
	stands        [priorities]int     // if so, what keeps its share busy, in units of cost that wait
	count         float64             // requests in the current bin
	perCost       float64             // cost of one, as Core.load measures it

	arrivals, refused, overQuota uint64
	granted                      float64
}

// An account is a token bucket.
type account struct {
	Quota
	left float64
	at   time.Duration // when left was right
}

// refill brings the account up to now.
func (a *account) refill(now time.Duration) {
	if a.Rate == 0 {
		return
	}
	a.left, a.at = a.level(now), now
}

// lacks returns the time until the account has enough for cost; 0: it has.
func (a *account) lacks(now time.Duration, cost int) time.Duration {
	if a.refill(now); a.Rate == 0 || a.left >= float64(cost) {
		return 0
	}
	if short := float64(cost) - a.left; short > rounding*float64(cost) {
		return seconds(short/a.Rate) + 1
	}
	return 0
}

// spend takes cost from the account, or gives it back if that is negative.
func (a *account) spend(cost int) {
	if a.Rate != 0 {
		a.left = min(a.left-float64(cost), a.burst())
	}
}

// everybody is the index of the row of all requests without tenants. That of the ids
// without a row is Core.rest.
const everybody = 0

// A Share has the row in its upper 26 bits, then the bucket plus one, the priority, and
// the generation of the table.
const (
	genBits    = 24
	prioBits   = 3
	bucketBits = 11
)

func (c *Core) shareOf(f *flow) Share {
	bucket := 0
	if f.group != nil {
		bucket = f.bucket + 1
	}
	return Share(((f.row.index<<bucketBits|bucket)<<prioBits|int(f.priority))<<genBits) | c.gen
}

// flowOf returns the flow of a share; nil if there were no tenants when it was
// made, or another table of them.
func (c *Core) flowOf(s Share) *flow {
	if s == 0 || s&(1<<genBits-1) != c.gen {
		return nil
	}
	s >>= genBits
	priority := int(s & (1<<prioBits - 1))
	s >>= prioBits
	bucket := int(s & (1<<bucketBits - 1))
	index := int(s >> bucketBits)
	if index >= len(c.rows) || c.rows[index] == nil || priority < 1 || priority > priorities {
		panic("admission: a share that no decision gave")
	}
	f := &c.rows[index].flows[priority-1]
	if bucket > len(f.buckets) || (bucket == 0) != (f.buckets == nil) {
		panic("admission: a share that no decision gave")
	}
	if bucket > 0 {
		return &f.buckets[bucket-1]
	}
	return f
}

// flowFor returns the flow that a request joins.
func (c *Core) flowFor(r *Request) *flow {
	if c.cfg.Tenants == nil {
		return &c.rows[everybody].flows[r.Priority-1]
	}
	t, ok := c.table[r.Tenant]
	if !ok {
		t = c.rows[c.rest]
	}
	if t.Highest != unset {
		r.Priority = max(r.Priority, t.Highest)
	}
	f := &t.flows[r.Priority-1]
	if f.buckets == nil {
		return f
	}
	return f.deal(hashOf(r.Tenant), c.hand)
}

// deal returns the bucket, of the hand of an id, whose newcomer would be served
// first. The hand is dealt without putting back, as from a deck: the i-th card is one
// of those that are left.
func (f *flow) deal(hash uint64, hand int) *flow {
	var cards [maxHand]int
	var best *flow
	for i := range hand {
		left := uint64(len(f.buckets) - i)
		card := int(hash % left)
		hash = mix(hash + 1)
		at := 0
		for ; at < i && cards[at] <= card; at++ { // cards are in order: step over those taken
			card++
		}
		copy(cards[at+1:i+1], cards[at:i])
		cards[at] = card
		b := &f.buckets[card]
		if best == nil || f.fair.starts(b) < f.fair.starts(best) {
			best = b
		}
	}
	return best
}

// starts returns the start tag of one more request of a flow.
func (s *fair) starts(f *flow) float64 {
	return s.tagged(f) + float64(f.line.cost)*f.charge
}

// configureRows makes the table what the configuration says. Who has a row keeps
// it, with what waits and runs on it.
func (c *Core) configureRows(old *Tenants) {
	for i, r := range c.cfg.Reserve.of() {
		c.lanes[i].reserve = r
		if r == 0 {
			c.lanes[i].credit = 0
		}
	}
	for _, t := range c.rows {
		if t != nil && t.gone && t.idle() {
			c.forget(t)
		}
	}
	t := c.cfg.Tenants
	if len(c.rows) == 0 {
		c.rows = []*row{c.newRow(everybody, Tenant{Weight: 1}, 0)}
	}
	if t == nil {
		if old != nil { // slots of theirs may end where the core does not see whose they are
			c.gen = (c.gen + 1) % (1 << genBits)
		}
		c.table, c.hand, c.rest = nil, 0, 0
		for i, r := range c.rows {
			if r != nil {
				r.gone, r.inUse, r.ceiling = i != everybody, 0, 0
				c.unpark(r)
			}
		}
		return
	}
	c.hand = t.hand()
	if c.rest == everybody || len(c.rows[c.rest].flows[0].buckets) != t.buckets() {
		if c.rest != everybody {
			c.rows[c.rest].gone = true // what waits or runs of it goes on beside the new one
		}
		c.rest = c.freeIndex(0)
		c.rows[c.rest] = c.newRow(c.rest, t.Others, t.buckets())
	}
	c.rows[c.rest].set(c, t.Others)
	before, free := c.rowsByID(), 0
	c.table = make(map[string]*row, len(t.Rows))
	for i := range t.Rows {
		r := before[t.Rows[i].ID]
		if r == nil {
			free = c.freeIndex(free)
			r = c.newRow(free, t.Rows[i], 0)
			c.rows[free] = r
		}
		r.set(c, t.Rows[i])
		c.table[r.ID] = r
	}
	for i, r := range c.rows {
		if i != everybody && i != c.rest && r != nil {
			r.gone = c.table[r.ID] != r
		}
	}
	c.ratios(nil)
}

// ratios notes the heaviest and the lightest weight, but for one row: the scale of
// virtual time, and the bounds of SetWeight.
func (c *Core) ratios(but *row) {
	c.light, c.heavy = math.Inf(1), 0
	for i, r := range c.rows {
		if i != everybody && r != nil && !r.gone && r != but {
			c.light, c.heavy = min(c.light, r.Weight), max(c.heavy, r.Weight)
		}
	}
}

// rowsByID returns the rows of tenants by name, with those that were taken out of the
// configuration and are not idle yet.
func (c *Core) rowsByID() map[string]*row {
	all := make(map[string]*row, len(c.rows))
	for _, r := range c.rows {
		if r != nil && r.ID != "" && (all[r.ID] == nil || !r.gone) {
			all[r.ID] = r
		}
	}
	return all
}

// freeIndex returns the first index, of those from the given one on, that no row has.
func (c *Core) freeIndex(from int) int {
	for i := from; i < len(c.rows); i++ {
		if c.rows[i] == nil {
			return i
		}
	}
	c.rows = append(c.rows, nil)
	return len(c.rows) - 1
}

// forget drops an idle row.
func (c *Core) forget(r *row) {
	if i := slices.Index(c.active, r); i >= 0 {
		c.active = slices.Delete(c.active, i, i+1)
	}
	c.rows[r.index] = nil
}

func (c *Core) newRow(index int, t Tenant, buckets int) *row {
	r := &row{Tenant: t, index: index, perCost: 1}
	r.quota = account{Quota: t.Quota, left: t.Quota.burst(), at: c.now}
	for i := range r.flows {
		f := &r.flows[i]
		f.row, f.priority, f.at, f.charge = r, Priority(i+1), -1, 1
		if buckets > 0 {
			f.buckets = make([]flow, buckets)
		}
		for j := range f.buckets {
			b := &f.buckets[j]
			b.row, b.priority, b.at, b.charge, b.group, b.bucket = r, f.priority, -1, 1, f, j
		}
	}
	return r
}

// set takes what the configuration says about a row.
func (r *row) set(c *Core, t Tenant) {
	r.quota.become(c.now, t.Quota)
	r.Tenant = t
	r.gone = false
	r.ceiling = t.MaxInUse
	c.weigh(r, t.weight())
	c.unpark(r)
}

// weigh puts a weight in force. What was granted under another one and not yet been
// waited for is charged by the new one: who had a millionth of the weight for a moment
// would else wait for a million grants of the others.
func (c *Core) weigh(r *row, w float64) {
	r.Weight = w
	for i := range r.flows {
		f, l := &r.flows[i], &c.lanes[i]
		if ahead := f.tag - l.v; ahead > 0 {
			f.tag = l.v + ahead/(w*f.charge)
		}
		f.charge = 1 / w
		if f.at >= 0 {
			l.fix(int(f.at))
		}
	}
}

// idle reports whether nothing of the row waits or runs.
func (r *row) idle() bool { return r.n == 0 && r.inUse == 0 }

// fits reports whether the ceiling of the row leaves room for cost.
func (r *row) fits(cost int) bool { return r.ceiling == 0 || r.inUse+cost <= r.ceiling }

// activate has the meters of a row be looked at.
func (c *Core) activate(r *row) {
	if !r.active {
		r.active = true
		c.active = append(c.active, r)
	}
}

// above reports whether something of the row waits for its ceiling in a higher
// priority: what is below would take the units that it waits for.
func (r *row) above(p Priority) bool {
	for i := range r.flows[:p-1] {
		if r.flows[i].parked {
			return true
		}
	}
	return false
}

// park takes a flow whose row is at its ceiling out of the way of the others.
func (c *Core) park(f *flow) {
	c.lanes[f.priority-1].drop(f)
	f.parked = true
	c.parked += f.line.n
	c.parkedCost += f.line.cost
	l := &c.lanes[f.priority-1]
	l.parked += f.line.cost
	l.aside = append(l.aside, f)
}

// unpark lets the flows of a row compete again: something of it has ended, come or
// left.
func (c *Core) unpark(r *row) {
	if c.parked == 0 {
		return
	}
	for i := range r.flows {
		if f := &r.flows[i]; f.parked {
			f.parked = false
			c.parked -= f.line.n
			c.parkedCost -= f.line.cost
			l := &c.lanes[i]
			l.parked -= f.line.cost
			j := slices.Index(l.aside, f)
			l.aside = slices.Delete(l.aside, j, j+1)
			if f.waits() {
				l.put(f) // with its place among equals: it has waited
			}
		}
	}
}

// rebaseAt is where the origin of virtual time is moved, in charges of the heaviest
// weight: below 2^52 of them a float64 still tells one from none. A request of the
// largest cost and the lightest weight is 2^20 x 10^6, a thousandth of it.
const rebaseAt = 1e15

// charge accounts for a grant.
func (c *Core) charge(f *flow, cost int) {
	l := &c.lanes[f.priority-1]
	w := f.whole()
	if w != f {
		w.fair.serve(f, cost)
		if w.fair.v > rebaseAt {
			for i := range w.buckets {
				w.buckets[i].rebase(w.fair.v)
			}
			w.fair.v = 0
			w.fair.heapify()
		}
	}
	l.serve(w, cost)
	if l.v*c.heavy > rebaseAt {
		for _, r := range c.rows {
			if r != nil {
				r.flows[f.priority-1].rebase(l.v)
			}
		}
		l.v = 0
		l.heapify()
	}
	f.row.granted += float64(cost)
}

// SetWeight changes the weight of a row, until the next Reconfigure. A weight that
// New would refuse is clamped to the nearest that it would not, NaN to 1, and counted
// in Stats.Tenants.Clamped. An id without a row is the others'; without Tenants it does
// nothing.
func (c *Core) SetWeight(now time.Duration, id string, weight float64) {
	c.enter(now)
	if c.cfg.Tenants == nil {
		return
	}
	r := c.table[id]
	if r == nil {
		r = c.rows[c.rest]
	}
	c.ratios(r)
	within := weight
	if math.IsNaN(within) {
		within = 1
	}
	within = min(max(within, minWeight, c.heavy/maxRatio), maxWeight, c.light*maxRatio)
	if within != weight {
		c.counts.clamped++
	}
	c.weigh(r, within)
	c.ratios(nil)
	c.retune()
	c.dispatch()
}

// takeable is the most units that the row may ever hold.
func (r *row) takeable() int {
	most := limit.Max
	if r.ceiling > 0 {
		most = r.ceiling
	}
	return min(most, r.quota.most())
}
