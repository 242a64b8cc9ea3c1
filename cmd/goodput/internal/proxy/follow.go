package proxy

import (
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/upstream"
	"github.com/goodput/goodput/limit"
)

// A follower has the limiter of a class follow what of its upstream is there.
type follower struct {
	absence time.Duration // how long a request waits where no server is well

	mu   *sync.Mutex // of all classes of one limiter: one of them decides about it
	over bool        // another one does
	stop func()      // ends it; nil before it has begun
}

// follow takes the limiter over from was, the class of that name until now, if there is one.
// apply puts the limits of c in force; from then on they follow what of the upstream is there.
func (c *class) follow(was *class, apply func(goodput.Config)) {
	c.mu = new(sync.Mutex)
	if was != nil && was.mu != nil {
		c.mu = was.mu
		if was.stop != nil {
			was.stop()
		}
	}
	c.mu.Lock()
	if was != nil {
		was.over = true // a call that is on its way changes nothing any more
	}
	apply(c.limits(c.pool.Capacity()))
	c.mu.Unlock()
	if c.lim == nil {
		return
	}
	c.stop = c.pool.Watch(func(there upstream.Capacity) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.over {
			return
		}
		if n := policy.Number(c.limits(there).Limit); n > 0 && there.Limit > 0 {
			c.lim.SetLimit(n) // no error: n is at most the number that was validated
		}
		c.lim.SetPresent(there.Present) // after it, or as many as before run at once on a server that has just come
	})
}

// limits is the configuration of the limiter for what is there. A number is that of all
// servers together where these have numbers too: of those that are out, nobody runs anything.
func (c *class) limits(there upstream.Capacity) goodput.Config {
	cfg := c.cfg.Limiter
	cfg.MaxAbsence = c.absence
	if n := policy.Number(cfg.Limit); n > 0 && there.Limit > 0 && there.Present {
		cfg.Limit = limit.Fixed(there.Scale(n))
	}
	return cfg
}
