package goodput

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/admission"
)

// A waiter is one goroutine in the queue. It owns one channel and one timer and
// nobody else touches the timer. A message on the channel means "look again":
// either the core has decided, or the alarm rang and the core must be asked.
//
// Invariant: decided is set under the lock, once, after the fields below it and
// before the message. So whoever finds it set reads them safely, and a message
// that finds the channel full is not lost: the one in it does the same.
type waiter struct {
	place   *admission.Waiter
	ready   chan struct{} // capacity 1; nil for one whose request is observed, which nobody waits for
	timer   *time.Timer   // rings at the alarm of place
	service time.Duration // what must fit its budget, as known when it queued
	decided atomic.Bool

	refusal   *Rejection // shared; nil if admitted
	free      *rare      // of the slot of one that was let run when the limiter began to observe; its place is then the shadow's
	decidedAt time.Duration

	// In its line, guarded by the lock of the limiter; once it is out of it, after is the next of
	// those to wake, guarded by whoever collected them.
	before, after *waiter
}

// waited returns how long it waited, once it is decided. When it was offered does not change.
func (w *waiter) waited() time.Duration { return w.decidedAt - w.place.Offered() }

// look tells the waiter to look again.
func (w *waiter) look() {
	if w.ready == nil {
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// wake tells those of a list by after to look again. No lock is held.
func wake(first *waiter) {
	for w := first; w != nil; w = w.after {
		w.look()
	}
}

// enqueue makes the waiter of a queued request. The caller holds the lock.
func (l *Limiter) enqueue(d *admission.Decision) *waiter {
	w := &waiter{place: d.Waiter, service: d.Service, ready: make(chan struct{}, 1)}
	d.Waiter.Ref = w
	l.waiting.push(w)
	return w
}

// collect returns those that the core has decided since the last time, as a
// list, and notes for each what became of it. The caller holds the lock.
func (l *Limiter) collect(now time.Duration) (first *waiter) {
	last := &first
	for p := l.nextCall(); p != nil; p = l.nextCall() {
		w := p.Ref.(*waiter)
		l.decide(now, w)
		*last, last = w, &w.after
	}
	return first
}

// decide notes what the core decided about w. The caller holds the lock.
func (l *Limiter) decide(now time.Duration, w *waiter) {
	if w.decided.Load() {
		return
	}
	if w.ready == nil {
		l.decideShadow(now, w)
	} else {
		l.waiting.remove(w)
	}
	w.decidedAt = now
	waited := w.waited()
	if w.place.Verdict() == admission.Admitted {
		if w.ready != nil {
			l.rec.admitted++
		}
		l.wait[WaitAdmitted].Add(waited)
	} else {
		reason := w.place.Reason()
		if reason.Outcome() == Cancelled {
			l.wait[WaitCancelled].Add(waited)
		} else {
			l.wait[WaitRefused].Add(waited)
		}
		if w.ready != nil {
			t := l.refusal(now, reason, nil, nil)
			if t.count == 0 { // nobody has it yet
				t.ground = w.place.Ground()
			}
			if w.refusal = l.refuse(now, t); t.count == 1 {
				t.waited, t.service = waited, w.service
			}
		}
	}
	w.decided.Store(true)
}

// await parks until w is decided and returns nil if it was admitted. The alarm
// rings after the given time at first.
func (l *Limiter) await(ctx context.Context, w *waiter, alarm time.Duration) *Rejection {
	// The decision may have been taken already, by an operation after the one
	// that queued w; then the message is in the channel.
	w.timer = time.AfterFunc(alarm, w.look)
	defer w.timer.Stop()
	for !w.decided.Load() {
		select {
		case <-w.ready:
			if !w.decided.Load() {
				l.ask(w, None, None)
			}
		case <-ctx.Done():
			if expired(ctx) {
				// The core sees for itself that the deadline has passed. If
				// it does not, the context has a notion of its own.
				l.ask(w, None, Client)
			} else {
				l.ask(w, cancelled(ctx), None)
			}
		}
	}
	switch {
	case w.free != nil:
		return nil // whether its caller is there or not, as whoever comes while the limiter observes
	case w.refusal != nil:
		own := w.refusal.after(w.waited(), w.service)
		own.Nested = l.holds(ctx)
		return own
	case ctx.Err() != nil:
		return l.decline(ctx, w)
	}
	return nil
}

func expired(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// ask has the core look at w again: its alarm rang (None), or its caller left.
// If that does not decide and there is another reason, it stands. Grant and
// cancellation both happen in the core, under the lock, so they cannot cross:
// whichever came first is what became of w.
func (l *Limiter) ask(w *waiter, why, otherwise Reason) {
	now := l.enter()
	if !w.decided.Load() {
		decided := l.cancelCall(now, w.place, why)
		if !decided && otherwise != None {
			decided = l.cancelCall(now, w.place, otherwise)
		}
		if decided {
			l.decide(now, w)
		}
	}
	alarm := w.place.Alarm() // after now, unless it is decided
	l.leave(now)
	if !w.decided.Load() {
		w.timer.Reset(alarm - now)
	}
}

// decline gives back the slot of a caller that left at the moment at which it
// was granted: it must not run. The core had admitted it, so the counters say
// abandoned; the caller never started, so its Rejection says Cancelled or Expired.
func (l *Limiter) decline(ctx context.Context, w *waiter) *Rejection {
	reason := Deadline
	if !expired(ctx) {
		reason = cancelled(ctx)
	}
	now := l.enter()
	l.releaseCall(now, admission.End{Cost: w.place.Cost(), Outcome: Abandoned, Share: w.place.Share()})
	refusal := &l.refusal(now, reason, nil, nil).Rejection // nobody counts it as one: see Rejection
	l.leave(now)
	own := refusal.after(w.waited(), w.service)
	own.declined = true
	return own
}

// Declined reports whether the request had been given a slot, which its caller, having left at
// that moment, did not take. It has not run; but Stats counts it as abandoned, and not by the
// Outcome and the Reason of r.
func (r *Rejection) Declined() bool { return r.declined }
