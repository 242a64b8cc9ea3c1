package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// Granted is the law of a limit that a Budget grants: 0 until Core.Resize says more, and
// whatever it said last.
type Granted struct{}

// Start returns 0: nothing is granted yet.
func (Granted) Start() (int, error) { return 0, nil }

// Begin returns the law itself, which has nothing to learn.
func (g Granted) Begin(uint64) limit.State { return g }

// Next returns the limit in force.
func (Granted) Next(current int, _ *limit.Window) limit.Move { return limit.Move{Limit: current} }

// Why returns "": its group says why.
func (Granted) Why() string { return "" }

// Bounds returns all there is: what a member may have, its group says.
func (Granted) Bounds() (low, high int) { return 0, limit.Max }

// String returns "granted by its group".
func (Granted) String() string { return "granted by its group" }

// derivedWithin is by how much of itself a limit may move until its depth is derived at
// once and not with the next window: an eighth moves the depth by about as much as
// a window of samples does.
const derivedWithin = 1.0 / 8

// Resize sets the limit of a core whose law is Granted, and counts as in use so many more
// units of it than before, which others use; fewer if elsewhere is negative. Unlike
// SetLimit it keeps the law and is no change of the limit: a group moves units all day.
//
// The limit is what the core goes by: rate, depth, predicted wait and the largest
// cost. What others still run of it only has to depart first, as if it ran here.
func (c *Core) Resize(now time.Duration, n, elsewhere int) {
	if c.cfg.Limit != (Granted{}) {
		panic("admission: a limit that is not Granted cannot be resized")
	}
	c.enter(now)
	if c.inUse += elsewhere; c.inUse < c.running {
		panic("admission: more units are taken back from others than they had")
	}
	old := c.limit
	c.limit = n
	if math.Abs(float64(n-c.derivation.Limit)) > derivedWithin*float64(c.derivation.Limit) {
		c.derive()
	}
	if n < old && n > 0 {
		c.evict(TooCostly, func(w *Waiter) bool { return int(w.cost) > n })
	}
	c.dispatch()
}

// missed returns how many were refused so far because there was no slot for them in time.
func (c *Core) missed() uint64 {
	r := &c.counts.refusals
	return r[QueueFull] + r[NoBudget] + r[Unavailable]
}

// offered returns the units that would be in use if all that is offered and allowed were
// served at once: its rate times the time for which a unit is held (Little's law).
func (c *Core) offered() int {
	rate := c.load.rate
	if a := c.allowance.Rate; a > 0 {
		rate = min(rate, a)
	}
	return int(math.Ceil(min(rate*c.service.hold(), limitless)))
}

// wanting returns the units that those who wait could use. What waits for a ceiling wants
// none, of what waits for the allowance only the first does, and with nothing to run it on
// nothing does.
func (c *Core) wanting() int {
	if c.absence.is {
		return 0
	}
	cost := c.cost - c.parkedCost
	if c.allowance.Rate == 0 || cost == 0 {
		return cost
	}
	return min(cost, max(int(c.allowance.level(c.now)), int(c.first().firstCost(c.order))))
}
