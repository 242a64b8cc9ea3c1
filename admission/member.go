package admission

import (
	"fmt"

	"github.com/goodput/goodput/limit"
)

// maxMembers bounds a budget: a round looks at each of them.
const maxMembers = 64

// A BudgetConfig describes a Budget.
type BudgetConfig struct {
	Units   int      // of cost, that run at once in all members together: 1 to limit.Max, at least one for each
	Members []Member // 1 to 64
}

// A Member is one limiter of several that share a budget. Its nominal share is what it
// has when all want more: the same amount for each unit of weight, within Min and Max.
type Member struct {
	Name   string  // in sentences and numbers
	Weight float64 // relative to the others: 1e-12 to 1e12, 0 means 1; the heaviest at most 1e6 times the lightest
	Min    int     // units that are never lent: 0, the default, to Units. Who must not wait for others to end sets it
	Max    int     // units that it may use, borrowed ones included: 1 to limit.Max, at least Min; 0 means Units
}

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (c BudgetConfig) Validate() error {
	if c.Units < 1 || c.Units > limit.Max {
		return fmt.Errorf("units %d are out of range: 1 to %d", c.Units, limit.Max)
	}
	if len(c.Members) == 0 || len(c.Members) > maxMembers {
		return fmt.Errorf("members are %d: 1 to %d", len(c.Members), maxMembers)
	}
	if len(c.Members) > c.Units {
		return fmt.Errorf("units %d are fewer than the members, %d: each has a share of at least 1", c.Units, len(c.Members))
	}
	sum, light, heavy := 0, 0, 0
	for i := range c.Members {
		m := &c.Members[i]
		who := m.called(i)
		switch {
		case m.Weight != 0 && !(m.Weight >= minWeight && m.Weight <= maxWeight):
			return fmt.Errorf("weight %v of member %s is out of range: %v to %v, or 0 for 1", m.Weight, who, minWeight, maxWeight)
		case m.Min < 0 || m.Min > c.Units:
			return fmt.Errorf("min %d of member %s is out of range: 0 to the units, %d", m.Min, who, c.Units)
		case m.Max < 0 || m.Max > limit.Max:
			return fmt.Errorf("max %d of member %s is out of range: 1 to %d, or 0 for the units", m.Max, who, limit.Max)
		case m.Max > 0 && m.Min > m.Max:
			return fmt.Errorf("min %d of member %s is more than its max, %d", m.Min, who, m.Max)
		}
		sum += max(m.Min, 1)
		if m.weight() < c.Members[light].weight() {
			light = i
		}
		if m.weight() > c.Members[heavy].weight() {
			heavy = i
		}
	}
	if sum > c.Units {
		return fmt.Errorf("units %d are fewer than what the members have at least, %d: the sum of min, or 1 each", c.Units, sum)
	}
	if l, h := &c.Members[light], &c.Members[heavy]; h.weight() > maxRatio*l.weight() {
		return fmt.Errorf("weight %v of member %s is more than %.0e times weight %v of member %s",
			h.weight(), h.called(heavy), maxRatio, l.weight(), l.called(light))
	}
	return nil
}

func (m *Member) called(i int) string {
	if m.Name == "" {
		return fmt.Sprint(i + 1)
	}
	return fmt.Sprintf("%q", m.Name)
}

func (m *Member) weight() float64 {
	if m.Weight == 0 {
		return 1
	}
	return m.Weight
}
