package admission

import (
	"math"
	"time"
)

// How long a newcomer would wait, and whether its budget bears that.

// predict returns the longest of three: the units that must depart before its own are
// free, over the rate of the slots; the units that the allowance lacks for it and for who
// is before it, over the rate of that; and the units of its own tenant before it, over
// what the tenant is served.
func (c *Core) predict(r *Request, f *flow) time.Duration {
	due := min(r.Deadline, c.bound(r))
	own := c.ahead(f, due)
	if w := c.replaced(r); w != nil && w.flow == f && (c.order == FIFO || c.order == EDF && w.due() <= due) {
		own = max(own-int(w.cost), 0) // it gives way, and is before nobody
	}
	units := r.Cost + own + c.before(f.whole(), own)
	for i := range c.lanes[:r.Priority-1] {
		units += c.lanes[i].cost - c.lanes[i].parked
	}
	spaced := 0.0
	if c.allowance.Rate > 0 {
		spaced = c.spaced(units)
	}
	c.spacedFor = seconds(spaced)
	if units -= c.free(); units <= 0 && own == 0 && spaced == 0 {
		return 0
	}
	rate := c.slotRate() * c.growth
	wait := max(float64(max(units, 0))/rate, spaced)
	if e := c.entitled(f) * c.growth; e < min(rate, c.allowed) && own > 0 {
		wait = max(wait, float64(own)/e)
	}
	return seconds(wait)
}

// spent reports whether the predicted wait leaves too little of the budget. In a
// tight limiter the prediction is off by so much that only bad odds count, but not for an
// allowance: that comes to the nanosecond.
func (c *Core) spent(r *Request, d *Decision) bool {
	spare := r.Deadline - c.now - d.Service
	if c.planned {
		return spare < 0 // foresee knows better about the wait
	}
	if d.PredictedWait <= spare || spare < 0 || c.spacedFor > spare || !c.derivation.Tight {
		return d.PredictedWait > spare
	}
	_, cost := c.service.request()
	units := int(math.Round(d.PredictedWait.Seconds() * c.slotRate() * c.growth))
	queue := departing(units, pace{slots: c.slotRate() * c.growth, limit: c.limit, cv2: c.cv2 * cost})
	return queue.longer(spare.Seconds()) > 1-tightOdds
}
