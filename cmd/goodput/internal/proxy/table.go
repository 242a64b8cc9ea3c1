package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

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

	// gone are the classes of earlier tables whose names this one has not, oldest first, at
	// most maxGone. One that comes back goes on with the limiter that it had: with another
	// one, each reload that takes a class out and in again would give all of its limit once
	// more, beside what is still in flight.
	gone []*class

	stranger sync.Once // somebody who is not trusted sent forwarding headers: said once
}

// maxGone bounds what is kept of classes that are in no file any more. Beyond it the oldest
// is forgotten: what it has in flight ends as ever, and one of its name would begin anew.
const maxGone = 64

// all returns also the classes that have gone: what they have in flight is there, and what
// they counted counts.
func (t *table) all() []*class { return slices.Concat(t.classes, t.gone) }

// limiters returns the limiters of all.
func (t *table) limiters() []*goodput.Limiter {
	var limiters []*goodput.Limiter
	for _, c := range t.all() {
		if lim := c.last(); lim != nil {
			limiters = append(limiters, lim)
		}
	}
	return limiters
}

// class returns the class of a request; nil if it is of one as its path is written and of another
// as a server may resolve it. Which of the two the service would run nobody knows here, and
// whoever may choose would take the limit of one and the work of the other. Browsers resolve a
// path before they send it.
func (t *table) class(r *http.Request) *class {
	if len(t.classes) == 1 {
		return t.classes[0]
	}
	q := newRequest(r)
	c := t.first(&q)
	if q.path != r.URL.Path && r.URL.Path != "" {
		if q.path = r.URL.Path; t.first(&q) != c {
			return nil
		}
	}
	return c
}

// first returns the first class that takes a request.
func (t *table) first(q *request) *class {
	last := len(t.classes) - 1
	for _, c := range t.classes[:last] {
		if c.matches == nil || c.matches(q) {
			return c
		}
	}
	return t.classes[last]
}

// upstream returns the configuration of the upstream of that name, which is there.
func (t *table) upstream(name string) *config.Upstream {
	for i := range t.cfg.Upstreams {
		if t.cfg.Upstreams[i].Name == name {
			return &t.cfg.Upstreams[i]
		}
	}
	panic("proxy: no upstream " + name)
}

// find returns the class of that name, in force or gone, or nil.
func (t *table) find(name string) *class {
	for _, c := range t.all() {
		if c.cfg.Name == name {
			return c
		}
	}
	return nil
}

// leave takes what t has not over from the table until now.
func (t *table) leave(old *table) {
	has := map[string]bool{}
	for _, c := range t.classes {
		has[c.cfg.Name] = true
	}
	for _, c := range slices.Concat(old.gone, old.classes) {
		if !has[c.cfg.Name] {
			t.gone = append(t.gone, c)
		}
	}
	for len(t.gone) > maxGone {
		if stop := t.gone[0].stop; stop != nil {
			stop()
		}
		t.gone = t.gone[1:]
	}
}

// Reconfigure puts cfg in force. Requests in flight, and those that wait, stay where they
// are; a limit that is lower now gives nothing until enough of it has ended. The error is
// about cfg, and the configuration until now is then still in force. Listeners are not
// ours.
func (p *Proxy) Reconfigure(cfg *config.Config) error {
	p.reload.Lock()
	defer p.reload.Unlock()
	if p.retiring.stage.Load() != staying {
		return errors.New("draining: what is in force stays until the end")
	}
	if err := cfg.Validate(); err != nil { // before anything is touched
		return err
	}
	old := p.now.Load()
	if old == nil {
		old = &table{}
	}
	t := &table{cfg: cfg, pools: map[string]*upstream.Pool{}}
	for _, u := range cfg.Upstreams {
		if t.pools[u.Name] = old.pools[u.Name]; t.pools[u.Name] == nil {
			t.pools[u.Name] = upstream.New(u, p.log)
		}
	}
	for i := range cfg.Classes {
		c := p.class(&cfg.Classes[i], t, old.find(cfg.Classes[i].Name))
		if err := c.door.Validate(); err != nil {
			t.closeBut(old)
			return fmt.Errorf("class %q: %w", c.cfg.Name, err)
		}
		t.classes = append(t.classes, c)
	}
	for _, u := range cfg.Upstreams { // those that go on, now that all is well
		if old.pools[u.Name] != nil {
			t.pools[u.Name].Reconfigure(u)
		}
	}
	for _, c := range t.classes {
		was := old.find(c.cfg.Name)
		c.follow(was, func(limits goodput.Config) {
			limits.Observe = p.observes(c)
			c.lim, c.kept = p.limiter(c.cfg, limits, was)
		})
	}
	t.leave(old)
	p.keepTurned(t)
	p.now.Store(t)
	p.noteObserving()
	old.closeBut(t)
	return nil
}

// closeBut closes the pools that other has not.
func (t *table) closeBut(other *table) {
	for name, pool := range t.pools {
		if other.pools[name] == nil {
			pool.Close()
		}
	}
}

// limiter returns the limiter of a class, which goes on if there was one. A class of
// connections has none, and keeps the one that it had for when it is of requests again.
func (p *Proxy) limiter(c *config.Class, limits goodput.Config, was *class) (lim, kept *goodput.Limiter) {
	if was != nil {
		lim = was.last()
	}
	switch {
	case c.Mode == config.Connection:
		return nil, lim
	case lim != nil:
		if err := lim.Reconfigure(limits); err != nil {
			panic("proxy: limits that were validated: " + err.Error())
		}
		return lim, nil
	case p.newLimiter != nil:
		return p.newLimiter(limits), nil
	}
	return goodput.New(limits), nil
}

// Config returns the configuration in force.
func (p *Proxy) Config() *config.Config { return p.now.Load().cfg }

// Upstreams returns the servers of each upstream in force, by its name.
func (p *Proxy) Upstreams() map[string][]upstream.ServerStats {
	all := map[string][]upstream.ServerStats{}
	for name, pool := range p.now.Load().pools {
		all[name] = pool.Stats()
	}
	return all
}

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
