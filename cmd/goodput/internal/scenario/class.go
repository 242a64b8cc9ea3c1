package scenario

import (
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// classKeys stand under an item of classes or, in the short form, at the top.
var classKeys = []string{
	"load", "tenant", "tenants", "users", "turn", "keys", "priority", "cost", "size", "told", "bytes",
	"deadline", "untold", "local", "patience", "retry",
}

var (
	priorities = []string{"critical", "default", "sheddable", "background"} // from admission.Critical on
	patiences  = []string{sim.Leaves.String(), sim.Vanishes.String(), sim.Stays.String()}
)

// classes reads the clients: those of the list, or the one class at the top.
func (r *reader) classes() {
	list := r.root.Get("classes")
	if !list.Present() {
		c := sim.Class{Name: "all"}
		r.class(r.root, &c)
		r.file.Sim.Classes = []sim.Class{c}
		return
	}
	for _, key := range classKeys {
		r.misplaced(key, list)
	}
	for _, n := range list.List(maxClasses) {
		m := n.Map()
		name := m.Need("name", "search")
		c := sim.Class{Name: label(name)}
		if r.classIndex(c.Name) >= 0 {
			name.Fail("two classes are called %s", c.Name)
		}
		if at := m.Get("tier"); at.Present() {
			c.Tier = r.tierRef(at)
		}
		c.Service = distribution(m.Get("service"))
		r.class(m, &c)
		m.Done()
		r.file.Sim.Classes = append(r.file.Sim.Classes, c)
	}
}

func (r *reader) class(m *strictyaml.Map, c *sim.Class) {
	who(m, c)
	if n := m.Get("priority"); n.Present() {
		c.Priority = admission.Critical + admission.Priority(n.Word(priorities...))
	}
	c.Cost = int(m.Get("cost").Whole(1, maxRequests))
	c.Bytes = m.Get("bytes").Size()
	weighted(m.Get("size"), "units", "8", func(n strictyaml.Node, share float64) {
		c.Sizes = append(c.Sizes, sim.Size{Units: int(n.Whole(1, 1<<30)), Share: share})
	})
	weighted(m.Get("deadline"), "after", "2s", func(n strictyaml.Node, share float64) {
		c.Deadlines = append(c.Deadlines, sim.Deadline{After: n.Span(1, month), Share: share})
	})
	c.Untold = m.Get("untold").Bool()
	c.Local = m.Get("local").Bool()
	c.Patience = sim.Patience(m.Get("patience").Word(patiences...))
	c.Retry = retry(m.Get("retry"))
	r.told(c)
	load := m.Get("load")
	if !r.root.Get("trace").Present() {
		load = m.Need("load", "3x")
	}
	c.Arrivals = r.arrivals(load, c)
}

// told applies the deadlines that the policy of the tier gives and caps.
func (r *reader) told(c *sim.Class) {
	if c.Untold {
		return
	}
	p := r.policies[c.Tier]
	for i := range c.Deadlines {
		c.Deadlines[i].After = p.Told(c.Deadlines[i].After)
	}
	if d := p.Told(0); d != 0 && len(c.Deadlines) == 0 {
		c.Deadlines = []sim.Deadline{{After: d, Share: 1}}
	}
}

// weighted reads one value, a list of values with equal shares, or a list of
// mappings with a share each.
func weighted(n strictyaml.Node, key, example string, add func(n strictyaml.Node, share float64)) {
	if !n.Present() {
		return
	}
	if !n.IsList() {
		add(n, 1)
		return
	}
	for _, n := range n.List(maxParts) {
		if !n.IsMap() {
			add(n, 1)
			continue
		}
		m := n.Map()
		value := m.Need(key, example)
		add(value, m.Need("share", "0.5").Number(0, maxShare))
		m.Done()
	}
}

// arrivals reads a rate, or a mapping that changes one.
func (r *reader) arrivals(n strictyaml.Node, c *sim.Class) (a sim.Arrivals) {
	if !n.Present() {
		return a
	}
	if !n.IsMap() {
		a.Rate = r.rate(n, c)
		return a
	}
	m := n.Map()
	defer m.Done()
	a.Process = sim.Process(m.Get("process").Word("poisson", "constant"))
	a.Rate = r.rate(m.Need("rate", "1200/s"), c)
	for _, n := range m.Get("changes").List(maxParts) {
		m := n.Map()
		a.Changes = append(a.Changes, sim.Change{
			At:   m.Need("at", "10s").Span(0, month),
			Rate: r.rate(m.Need("rate", "3x"), c),
			Over: m.Get("over").Span(0, month),
		})
		m.Done()
	}
	if n := m.Get("sine"); n.Present() {
		m := n.Map()
		a.Sine.Amplitude = m.Need("amplitude", "0.5").Number(0.001, 1)
		a.Sine.Period = m.Need("period", "60s").Span(time.Millisecond, month)
		m.Done()
	}
	if n := m.Get("bursts"); n.Present() {
		m := n.Map()
		a.Bursts.Rate = r.rate(m.Need("rate", "2x"), c)
		a.Bursts.On = m.Need("on", "1s").Span(time.Microsecond, month)
		a.Bursts.Off = m.Need("off", "10s").Span(time.Microsecond, month)
		m.Done()
	}
	return a
}

// rate reads "1200/s", or "3x" of what the tier of c can do for it.
func (r *reader) rate(n strictyaml.Node, c *sim.Class) float64 {
	text := n.Text(maxName)
	number, times := strings.CutSuffix(text, "x")
	if !times {
		v, err := strictyaml.ParseRate(text)
		if err != nil && text != "" {
			n.Fail("%s %v, or 3x of the capacity", n.Name(), err)
		}
		return v
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0 && v <= 1000) {
		n.Fail("%s %q is not 0x to 1000x of the capacity", n.Name(), text)
		return 0
	}
	capacity := r.capacity(c)
	if capacity == 0 && !r.excused(c) {
		n.Fail("%s %q needs a capacity, and the tier has none: it takes slots, or a limit that is a number, and a service time", n.Name(), text)
	}
	return v * capacity
}

// capacity is what the tier of c does for requests like those of c alone, in
// requests per second, at full speed and without contention: slots / mean service.
// 0: nothing bounds it, or the file does not say.
func (r *reader) capacity(c *sim.Class) float64 {
	t := &r.file.Sim.Tiers[c.Tier]
	slots := r.limit(c.Tier) / max(c.Cost, 1) * max(t.Instances, 1)
	if t.Slots > 0 && (slots == 0 || t.Slots < slots) {
		slots = t.Slots
	}
	work := mean(c.Service)
	if work == 0 {
		work = mean(t.Service)
	}
	units, weight := 0.0, 0.0
	for _, s := range c.Sizes {
		units += float64(s.Units) * s.Share
		weight += s.Share
	}
	if weight == 0 {
		units, weight = 1, 1
	}
	if work == 0 || units == 0 {
		return 0
	}
	return float64(slots) / (work.Seconds() * units / weight)
}

// excused reports whether what keeps the tier of c from having a capacity is an
// error already: its policy could not be read, or its service is missing.
func (r *reader) excused(c *sim.Class) bool {
	t := &r.file.Sim.Tiers[c.Tier]
	noService := mean(c.Service) == 0 && mean(t.Service) == 0 && !r.root.Get("trace").Present()
	return noService || t.Policy.Baseline == nil
}

// limit is that of one instance of tier i; 0 if there is none, or a law finds it.
func (r *reader) limit(i int) int {
	switch p := r.file.Sim.Tiers[i].Policy; {
	case p.Core != nil && p.Core.Limit != nil:
		return policy.Number(p.Core.Limit)
	case p.Baseline != nil:
		return max(p.Baseline.Limit, 0)
	}
	return 0
}

// trace reads recorded arrivals.
func (r *reader) trace() {
	var last time.Duration
	for _, n := range r.root.Get("trace").List(maxParts) {
		m := n.Map()
		at := m.Need("at", "10s")
		j := sim.Job{
			At:       at.Span(0, month),
			Service:  m.Get("service").Span(1, month),
			Cost:     int(m.Get("cost").Whole(1, maxRequests)),
			Size:     int(m.Get("size").Whole(1, 1<<30)),
			Deadline: m.Get("deadline").Span(1, month),
		}
		if n := m.Get("class"); n.Present() {
			name := n.Text(maxName)
			if j.Class = r.classIndex(name); j.Class < 0 {
				n.Fail("class %q is unknown: no class has that name", name)
			}
		}
		if j.At < last {
			at.Fail("at %s comes before the job above it, %s", j.At, last)
		}
		last = j.At
		m.Done()
		r.file.Trace = append(r.file.Trace, j)
	}
}
