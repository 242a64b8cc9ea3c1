package sim

import (
	"cmp"
	"slices"

	"github.com/goodput/goodput/admission"
)

// A TenantResult is what became of one tenant, over all classes.
type TenantResult struct {
	Tally // Name is its id; "crowd-*" is those of a class with more tenants than have a row, and "*" what the table has no room for

	// Entitled is the units of cost that a fair division of all that was granted would
	// have given it: nobody has more than it asked for, and those who asked for more
	// have the rest in proportion to their weights, whatever the priorities are. Weights
	// are those of the policy of the first tier, 1 each under a policy that knows no
	// tenants; those without a row of their own there are one of weight Others, which
	// they share alike.
	Entitled float64
}

const (
	maxTenantRows = 64 // of a result: what a person reads
	maxCrowdRows  = 8  // of them for the tenants of one class, the first of which ask for most
)

// A Cohort is what became of the users that have the same one.
type Cohort struct {
	Requests, InTime uint64
}

// steady is the share of requests beyond which a cohort is served almost always, and
// below one less which almost never.
const steady = 0.9

// Steady returns the share of the requests of t that come from users who are served
// almost always, nine times in ten, or almost never, one in ten; and whether there are
// users. A lottery over all has none of the first while the load is more than 1.1.
func (t *Tally) Steady() (float64, bool) {
	if t.Cohorts == nil || t.Requests == 0 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range t.Cohorts {
		served := float64(c.InTime) / float64(max(c.Requests, 1))
		if served >= steady || served <= 1-steady {
			n += c.Requests
		}
	}
	return float64(n) / float64(t.Requests), true
}

// enroll makes the table of tenants, in the order in which the classes name them, and
// says on which tally the requests of each class are.
func (w *world) enroll() {
	for i, c := range w.classes {
		c.tally = &w.result.Classes[i]
		for _, name := range c.Rows() {
			if t := c.tally; c.Tenants.zero() {
				w.account(name, t)
			} else {
				c.crowd.rows = append(c.crowd.rows, w.account(name, new(Tally)))
			}
		}
		if !c.Users.zero() {
			c.tally.Cohorts = new([admission.Cohorts]Cohort)
			for _, t := range c.crowd.rows {
				t.Cohorts = new([admission.Cohorts]Cohort)
			}
		}
	}
}

// Rows are the names of the rows of Result.Tenants that the requests of c are in: its
// tenant, or the first of its tenants, each with one, and the others together.
func (c *Class) Rows() (names []string) {
	switch {
	case c.Tenant == "":
		return nil
	case c.Tenants.zero():
		return []string{c.Tenant}
	}
	for i := range min(c.Tenants.N, maxCrowdRows) {
		names = append(names, idOf(c.Tenant, i))
	}
	if c.Tenants.Fresh || c.Tenants.N > maxCrowdRows {
		names = append(names, c.Tenant+"-*")
	}
	return names
}

// account has t counted for the tenant of that name.
func (w *world) account(name string, t *Tally) *Tally {
	all := &w.result.Tenants
	i := slices.IndexFunc(*all, func(r TenantResult) bool { return r.Name == name })
	if i < 0 && len(*all) == maxTenantRows {
		i = len(*all) - 1
		(*all)[i].Name = "*"
	}
	if i < 0 {
		i = len(*all)
		*all = append(*all, TenantResult{Tally: Tally{Name: name}})
	}
	w.shared = append(w.shared, shared{i, t})
	return t
}

// A shared tally is of a class and of a tenant.
type shared struct {
	tenant int
	tally  *Tally
}

// fold adds up what is counted apart: the tenants of a class, and the classes of a
// tenant. It is done once, at the end.
func (w *world) fold() {
	for i, c := range w.classes {
		if c.crowd != nil {
			for _, t := range c.crowd.rows {
				w.result.Classes[i].add(t)
			}
		}
	}
	for _, s := range w.shared {
		w.result.Tenants[s.tenant].add(s.tally)
	}
	w.entitle()
}

// entitle fills in what is fair.
func (w *world) entitle() {
	var known []admission.Tenant
	others := 1.0
	if p := w.Tiers[0].Policy; p.Core != nil && p.Core.Tenants != nil {
		known = p.Core.Tenants.Rows
		others = cmp.Or(p.Core.Tenants.Others.Weight, 1)
	}
	granted := 0.0
	var mine, strangers []claim
	crowd := claim{weight: others}
	for i := range w.result.Tenants {
		t := &w.result.Tenants[i]
		granted += float64(t.Granted)
		k := slices.IndexFunc(known, func(row admission.Tenant) bool { return row.ID == t.Name })
		switch {
		case k >= 0:
			mine = append(mine, claim{&t.Entitled, float64(t.Asked), cmp.Or(known[k].Weight, 1)})
		case known == nil:
			mine = append(mine, claim{&t.Entitled, float64(t.Asked), 1})
		default:
			strangers = append(strangers, claim{&t.Entitled, float64(t.Asked), 1})
			crowd.asked += float64(t.Asked)
		}
	}
	if len(strangers) > 0 {
		crowd.given = new(float64)
		divide(append(mine, crowd), granted)
		divide(strangers, *crowd.given)
		return
	}
	divide(mine, granted)
}

// A claim is what somebody asked for, and where what is fair is put.
type claim struct {
	given         *float64
	asked, weight float64
}

// divide gives each claim its max-min fair part of total: those are satisfied first
// that ask for least per unit of weight, and what they leave is for the rest.
func divide(claims []claim, total float64) {
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(a.asked/a.weight, b.asked/b.weight) })
	weight := 0.0
	for _, c := range claims {
		weight += c.weight
	}
	for _, c := range claims {
		*c.given = min(c.asked, total*c.weight/weight)
		total -= *c.given
		weight -= c.weight
	}
}
