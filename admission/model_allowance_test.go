package admission

import (
	"fmt"
	"math"
	"time"
)

// The allowance of the model: a number that grows at every call, and what a grant takes
// from it.

// allow puts an allowance in force. What is left counts at the old rate up to now.
func (m *model) allow(q Quota) {
	if q == m.quota {
		return
	}
	if m.quota.Rate == 0 {
		m.allowed = q.burst()
	}
	m.quota, m.allowed = q, min(m.allowed, q.burst())
}

// accrue brings it up to now.
func (m *model) accrue(now time.Duration) {
	if now > m.now {
		m.allowed = min(m.allowed+m.quota.Rate*(now-m.now).Seconds(), m.quota.burst())
	}
	m.now = max(m.now, now)
}

// allows reports whether there is enough. What float64 rounds differs from the core's, and
// no rate of the duel comes to a whole number in a whole millisecond.
func (m *model) allows(cost int) bool {
	return m.quota.Rate == 0 || m.allowed >= float64(cost)-1e-9
}

func (m *model) spend(cost int) {
	if m.quota.Rate > 0 {
		m.allowed = min(m.allowed-float64(cost), m.quota.burst())
	}
}

// beyond reports whether p costs more than there ever is.
func (m *model) beyond(p *place) bool {
	return m.quota.Rate > 0 && p.Cost > int(m.quota.burst())
}

// accrued grants what has come since the last call.
func (m *model) accrued() {
	if m.quota.Rate > 0 {
		m.dispatch()
	}
}

// lacks is how long it takes until there is enough for cost, in seconds.
func (m *model) lacks(cost int) float64 {
	if m.quota.Rate == 0 {
		return 0
	}
	return max(float64(cost)-m.allowed, 0) / m.quota.Rate
}

// refill is when the first has its allowance, if it is that what it waits for.
func (m *model) refill() time.Duration {
	if m.away.is {
		return m.lapsesAt()
	}
	p := m.first()
	if p == nil || m.quota.Rate == 0 || p.Cost > m.free() {
		return Never
	}
	// After a call that decides nothing it may have been there for a while.
	return m.now + max(time.Duration(math.Ceil(m.lacks(p.Cost)*1e9)), 1)
}

// compareAllowance looks at when the core wants to be called.
func (d *duel) compareAllowance() error {
	d.model.accrue(d.core.now) // which a call that is refused has not
	got, want := d.core.RefillAt(), d.model.refill()
	if off := got - want; (got == Never) != (want == Never) || off < -1 || off > 1 {
		return fmt.Errorf("the allowance is there at %v, model %v", got, want)
	}
	if got <= d.core.now {
		return fmt.Errorf("the allowance was there at %v, which is not after %v", got, d.core.now)
	}
	return nil
}

// awaitAllowance moves the clock to when the allowance is there, or not quite, and says
// that it has; then refilled is next.
func (d *duel) awaitAllowance() bool {
	at := d.core.RefillAt()
	if at == Never || at-d.now > 10*time.Second || d.pick(10) > 0 {
		return false
	}
	d.due, d.first = at, d.model.first()
	if d.model.away.is {
		d.due = Never // nobody need have waited since before it
	}
	if d.pick(4) == 0 && at-d.now > 2 {
		d.now += (at - d.now) / 2
	} else {
		d.now = max(d.now, at)
		d.model.seen["allowed in time"]++
	}
	return true
}

// refilled calls Dispatch. When the allowance is there somebody is decided, unless the
// order has changed.
func (d *duel) refilled(before numbersInForce) error {
	d.last = fmt.Sprintf("at %v dispatch", d.now)
	d.core.Dispatch(d.now)
	d.model.tick(d.now, before, numbersOf(d.core))
	d.model.reorder()
	d.model.lapse()
	d.model.accrued()
	if d.core.now >= d.due && len(d.model.told) == 0 && d.model.first() == d.first {
		return fmt.Errorf("nobody was decided when the allowance was to be there: %+v at %v", d.core.allowance, d.core.now)
	}
	return nil
}
