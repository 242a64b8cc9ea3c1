package admission

import (
	"cmp"
	"slices"
	"time"
)

// sizesInForce are what the model takes from the core about sizes: they are trusted or
// not, and then a request takes base + each x size seconds on average.
type sizesInForce struct {
	use              SizeUse
	base, each, held float64
	most             float64 // seconds
}

func sizesOf(c *Core) sizesInForce {
	z := &c.service.sizes
	return sizesInForce{z.use, z.base, z.each, z.held, c.most}
}

func (s sizesInForce) trusted() bool         { return s.use == SizeTrusted }
func (s sizesInForce) mean(size int) float64 { return s.base + s.each*float64(size) }

// work is what a request is predicted to take, slots times seconds.
func (s sizesInForce) work(p *place) float64 { return s.mean(p.Size) * float64(p.Cost) }

func (m *model) need(p *place) time.Duration {
	z, unit := m.num.sizes, float64(p.Size)
	switch {
	case z.trusted():
		return seconds(min(m.num.quantile*z.mean(p.Size), max(z.most, z.mean(p.Size))))
	case !m.num.sized || z.use == SizeIgnored:
		unit = 1
	}
	if p.Deadline == Never {
		return seconds(m.num.quantile * unit)
	}
	return seconds(m.bearable((p.Deadline-p.offered).Seconds()/unit, unit) * unit)
}

// bearable is what must be left of a budget, per unit of size.
func (m *model) bearable(budget, unit float64) float64 {
	if budget >= 1.1*m.num.quantile {
		return m.num.quantile
	}
	chance := m.within(budget / 1.1)
	if chance < 0.5 {
		m.seen["no chance"]++
		return m.num.quantile
	}
	if best := m.within(m.budget[1].Seconds() / unit / 1.1); m.num.overload && chance < 0.95*best {
		m.seen["less of a chance than others"]++
		return m.num.quantile
	}
	m.seen["a chance"]++
	rank, seen := m.num.needed*chance*m.num.total, 0.0
	for _, s := range m.num.services {
		if seen+s.weight >= rank {
			return min(m.num.quantile, s.at+s.reach*(2*(rank-seen)/s.weight-1))
		}
		seen += s.weight
	}
	return m.num.quantile
}

// within is the part of the services that take at most t seconds per unit of size.
func (m *model) within(t float64) float64 {
	sum := 0.0
	for _, s := range m.num.services {
		switch {
		case s.at+s.reach < t || s.reach == 0 && s.at <= t:
			sum += s.weight
		case s.at-s.reach < t:
			sum += s.weight * (t - (s.at - s.reach)) / (2 * s.reach)
		}
	}
	return sum / m.num.total
}

// planned is whether the deadlines of those that wait are looked at one by one.
func (m *model) planned() bool {
	displaces := m.cfg.Overflow == Displace || m.cfg.Overflow == LatestOnly
	edf := m.cfg.Order == EDF || m.cfg.Order == Auto
	return m.num.sizes.trusted() && edf && m.limit > 0 && !m.away.is && displaces
}

func byDeadline(a, b *place) int {
	return cmp.Or(cmp.Compare(a.due(), b.due()), cmp.Compare(a.Arrival, b.Arrival))
}

// inTime returns who must go, beside those that are gone, so that nobody in the line of p
// is predicted to be late, or false if that is p.
func (m *model) inTime(p *place, gone []*place) (victims []*place, ok bool) {
	if !m.planned() {
		return gone, true
	}
	z := m.num.sizes
	slots := float64(m.limit) * m.num.growth
	spent := m.overtakers(p, 0) // of the allowance, before the line
	ahead := float64(spent) / m.num.slots
	for pr := Critical; pr < p.Priority; pr++ { // those above by their sizes, but the part that waits for a ceiling
		var cost, sized, parked float64
		for _, q := range m.queue {
			if q.Priority == pr {
				cost, sized = cost+float64(q.Cost), sized+float64(q.Cost*q.Size)
				if q.turn().parked {
					parked += float64(q.Cost)
				}
			}
		}
		if spent += int(cost - parked); cost > parked {
			ahead += (z.base*cost + z.each*sized) * z.held / slots * (1 - parked/cost)
		}
	}
	all := append(m.line(p.owner, p.bucket, p.Priority), p)
	all = slices.DeleteFunc(all, func(q *place) bool { return slices.Contains(gone, q) })
	slices.SortStableFunc(all, byDeadline)
	own := slots * min(m.of(p).entitled/m.num.rate, 1)
	for {
		before, late, costs := 0.0, false, spent
		var longest *place // of those that may go, up to the first late one
		for _, q := range all {
			if q.rank() >= p.rank() && (longest == nil || z.work(q) >= z.work(longest)) {
				longest = q
			}
			costs += q.Cost
			wait := max(ahead+before/slots, before/own, m.lacks(costs))
			if late = longest != nil && m.now+seconds(wait+z.mean(q.Size)) > q.due(); late {
				break
			}
			before += z.work(q) * z.held
		}
		if !late {
			return gone, true
		}
		if longest == p {
			return nil, false
		}
		m.seen["makes nobody late"]++
		gone = append(gone, longest)
		all = slices.DeleteFunc(all, func(q *place) bool { return q == longest })
	}
}

// longest returns who of a line gives way first where sizes are trusted: of the highest
// rank, who takes most; of equal ones the last in the order. For a newcomer, only who
// ranks below it or takes more.
func (m *model) longest(line []*place, p *place, gone []*place) (longest *place) {
	line = slices.Clone(line)
	slices.SortStableFunc(line, byDeadline)
	for _, q := range line {
		work := m.num.sizes.work(q)
		if slices.Contains(gone, q) || p != nil && (q.rank() < p.rank() || q.rank() == p.rank() && work <= m.num.sizes.work(p)) {
			continue
		}
		if longest == nil || q.rank() > longest.rank() || q.rank() == longest.rank() && work >= m.num.sizes.work(longest) {
			longest = q
		}
	}
	return longest
}
