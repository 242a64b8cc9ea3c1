package admission

import (
	"time"

	"github.com/goodput/goodput/limit"
)

// noticed is what is known for those who watch a core. Nothing is decided by it.
type noticed struct {
	floor time.Duration // since when the limit has been too low at its minimum; Never while it is not
	slow  slowed
	at    time.Duration // up to when
	heard time.Duration // when something last ended
}

// notice looks at a window of measurements, of which b has what ended.
func (c *Core) notice(b *Batch) {
	s := &c.noticed.slow
	sec := (c.now - c.noticed.at).Seconds()
	c.noticed.at = c.now
	if c.absence.is {
		c.noticed.floor = Never
		return
	}
	if c.held { // what it shows is of more at once than the limit
		c.noticed.floor = Never
		s.quit()
		return
	}
	if b.ended.n > 0 {
		// Not so where what ends now was held all the time: that is as slow as can be.
		if c.now-c.noticed.heard > quietFor && b.ended.costSeconds < quietFor.Seconds() {
			s.quit()
			s.recent = span{}
		}
		c.noticed.heard = c.now
	}
	c.floors()
	s.add(b, sec, c.load.rate, float64(c.limit))
	if s.block.ended.n >= blockEnds && s.block.seconds >= blockTime.Seconds() {
		s.close(c.service.sizes.use != SizeIgnored)
	}
}

// quiet reports whether nothing runs and nothing has ended for so long that nothing can be said
// of how it is now.
func (c *Core) quiet() bool { return c.running == 0 && c.now-c.noticed.heard > quietFor }

// A limit at its minimum serves the least that it may, whatever is asked for. That is right
// while the resource can do no more, and wrong where the law has been misled: so it is shown
// for how long it has been so, and an alert rings when that is too long (C030).

// offFloor is the load below which nobody lacks what a limit at its minimum does not serve. It
// begins to be too low above 1; a load that hangs about 1 deviates by less than a tenth of it
// where there are 100 arrivals in an objective (1/sqrt(100)).
const offFloor = 0.9

// floors looks whether the limit is at the least that its law may set and more is offered
// than that serves. One that cannot move has no floor.
func (c *Core) floors() {
	low, high := limit.Bounds(c.cfg.Limit)
	switch load := c.rho(); {
	case c.limit > low || low == high || load < offFloor && !c.overload:
		c.noticed.floor = Never
	case c.noticed.floor == Never && load > 1:
		c.noticed.floor = c.now
	}
}

// callLimit is setLimit for who is not the law.
func (c *Core) callLimit(n int) {
	if n != c.limit {
		c.counts.called++
		if n > c.limit {
			c.counts.calledUp++
		}
	}
	c.setLimit(n)
}
