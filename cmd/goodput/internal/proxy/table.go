package proxy

import (
	"fmt"
	"net/http"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/upstream"
)

// A table is a configuration in force. A request is served by the table that was in force
// when it arrived. Nobody changes one; a reload is another one, which keeps the limiters
// and the pools of those names that stay: limits, queues, what was learned and what is in
// flight go on in them.
type table struct {
	cfg     *config.Config
	classes []*class // the last takes every request
	pools   map[string]*upstream.Pool
}

// class returns the class of a request.
func (t *table) class(r *http.Request) *class {
	last := len(t.classes) - 1
	if last == 0 {
		return t.classes[0]
	}
	q := newRequest(r)
	for _, c := range t.classes[:last] {
		if c.matches == nil || c.matches(&q) {
			return c
		}
	}
	return t.classes[last]
}

func (t *table) find(name string) *class {
	for _, c := range t.classes {
		if c.cfg.Name == name {
			return c
		}
	}
	return nil
}

// Reconfigure puts cfg in force. Requests in flight, and those that wait, stay where they
// are; a limit that is lower now gives nothing until enough of it has ended. The error is
// about cfg, and the configuration until now is then still in force. Listeners are not
// ours.
func (p *Proxy) Reconfigure(cfg *config.Config) error {
	p.reload.Lock()
	defer p.reload.Unlock()
	if err := cfg.Validate(); err != nil { // before anything is touched
		return err
	}
	old := p.now.Load()
	if old == nil {
		old = &table{}
	}
	t := &table{cfg: cfg, pools: map[string]*upstream.Pool{}}
	for _, u := range cfg.Upstreams {
		pool := old.pools[u.Name]
		if pool == nil {
			pool = upstream.New(u, p.log)
		} else {
			pool.Reconfigure(u)
		}
		t.pools[u.Name] = pool
	}
	for i := range cfg.Classes {
		c := &cfg.Classes[i]
		was := old.find(c.Name)
		lim, err := p.limiter(c, was)
		if err != nil {
			return fmt.Errorf("class %q: %w", c.Name, err)
		}
		t.classes = append(t.classes, p.class(c, t, lim, was))
	}
	p.now.Store(t)
	for name, pool := range old.pools {
		if t.pools[name] == nil {
			pool.Close()
		}
	}
	return nil
}

// limiter returns the limiter of a class, which goes on if there was one.
func (p *Proxy) limiter(c *config.Class, was *class) (*goodput.Limiter, error) {
	switch {
	case c.Mode == config.Connection:
		return nil, nil
	case was != nil && was.lim != nil:
		return was.lim, was.lim.Reconfigure(c.Limiter)
	case p.newLimiter != nil:
		return p.newLimiter(c.Limiter), nil
	}
	return goodput.New(c.Limiter), nil
}

// Config returns the configuration in force.
func (p *Proxy) Config() *config.Config { return p.now.Load().cfg }

// Limiters returns the limiters in force, in the order of their classes.
func (p *Proxy) Limiters() []*goodput.Limiter {
	var all []*goodput.Limiter
	for _, c := range p.now.Load().classes {
		if c.lim != nil {
			all = append(all, c.lim)
		}
	}
	return all
}
