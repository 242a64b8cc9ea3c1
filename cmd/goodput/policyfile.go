package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// The file that protects a service is the one that is played: plan and replay take the
// policy of one of its classes in place of flags, and simulate in place of the scenario's.

// given returns those of the flags that the command line has, as they are written there.
func given(ctx *kong.Context, names ...string) (all []string) {
	for _, p := range ctx.Path {
		if p.Flag != nil && slices.Contains(names, p.Flag.Name) {
			all = append(all, "--"+p.Flag.Name)
		}
	}
	return all
}

// policyClass reads a policy file and returns the class of that name, or, without a name,
// the only one.
func policyClass(file, name string) (*config.Class, error) {
	src, err := readYAML(file)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if file == "-" {
		file = "stdin"
	}
	cfg, err := config.Read(file, src)
	if err != nil {
		return nil, fmt.Errorf("--config: the policy file is wrong:\n%w", err)
	}
	var names []string
	var found *config.Class
	for i := range cfg.Classes {
		c := &cfg.Classes[i]
		if names = append(names, c.Name); c.Name == name || name == "" {
			found = c
		}
	}
	switch {
	case name == "" && len(names) > 1:
		return nil, fmt.Errorf("--class is required: %s has the classes %s, and each has a limit of its own", file, strictyaml.Either(names))
	case found == nil:
		return nil, fmt.Errorf("--class %q is unknown%s in %s", name, strictyaml.Unknown(name, names), file)
	case found.Mode != config.Request:
		return nil, fmt.Errorf("--class %s has mode %v: there are no service times and no queue to compute with", found.Name, found.Mode)
	}
	return found, nil
}

// untold is the deadline that requests have which bring none.
func untold(c *config.Class) time.Duration {
	p := c.Policy()
	return p.Told(0)
}
