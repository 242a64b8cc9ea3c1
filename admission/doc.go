// Package admission decides who runs, who waits and who is told no, for one
// resource. It decides and never waits: time is an argument, and there is no
// goroutine, channel, timer, lock, clock or randomness in it. The same calls
// give the same decisions, so the same code runs under production traffic, in a
// simulation and in the replay of a log.
//
// # The model
//
// A Core is one limit, in units of cost, and one bounded queue in front of it.
// Its driver, the goodput package or a simulator, calls
//
//	Offer     a request arrived        -> admitted, queued or refused, at once
//	Release   a running request ended  -> whoever is next is decided
//	Cancel    a waiting caller left, or its alarm rang
//	Observe   what a window of service times showed
//	Lend      hand out the free slots for a fast path; Settle takes them back
//	SetLimit, Reconfigure, Drain
//
// and after each of them takes what else was decided from Next until it is
// empty. Every call that frees capacity has dispatched before it returns: there
// is no tick, and a driver needs no loop.
//
// Time is a time.Duration since an epoch of the driver's choice, monotonic. A
// call with an earlier time than the one before is taken at the latter.
//
// Each waiting request has an alarm: the instant at which it can no longer be
// served, or has waited its bound. The driver sets one timer to Waiter.Alarm
// and calls Cancel with the reason None when it rings; the core looks again and
// either decides or names the next instant. So whoever is doomed is told at its
// doom time, even if no slot ever moves.
//
// A third driver is written in an hour: see Example_driver.
//
// # Invariants
//
// check asserts them after every step of every test and simulation.
//
//   - I1 A grant leaves inUse + lent <= limit, in cost units. A limit that
//     shrinks revokes nothing and grants nothing until inUse has followed.
//   - I2 Work-conserving: between calls, the request that the order puts first
//     does not fit the free slots, or nobody waits.
//   - I3 At the moment of queueing the waiting cost is within the depth in force
//     (Block excepted), and always waiting <= MaxItems, bytes <= MaxBytes.
//   - I4 Each offered request ends in exactly one outcome:
//     arrivals = sum of outcomes + waiting + running.
//   - I5 While anyone waits nothing is granted whose remaining budget is below
//     the service quantile. With a free slot and nobody waiting only an expired
//     request is refused.
//   - I6 Time does not run backwards: now is clamped once, at entry.
//   - I7 Lent slots count as in use; nothing is lent while anyone waits or while
//     over the limit.
//   - I8 Order: see Order. Ties go to the earlier root arrival, then to the
//     earlier offer.
//   - I9 Decisions depend on calls and arguments alone.
//   - I10 Retry-After moves at most once a window, never below MinRetryAfter.
//   - I11 The depth in force never exceeds the derived one, and both carry the
//     arithmetic that gave them: a Derivation.
//   - I12 A slot is released exactly once; releasing more than is in use is a
//     bug of the driver and panics.
package admission
