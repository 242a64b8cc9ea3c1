package goodput

import (
	"context"
	"errors"
	"time"

	"github.com/goodput/goodput/admission"
)

// A Slot is the right to run, held by one request. The zero Slot, which comes
// with an error, holds nothing, and every method of it does nothing.
//
// It is ended once, by the first of Release, Fail, Abandon and Detach; after
// that every other call on the same variable does nothing, so that a deferred
// Release may follow any of them. A Slot must not be copied, which go vet
// reports, and is not safe for concurrent use: whoever hands it to another
// goroutine hands it over.
type Slot struct {
	_ noCopy

	l      *Limiter      // nil: it holds nothing, or not any more
	start  time.Duration // when it was granted; 0 if it is not timed
	due    time.Duration // the last instant at which the end is in time
	served time.Duration // when the service sample ended; 0 until Served
	waited time.Duration
	size   int
	shadow *waiter // observe mode: its place in the shadow's queue, if it was queued
	cost   int32
	kind   kind
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// kind is what is unusual about a slot.
type kind uint8

const (
	exempt      kind = 1 << iota // outside the limit
	hasDeadline                  // due follows from its own deadline, not from the objective
	observed                     // runs whatever the shadow core decided
	shadowRuns                   // and the shadow core admitted it at once
)

// Release gives the slot back: the work is completed, or late if it ended after
// its deadline or, without one, later than the objective after its arrival. It
// cannot fail and waits for nobody but the holder of a lock that is held for
// about a microsecond.
func (s *Slot) Release() {
	l := s.l
	if l == nil {
		return
	}
	if s.start == 0 && !l.rec.late.Load() && l.lent.giveBack() {
		s.l = nil
		return
	}
	s.finish(Completed, true)
}

// Fail gives the slot back: the work started and failed. It counts in the time
// that slots are held and is no service sample, because a failure says nothing
// about how long success takes. If err is a context error the caller is taken to
// have left, as by Abandon; nil is Release.
func (s *Slot) Fail(err error) {
	switch {
	case err == nil:
		s.Release()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		s.finish(Abandoned, false)
	default:
		s.finish(Failed, false)
	}
}

// Abandon gives the slot back: the caller left before the work ended.
func (s *Slot) Abandon() { s.finish(Abandoned, false) }

// Detach gives the slot back without a sample of any kind, for work that turns
// into something else: a connection that is upgraded lives for hours and says
// nothing about the service time. It counts as completed or late.
func (s *Slot) Detach() { s.finish(Completed, false) }

// Served says that the service sample ends now, as at the header of a response
// whose body takes as long as the client likes to read. The slot is still held.
// Only the first call counts.
func (s *Slot) Served() {
	if s.l != nil && s.start != 0 && s.served == 0 {
		s.served = s.l.now()
	}
}

// Waited returns how long the request waited for the slot.
func (s *Slot) Waited() time.Duration { return s.waited }

// Exempt reports whether the slot is outside the limit: see Work.Exempt.
func (s *Slot) Exempt() bool { return s.kind&exempt != 0 }

// finish ends the slot with outcome o, where Completed becomes Late if it is.
func (s *Slot) finish(o Outcome, sample bool) {
	l := s.l
	if l == nil {
		return
	}
	s.l = nil // from here on every call finds nothing to release
	if o == Completed {
		var now time.Duration
		if o, now = s.judge(l); o == Completed && s.cost == 1 && s.size == 1 && s.kind&^hasDeadline == 0 && l.lent.giveBack() {
			if s.start != 0 {
				l.rec.note(s, o, now, sample)
				l.endWindow(now)
			}
			return
		}
	}
	if s.kind&observed != 0 {
		l.endObserved(s, o, sample)
		return
	}
	now := l.enter()
	l.releaseCall(now, admission.End{Cost: int(s.cost), Outcome: o, Exempt: s.kind&exempt != 0})
	l.leave(now)
	l.rec.note(s, o, now, sample)
}

// judge says whether work that ends now is in time, and when now is. Work that
// is not timed goes the way of the last that was.
func (s *Slot) judge(l *Limiter) (Outcome, time.Duration) {
	if s.start == 0 {
		if l.rec.late.Load() {
			return Late, 0
		}
		return Completed, 0
	}
	now := l.now()
	late := now > s.due
	if s.kind&hasDeadline == 0 && l.rec.late.Load() != late {
		l.rec.late.Store(late)
	}
	if late {
		return Late, now
	}
	return Completed, now
}
