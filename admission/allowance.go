package admission

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// The allowance of a limiter is what its resource grants all requests together over
// time: somebody else's API that takes 100 calls per second. Tenant.Quota refuses whoever
// is over it, for it is about one of many who send; who is over the allowance waits for
// it in the queue, for there is nobody else to serve instead.
//
// It is a token bucket of cost, full at first. A grant needs free slots and enough of it;
// who is first in the order waits for both, and nobody passes it (I2), so that a costly
// request is not starved by cheap ones.
//
// Capacity that comes with time comes with no call, so the core says when: RefillAt.
// Looking does not change the account; only a grant or a correction does. Else a million
// looks a second would round away what comes in a microsecond.

// rounding is how much of a cost may be missing, so that float64 does not refuse at the
// instant that RefillAt named. The missing part is charged.
const rounding = 1e-9

// level returns what the account has at now.
func (a *account) level(now time.Duration) float64 {
	return min(a.left+a.Rate*(now-a.at).Seconds(), a.burst())
}

// covers reports whether the account has enough for cost.
func (a *account) covers(now time.Duration, cost int) bool {
	return a.level(now) >= float64(cost)*(1-rounding)
}

// enough returns the first instant at which the account covers cost, to the nanosecond
// above: a timer that rings then is not set twice.
func (a *account) enough(cost int) time.Duration {
	short := (float64(cost) - a.left) / a.Rate
	if short <= 0 {
		return a.at
	}
	if most := seconds(short); most >= math.MaxInt64/2 {
		return most
	}
	return a.at + time.Duration(math.Ceil(short*1e9))
}

// become puts a quota in force: what is left counts at the old rate up to now, and one
// that was none is full.
func (a *account) become(now time.Duration, q Quota) {
	if q == a.Quota {
		return
	}
	a.refill(now)
	if a.Rate == 0 {
		a.left = q.burst()
	}
	a.Quota, a.at = q, now
	a.left = min(a.left, q.burst())
}

// allows reports whether the allowance has enough for cost.
func (c *Core) allows(cost int) bool {
	return c.allowance.Rate == 0 || c.allowance.covers(c.now, cost)
}

// draw takes cost from the allowance; less than 0 gives it back.
func (c *Core) draw(cost int) {
	c.allowance.refill(c.now)
	c.allowance.spend(cost)
}

// RefillAt returns the instant at which time alone changes something, and the driver calls
// Dispatch: when who is first will have its allowance, or, while there is nothing to run work on,
// when those that waited before are told. It is after now; Never if nobody waits for
// either, as when there is no allowance, or when slots must be released first.
func (c *Core) RefillAt() time.Duration {
	if c.absence.is {
		return c.lapsesAt()
	}
	if c.allowance.Rate == 0 {
		return Never
	}
	return c.refill()
}

func (c *Core) refill() time.Duration {
	if c.waiting == c.parked {
		return Never
	}
	cost := int(c.first().firstCost(c.order))
	if cost > c.free() {
		return Never
	}
	return max(c.allowance.enough(cost), c.now+1)
}

func (f *flow) firstCost(o Order) int32 { return f.line.first(o).cost }

// Dispatch does what RefillAt has announced: it grants what the allowance has come to by now, or
// tells those whose time is over. Each call that may decide does
// so as well, so a driver calls it only when RefillAt says so and nothing else happens.
func (c *Core) Dispatch(now time.Duration) { c.enter(now) }

// spaced returns how long it takes until the allowance, of which there is one, has granted
// cost more, in seconds.
func (c *Core) spaced(cost int) float64 {
	return max(float64(cost)-c.allowance.level(c.now), 0) / c.allowance.Rate
}

// binds reports whether the allowance, and not the slots, bounds what can be served.
func (c *Core) binds() bool {
	return c.allowance.Rate > 0 && c.limit > 0 && c.allowed < c.slotRate()
}

// spacedDepth is busyDepth for a limiter whose allowance binds.
func spacedDepth(burst, rho, perCost float64) int {
	return int(min(math.Ceil(float64(standingSpaced(burst/perCost, rho))*perCost), maxItems))
}

// standingSpaced is Standing for an allowance: the smallest depth, in requests, that
// lets no more than 0.1 % (idleTolerated) of it be lost to a full bucket, while load
// times its rate is offered. burst is in requests as well.
//
// What the bucket lacks and what waits make one number, V = burst - left + waiting. It
// falls by rate and rises by one with each request that gets a slot or a place, which it
// does while V <= burst + depth - 1: an M/D/1 queue with room for n = burst + depth, the
// one in service included, whose server idles while the bucket is full. It does so with
// the probability 1 / (1 + load b[n-1]), where the b have the generating function
// 1 / (1 - x e^(load (1 - x))) (Brun, Garcia, "Analytical solution of finite capacity
// M/D/1 queues", J. Appl. Prob. 37, 2000). Its two poles nearest to 0 are 1 and z < 1, the
// root of z = e^(load (z - 1)), so
//
//	b[n] = z^-n / (1 - load z) - 1 / (load - 1)
//
// and the others are so far away that from n = 1 on 2 % are missing at the most.
func standingSpaced(burst, load float64) int {
	load = min(load, maxLoad)
	z := 1 / (load * load) // near 1 the root is 1 - 2 (load - 1), and so is this
	for range 8 {          // Newton's steps; five are enough from there on, at any load
		e := math.Exp(load * (z - 1))
		step := (e - z) / (1 - load*e)
		if z += step; math.Abs(step) <= 1e-12*z {
			break
		}
	}
	z = min(max(z, math.SmallestNonzeroFloat64), 1/load)
	b := (1/idleTolerated - 1) / load
	n := 1 + math.Log((b+1/(load-1))*(1-load*z))/(load*(1-z)) // -ln z = load (1 - z)
	if math.IsNaN(n) {
		return maxItems // a load of 1 and a bit
	}
	return int(max(1, min(math.Ceil(n-math.Floor(burst)), maxItems)))
}

// allowed says what the allowance is, in a sentence.
func (q Quota) allowed() string {
	return fmt.Sprintf("%s/s allowed, burst %s", figures(q.Rate), figures(q.burst()))
}

// validate returns one sentence about the first field that is out of range. The quota is
// called name, of somebody.
func (q Quota) validate(name, of string) error {
	switch {
	case q.Rate != 0 && !(q.Rate >= minRate && q.Rate <= maxRate):
		return fmt.Errorf("%s of %v per second%s is out of range: %v to %.0e, or 0 for none", name, q.Rate, of, minRate, maxRate)
	case q.Burst != 0 && !(q.Burst >= 1 && q.Burst <= maxRate):
		return fmt.Errorf("%s burst %v%s is out of range: 1 to %.0e, or 0 for one second of its rate", name, q.Burst, of, maxRate)
	case q.Burst != 0 && q.Rate == 0:
		return fmt.Errorf("%s burst %v%s has no rate: say how many units per second follow", name, q.Burst, of)
	}
	return nil
}

// most is the most units that one request may cost.
func (q Quota) most() int {
	if q.Rate == 0 {
		return limit.Max
	}
	return int(min(q.burst(), limit.Max))
}
