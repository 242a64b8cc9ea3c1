package scenario

import (
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// tierKeys stand under an item of tiers or, in the short form, at the top.
var tierKeys = []string{
	"instances", "policy", "objective", "slots", "slot_steps", "service", "speed", "contention",
	"faults", "restarts", "memory", "killed",
}

// tiers reads the services: those of the list, or the one at the top.
func (r *reader) tiers() {
	list := r.root.Get("tiers")
	if !list.Present() {
		r.tier(r.root, "main")
		return
	}
	for _, key := range tierKeys {
		r.misplaced(key, list)
	}
	for _, n := range list.List(maxTiers) {
		m := n.Map()
		nameNode := m.Need("name", "api")
		name := label(nameNode)
		if r.tierIndex(name) >= 0 {
			nameNode.Fail("two tiers are called %s", name)
		}
		r.tier(m, name)
	}
	for i, m := range r.maps { // names are known now
		r.next(m.Get("next"), &r.file.Sim.Tiers[i])
		m.Done()
	}
	if len(r.maps) == 0 {
		// The list is an error. Whoever reads on may count on a tier.
		r.file.Sim.Tiers, r.policies = make([]sim.Tier, 1), make([]policy.Policy, 1)
	}
}

// misplaced reports a key at the top that belongs under an item of list.
func (r *reader) misplaced(key string, list strictyaml.Node) {
	if n := r.root.At(key); n.Present() {
		n.Clash(list, "%s and %s contradict each other: with %s, %s stands under one of them", key, list.Name(), list.Name(), key)
	}
}

func (r *reader) tier(m *strictyaml.Map, name string) {
	t := sim.Tier{Name: name}
	t.Instances = int(m.Get("instances").Whole(1, 10_000))
	t.Slots = int(m.Get("slots").Whole(1, maxSamples))
	for _, n := range m.Get("slot_steps").List(maxParts) {
		m := n.Map()
		t.SlotSteps = append(t.SlotSteps, sim.SlotStep{
			At:    m.Need("at", "10s").Span(0, month),
			Slots: int(m.Need("slots", "20").Whole(1, maxSamples)),
		})
		m.Done()
	}
	t.Objective = m.Get("objective").Span(time.Millisecond, month)
	t.Service = distribution(m.Get("service"))
	t.Speed = speed(m.Get("speed"))
	t.Contention = contention(m.Get("contention"))
	t.Faults = faults(m.Get("faults"))
	for _, n := range m.Get("restarts").List(maxParts) {
		t.Restarts = append(t.Restarts, restart(n, true))
	}
	t.Memory = m.Get("memory").Size()
	t.Killed = restart(m.Get("killed"), false)
	r.file.Sim.Tiers = append(r.file.Sim.Tiers, t)
	r.policies = append(r.policies, policy.Policy{})
	r.maps = append(r.maps, m)
	i := len(r.policies) - 1
	r.policy(m.Need("policy", "{limit: 60, objective: 400ms}"), i)
	if r.instead != nil && r.instead.tier == i {
		r.replace(m, i)
	}
}

// policy reads that of tier i: our core, or a baseline by its name. The objective
// of the tier is set in any case: whatever is compared is judged by the same.
func (r *reader) policy(n strictyaml.Node, i int) {
	if !n.Present() {
		return
	}
	m, t, p := n.Map(), &r.file.Sim.Tiers[i], &r.policies[i]
	if base := m.Get("baseline"); base.Present() {
		if t.Objective == 0 {
			t.Objective = admission.DefaultObjective
		}
		kind := sim.Baselines[base.Word(sim.Baselines...)]
		t.Policy, _ = r.baseline(m, base, kind, i)
		if b := t.Policy.Baseline; b != nil && b.Limit > 0 {
			p.Limiter.Limit = limit.Fixed(b.Limit) // what goodput would have in its place
		}
		p.Limiter.Objective = t.Objective
		m.Done()
		return
	}
	m.Need("limit", "60")
	p.Read(m)
	p.ReadDeadlines(m)
	r.findable(m.Get("limit"), i)
	m.Done()
	if m.Sound() {
		p.Check(m)
	}
	r.ours(i)
}

// findable reports a law of tier i, which n says, that has nothing to find.
func (r *reader) findable(n strictyaml.Node, i int) {
	if law := r.policies[i].Limiter.Limit; law != nil && policy.Number(law) == 0 && r.file.Sim.Tiers[i].Slots == 0 {
		n.Fail("limit %v has nothing to find: say how many requests the service can do at once, such as slots: 60, beside policy", law)
	}
}

// ours gives tier i our core with its policy.
func (r *reader) ours(i int) {
	t, cfg := &r.file.Sim.Tiers[i], r.policies[i].Limiter
	t.Policy = sim.Policy{Name: ours, Core: &cfg}
	if t.Objective == 0 {
		t.Objective = cfg.WithDefaults().Objective
	}
}

func speed(n strictyaml.Node) (s sim.Speed) {
	if !n.Present() {
		return s
	}
	m := n.Map()
	defer m.Done()
	for _, n := range m.Get("steps").List(maxParts) {
		m := n.Map()
		s.Steps = append(s.Steps, sim.SpeedStep{
			At:     m.Need("at", "10s").Span(0, month),
			Factor: m.Need("factor", "0.5").Number(0.001, 1000),
		})
		m.Done()
	}
	for _, n := range m.Get("stalls").List(maxParts) {
		m := n.Map()
		s.Stalls = append(s.Stalls, sim.Stall{
			At:  m.Need("at", "10s").Span(0, month),
			For: m.Need("for", "5s").Span(1, month),
		})
		m.Done()
	}
	if n := m.Get("pauses"); n.Present() {
		m := n.Map()
		s.Pauses.Every = m.Need("every", "1s").Span(time.Millisecond, month)
		s.Pauses.For = m.Need("for", "20ms").Span(1, month)
		m.Done()
	}
	return s
}

func contention(n strictyaml.Node) (c sim.Contention) {
	if !n.Present() {
		return c
	}
	m := n.Map()
	defer m.Done()
	c.Alpha = m.Get("alpha").Number(0, 100)
	c.Beta = m.Get("beta").Number(0, 100)
	c.Knee = int(m.Get("knee").Whole(0, 1<<24))
	c.Slope = m.Get("slope").Number(0, 100)
	if m.Get("knee").Present() && c.Slope == 0 {
		m.Get("knee").Fail("knee says from where and slope says how much: slope is missing or 0")
	}
	return c
}

// restart reads one that is planned, or how an instance comes back that was killed.
func restart(n strictyaml.Node, planned bool) (s sim.Restart) {
	if !n.Present() {
		return s
	}
	m := n.Map()
	defer m.Done()
	if planned {
		s.At = m.Need("at", "30s").Span(0, month)
	}
	s.Down = m.Get("down").Span(0, month)
	s.Cold = m.Get("cold").Number(1, 1000)
	s.Warm = m.Get("warm").Span(0, month)
	return s
}

// next reads the sub-requests of a tier.
func (r *reader) next(n strictyaml.Node, t *sim.Tier) {
	if !n.Present() {
		return
	}
	m := n.Map()
	defer m.Done()
	t.Next = &sim.Fan{
		Tier: r.tierRef(m.Need("tier", "database")),
		N:    int(m.Get("n").Whole(1, 10_000)),
		Need: int(m.Get("need").Whole(1, 10_000)),
		Wait: m.Get("wait").Span(time.Microsecond, month),

		Service: distribution(m.Get("service")),

		Retry: retry(m.Get("retry")),
	}
}

// services reports the tiers that do work of which nothing is said.
func (r *reader) services() {
	works := make([]bool, len(r.file.Sim.Tiers))
	for _, c := range r.file.Sim.Classes {
		works[c.Tier] = works[c.Tier] || mean(c.Service) == 0
	}
	for _, t := range r.file.Sim.Tiers {
		if t.Next != nil && mean(t.Next.Service) == 0 {
			works[t.Next.Tier] = true
		}
	}
	for i, m := range r.maps {
		if works[i] && len(r.file.Trace) == 0 {
			m.Need("service", "50ms exponential")
		}
	}
}

// tierRef returns the index of the tier of that name.
func (r *reader) tierRef(n strictyaml.Node) int {
	name := n.Text(maxName)
	i := r.tierIndex(name)
	if i < 0 && name != "" {
		var names []string
		for _, t := range r.file.Sim.Tiers {
			if t.Name != "" && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
		n.Fail("%s %q is unknown%s", n.Name(), name, strictyaml.Unknown(name, names))
	}
	return max(i, 0)
}
