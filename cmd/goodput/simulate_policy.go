package main

import (
	"fmt"
	"slices"

	"github.com/goodput/goodput/cmd/goodput/internal/scenario"
)

// A scenario has a policy of its own, as an example. With --config it is played with the one
// that protects a service, and the report says so.

// given is the policy of the class; nil: the scenario's own is played.
func (c *simulateCmd) given() *scenario.Given {
	if c.class == nil {
		return nil
	}
	return &scenario.Given{Policy: c.class.Policy(), Of: c.of()}
}

// of is how sentences call the class.
func (c *simulateCmd) of() string {
	if c.Config == "-" {
		return "class " + c.class.Name + " of stdin"
	}
	return "class " + c.class.Name + " of " + c.Config
}

// playsGiven returns what is wrong if the class is played by nobody: what others have is a
// limit at most.
func (c *simulateCmd) playsGiven(f *scenario.File, s source) error {
	if c.class == nil {
		return nil
	}
	tier, err := f.Front()
	if err == nil && !slices.ContainsFunc(f.Compare, func(p scenario.Compared) bool { return p.Tiers[tier].Core != nil }) {
		err = fmt.Errorf("%s: --config says what goodput has, and no policy that is played is goodput: add it, as in --policies goodput,%s", s.file, f.Compare[0].Name)
	}
	return err
}

// whose says in a report whose policy it is about, where it is not the scenario's.
func (c *simulateCmd) whose(f *scenario.File) (notes []string) {
	if c.class == nil {
		return nil
	}
	at := ""
	if tier, err := f.Front(); err == nil && len(f.Sim.Tiers) > 1 {
		at = " at the tier " + f.Sim.Tiers[tier].Name
	}
	notes = append(notes, fmt.Sprintf("The policy%s is that of %s, in place of the scenario's own.", at, c.of()))
	if c.class.Limiter.Observe {
		notes = append(notes, "With observe: true, serve refuses nobody; what is played is the class without it.")
	}
	return notes
}
