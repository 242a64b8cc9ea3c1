package scenario

import (
	"fmt"
	"slices"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// LoadFor is Load for some policies alone, in this order: those that the file
// compares, by their labels, and goodput or any baseline as compare would have it by
// its name. What the file expects of others is left out. given, unless it is nil, is played
// in place of what the file has at its front.
func LoadFor(name string, src []byte, policies []string, given *Given) (*File, error) {
	f, err := Load(name, src)
	var own *instead
	if err == nil && given != nil {
		f, own, err = f.with(name, src, given)
	}
	if err != nil || len(policies) == 0 {
		return f, err
	}
	doc, err := strictyaml.Parse(name, src)
	if err != nil {
		return nil, err
	}
	r := &reader{root: doc.Root(), instead: own}
	r.top()
	r.tiers()
	r.classes()
	r.trace()
	at := r.root.Get("policy")
	if !at.Present() {
		at = r.root.Get("tiers")
	}
	var chosen []Compared
	for _, want := range policies {
		i := slices.IndexFunc(f.Compare, func(c Compared) bool { return c.Name == want })
		known := append([]string{ours}, sim.Baselines...)
		switch c := (Compared{Name: want}); {
		case slices.ContainsFunc(chosen, func(c Compared) bool { return c.Name == want }):
			return nil, fmt.Errorf("%s: policy %q is asked for twice", name, want)
		case i >= 0:
			chosen = append(chosen, f.Compare[i])
		case !slices.Contains(known, want):
			for _, c := range f.Compare {
				known = append(known, c.Name)
			}
			return nil, fmt.Errorf("%s: policy %q is unknown%s", name, want, strictyaml.Unknown(want, known))
		default:
			r.compared(&c, want, at.Empty())
			chosen = append(chosen, c)
		}
	}
	f.Compare = chosen
	asked := len(f.Expect)
	f.Expect = slices.DeleteFunc(f.Expect, func(c Criterion) bool { return !slices.Contains(policies, c.Policy) })
	f.Unjudged = asked - len(f.Expect)
	return f, doc.Err()
}
