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

// followEvery and maxFollowed bound what is left on the wire after its deadline: few enough
// that the service is not loaded by them (a sixteenth of those who left, and no more than
// 64), and 1,000 time-outs still tell whether one in ten is answered late (63 of them: none
// has the probability 0.9^63 = 0.1 %).
const (
	followEvery = 16
	maxFollowed = 64
)

// reap ends the calls that reach their deadline, until the run has ended.
func (g *Generator) reap(ended <-chan struct{}) {
	t := time.NewTimer(time.Until(g.start) + g.plan.Deadline)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
		}
		now := time.Since(g.start)
		for cancel := g.overdue(now); cancel != nil; cancel = g.overdue(now) {
			cancel(errGaveUp)
		}
		t.Reset(g.nextDeadline())
	}
}

// overdue returns what cancels the next call that nobody waits for any more.
// Cancelling runs code of the transport, so that is done without the lock.
func (g *Generator) overdue(now time.Duration) context.CancelCauseFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.followed.expired(now - g.plan.Deadline - g.plan.Follow); c != nil {
		return c.cancel
	}
	for {
		c := g.open.expired(now - g.plan.Deadline)
		if c == nil {
			return nil
		}
		if !g.follow(c) {
			return c.cancel
		}
	}
}

// follow reports whether a call that reached its deadline is left on the wire. If so, it has
// timed out here, and is in flight no more. The caller holds the lock.
func (g *Generator) follow(c *call) bool {
	turn := g.expired%followEvery == 0
	g.expired++
	if !turn || g.plan.Follow == 0 || c.paused || g.asked >= maxFollowed {
		return false
	}
	c.follow = true
	g.asked++
	g.inFlight--
	g.followed.push(c)
	g.res.Followed.Asked++
	g.res.count(end{due: c.due, how: gaveUp})
	return true
}

// nextDeadline returns how long the reaper may sleep.
func (g *Generator) nextDeadline() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Since(g.start)
	due, ok := g.open.next()
	if !ok {
		due = now // the next one is not due before now
	}
	next := due + g.plan.Deadline
	if due, ok := g.followed.next(); ok {
		next = min(next, due+g.plan.Deadline+g.plan.Follow)
	}
	return max(next-now, reapEvery)
}
