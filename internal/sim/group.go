package sim

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
)

// A Group is tiers whose limiters share a number of units: see admission.Budget. Each
// has one instance, with our core, and says what its resource can do, which is the
// whole one: Units are its slots, for all of them together. The limits of the policies
// are what the tiers have without a group, as they do as soon as one of them is played with a
// baseline. The capacity in a result is what each tier could do alone.
type Group struct {
	Name    string
	Units   int // 1 to limit.Max
	Members []Member
}

// A Member is a tier of a group. Weight, Min and Max are as in admission.Member.
type Member struct {
	Tier     int // an index; of one group at most
	Weight   float64
	Min, Max int
}

// A GroupResult is what the members of a group did with its units.
type GroupResult struct {
	Name      string
	Units     int     // 0 if it was none: a member was played with a baseline
	PeakInUse int     // the most units that ran at once, over all of the run
	Used      float64 // units that ran times seconds, in the window
}

// Share returns the part of the units that ran, mean over the window; false if there
// was no group.
func (g *GroupResult) Share(window time.Duration) (float64, bool) {
	return g.Used / (float64(g.Units) * window.Seconds()), g.Units > 0
}

func (g *Group) budget(tiers []Tier) admission.BudgetConfig {
	b := admission.BudgetConfig{Units: g.Units}
	for _, m := range g.Members {
		b.Members = append(b.Members, admission.Member{Name: tiers[m.Tier].Name, Weight: m.Weight, Min: m.Min, Max: m.Max})
	}
	return b
}

func (s *Scenario) validateGroups() error {
	if len(s.Groups) > maxTiers {
		return fmt.Errorf("groups are %d: at most %d", len(s.Groups), maxTiers)
	}
	grouped := make([]bool, len(s.Tiers))
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, m := range g.Members {
			if m.Tier < 0 || m.Tier >= len(s.Tiers) {
				return fmt.Errorf("group %s: tier %d is out of range: 1 to %d", name(g.Name, i), m.Tier+1, len(s.Tiers))
			}
			t := &s.Tiers[m.Tier]
			who := name(t.Name, m.Tier)
			switch {
			case grouped[m.Tier]:
				return fmt.Errorf("group %s: tier %s is a member already, of this group or of another", name(g.Name, i), who)
			case t.Instances > 1:
				return fmt.Errorf("group %s: tier %s has %d instances: a member has one, since a group is within a process", name(g.Name, i), who, t.Instances)
			case len(t.Restarts) > 0 || t.Memory > 0:
				return fmt.Errorf("group %s: tier %s restarts or has a bound of memory: a process takes all its members with it", name(g.Name, i), who)
			case t.Slots == 0:
				return fmt.Errorf("group %s: tier %s has no slots: say those of the resource that the group shares", name(g.Name, i), who)
			}
			grouped[m.Tier] = true
		}
		if err := g.budget(s.Tiers).Validate(); err != nil {
			return fmt.Errorf("group %s: %w", name(g.Name, i), err)
		}
	}
	return nil
}

// A group is a Group being played.
type group struct {
	budget  *admission.Budget
	members []*instance
	result  *GroupResult
	inUse   int           // units that run
	since   time.Duration // when that was counted last
	hungry  time.Duration // as Budget.Hungry said
	busy    bool          // in a round
	again   bool          // something has changed in it
}

// A member is the place of an instance in its group.
type member struct {
	*group
	stake admission.Stake
	claim admission.Claim // as the budget heard it last
	inUse int             // of the units that run, its own
}

// join makes the groups.
func (w *world) join() error {
	w.result.Groups = make([]GroupResult, len(w.Groups))
	for i := range w.Groups {
		g, result := &w.Groups[i], &w.result.Groups[i]
		result.Name = g.Name
		budget, err := admission.NewBudget(g.budget(w.Tiers))
		if err != nil {
			return err
		}
		ours := true
		for _, m := range g.Members {
			ours = ours && w.tiers[m.Tier].Policy.Core != nil
		}
		if !ours {
			continue
		}
		result.Units = g.Units
		play := &group{budget: budget, result: result}
		for _, m := range g.Members {
			in := w.tiers[m.Tier].instances[0]
			cfg := *in.tier.Policy.Core
			cfg.Limit = admission.Granted{}
			if in.core, err = admission.New(cfg); err != nil {
				return err
			}
			in.member = &member{group: play}
			in.still = false // its units come and go
			play.members = append(play.members, in)
		}
		w.balance(play)
	}
	return nil
}

// ask follows every call of the core of a member.
func (w *world) ask(in *instance) {
	m := in.member
	claim := m.stake.Look(w.now, in.core)
	if more := claim.InUse - m.inUse; more != 0 {
		m.count(w)
		m.inUse += more
		m.group.inUse += more
		m.result.PeakInUse = max(m.result.PeakInUse, m.group.inUse)
	}
	switch {
	case m.busy:
		m.again = m.again || claim != m.claim
	case m.stake.Asks(w.now, claim, m.hungry):
		w.balance(m.group)
	}
}

// count adds up what has run since it was counted last, in the window.
func (g *group) count(w *world) {
	if d := min(w.now, w.Length) - max(g.since, w.Warmup); d > 0 {
		g.result.Used += float64(g.inUse) * d.Seconds()
	}
	g.since = w.now
}

// countGroups counts to the end.
func (w *world) countGroups() {
	for _, t := range w.tiers {
		if m := t.instances[0].member; m != nil {
			m.count(w)
		}
	}
}

// balance plays rounds of the budget until nobody asks for one.
func (w *world) balance(g *group) {
	g.busy = true
	for again := true; again; again = g.again || !g.budget.Settled() {
		g.again = false
		for i, terms, ok := g.budget.Next(); ok; i, terms, ok = g.budget.Next() {
			in := g.members[i]
			in.member.claim = in.member.stake.Take(w.now, in.core, terms)
			g.budget.Hear(i, in.member.claim)
			w.collect(in)
		}
		g.hungry = g.budget.Hungry()
	}
	g.busy = false
}

// stats are those of the core, with what a member really may use and runs.
func (in *instance) stats(now time.Duration) admission.Stats {
	s := in.core.Stats(now)
	if m := in.member; m != nil {
		s.Limit = m.stake.Terms().Limit
		s.InUse -= m.stake.Elsewhere()
	}
	return s
}
