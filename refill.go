package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// A refill is the timer of Config.Allowance, and of Config.MaxAbsence for those that waited
// before. Slots come back with a call, these come with time, so somebody must be there then. It is set
// while somebody waits for either and stopped when nobody does, so it ends with the queue
// and the limiter needs no Close. One is enough: who is behind the first waits for it.
//
// No wake-up is lost: every operation sets it, under the lock, to what the core says last.
// If it rings while another operation holds the lock and sets it anew, it runs after that
// one: too early, so it grants nothing and sets it again.
// The core names an instant after now at which there is enough, so it rings once for each
// grant at the most.
type refill struct {
	timer *time.Timer   // nil until somebody waits for either
	at    time.Duration // what it is set to; Never: it is not
}

// awaitRefill sets the timer to when the core can grant more, which is another instant than
// it is set to. The caller holds the lock.
func (l *Limiter) awaitRefill(now time.Duration) {
	r := &l.refill
	switch r.at = l.refillCall(); {
	case r.at == admission.Never:
		r.timer.Stop()
	case r.timer == nil:
		r.timer = time.AfterFunc(r.at-now, l.dispatch)
	default:
		r.timer.Reset(r.at - now)
	}
}

// dispatch is what the timer does.
func (l *Limiter) dispatch() {
	now := l.enter()
	l.refill.timer.Stop() // it may have been set again while this waited for the lock
	l.refill.at = admission.Never
	l.dispatchCall(now)
	l.leave(now)
}
