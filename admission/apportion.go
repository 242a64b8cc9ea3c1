package admission

import (
	"math"
	"time"
)

// Who asks for how much, and what there is for whom. Once a bin of the load meter
// ends, what the slots can serve is handed out on paper: by priority, from the top,
// what lower ones have reserved set aside; within a priority by max-min fairness
// (Bertsekas, Gallager, "Data Networks", 6.5.2): each tenant gets what it asks for or,
// if that is more, an equal amount for each unit of its weight. The slots themselves are
// handed out by fair queueing; this is the forecast of it, by which a tenant is told how
// long it would wait, and whether its queue is a burst or stands.

// meter counts what is asked for.
func (c *Core) meter(f *flow, r *Request) {
	f.row.pending[f.priority-1] += float64(r.Cost)
	f.row.count++
	if r.Cohort > 0 {
		c.users++
	}
	c.activate(f.row)
}

// meterLent counts what the driver admitted without asking, of priorities that it
// did not say: those that ask already are taken to have gone on.
func (c *Core) meterLent(n float64) {
	if n == 0 {
		return
	}
	t, sum := c.rows[everybody], 0.0
	c.activate(t)
	t.count += n
	for _, r := range t.rate {
		sum += r
	}
	if sum == 0 {
		t.pending[Default-1] += n
		return
	}
	for i, r := range t.rate {
		t.pending[i] += n * r / sum
	}
}

// faint is the rate, in cost per second, below which a tenant no longer asks.
const faint = 1e-3

// roll adds the bins that have ended to the meters.
func (c *Core) roll() {
	bins := float64(c.load.end-c.metered) / float64(c.load.bin)
	c.metered = c.load.end
	if bins > 0 {
		keep := math.Pow(1-binWeight, bins)
		active, count := c.active[:0], 0.0
		for _, t := range c.active {
			count += t.count
			if sum := t.asked(); t.count > 0 {
				t.perCost += (1 - keep) * (sum/t.count - t.perCost)
			}
			t.count = 0
			sum := 0.0
			for i := range t.rate {
				t.rate[i] = keep*t.rate[i] + (1-keep)*t.pending[i]/(bins*c.load.bin.Seconds())
				t.pending[i] = 0
				sum += t.rate[i]
			}
			if sum <= faint { // else they would fade into what no division bears
				t.rate, t.served = [priorities]float64{}, [priorities]float64{}
				t.greedy, t.counts = [priorities]bool{}, [priorities]bool{}
			}
			if t.active = sum > faint || !t.idle(); t.active {
				active = append(active, t)
			}
		}
		clear(c.active[len(active):])
		c.active = active
		if count > 0 {
			c.sorted += (1 - keep) * (c.users/count - c.sorted)
		}
		c.users = 0
	}
	c.retune()
}

// asked returns the cost that came in the current bin.
func (t *row) asked() (sum float64) {
	for _, cost := range t.pending {
		sum += cost
	}
	return sum
}

// apportion hands out on paper what the slots can serve.
func (c *Core) apportion() {
	rate := c.rate()
	var offered [priorities]float64
	sum := 0.0
	for _, t := range c.active {
		for i, r := range t.rate {
			offered[i] += r
			sum += r
		}
		t.served = [priorities]float64{}
	}
	c.scale = 0
	if sum > 0 {
		c.scale = c.load.rate / sum
	}
	reserved := 0.0
	for i := range c.lanes {
		c.lanes[i].offered = offered[i] * c.scale
		reserved += min(c.lanes[i].offered, c.lanes[i].reserve*rate)
	}
	left := rate
	for i := range c.lanes {
		l := &c.lanes[i]
		reserved -= min(l.offered, l.reserve*rate)
		l.avail = max(left-reserved, l.reserve*rate, rate/(aging+1))
		c.fill(l, i, rate)
		left = max(left-l.served, 0)
	}
}

// fill shares what is available to a priority among those that ask for it.
func (c *Core) fill(l *lane, i int, rate float64) {
	const open = -1
	all := 0.0
	for _, t := range c.active {
		t.greedy[i] = false
		if t.counts[i] = t.rate[i] > 0; t.counts[i] {
			t.served[i] = open
			all += t.Weight
		}
	}
	l.short, l.served, l.level, l.weight = false, 0, 0, all
	if all > 0 {
		l.level = l.avail / all // what is sure for each, while nobody wants more
	}
	for closed := true; closed; {
		closed = false
		left, weight := l.avail-l.served, 0.0
		for _, t := range c.active {
			if t.served[i] == open {
				weight += t.Weight
			}
		}
		if weight == 0 {
			break
		}
		level := left / weight
		for _, t := range c.active {
			if t.served[i] != open {
				continue
			}
			if want := min(t.rate[i]*c.scale, c.capacityOf(t, i, rate)); want <= level*t.Weight {
				t.served[i] = want
				l.served += want
				closed = true
			}
		}
		if !closed {
			l.short, l.level, l.weight = true, level, weight
		}
	}
	var turn [2]float64 // the longest turns in virtual time of those who ask for too much: a request each
	for _, t := range c.active {
		if l.short {
			t.counts[i] = t.served[i] == open
		}
		if t.served[i] == open {
			t.served[i] = l.level * t.Weight
			l.served += t.served[i]
		}
		offered := t.rate[i] * c.scale
		if t.greedy[i] = c.overload && rate > 0 && offered > t.served[i]*(1+c.doubt(t, offered)); t.greedy[i] {
			v := t.perCost / t.Weight
			turn[1] = max(turn[1], min(v, turn[0]))
			turn[0] = max(turn[0], v)
		}
	}
	for _, t := range c.active {
		if t.greedy[i] {
			t.stands[i] = c.keepsBusy(t, i, turn)
		}
	}
}

// keepsBusy returns how much of a tenant must wait so that it is there whenever it is
// its turn, while it asks for more than its share. Where nobody else does, a slot that
// finds nobody waiting is taken by the next that comes: that is Standing, with the slots
// of its share. Else the slot goes to another, so the share is like one server; and while
// another has a long turn all of it has to be waited for.
func (c *Core) keepsBusy(t *row, i int, turn [2]float64) int {
	rate := c.rate()
	served := max(t.served[i], rate*1e-6)
	rho := max(t.rate[i]*c.scale/served, 1+1e-6)
	if turn[1] == 0 {
		return c.deepened(c.busyPart(served, rate, c.throughTheDoor(rho), t.perCost))
	}
	longest := turn[0]
	if longest == t.perCost/t.Weight {
		longest = turn[1]
	}
	return c.deepened(busyDepth(1, c.throughTheDoor(rho), t.perCost)) + int(min(math.Ceil(longest*t.Weight), maxItems))
}

// doubt is by how much a tenant may seem to ask for more than its share before it is
// believed: two standard errors of its meter, which at 100 requests per second and an
// objective of 400 ms is 22 %, and at most a half. Who asks for a little less than its
// share is otherwise taken, a third of the time, for one who asks for more. About who asks
// for all there is Core.overload has its own doubts.
func (c *Core) doubt(t *row, offered float64) float64 {
	if offered > 0.99*c.load.rate {
		return 0
	}
	n := offered / t.perCost * (binsPerConstant * c.load.bin).Seconds()
	return min(2/math.Sqrt(2*n), 0.5)
}

// capacityOf returns what the ceiling of a row lets it be served at most, less what
// it is served in higher priorities.
func (c *Core) capacityOf(t *row, i int, rate float64) float64 {
	if t.ceiling == 0 || c.limit == 0 {
		return rate
	}
	most := min(rate, c.slotRate()*min(float64(t.ceiling)/float64(c.limit), 1))
	for _, s := range t.served[:i] {
		most -= s
	}
	return max(most, 0)
}

// entitled returns what the tenant of a flow would be served, in cost per second, if
// it asked without end: what others leave, and at least its part.
func (c *Core) entitled(f *flow) float64 {
	i := int(f.priority) - 1
	l := &c.lanes[i]
	sure := l.level * f.row.Weight
	if !f.row.counts[i] && l.weight > 0 {
		sure *= l.weight / (l.weight + f.row.Weight) // it would be one more of those who share
	}
	e := min(max(sure, l.avail-l.served+f.row.served[i]), l.avail)
	if f.row.ceiling > 0 {
		e = min(e, c.capacityOf(f.row, i, c.rate()))
	}
	return max(e, c.rate()*1e-6) // nobody waits for ever
}

// greedy reports whether the tenant of a flow asks for more than its share in an
// overload.
func (c *Core) greedy(f *flow) bool { return f.row.greedy[f.priority-1] }

// ahead returns the cost of a flow, and of the other buckets of its group, that is
// served before one more request of it that is due at the given instant.
func (c *Core) ahead(f *flow, due time.Duration) int {
	own := f.line.ahead(c.order, due)
	if f.group == nil {
		return own
	}
	return own + f.group.fair.before(f, own, f.group.line.cost)
}

// before returns the cost of other tenants of the same priority that is served
// before a request that has own cost of its tenant before it.
func (c *Core) before(whole *flow, own int) int {
	l := &c.lanes[whole.priority-1]
	return l.fair.before(whole, own, l.cost-l.parked)
}

// before returns the cost of other nodes that is served before what is behind the
// given cost of a node. Where there are too many to be looked at, it is all that waits.
func (s *fair) before(f *flow, own, all int) int {
	if len(s.heap) > maxVisits {
		if f.at >= 0 {
			all -= f.line.cost
		}
		return all
	}
	start := s.tagged(f) + float64(own)*f.charge
	cost := 0.0
	for _, o := range s.heap {
		if o != f && o.tag < start {
			cost += min(float64(o.line.cost), (start-o.tag)/o.charge)
		}
	}
	return int(cost)
}

// cut returns the part of what a flow asks for that can be served, of 128: who is of
// a later cohort is shed. 128 if nobody need be.
func (c *Core) cut(t *row, i int) float64 {
	if offered := t.rate[i] * c.scale; offered > t.served[i] {
		return Cohorts * t.served[i] / offered
	}
	return Cohorts
}

// slack lets an eighth more than can be served through the door, so that the queue
// is never short of work; cohorts decide in the queue about the rest.
const slack = 1.0 / 8

// throughTheDoor is the load that is left of one once the late cohorts are shed at the
// door, if most requests have a cohort: what has to keep the slots busy. With the depth for
// the whole load the queue is empty so often that one in seven of the late ones gets in.
func (c *Core) throughTheDoor(rho float64) float64 {
	if c.sorted > 0.5 {
		return min(rho, 1+slack)
	}
	return rho
}

// beyond reports whether the cohort of a newcomer is one that is shed at the door.
func (c *Core) beyond(r *Request, f *flow) bool {
	i := int(f.priority) - 1
	if r.Cohort == 0 || !c.greedy(f) || !c.sated(f) {
		return false
	}
	return float64(r.Cohort-1) >= (1+slack)*c.cut(f.row, i)
}
