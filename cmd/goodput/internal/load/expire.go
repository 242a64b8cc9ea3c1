package load

import (
	"context"
	"time"
)

// expiries is the queue of the calls in the order in which they were due, and so
// of their deadlines. Ended ones leave it when their turn comes: at the most a
// deadline's worth of arrivals is in it.
type expiries struct {
	calls []*call
	head  int
}

func (e *expiries) push(c *call) { e.calls = append(e.calls, c) }

// expired removes and returns the next call that was due at or before then and
// has not ended; nil if there is none.
func (e *expiries) expired(then time.Duration) *call {
	for e.head < len(e.calls) && e.calls[e.head].due <= then {
		c := e.calls[e.head]
		e.calls[e.head] = nil
		e.head++
		if e.head > len(e.calls)/2 {
			// Copying half of them for each half that left: two moves a call.
			n := copy(e.calls, e.calls[e.head:])
			clear(e.calls[n:])
			e.calls, e.head = e.calls[:n], 0
		}
		if c.cancel != nil {
			return c
		}
	}
	return nil
}

// next returns when the first of them was due.
func (e *expiries) next() (time.Duration, bool) {
	if e.head == len(e.calls) {
		return 0, false
	}
	return e.calls[e.head].due, true
}

// reapEvery is how exact a deadline is kept, and how often a busy reaper wakes.
// Who is given up on counts at its deadline, whenever this happened.
const reapEvery = time.Millisecond

// reap cancels the calls that reach their deadline, until the run has ended.
func (g *Generator) reap(ended <-chan struct{}) {
	t := time.NewTimer(g.plan.Deadline)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
		}
		then := time.Since(g.start) - g.plan.Deadline
		for cancel := g.overdue(then); cancel != nil; cancel = g.overdue(then) {
			cancel(errGaveUp)
		}
		t.Reset(g.nextDeadline())
	}
}

// overdue returns what cancels the next call that was due at or before then.
// Cancelling runs code of the transport, so that is done without the lock.
func (g *Generator) overdue(then time.Duration) context.CancelCauseFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.open.expired(then); c != nil {
		return c.cancel
	}
	return nil
}

// nextDeadline returns how long the reaper may sleep.
func (g *Generator) nextDeadline() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	due, ok := g.open.next()
	if !ok {
		due = time.Since(g.start) // the next one is not due before now
	}
	return max(due+g.plan.Deadline-time.Since(g.start), reapEvery)
}
