package admission

import (
	"cmp"
	"slices"
	"time"
)

// A TenantState is the account of one tenant, for whoever looks.
type TenantState struct {
	ID       string  // as in its row; empty for all ids without a row together
	Weight   float64 // in force
	MaxInUse int     // in force, at most the limit
	Quota    Quota   // in force, its burst with its default; zero without
	Left     float64 // units of cost that the quota has left; negative after a correction

	InUse       int // units of cost that run
	Waiting     int // requests that wait
	WaitingCost int // units of cost that wait

	// Offered is what it asks for, in units of cost per second, less what its quota
	// refused, and Entitled what it
	// would be served if it asked without end, given what the others ask for. Over says
	// that it asks for more in an overload: then its own part of the queue is short.
	Offered, Entitled float64
	Over              bool
	Level             float64 // if Over, what there is of its priority for each unit of weight, in cost per second

	Arrivals uint64 // offers
	Refused  uint64 // of them, by whatever reason, at the door or while it waited
	Granted  uint64 // units of cost, corrections included
	Quotaed  uint64 // offers refused for its quota, among Refused
}

// TopTenants returns the accounts of at most n tenants, those that ask for most first,
// of equals those that have most in use and waiting. It looks at every row, some 10 ns each, and
// makes the accounts of n. Without Tenants there are none.
func (c *Core) TopTenants(now time.Duration, n int) []TenantState {
	c.tick(now)
	if c.cfg.Tenants == nil || n <= 0 {
		return nil
	}
	// The best n so far, and up to n that came since: sorted and cut when there are 2n. last
	// is the n-th of the best, once there are so many.
	n = min(n, len(c.rows))
	top, last := make([]placing, 0, 2*n), placing{row: -1}
	for i, t := range c.rows {
		if i == everybody || t == nil || t.gone {
			continue
		}
		r := c.placing(i, t)
		if last.row >= 0 && last.compare(r) < 0 {
			continue
		}
		if top = append(top, r); len(top) == 2*n {
			slices.SortFunc(top, placing.compare)
			top, last = top[:n], top[n-1]
		}
	}
	slices.SortFunc(top, placing.compare)
	var all []TenantState
	for _, r := range top[:min(n, len(top))] {
		all = append(all, c.state(c.rows[r.row]))
	}
	return all
}

// A placing is what decides where among all tenants one is shown.
type placing struct {
	offered  float64
	held     int // in use and waiting
	arrivals uint64
	row      int
}

func (c *Core) placing(i int, t *row) placing {
	r := placing{held: t.inUse + t.cost, arrivals: t.arrivals, row: i}
	for _, rate := range t.rate {
		r.offered += rate * c.scale
	}
	return r
}

// compare is negative if a is shown before b.
func (a placing) compare(b placing) int {
	return cmp.Or(cmp.Compare(b.offered, a.offered), cmp.Compare(b.held, a.held), cmp.Compare(b.arrivals, a.arrivals), a.row-b.row)
}

func (c *Core) state(t *row) TenantState {
	t.quota.refill(c.now)
	s := TenantState{
		ID: t.ID, Weight: t.Weight, MaxInUse: c.limit, Quota: t.Quota, Left: t.quota.left,
		InUse: t.inUse, Waiting: t.n, WaitingCost: t.cost,
		Arrivals: t.arrivals, Refused: t.refused, Granted: uint64(max(t.granted, 0)), Quotaed: t.overQuota,
	}
	if t.Quota.Rate > 0 {
		s.Quota.Burst = t.Quota.burst()
	}
	if t.ceiling > 0 {
		s.MaxInUse = min(t.ceiling, c.limit)
	}
	for i := range t.flows {
		offered := t.rate[i] * c.scale
		s.Offered += offered
		if offered > 0 {
			s.Entitled += c.entitled(&t.flows[i])
		}
		if t.greedy[i] {
			s.Over, s.Level = true, c.lanes[i].level
		}
	}
	if s.Offered == 0 {
		s.Entitled = c.entitled(&t.flows[max(Default, t.Highest)-1])
	}
	s.Entitled = min(s.Entitled, c.rate())
	if t.Quota.Rate > 0 {
		s.Entitled = min(s.Entitled, t.Quota.Rate)
	}
	return s
}

// tally returns what is true of all tenants together.
func (c *Core) tally() (t Tally) {
	if c.cfg.Tenants == nil {
		return t
	}
	t.Rows = len(c.table)
	for _, r := range c.active {
		if r.index == everybody || r.gone {
			continue
		}
		t.Active++
		if r.greedy != ([priorities]bool{}) {
			t.Over++
		}
	}
	t.Capped, t.Clamped = c.parkedCost, c.counts.clamped
	for i := range c.lanes {
		if l := &c.lanes[i]; l.short && c.overload {
			t.Level = l.level
		}
	}
	return t
}

// shedding says who is shed first: from which cohort on, of which priority.
func (c *Core) shedding(s *Stats) {
	for i := range c.lanes {
		if l := &c.lanes[i]; c.overload && l.offered > l.served {
			s.ShedPriority, s.ShedOffered, s.ShedServed = Priority(i+1), l.offered, l.served
			if c.sorted > 0.01 {
				s.ShedCohort = 1 + int(Cohorts*l.served/l.offered)
			}
			return
		}
	}
}
