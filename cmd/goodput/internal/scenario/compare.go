package scenario

import (
	"math"
	"slices"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// ours is the name of our core in compare.
const ours = "goodput"

// compare reads the policies: names, or a name with what is different about it.
//
//	compare: [goodput, fifo, {fifo: {depth: 2400, label: fifo-2400}}]
func (r *reader) compare() {
	list := r.root.Get("compare")
	if !list.Present() {
		r.compareOwn()
		return
	}
	for _, n := range list.List(maxCompare) {
		kind, at, m := n.Raw(), n, n.Empty()
		if !n.IsText() {
			item := n.Empty()
			if n.IsMap() {
				item = n.Map()
			}
			keys := item.Keys()
			if len(keys) != 1 {
				n.Fail("an item of compare is the name of a policy, alone or as the one key of a mapping, such as {fifo: {depth: 480}}")
				continue
			}
			kind, at, m = keys[0], item.At(keys[0]), item.Get(keys[0]).Map()
		}
		if kind != ours && !slices.Contains(sim.Baselines, kind) {
			known := append([]string{ours}, sim.Baselines...)
			at.Fail("policy %q is unknown%s", kind, strictyaml.Unknown(kind, known))
			continue
		}
		c := Compared{Name: kind}
		if l := m.Get("label"); l.Present() {
			at, c.Name = l, label(l)
		}
		if r.isCompared(c.Name) {
			at.Fail("two policies are called %s: give one another name, such as {%s: {label: other}}", c.Name, kind)
			continue
		}
		if r.compared(&c, kind, m) {
			m.Done()
		}
		r.file.Compare = append(r.file.Compare, c)
	}
}

// compareOwn compares the policies of the tiers with nothing.
func (r *reader) compareOwn() {
	c := Compared{Name: r.file.Sim.Tiers[0].Policy.Name}
	for _, t := range r.file.Sim.Tiers {
		p := t.Policy
		p.Name = c.Name
		c.Tiers = append(c.Tiers, p)
	}
	r.file.Compare = []Compared{c}
}

// compared builds a policy for every tier: what differs, differs at each. It reports
// whether it has read m; the policy of the tier may be wrong and say so.
func (r *reader) compared(c *Compared, kind string, m *strictyaml.Map) bool {
	for i := range r.file.Sim.Tiers {
		var p sim.Policy
		var ok bool
		if own := r.file.Sim.Tiers[i].Policy; own.Baseline == nil && (own.Core == nil || own.Core.Limit == nil) {
			return false
		}
		if kind == ours {
			p, ok = r.core(m, i)
		} else {
			p, ok = r.baseline(m, m.Node(), kind, i)
		}
		p.Name = c.Name
		c.Tiers = append(c.Tiers, p)
		if !ok {
			return true // the same sentence for every tier would be too much
		}
	}
	if r.valid && m.Sound() {
		r.file.Compare = append(r.file.Compare, *c)
		r.check(m, r.file.Play(len(r.file.Compare)-1))
		r.file.Compare = r.file.Compare[:len(r.file.Compare)-1]
	}
	return true
}

// core is ours at tier i, with what m says differently.
func (r *reader) core(m *strictyaml.Map, i int) (p sim.Policy, ok bool) {
	own := r.policies[i]
	own.Read(m)
	if own.Limiter.Limit == nil {
		m.Node().Fail("goodput needs a limit, and the policy of the tier has none: {goodput: {limit: 60}}")
		return p, false
	}
	if !m.Sound() {
		return p, false
	}
	if err := own.Limiter.Validate(); err != nil {
		m.Blame(err.Error())
		return p, false
	}
	return sim.Policy{Core: &own.Limiter}, true
}

// baseline is somebody else's discipline at tier i, with what m says differently.
// at is where it is named.
func (r *reader) baseline(m *strictyaml.Map, at strictyaml.Node, kind string, i int) (p sim.Policy, ok bool) {
	tier := r.file.Sim.Tiers[i].Policy
	same := tier.Baseline != nil && tier.Name == kind // what the file says of it holds here too
	limit := r.limit(i)
	if limit == 0 && tier.Core != nil {
		limit = r.share(i) // ours finds it; who cannot is told
	}
	own := m.Get("limit")
	switch {
	case own.Raw() == "unbounded":
		limit = sim.Unbounded
	case own.Present():
		limit = int(own.WholeOr(1, maxSamples, "or unbounded"))
	case limit == 0 && (kind == "none" || same):
		limit = sim.Unbounded
	case limit == 0:
		at.Fail("%s needs a limit: say limit: 60, or limit: unbounded", kind)
		return p, false
	}
	p, err := sim.Named(kind, max(limit, 1), r.ruleOfThumb(i, limit), r.work(i))
	if err != nil {
		at.Fail("%v", err)
		return p, false
	}
	if same {
		*p.Baseline = *tier.Baseline
	}
	if own.Present() {
		p.Baseline.Limit = limit
	}
	discipline(m, kind, p.Baseline)
	return p, m.Sound()
}

// share is what an instance of tier i has of its slots, 0 if the tier has none.
func (r *reader) share(i int) int {
	t := &r.file.Sim.Tiers[i]
	if t.Slots == 0 {
		return 0
	}
	return max(t.Slots/max(t.Instances, 1), 1)
}

// discipline sets in b what m says.
func discipline(m *strictyaml.Map, kind string, b *sim.Baseline) {
	if n := m.Get("depth"); n.Present() {
		switch n.Raw() {
		case "unbounded":
			b.Depth = sim.Unbounded
		case "none":
			b.Depth = 0
		default:
			b.Depth = int(n.WholeOr(1, 1<<24, "none or unbounded"))
		}
	}
	if n := m.Get("order"); n.Present() {
		b.Order = sim.Discipline(n.Word("fifo", "lifo", "edf", "adaptive"))
	}
	if n := m.Get("push_out"); n.Present() {
		b.PushOut = n.Bool()
	}
	if n := m.Get("expire"); n.Present() {
		b.Expire = n.Bool()
	}
	if n := m.Get("margin"); n.Present() {
		b.Margin = n.Span(0, month)
		if !b.Expire {
			n.Fail("margin belongs to the expiry test, which %s has not: add expire: true", kind)
		}
	}
	if n := m.Get("target"); n.Present() {
		b.CoDel.Target = n.Span(1, month)
	}
	if n := m.Get("interval"); n.Present() {
		b.CoDel.Interval = n.Span(1, month)
	}
	if n := m.Get("aimd"); n.Present() {
		b.AIMD = aimd(n.Map(), b.AIMD)
	}
}

// aimd sets in a what m says.
func aimd(m *strictyaml.Map, a sim.AIMD) sim.AIMD {
	defer m.Done()
	if n := m.Get("floor"); n.Present() {
		a.Floor = int(n.Whole(1, maxSamples))
	}
	for key, field := range map[string]*float64{"high": &a.High, "low": &a.Low} {
		if n := m.Get(key); n.Present() {
			*field = n.Number(1, 1e6)
		}
	}
	for key, field := range map[string]*float64{"decrease": &a.Decrease, "drop": &a.Drop} {
		if n := m.Get(key); n.Present() {
			*field = n.Number(0.001, 1)
		}
	}
	return a
}

// ruleOfThumb is the depth that fifo and lifo have where the file does not say:
// completion rate x objective, as it is usually taught. The mean wait in a full
// queue is then the objective, and the service comes on top.
func (r *reader) ruleOfThumb(i, limit int) int {
	t := &r.file.Sim.Tiers[i]
	work := mean(r.work(i))
	if work == 0 || limit < 1 {
		return 1
	}
	d := float64(limit) * t.Objective.Seconds() / work.Seconds()
	return int(min(max(math.Floor(d+1e-9), 1), 1<<24))
}

// work is the service at tier i: its own, or that of the first class that arrives
// there and brings its own.
func (r *reader) work(i int) sim.Dist {
	if d := r.file.Sim.Tiers[i].Service; mean(d) != 0 {
		return d
	}
	for _, c := range r.file.Sim.Classes {
		if c.Tier == i && mean(c.Service) != 0 {
			return c.Service
		}
	}
	return sim.Dist{}
}
