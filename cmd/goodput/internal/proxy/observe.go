package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Observe mode at run time: somebody who suspects a limiter in an incident, or who has watched it
// long enough, does not want to edit a file first. What is said here holds until somebody says
// policy, or the process ends. A reload does not end it: in the middle of an incident a file that
// is synchronised every minute must not put back what was just switched.

// What may be said of observe mode.
const (
	ObserveOn       = "on"
	ObserveOff      = "off"
	ObserveAsPolicy = "policy" // as the policy file or the flag has it
)

// A turned is what somebody has said, and when.
type turned struct {
	on bool
	at time.Time
}

// Observing is whether a limiter observes, and why.
type Observing struct {
	Limiter  string
	On       bool
	Policy   bool      // what the policy file or the flag says
	Switched time.Time // when somebody has said otherwise, or the same; zero: nobody has
}

// SetObserve says whether the limiter of a class observes, or that of each with the name "". What
// happens to the requests is at goodput.Limiter.SetObserve. That a limiter observes, or does not any
// more, is in the log of package watch. The error is one sentence.
func (p *Proxy) SetObserve(name, mode string) error {
	if mode != ObserveOn && mode != ObserveOff && mode != ObserveAsPolicy {
		return fmt.Errorf("observe mode %q is none of %s, %s, %s", mode, ObserveOn, ObserveOff, ObserveAsPolicy)
	}
	p.reload.Lock()
	defer p.reload.Unlock()
	t := p.now.Load()
	some, err := t.limited(name)
	if err != nil {
		return err
	}
	if name == "" && mode == ObserveAsPolicy {
		clear(p.turned) // also of those that are in no file just now
	}
	for _, c := range some {
		if mode == ObserveAsPolicy {
			delete(p.turned, c.cfg.Name)
		} else {
			p.turned[c.cfg.Name] = turned{on: mode == ObserveOn, at: time.Now()}
		}
		if err := c.lim.SetObserve(p.observes(c)); err != nil {
			panic("proxy: " + err.Error()) // of a member of a group, which none is
		}
	}
	p.noteObserving()
	return nil
}

// limited returns the class of that name, or with "" all, of those that have a limiter.
func (t *table) limited(name string) (some []*class, err error) {
	var all []string
	for _, c := range t.classes {
		switch {
		case c.lim != nil:
			all = append(all, strconv.Quote(c.cfg.Name))
			if name == "" || name == c.cfg.Name {
				some = append(some, c)
			}
		case name == c.cfg.Name:
			return nil, fmt.Errorf("class %q has no limiter: it is of connections", name)
		}
	}
	switch {
	case len(some) > 0 || name == "" && len(all) == 0:
		return some, nil
	case len(all) == 0:
		return nil, fmt.Errorf("there is no limiter %q, nor another one", name)
	}
	return nil, fmt.Errorf("there is no limiter %q: there is %s", name, strings.Join(all, ", "))
}

// observes reports whether the limiter of c is to observe. The caller holds reload.
func (p *Proxy) observes(c *class) bool {
	if said, ok := p.turned[c.cfg.Name]; ok {
		return said.on
	}
	return c.cfg.Limiter.Observe
}

// keepTurned forgets what was said of classes that are not even kept any more, and says in the log
// what of the rest is not as the new configuration has it. The caller holds reload.
func (p *Proxy) keepTurned(t *table) {
	for name := range p.turned {
		if t.find(name) == nil {
			delete(p.turned, name)
		}
	}
	for _, c := range t.classes {
		if said, ok := p.turned[c.cfg.Name]; ok && c.lim != nil && said.on != c.cfg.Limiter.Observe {
			p.log.Warn("observe mode stays as it was switched, and not as it is configured",
				"component", "proxy", "limiter", c.cfg.Name, "observe", said.on, "switched", said.at)
		}
	}
}

// Observing returns how it is with each limiter in force, in the order of their classes.
func (p *Proxy) Observing() []Observing { return slices.Clone(*p.observed.Load()) }

// noteObserving keeps what Observing returns. The caller holds reload.
func (p *Proxy) noteObserving() {
	var all []Observing
	for _, c := range p.now.Load().classes {
		if c.lim != nil {
			all = append(all, Observing{Limiter: c.cfg.Name, On: p.observes(c), Policy: c.cfg.Limiter.Observe, Switched: p.turned[c.cfg.Name].at})
		}
	}
	p.observed.Store(&all)
}
