package goodput

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A Slot is the right to run, held by one request. The zero Slot, which comes
// with an error, holds nothing, and every method of it does nothing.
//
// It is ended once, by the first of Release, Fail, Dropped, Abandon and Detach; after
// that every other call on the same variable does nothing, so that a deferred
// Release may follow any of them. A Slot must not be copied, which go vet
// reports, and is not safe for concurrent use: whoever hands it to another
// goroutine hands it over.
//
// It has four words and four fields because the compiler returns that much in
// registers: with six words Acquire and Release took 30 ns instead of 12.
type Slot struct {
	of    owner
	start time.Duration // when it was granted; 0 if it is not timed; how long it was held once it has ended
	due   time.Duration // the last instant at which its end is in time; sampled or each for the objective after start; its Outcome once it has ended
	rare  *rare         // nil for most
}

// Of a slot without an instant at which it is due: whether it is timed as one of several of
// its kind, as those of the fast path are that have nothing unusual about them, or as all of
// them are. No instant is either: those of arrivals may be before that of the limiter, but
// not by centuries.
const (
	sampled time.Duration = 0
	each    time.Duration = math.MinInt64
)

// An owner is the limiter of a slot; nil if the slot holds nothing, or not any
// more. Its methods make go vet report copies of a Slot.
type owner struct{ l *Limiter }

func (*owner) Lock()   {}
func (*owner) Unlock() {}

// rare is what most slots do not have: they did not wait, cost one unit, are of size
// one and on nobody's account. Those that have an account use the same ones over and
// over: see accounts.
type rare struct {
	waited  time.Duration
	served  time.Duration // when the service sample ended; 0 until Served
	answer  time.Duration // when the caller was answered; 0 until Answered
	absence *absence      // the time in which its work is elsewhere; nil without Context
	shadow  *waiter       // observe mode: its place in the shadow's queue, if it was queued
	next    *rare         // of the spare ones
	size    int           // as offered
	sized   int           // as it turned out to be; 0: as offered
	cost    int32         // as offered: the units that are held
	charge  int32         // as it turned out to be; 0: as offered
	share   admission.Share
	kind    kind
	lent    bool // it goes back to accounts.spare; such a slot did not wait
}

// kind is what is unusual about a slot.
type kind uint8

const (
	exempt     kind = 1 << iota // outside the limit
	observed                    // runs whatever the shadow core decided
	shadowRuns                  // and the shadow core admitted it at once
	dropped                     // the resource refused it
	unsampled                   // how long it takes says nothing
)

// plain is what a slot without a rare part has in its place.
var plain = rare{size: 1, cost: 1}

// get returns the rare part to read.
func (s *Slot) get() *rare {
	if s.rare == nil {
		return &plain
	}
	return s.rare
}

// end is what the core is told at the end.
func (r *rare) end(o Outcome) admission.End {
	return admission.End{
		Cost: int(r.cost), Outcome: o, Exempt: r.kind&exempt != 0, Share: r.share, Charge: int(r.charge),
	}
}

// isOne reports whether the slot is an ordinary unit of cost, as are those on
// the fast path, however it came by it.
func (r *rare) isOne() bool { return r.cost == 1 && r.kind == 0 }

// Release gives the slot back: the work is completed, or late if it ended after
// its deadline or, without one, later than the objective after its arrival. It
// cannot fail, and waits for nobody but the holder of a lock that is held for
// about a microsecond.
func (s *Slot) Release() {
	l := s.of.l
	if l == nil {
		return
	}
	if s.start == 0 && !l.rec.late.Load() && l.lent.giveBack() {
		s.of.l = nil
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
		s.finish(Abandoned, true)
	default:
		s.finish(Failed, true)
	}
}

// Dropped gives the slot back: the resource refused the work, being over a limit of its own,
// so that it did not run there. It counts as failed, is no service sample, and tells the law
// of the limit to ask for less. An error of the work itself is Fail, and a caller that left
// Abandon: neither says that there was too much.
func (s *Slot) Dropped() {
	if s.of.l == nil {
		return
	}
	s.part().kind |= dropped
	s.finish(Failed, true)
}

// Abandon gives the slot back: the caller left before the work ended.
func (s *Slot) Abandon() { s.finish(Abandoned, true) }

// Detach gives the slot back without a sample of any kind, for work that turns
// into something else: a connection that is upgraded lives for hours and says
// nothing about the service time. It counts as completed or late.
func (s *Slot) Detach() { s.finish(Completed, false) }

// Unsampled says that the slot gives no sample of any kind, however it ends: for work that
// lasts as long as its caller likes, such as a stream, and whose length says nothing of the
// resource. Its outcome counts as ever, and so does what the resource refused.
func (s *Slot) Unsampled() {
	if s.of.l != nil {
		s.part().kind |= unsampled
	}
}

// Served says that the service sample ends now, as at the header of a response
// whose body takes as long as the client likes to read. The slot is still held.
// Only the first call counts.
func (s *Slot) Served() {
	if r := s.write(); r != nil && r.served == 0 {
		r.served = s.of.l.now()
	}
}

// Answered says that the caller is answered now, although the slot is held on:
// work goes on that nobody waits for. Whether it was in time is judged as of now,
// and the service sample ends. Only the first call counts.
func (s *Slot) Answered() {
	s.Served()
	if r := s.write(); r != nil && r.answer == 0 {
		r.answer = s.of.l.now()
	}
}

// SetCost corrects what the work was said to cost, once that is known: 1 to 2^20 units,
// clamped. The tenant is charged n instead, in its share and its quota, when the slot
// ends: the quota of one that said 1 and was 100 is then 99 lower, perhaps below 0. The
// last call counts. The units of the limit that it holds stay as they are, and so does
// what is learned of how long a unit is held. Config.Allowance is charged likewise. Without
// either it changes nothing.
func (s *Slot) SetCost(n int) {
	if r := s.write(); r != nil {
		r.charge = int32(min(max(n, 1), limit.Max))
	}
}

// SetSize corrects what the work was said to be in size, once that is known: 1 to 2^31-1,
// clamped. The service sample is then of that size. The last call before the end counts.
// It changes neither what the work costs nor what was decided about it.
func (s *Slot) SetSize(n int) {
	if r := s.write(); r != nil {
		r.sized = min(max(n, 1), math.MaxInt32)
	}
}

// write returns the rare part to write to; nil if the slot holds nothing, or gives no
// sample and has no account.
func (s *Slot) write() *rare {
	if s.of.l == nil || s.start == 0 {
		return nil
	}
	return s.part()
}

// part returns the rare part, which it makes if there is none.
func (s *Slot) part() *rare {
	if s.rare == nil {
		own := plain
		s.rare = &own
	}
	return s.rare
}

// Waited returns how long the request waited for the slot.
func (s *Slot) Waited() time.Duration { return s.get().waited }

// Exempt reports whether the slot is outside the limit: see Work.Exempt.
func (s *Slot) Exempt() bool { return s.get().kind&exempt != 0 }

// Outcome returns how the slot ended, as it is counted in Stats.Outcomes: Completed, Late,
// Failed or Abandoned; Pending before that. It means nothing for a Slot that came with an
// error, and is no part of the counters if the slot is Exempt.
func (s *Slot) Outcome() Outcome {
	switch {
	case s.of.l != nil:
		return Pending
	case s.due == sampled: // Release without the clock has no time for a note
		return Completed
	}
	return Outcome(s.due)
}

// Held returns how long the slot was held, once it has ended. 0: it has not, or it was not
// timed, as most are not that have no deadline and do not wait.
func (s *Slot) Held() time.Duration {
	if s.of.l != nil {
		return 0
	}
	return s.start
}

// Service returns how long after its start Served was called first. 0: it was not, the slot
// has ended, or it is not timed.
func (s *Slot) Service() time.Duration {
	if r := s.get(); s.of.l != nil && r.served != 0 {
		return max(r.served-s.start, 1)
	}
	return 0
}

// Observed reports whether the slot runs because its limiter observed, and whether the limiter
// would have refused it at the door: see Config.Observe.
func (s *Slot) Observed() (is, refused bool) {
	r := s.get()
	is = r.kind&observed != 0
	return is, is && r.kind&(exempt|shadowRuns) == 0 && r.shadow == nil
}

// finish ends the slot with outcome o, where Completed becomes Late if it is.
func (s *Slot) finish(o Outcome, sample bool) {
	l := s.of.l
	if l == nil {
		return
	}
	s.of.l = nil // from here on every call finds nothing to release
	var now time.Duration
	if s.start != 0 {
		now = l.now()
	}
	r := s.get()
	ended := now
	if r.answer != 0 {
		ended = r.answer
	}
	if o == Completed && s.isLate(l, ended) {
		o = Late
	}
	l.rec.note(s, o, now, sample)
	s.due = time.Duration(o)
	timed := s.start != 0
	if timed {
		s.start = max(now-s.start, 1)
	}
	switch {
	case o == Completed && r.isOne() && l.lent.giveBack():
		if timed {
			l.endWindow(now)
		}
	case r.kind&observed != 0:
		l.endObserved(r, o)
	default:
		now = l.enter()
		l.releaseCall(now, r.end(o))
		l.accounts.keepRare(s)
		l.leave(now)
	}
}

// isLate reports whether work that ends at now is late. Work that is not timed
// goes the way of the last that was and had no deadline either.
func (s *Slot) isLate(l *Limiter, now time.Duration) bool {
	switch {
	case s.start == 0:
		return l.rec.late.Load()
	case s.due != sampled && s.due != each:
		return now > s.due
	}
	late := now > s.start+l.settings.Load().objective
	if l.rec.late.Load() != late {
		l.rec.late.Store(late)
	}
	return late
}
