package goodput

import (
	"fmt"
	"strings"

	"github.com/goodput/goodput/admission"
)

// GroupStats is a snapshot of a Group. Its members are looked at one after the other, so
// their numbers need not add up while units move.
type GroupStats struct {
	Name    string
	Units   int // of cost, that run at once in all members together
	InUse   int // units that run
	Wanted  int // units that run or wait: more than Units in an overload of all
	Members []MemberStats
}

// MemberStats is how a member stands in its group, in units of cost.
type MemberStats struct {
	Name     string
	Weight   float64
	Min, Max int

	Nominal int // its share when all want more
	Limit   int // in force: what it may use now
	InUse   int // what it runs; more than Limit while it gives back what it had borrowed
	Wanted  int // what it runs and what waits for a slot, or was just refused for want of one

	Borrowed int // what it has above Nominal: the larger of Limit and InUse, less Nominal
	Lent     int // what it has below Nominal
}

// Stats returns a snapshot. It costs a microsecond for each member.
func (g *Group) Stats() GroupStats {
	g.mu.Lock()
	s := GroupStats{Name: g.name, Units: g.budget.Units()}
	members := g.budget.Members()
	g.mu.Unlock()
	for i, l := range g.limiters {
		claim, terms := l.claim()
		m := MemberStats{
			Name: l.Name(), Weight: members[i].Weight, Min: members[i].Min, Max: members[i].Max,
			Nominal: terms.Nominal, Limit: terms.Limit, InUse: claim.InUse, Wanted: claim.Wanted,
		}
		has := max(m.Limit, m.InUse)
		m.Borrowed, m.Lent = max(has-m.Nominal, 0), max(m.Nominal-has, 0)
		s.InUse += m.InUse
		s.Wanted += m.Wanted
		s.Members = append(s.Members, m)
	}
	return s
}

// bounds returns what the limit of a member stays within.
func (g *Group) bounds(member int) (low, high int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.budget.Members()[member]
	return m.Min, m.Max
}

// claim returns how the member is, and what the group grants it.
func (l *Limiter) claim() (admission.Claim, admission.Terms) {
	now := l.enter()
	claim, terms := l.member.stake.Look(now, l.core), l.member.stake.Terms()
	l.leave(now)
	return claim, terms
}

// Explain returns a line about the group and one about each member: what it has, of
// which share, and whose units move.
func (g *Group) Explain() string { return g.Stats().String() }

// String returns what Group.Explain does.
func (s GroupStats) String() string {
	var b strings.Builder
	weights := 0.0
	for i := range s.Members {
		weights += s.Members[i].Weight
	}
	fmt.Fprintf(&b, "%s: %d of %d units in use, %d wanted\n", s.Name, s.InUse, s.Units, s.Wanted)
	for i := range s.Members {
		m := &s.Members[i]
		fmt.Fprintf(&b, "  %s: share %d (weight %g of %g x %d units, %d to %d), may use %d, runs %d, wants %d",
			m.Name, m.Nominal, m.Weight, weights, s.Units, m.Min, m.Max, m.Limit, m.InUse, m.Wanted)
		switch over := m.InUse - m.Limit; {
		case over > 0:
			fmt.Fprintf(&b, "; gives back %d as they end", over)
		case m.Borrowed > 0:
			fmt.Fprintf(&b, "; borrowed %d", m.Borrowed)
		case m.Lent > 0 && m.Wanted > m.Limit:
			fmt.Fprintf(&b, "; lent %d and takes back %d", m.Lent, min(m.Wanted, m.Nominal)-m.Limit)
		case m.Lent > 0:
			fmt.Fprintf(&b, "; lent %d", m.Lent)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
