package admission

import (
	"time"

	"github.com/goodput/goodput/limit"
)

// When the law of the limit is asked, and when not.

// Observe takes what was measured since the last call, and asks the law.
func (c *Core) Observe(now time.Duration, b *Batch) {
	c.enter(now)
	c.service.observe(c.now, b)
	c.counts.dropped += uint64(b.dropped)
	c.notice(b)
	if c.absence.is {
		c.derive()
		return
	}
	m := limit.Move{Limit: c.limit}
	if !c.held {
		m = c.ask(b)
	}
	if n := paced(c.limit, m.Limit); n != c.limit {
		c.seek(m.Search)
		c.setLimit(n)
		return
	}
	// What moves a depth visibly takes a good part of a half-life to come in.
	if c.seek(m.Search) || c.now-c.derivedAt >= c.load.bin || c.service.samples < 2*priorSamples {
		c.derive()
	} else {
		c.retune() // the rate is another one
	}
}

// ask asks the law.
func (c *Core) ask(b *Batch) limit.Move {
	c.shown = c.window(b)
	m := c.law.Next(c.limit, &c.shown)
	if m.Mark {
		c.tide.mark(c.now)
	}
	c.usually(c.shown.Length)
	return m
}

// begin puts another law in force. What it is told begins with it.
func (c *Core) begin(law limit.Law) {
	c.law, c.usual, c.noticed.floor = law.Begin(c.cfg.Seed), 0, Never
	c.seek(Moves(law) && !c.held)
	c.tide.mark(c.now)
}

// Hold says whether the law of the limit is held, as it should be while what is decided is not
// followed: a driver only watches, everything runs, and so the service times do not follow from
// the limit. A law that was asked then would take what it sees for what its limit has done, and
// go down to its floor. At first it is not held.
//
// While it is, the law is not asked, and the limit stays until a call says otherwise. Nothing is
// being searched: what is decided is what this limit would do. Afterwards the law goes on with
// what it knew, and of what happened in between it is told nothing. Another law that comes
// meanwhile is held where it starts. Nothing is called slow, whatever the law, a fixed one too.
// What is learned of service times, and the depth that follows, go on: a driver that lets more
// run than the limit leaves out the samples of what ran then, if there are others. The same again
// changes nothing.
func (c *Core) Hold(now time.Duration, held bool) {
	c.enter(now)
	if held == c.held {
		return
	}
	c.held, c.noticed.floor = held, Never
	c.noticed.slow.quit()
	if held {
		if c.seek(false) {
			c.derive()
		}
		return
	}
	c.tide.renew(c.now, c.inUse)
	c.lawAt = c.now
}

// Forget has what was measured of the service count no more, as it should be where that was of work
// that ran beside more than the limit and is not to decide about others: what is believed is
// what a new core believes. What is known of the load, and by the law, stays.
func (c *Core) Forget(now time.Duration) {
	c.enter(now)
	c.service.anew()
	c.derive()
}
