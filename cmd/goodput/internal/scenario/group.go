package scenario

import (
	"slices"

	"github.com/goodput/goodput/internal/sim"
)

// groups reads which tiers share a resource. The names of tiers are known.
func (r *reader) groups() {
	for _, n := range r.root.Get("groups").List(maxTiers) {
		m := n.Map()
		nameNode := m.Need("name", "database")
		g := sim.Group{Name: label(nameNode)}
		if r.groupIndex(g.Name) >= 0 {
			nameNode.Fail("two groups are called %s", g.Name)
		}
		g.Units = int(m.Need("units", "60").Whole(1, maxRequests))
		for _, n := range m.Need("members", "[{tier: search}, {tier: reports}]").List(maxTiers) {
			m := n.Map()
			g.Members = append(g.Members, sim.Member{
				Tier:   r.tierRef(m.Need("tier", "search")),
				Weight: m.Get("weight").Number(1e-12, 1e12),
				Min:    int(m.Get("min").Whole(0, maxRequests)),
				Max:    int(m.Get("max").Whole(1, maxRequests)),
			})
			m.Done()
		}
		m.Done()
		r.file.Sim.Groups = append(r.file.Sim.Groups, g)
	}
}

// groupIndex returns -1 for a name that no group has.
func (r *reader) groupIndex(name string) int {
	return slices.IndexFunc(r.file.Sim.Groups, func(g sim.Group) bool { return g.Name == name && name != "" })
}

// mostUsed is the value of the group that has most.
func (m metric) mostUsed(r *sim.Result) (v float64, ok bool) {
	for i := range r.Groups {
		if one, is := m.group(r, &r.Groups[i]); is {
			v, ok = max(v, one), true
		}
	}
	return v, ok
}
