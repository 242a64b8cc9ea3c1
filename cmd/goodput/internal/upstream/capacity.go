package upstream

import "math"

// A Capacity is what of an upstream there is to send work to.
type Capacity struct {
	// Present is whether any server is well. While none is, what is sent fails at once with
	// ErrAbsent: Limiter.SetPresent says so to those who admit.
	Present bool

	// Part is how much of all servers there is, by their limits: 0 to 1. One that is out
	// counts as 0, and one that starts slowly as its share. A limit that somebody has set for
	// all of them together is right for so much of it.
	Part float64

	// Limit is how many requests all servers run at once, those that are out too, by the limits
	// that were said; 0 if of one of them nobody has said it, and nothing is to be scaled.
	Limit int

	Well, Servers int // servers that are well, of all
}

// Scale returns what of a limit for all servers together there is: at least 1, so that one
// server of many can show that it is well. Set it before SetPresent, or as many as before are
// sent at once to a server that has just come.
func (c Capacity) Scale(limit int) int {
	if limit == 0 {
		return 0
	}
	return max(1, int(math.Floor(float64(limit)*c.Part+1e-9)))
}

// capacity is what there is now.
func (p *Pool) capacity() Capacity {
	members := *p.all.Load()
	c := Capacity{Servers: len(members)}
	var all, there, slots float64
	said := true
	for _, m := range members {
		share := float64(m.share.Load()) / full
		all += m.weight
		there += m.weight * share
		limit := float64(m.limit.Load())
		slots += limit
		said = said && limit > 0
		if share > 0 {
			c.Well++
		}
	}
	c.Present = c.Well > 0
	if all > 0 {
		c.Part = there / all
	}
	if said {
		c.Limit = int(slots)
	}
	return c
}

// Capacity returns what of the upstream there is.
func (p *Pool) Capacity() Capacity { return p.capacity() }

// A watcher is one call of Watch.
type watcher struct {
	fn   func(Capacity)
	told Capacity
	ever bool
}

// Watch calls fn with the capacity as it is, before it returns or, if somebody is being told at
// that moment, soon after, and from then on whenever it has changed, until stop is called or
// the pool is closed. A call that is under way then ends after stop has returned. Calls come
// one after the other, from any goroutine, without a lock, and the last one says what is so:
// what changed in between may be left out. fn should take microseconds.
func (p *Pool) Watch(fn func(Capacity)) (stop func()) {
	w := &watcher{fn: fn}
	p.mu.Lock()
	p.watchers = append(p.watchers, w)
	p.mu.Unlock()
	p.tell()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, other := range p.watchers {
			if other == w {
				// A copy: somebody may be telling those of the old one.
				p.watchers = append(append([]*watcher(nil), p.watchers[:i]...), p.watchers[i+1:]...)
				return
			}
		}
	}
}

// tell tells the watchers what they do not know yet. One goroutine at a time does; another
// that comes meanwhile leaves a note and goes on.
func (p *Pool) tell() {
	p.mu.Lock()
	if p.telling {
		p.again = true
		p.mu.Unlock()
		return
	}
	p.telling = true
	for {
		p.again = false
		c, watchers := p.capacity(), p.watchers
		p.mu.Unlock()
		for _, w := range watchers {
			if !w.ever || w.told != c {
				w.ever, w.told = true, c
				w.fn(c)
			}
		}
		p.mu.Lock()
		if !p.again {
			break
		}
	}
	p.telling = false
	p.mu.Unlock()
}
