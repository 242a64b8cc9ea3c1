package scenario

import (
	"errors"
	"fmt"

	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// A scenario is a question about a policy, and who runs a service asks it of their own: the
// policy file that protects the service is played in place of the scenario's.

// A Given is a policy that is played as if it stood in the file at its front, the tier where
// clients arrive, in place of all that the file says there under policy. So what the file
// derives from a policy, such as a load of 3x or the depths of others, it derives from this
// one, and what a policy of compare says differently, it says of this one.
type Given struct {
	Policy policy.Policy
	Of     string // whose it is, in a sentence: "class search of policy.yaml"
}

// An instead is a policy in place of that of a tier.
type instead struct {
	policy.Policy
	tier int
}

// Front returns the tier at which all clients of the file arrive.
func (f *File) Front() (tier int, err error) {
	first := f.Sim.Classes[0].Tier
	for _, c := range f.Sim.Classes {
		if c.Tier != first {
			return 0, fmt.Errorf("clients arrive at the tiers %s and %s, and one policy is that of one tier: write it into the scenario, under policy of the tier that is meant",
				f.Sim.Tiers[first].Name, f.Sim.Tiers[c.Tier].Name)
		}
	}
	return first, nil
}

// with reads f again, which is right by itself, with the policy that is given. What is wrong
// now is one sentence: nothing in the file is to blame for it.
func (f *File) with(name string, src []byte, given *Given) (*File, *instead, error) {
	tier, err := f.Front()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	own := &instead{given.Policy, tier}
	f, err = loadWith(name, src, own)
	if all := (*strictyaml.Errors)(nil); errors.As(err, &all) {
		err = errors.New(all.Problems[0].Sentence)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: with the policy of %s, %w", name, given.Of, err)
	}
	return f, own, nil
}

// replace makes the policy that is given that of tier i, whose keys are m.
func (r *reader) replace(m *strictyaml.Map, i int) {
	r.policies[i] = r.instead.Policy
	if !m.Get("objective").Present() {
		r.file.Sim.Tiers[i].Objective = 0 // it was that of the other policy
	}
	r.findable(m.Get("policy"), i)
	r.ours(i)
}
