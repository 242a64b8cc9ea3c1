package config

import (
	"errors"
	"fmt"
)

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
