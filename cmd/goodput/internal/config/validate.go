package config

import (
	"errors"
	"fmt"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// Contradiction returns one sentence about two settings that contradict each other, or nil, for
// a Config that flags describe: what a file is refused for. flag is how a key is called there.
func (c *Config) Contradiction(flag func(key string) string) error {
	for i := range c.Classes {
		k := &c.Classes[i]
		longest := strictyaml.Short(k.DeadlineCap)
		switch {
		case k.DeadlineCap == 0:
		case k.Deadline > k.DeadlineCap:
			return fmt.Errorf("%s %s is longer than %s %s: no request may have it", flag("deadline"), strictyaml.Short(k.Deadline), flag("deadline_cap"), longest)
		case k.Limiter.Objective > k.DeadlineCap:
			return fmt.Errorf("%s %s is longer than %s %s: "+whyNotBeyondCap, flag("objective"), strictyaml.Short(k.Limiter.Objective), flag("deadline_cap"), longest)
		}
	}
	for i := range c.Listeners {
		l := &c.Listeners[i]
		for _, u := range c.Upstreams {
			for _, s := range u.Servers {
				if l.Network == "tcp" && l.reaches(s.URL) {
					return fmt.Errorf("%s %s is where we listen ourselves, %s %s: "+whyNotOurselves, flag("upstream"), s.URL.Redacted(), flag("listen"), l.Address)
				}
			}
		}
	}
	return nil
}

// Validate returns one sentence about what is missing, or nil. It is for those that
// make a Config themselves: Read says more, and where.
func (c *Config) Validate() error {
	known := map[string]bool{}
	for _, u := range c.Upstreams {
		if len(u.Servers) == 0 {
			return fmt.Errorf("upstream %q has no servers: say where the service listens, for example http://127.0.0.1:9000", u.Name)
		}
		for _, s := range u.Servers {
			if err := CheckServer(s.URL); err != nil {
				return fmt.Errorf("upstream %q: %w", u.Name, err)
			}
		}
		if known[u.Name] {
			return fmt.Errorf("upstream %q is there twice", u.Name)
		}
		known[u.Name] = true
	}
	if len(c.Classes) == 0 {
		return errors.New("there are no classes: a proxy without one has nothing to admit requests to")
	}
	names := map[string]bool{}
	for i := range c.Classes {
		k := &c.Classes[i]
		switch {
		case names[k.Name]:
			return fmt.Errorf("class %q is there twice", k.Name)
		case !known[k.Upstream]:
			return fmt.Errorf("class %q: upstream %q is not known", k.Name, k.Upstream)
		}
		names[k.Name] = true
		if err := k.Limiter.Validate(); err != nil {
			return fmt.Errorf("class %q: %w", k.Name, err)
		}
	}
	return nil
}
