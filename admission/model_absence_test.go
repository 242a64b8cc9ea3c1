package admission

import (
	"fmt"
	"time"
)

// The absence of the model: since when there is nothing to run work on, and for how long
// anybody waits for it.

type away struct {
	is, told     bool
	since, bound time.Duration
	over         time.Duration // the last one
}

// setPresent begins or ends it.
func (m *model) setPresent(present bool) {
	if present != m.away.is {
		return
	}
	if present {
		m.away.is, m.away.over, m.asked = false, m.now, m.now
		m.dispatch()
		return
	}
	m.away = away{is: true, since: m.now, bound: m.cfg.MaxAbsence, over: m.away.over}
}

// hopeless reports whether p has waited for something to run it on as long as it may.
func (m *model) hopeless(p *place) bool {
	return m.away.is && m.now-max(p.offered, m.away.since) >= m.away.bound
}

// full is why there is no place: in a queue that nothing serves it is neither the queue nor the budget.
func (m *model) full(why Reason) Reason {
	if m.away.is && (why == QueueFull || why == NoBudget) {
		return Unavailable
	}
	return why
}

// lapse tells those that waited before it began, when nobody's alarm rings for it.
func (m *model) lapse() {
	if a := &m.away; a.is && !a.told && m.now-a.since >= a.bound {
		a.told = true
		m.dropAll(Unavailable, func(p *place) bool { return m.over(p) == Unavailable })
	}
}

// lapsesAt is when it does.
func (m *model) lapsesAt() time.Duration {
	if a := &m.away; len(m.queue) > 0 && !a.told {
		return max(a.since+a.bound, m.now+1)
	}
	return Never
}

// setPresent has both lose what runs their work, or find it again.
func (d *duel) setPresent(enter func()) error {
	present := d.pick(2) == 0
	d.last = fmt.Sprintf("at %v set present %v", d.now, present)
	d.core.SetPresent(d.now, present)
	enter()
	if present && d.model.away.is && len(d.model.queue) > 0 {
		d.model.seen["somebody waits for the return"]++
	}
	d.model.setPresent(present)
	return nil
}
