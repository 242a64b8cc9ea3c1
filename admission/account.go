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
	Quota    Quota
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
// of equals those that have most in use and waiting. It costs as much as there are rows. Without Tenants there are none.
func (c *Core) TopTenants(now time.Duration, n int) []TenantState {
	c.tick(now)
	if c.cfg.Tenants == nil || n <= 0 {
		return nil
	}
	var all []TenantState
	for i, t := range c.rows {
		if i != everybody && t != nil && !t.gone {
			all = append(all, c.state(t))
		}
	}
	slices.SortStableFunc(all, func(a, b TenantState) int {
		return cmp.Or(cmp.Compare(b.Offered, a.Offered), cmp.Compare(b.InUse+b.WaitingCost, a.InUse+a.WaitingCost), cmp.Compare(b.Arrivals, a.Arrivals))
	})
	return all[:min(n, len(all))]
}

func (c *Core) state(t *row) TenantState {
	t.quota.refill(c.now)
	s := TenantState{
		ID: t.ID, Weight: t.Weight, MaxInUse: c.limit, Quota: t.Quota, Left: t.quota.left,
		InUse: t.inUse, Waiting: t.n, WaitingCost: t.cost,
		Arrivals: t.arrivals, Refused: t.refused, Granted: uint64(max(t.granted, 0)), Quotaed: t.overQuota,
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
