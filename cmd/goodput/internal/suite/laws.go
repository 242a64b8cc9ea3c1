package suite

import (
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/rivals"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// The two that are always there.
const (
	Fixed = "fixed" // the oracle: it is told the true number of slots, and when it changes
	Auto  = "auto"  // ours
)

// Laws are the names, in the order of tables: the oracle, ours, and those of others.
var Laws = []string{Fixed, Auto, "aimd", "vegas", "gradient2", "bbr", "envoy", "failsafe"}

// with is the scenario of c with a law at each of its limiters.
func (c *Case) with(name string, door Door) (sim.Scenario, error) {
	s := c.Scene
	s.Name = c.Name
	s.Tiers = slices.Clone(s.Tiers)
	for i := range max(len(c.Truth), 1) {
		t := &s.Tiers[i]
		law, err := c.law(name, i)
		if err != nil {
			return s, err
		}
		t.Policy = sim.Policy{Name: name, Core: &admission.Config{Limit: law, Objective: t.Objective}}
		if door == Reject && name != Fixed && name != Auto {
			t.Policy = sim.Policy{Name: name, Baseline: &sim.Baseline{Law: law}}
		}
	}
	return s, nil
}

// law returns that of the instances of tier i.
func (c *Case) law(name string, i int) (limit.Law, error) {
	switch name {
	case Fixed:
		return c.oracle(i), nil
	case Auto:
		return limit.Auto{From: c.From, Shared: len(c.Share) > 0}, nil
	case broken:
		return limit.Fixed(5), nil
	}
	return rivals.Named(name, c.From)
}

// broken is a law that a suite must find out, for tests.
const broken = "broken"

// oracle is the law that knows.
func (c *Case) oracle(i int) limit.Law {
	t := &c.Scene.Tiers[i]
	if len(t.SlotSteps) > 0 {
		return &oracle{first: t.Slots, steps: t.SlotSteps}
	}
	if c.Truth != nil {
		return limit.Fixed(c.Truth[i])
	}
	return limit.Fixed(t.Slots / max(t.Instances, 1))
}

// An oracle is a law that is told how many slots there are and when that changes. It follows
// within a window, 50 ms for an objective of 400 ms, which is what the others have at
// best.
type oracle struct {
	first int
	steps []sim.SlotStep
}

func (o *oracle) Start() (int, error)      { return limit.Fixed(o.first).Start() }
func (o *oracle) Begin(uint64) limit.State { return &following{oracle: o} }
func (o *oracle) String() string           { return "oracle" }

// A following is an oracle at work. Its clock is the sum of the windows.
type following struct {
	*oracle
	now time.Duration
}

func (f *following) Next(_ int, w *limit.Window) limit.Move {
	f.now += w.Length
	slots := f.first
	for _, s := range f.steps {
		if s.At <= f.now {
			slots = s.Slots
		}
	}
	return limit.Move{Limit: slots}
}

func (f *following) Why() string { return "it was told" }
