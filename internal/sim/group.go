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
	hungry  time.Duration // as Budget.Hungry said
	busy    bool          // in a round
	again   bool          // something has changed in it
}

// A member is the place of an instance in its group.
type member struct {
	*group
	stake admission.Stake
	claim admission.Claim // as the budget heard it last
}

// join makes the groups.
func (w *world) join() error {
	for i := range w.Groups {
		g := &w.Groups[i]
		budget, err := admission.NewBudget(g.budget(w.Tiers))
		if err != nil {
			return err
		}
		ours := true
		for _, m := range g.Members {
			ours = ours && w.tiers[m.Tier].instances[0].core != nil
		}
		if !ours {
			continue
		}
		play := &group{budget: budget}
		for _, m := range g.Members {
			in := w.tiers[m.Tier].instances[0]
			cfg := *in.tier.Policy.Core
			cfg.Limit = admission.Granted{}
			if in.core, err = admission.New(cfg); err != nil {
				return err
			}
			in.member = &member{group: play}
			play.members = append(play.members, in)
		}
		w.balance(play)
	}
	return nil
}

// ask follows every call of the core of a member.
func (w *world) ask(in *instance) {
	m := in.member
	switch claim := m.stake.Look(w.now, in.core); {
	case m.busy:
		m.again = m.again || claim != m.claim
	case m.stake.Asks(w.now, claim, m.hungry):
		w.balance(m.group)
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
