package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// real counts what really happens in observe mode, where the core only says
// what it would have done. Guarded by the lock.
type real struct {
	inUse    int // cost units; may exceed the limit
	running  int
	arrivals uint64
	outcomes [admission.Outcomes]uint64
}

// pass lets r run at once and notes what the shadow core decided. That one sees
// the arrival now and the real end later: a request that it queued holds its
// shadow slot from the shadow's grant to the real end, which is earlier than it
// would have been, so the shadow is a little optimistic. One that really ended
// before the shadow granted it is taken out as cancelled.
func (l *Limiter) pass(r *admission.Request) grant {
	now := l.enter()
	if r.Arrival == 0 {
		r.Arrival = now
	}
	g := l.settings.Load().grant(r, now, nil)
	own := g.with()
	own.kind = observed
	d := l.offerCall(now, r)
	switch {
	case d.Exempt:
		own.kind |= exempt | shadowRuns
	case d.Verdict == admission.Admitted:
		own.kind |= shadowRuns
		own.share = d.Share
	case d.Verdict == admission.Queued:
		w := &waiter{place: d.Waiter}
		w.place.Ref = w
		w.timer = time.AfterFunc(d.Waiter.Alarm()-now, func() { l.askShadow(w) })
		own.shadow = w
	}
	if !d.Exempt {
		l.real.arrivals++
		l.real.running++
		l.real.inUse += r.Cost
	}
	l.leave(now)
	return g
}

// askShadow is the alarm of a request in the shadow's queue.
func (l *Limiter) askShadow(w *waiter) {
	now := l.enter()
	if !w.decided.Load() {
		if l.cancelCall(now, w.place, None) {
			l.decide(now, w)
		} else {
			// Under the lock, so that endObserved, which stops the timer,
			// comes before or after and not between.
			w.timer.Reset(w.place.Alarm() - now) // after now: it is not decided
		}
	}
	l.leave(now)
}

// endObserved ends a request of observe mode, really and in the shadow.
func (l *Limiter) endObserved(r *rare, o Outcome) {
	now := l.enter()
	end := r.end(o)
	w := r.shadow
	switch {
	case r.kind&shadowRuns != 0:
		l.releaseCall(now, end)
	case w == nil: // the shadow refused it
	case !w.decided.Load():
		if l.cancelCall(now, w.place, Client) {
			l.decide(now, w)
		}
	case w.place.Verdict() == admission.Admitted:
		end.Share = w.place.Share()
		l.releaseCall(now, end)
	}
	if w != nil {
		w.timer.Stop()
	}
	if !end.Exempt {
		l.real.running--
		l.real.inUse -= int(r.cost)
		l.real.outcomes[o]++
	}
	l.leave(now)
}

// stats puts the real counts in place of the shadow's. What was derived stays.
func (r *real) stats(shadow admission.Stats) admission.Stats {
	s := shadow
	s.InUse, s.Running = r.inUse, r.running
	s.Waiting, s.WaitingCost, s.WaitingBytes, s.Age = 0, 0, 0, 0
	s.Arrivals, s.Immediate, s.Dequeued = r.arrivals, r.arrivals, 0
	s.Outcomes = r.outcomes
	s.Refusals = [admission.Reasons]uint64{}
	return s
}
