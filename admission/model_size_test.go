package admission

import (
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

func (m *model) need(size int) time.Duration {
	switch z := m.num.sizes; {
	case !m.num.sized || z.use == SizeIgnored:
		return seconds(m.num.quantile)
	case z.trusted():
		return seconds(min(m.num.quantile*z.mean(size), max(z.most, z.mean(size))))
	}
	return seconds(m.num.quantile * float64(size))
}

// planned is whether the deadlines of those that wait are looked at one by one.
func (m *model) planned() bool {
	return m.num.sizes.trusted() && (m.cfg.Order == EDF || m.cfg.Order == Auto) && m.limit > 0 && m.cfg.Overflow == Displace
}

// inTime returns who must go so that nobody of the priority of p is predicted to be
// late, or false if that is p.
func (m *model) inTime(p *place) (victims []*place, ok bool) {
	if !m.planned() {
		return nil, true
	}
	z := m.num.sizes
	var cost, sized [priorities]float64 // of the priorities above
	for _, q := range m.queue {
		if q.Priority < p.Priority {
			cost[q.Priority-1] += float64(q.Cost)
			sized[q.Priority-1] += float64(q.Cost) * float64(q.Size)
		}
	}
	ahead := 0.0
	for i := range cost {
		ahead += (z.base*cost[i] + z.each*sized[i]) * z.held / float64(m.limit)
	}
	all := slices.Concat(m.line(p.Priority), []*place{p})
	slices.SortStableFunc(all, func(a, b *place) int {
		if a.due() != b.due() {
			return int(min(1, max(-1, a.due()-b.due())))
		}
		return int(min(1, max(-1, a.Arrival-b.Arrival)))
	})
	for {
		before := 0.0
		late := -1
		somebody := false // who may go
		for i, q := range all {
			somebody = somebody || !p.retry() || q.retry()
			slots := float64(m.limit)
			wait := max(ahead+before/slots, before/(slots*min(m.num.part[p.Priority-1], 1)))
			if somebody && m.now+seconds(wait+z.mean(q.Size)) > q.due() {
				late = i
				break
			}
			before += z.work(q) * z.held
		}
		if late < 0 {
			return victims, true
		}
		longest := -1
		for i, q := range all[:late+1] {
			if (!p.retry() || q.retry()) && (longest < 0 || z.work(q) >= z.work(all[longest])) {
				longest = i
			}
		}
		if all[longest] == p {
			return nil, false
		}
		victims = append(victims, all[longest])
		all = slices.Delete(all, longest, longest+1)
	}
}

// longestFirst orders those of a priority by who gives way: retries first, then by what
// they take; of equal ones the last in the order.
func (m *model) longestFirst(pr Priority) []*place {
	l := m.line(pr)
	slices.SortStableFunc(l, func(a, b *place) int { return int(min(1, max(-1, a.due()-b.due()))) })
	slices.Reverse(l)
	slices.SortStableFunc(l, func(a, b *place) int {
		switch x, y := m.num.sizes.work(a), m.num.sizes.work(b); {
		case a.retry() != b.retry():
			return map[bool]int{true: -1, false: 1}[a.retry()]
		case x != y:
			return map[bool]int{true: -1, false: 1}[x > y]
		}
		return 0
	})
	return l
}

// givesWayTo is whether q, of the priority of p, ranks below it or takes longer.
func (m *model) givesWayTo(q, p *place) bool {
	if q.retry() != p.retry() {
		return q.retry()
	}
	return m.num.sizes.work(q) > m.num.sizes.work(p)
}
