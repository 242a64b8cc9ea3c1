package admission

import "time"

// What a core does while there is nothing to run work on: no server behind the limiter is
// well. Nobody knows for how long, so it is no overload, from which one could learn, and
// no pause, which may last: who waits does so for a bounded time, in the hope that it is
// soon over, and is then told that there is nothing to run it on. A restart that takes half a
// second so loses nothing.

// DefaultMaxAbsence is how long a request waits for something to run it on: more than a
// process takes to be replaced by another one (0.2 to 0.8 s), and less than most
// clients wait for an answer.
const DefaultMaxAbsence = time.Second

// An absence is the current one, or the last.
type absence struct {
	is       bool
	since    time.Duration // when it began
	over     time.Duration // when the last one ended
	bound    time.Duration // Config.MaxAbsence when it began: so the alarms of one absence follow one rule
	told     bool          // who waited when it began has been told; nobody who came before does from then on (I20)
	overload bool          // what Core.overload was, and is again afterwards
}

// SetPresent says whether there is anything to run work on; at first there is. While there is
// not, nothing is granted or lent, whatever the limit is, and what runs goes on. The law of
// the limit is not asked, and of what happens in between it is told nothing. Newcomers wait
// as deep as the derived depth, since a queue that stands for this reason is no overload, and
// nobody is refused by a prediction. For the same reason Auto does not change the order by it: as
// soon as there is something again the queue drains, and newest-first would leave those to
// the last who have come first: of 60 slots at half their capacity 62 were doomed after 5 s
// without a server, and none under FIFO. Who waits is refused as unavailable after
// Config.MaxAbsence: newcomers by their alarms, and those that waited before by Dispatch
// at the instant of RefillAt.
func (c *Core) SetPresent(now time.Duration, present bool) {
	c.enter(now)
	a := &c.absence
	switch {
	case present != a.is:
	case present:
		a.is, a.over = false, c.now
		c.overload = a.overload
		c.idleness.from, c.idleness.at, c.idleness.slots = c.now, c.now, 0
		c.tide.renew(c.now, c.inUse)
		c.lawAt = c.now
		c.retune()
		c.dispatch()
	default:
		*a = absence{is: true, since: c.now, over: a.over, bound: c.cfg.MaxAbsence, overload: c.overload}
		c.overload = false
		c.retune()
	}
}

// ends returns when the wait of w ends for want of something to run it on.
func (a *absence) ends(w *Waiter) time.Duration { return max(w.offered, a.since) + a.bound }

// lapse refuses those that have waited since before an absence, once that has lasted for as
// long as they may wait. It is one instant for all of them, so nobody's alarm is set anew.
func (c *Core) lapse() {
	a := &c.absence
	if !a.is || a.told || c.now < a.since+a.bound {
		return
	}
	a.told = true
	c.evict(Unavailable, func(w *Waiter) bool { return c.over(w) == Unavailable })
}

// lapsesAt returns the instant at which lapse has somebody to tell; Never if it has not.
func (c *Core) lapsesAt() time.Duration {
	if a := &c.absence; a.is && !a.told && c.waiting > 0 {
		return max(a.since+a.bound, c.now+1)
	}
	return Never
}

// lacking returns why there is no place for a newcomer: one in a queue that nothing serves
// would be free if something did, and whose budget bears no wait would not have to.
func (c *Core) lacking(why Reason) Reason {
	if c.absence.is && (why == QueueFull || why == NoBudget) {
		return Unavailable
	}
	return why
}

// renew begins the current epoch anew under the same limit, and the window of the law with it:
// what both were is forgotten. The epoch before stays what it was, so a law compares what it
// would have compared. The tag between the two is of what began before and ends later.
func (t *tide) renew(now time.Duration, inUse int) {
	t.open[0] = epoch{begun: now, taken: taken{tag: t.open[0].taken.tag + 2}}
	t.arrived, t.delayed, t.ended, t.gone = 0, 0, 0, 0
	t.peak, t.quiet, t.endedAt = inUse, 0, now
}
