package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// A refill is the timer of Config.Allowance. Slots come back with a call, an allowance
// comes with time, so somebody must be there when who is first has its own. It is set
// while somebody waits for that and stopped when nobody does, so it ends with the queue
// and the limiter needs no Close. One is enough: who is behind the first waits for it.
//
// No wake-up is lost: every operation sets it, under the lock, to what the core says last.
// If it rings while another operation has the lock, and that sets it anew, its own
// operation comes later, early for the new instant, grants nothing and sets it again.
// The core names an instant after now at which there is enough, so it rings once for each
// grant at the most.
type refill struct {
	timer *time.Timer   // nil until somebody waits for the allowance
	at    time.Duration // what it is set to; 0: it is not
}

// awaitRefill sets the timer to when the core can grant more. The caller holds the lock.
func (l *Limiter) awaitRefill(now time.Duration) {
	at := l.refillCall()
	if at == admission.Never {
		at = 0
	}
	r := &l.refill
	switch {
	case at == r.at:
		return
	case at == 0:
		r.timer.Stop()
	case r.timer == nil:
		r.timer = time.AfterFunc(at-now, l.dispatch)
	default:
		r.timer.Reset(at - now)
	}
	r.at = at
}

// dispatch is what the timer does.
func (l *Limiter) dispatch() {
	now := l.enter()
	l.refill.at = 0
	l.dispatchCall(now)
	l.leave(now)
}
