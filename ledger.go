package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// A ledger is the part of admission.Stats that is kept request by request, of some of them. As
// there, arrivals = the sum of outcomes + running + waiting.
type ledger struct {
	inUse, running       int
	waiting, waitingCost int
	waitingBytes         int64
	waitingBy            [admission.Background]int

	arrivals, immediate, dequeued uint64
	outcomes                      [admission.Outcomes]uint64
	refusals                      [admission.Reasons]uint64
}

// run counts one of so much cost that runs from now on.
func (a *ledger) run(cost int) {
	a.running++
	a.inUse += cost
}

// end counts one that ran and ended.
func (a *ledger) end(cost int, o Outcome) {
	a.running--
	a.inUse -= cost
	a.outcomes[o]++
	if a.running < 0 || a.inUse < 0 {
		panic("goodput: more requests have ended than were observed")
	}
}

// wait counts n more at that place in the queue: 1 or -1.
func (a *ledger) wait(place *admission.Waiter, n int) {
	a.waiting += n
	a.waitingCost += n * place.Cost()
	a.waitingBytes += int64(n) * place.Bytes()
	a.waitingBy[place.Priority()-1] += n * place.Cost()
}

// refuse counts one that was refused, and so is not waiting any more.
func (a *ledger) refuse(why Reason) {
	a.outcomes[why.Outcome()]++
	a.refusals[why]++
}

// part returns the part of s that is kept request by request.
func part(s *admission.Stats) ledger {
	return ledger{
		inUse: s.InUse, running: s.Running,
		waiting: s.Waiting, waitingCost: s.WaitingCost, waitingBytes: s.WaitingBytes, waitingBy: s.WaitingBy,
		arrivals: s.Arrivals, immediate: s.Immediate, dequeued: s.Dequeued, outcomes: s.Outcomes, refusals: s.Refusals,
	}
}

// in returns s with a as that part.
func (a *ledger) in(s admission.Stats) admission.Stats {
	s.InUse, s.Running = a.inUse, a.running
	s.Waiting, s.WaitingCost, s.WaitingBytes, s.WaitingBy = a.waiting, a.waitingCost, a.waitingBytes, a.waitingBy
	s.Arrivals, s.Immediate, s.Dequeued, s.Outcomes, s.Refusals = a.arrivals, a.immediate, a.dequeued, a.outcomes, a.refusals
	return s
}

// instead returns a - gone + come.
func (a ledger) instead(gone, come *ledger) ledger {
	a.inUse += come.inUse - gone.inUse
	a.running += come.running - gone.running
	a.waiting += come.waiting - gone.waiting
	a.waitingCost += come.waitingCost - gone.waitingCost
	a.waitingBytes += come.waitingBytes - gone.waitingBytes
	for i := range a.waitingBy {
		a.waitingBy[i] += come.waitingBy[i] - gone.waitingBy[i]
	}
	a.arrivals += come.arrivals - gone.arrivals
	a.immediate += come.immediate - gone.immediate
	a.dequeued += come.dequeued - gone.dequeued
	for i := range a.outcomes {
		a.outcomes[i] += come.outcomes[i] - gone.outcomes[i]
	}
	for i := range a.refusals {
		a.refusals[i] += come.refusals[i] - gone.refusals[i]
	}
	return a
}

// apart returns what really happened and what is the shadow's, of what the core has counted. The
// caller holds the lock.
func (l *Limiter) apart(now time.Duration, core admission.Stats) (real, shadow admission.Stats) {
	o := &l.watched
	all := part(&core).instead(&o.shadow, &o.ran)
	real, shadow = all.in(core), o.shadow.in(core)
	switch { // the core has one age for both
	case shadow.Waiting == 0:
		shadow.Age = 0
	case real.Waiting == 0:
		real.Age = 0
	default:
		real.Age, shadow.Age = l.waiting.age(now), o.waiting.age(now)
	}
	return real, shadow
}

// A line is the waiters of one kind, in the order of their offers: a list by before and after.
type line struct{ first, last *waiter }

func (q *line) push(w *waiter) {
	w.before = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.after = w
	}
	q.last = w
}

func (q *line) remove(w *waiter) {
	if w.before == nil {
		q.first = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		q.last = w.before
	} else {
		w.after.before = w.before
	}
	w.before, w.after = nil, nil
}

// age returns how long the first has waited.
func (q *line) age(now time.Duration) time.Duration {
	if q.first == nil {
		return 0
	}
	return now - q.first.place.Offered()
}
