package scenario

import (
	"slices"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

const maxIds = 100_000 // as in package sim

// who reads who sends the requests of c, what they are about, and what a limiter
// hears of them.
func who(m *strictyaml.Map, c *sim.Class) {
	tenant := m.Get("tenant")
	c.Tenant = tenant.Text(128)
	many := m.Get("tenants")
	c.Tenants = ids(many)
	if c.Tenants != (sim.Ids{}) && !tenant.Present() {
		many.Fail("tenants have no name: say tenant, and they are called tenant-1, tenant-2 and so on")
	}
	c.Users = ids(m.Get("users"))
	if n := m.Get("turn"); n.Present() {
		c.Turn = uint64(n.Whole(0, 1<<62))
		if !m.Get("users").Present() {
			n.Fail("turn is about who of the users is shed first, and users are missing")
		}
	}
	c.Keys = ids(m.Get("keys"))
	if n := m.Get("told"); n.Present() {
		m := n.Map()
		c.Told.Cost = m.Get("cost").Number(0.001, 1000)
		c.Told.Size = m.Get("size").Number(0.001, 1000)
		c.Told.CV = m.Get("cv").Number(0, 10)
		c.Told.Uncorrected = m.Get("uncorrected").Bool()
		m.Done()
	}
}

// ids reads a number of distinct names, a mapping with how uneven they are, or fresh.
func ids(n strictyaml.Node) (i sim.Ids) {
	switch {
	case !n.Present():
		return i
	case n.Raw() == "fresh":
		i.Fresh = true
		return i
	case !n.IsMap():
		i.N = int(n.WholeOr(1, maxIds, "or fresh"))
		return i
	}
	m := n.Map()
	defer m.Done()
	i.N = int(m.Need("n", "1000").Whole(1, maxIds))
	i.Zipf = m.Get("zipf").Number(0, 10)
	return i
}

// isTenant reports whether a result may have a row of that name.
func (r *reader) isTenant(name string) bool {
	for _, c := range r.file.Sim.Classes {
		if c.Tenant != "" && slices.Contains(c.Rows(), name) {
			return true
		}
	}
	return false
}

// ofTenant is a number of the tenant of that name, if the table has a row for it.
func ofTenant(r *sim.Result, name string, of func(*sim.Tally) (float64, bool)) (float64, bool) {
	for i := range r.Tenants {
		if t := &r.Tenants[i]; t.Name == name {
			return of(&t.Tally)
		}
	}
	return 0, false
}
