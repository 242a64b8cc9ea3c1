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
//	Dispatch  the instant of RefillAt has come: with an Allowance there is more to grant
//	SetLimit, SetPresent, Reconfigure, Drain
//	Hold      its decisions are not followed: the law is not asked meanwhile
//	Resize    a Budget has granted the core of a member another limit
//
// and after each of them takes what else was decided from Next until it is
// empty. Every call that frees capacity has dispatched before it returns: there
// is no tick, and a driver needs no loop. The one capacity that no call frees is that of
// an Allowance, which comes with time: RefillAt says when who is first has it.
//
// Time is a time.Duration since an epoch of the driver's choice, monotonic. A
// call with an earlier time than the one before is taken at the latter.
//
// Each waiting request has an alarm: the instant at which it can no longer be
// served, or has waited its bound. The driver sets one timer to Waiter.Alarm
// and calls Cancel with the reason None when it rings; the core looks again and
// either decides or names the next instant. So whoever is doomed is told at its
// doom time, as that was known when it queued, even if no slot ever moves: if
// the service has become slower since, it is told a little late, and faster, the
// alarm is set again.
//
// # A driver
//
// Example_driver has all of it in a hundred lines. What is easy to get wrong:
//
//   - The zero Request has the Deadline 0, which is over: say Never. Its Arrival
//     is the epoch, which makes it the oldest of all: say now.
//   - Set Waiter.Ref, if at all, before the next call of Next.
//   - Take Next until it is nil after every call. It does not return whom Offer or
//     Cancel have just answered about.
//   - When an alarm rings and Cancel(None) returns false, set the timer to the
//     new Alarm, which is after now.
//   - Call Observe every Objective/8, but no less than 5 ms and no more than
//     100 ms apart, with what was measured since, even if that is nothing: the law
//     of the limit is asked then, and what is old is forgotten.
//   - With an Allowance, or with SetPresent, look at RefillAt after every call, and have one timer call
//     Dispatch at that instant; it may be another one after each call. Without one it is
//     Never. A call that is late loses nothing until the bucket is full.
//   - A probe within Config.Exempt is admitted whatever the load is, and
//     Decision.Exempt says so: it is released with End.Exempt. Beyond that it is
//     a request like any other, with Decision.Exempt false.
//   - While slots are lent every call that takes a time panics, but Settle.
//   - Whoever was admitted, at once or later, has a Share: it goes back in End.Share.
//     Without Tenants it is 0, and a driver that has none need not care.
//   - A panic is a bug of the driver or of the core. A core that has panicked is
//     not to be called again.
//
// # Invariants
//
// Check asserts them after every step of every test and simulation, but for those
// that a state does not show: I5 is for the model, which decides every call by
// itself (TestModel), and the stories deadline and doomed; I6 for the story
// deadline; I9 for TestSameCallsSameStats; the bounds of I13, I15, I17 and I19 for
// TestFairnessBound, TestQuotaInAnySpan, TestReserveBound and TestAllowanceInAnySpan, and who gives way in I18
// for TestScheduleKeepsTheMost.
//
//   - I1 A grant leaves inUse + lent <= limit, in cost units. A limit that
//     shrinks revokes nothing and grants nothing until inUse has followed.
//   - I2 Work-conserving: between calls, whoever is next does not fit the free slots, or
//     did not fit the allowance at the last call that decided. Who waits for the ceiling
//     of its own tenant is passed.
//   - I3 At the moment of queueing the waiting cost, less what waits for a ceiling, is
//     within the derived depth, and that of the newcomer's tenant and priority within
//     its own part of it, in an overload within what keeps its share busy; that is the
//     depth in force where there is one tenant and priority. Except under Block, for a
//     request that waits alone, whatever it costs, and for one whose deadline is within
//     the objective in a tight limiter (Derivation.Tight), where the service leaves that
//     nothing to wait (Derivation.Chances), or where sizes are trusted
//     (Derivation.Sizes). Always waiting <= MaxItems, bytes <= MaxBytes.
//   - I4 Each offered request ends in exactly one outcome:
//     arrivals = sum of outcomes + waiting + running.
//   - I5 While anyone waits nothing is granted whose remaining budget is below
//     the service quantile, that of the objective or, in a tight limiter, the p95; of a
//     budget that never had room for that, below the same quantile of the services that
//     fit the whole of it, if most do. But for a tenant that asks for no more than its
//     share in an overload, which is that of others. While nobody waits, a request that
//     fits the free slots is refused only if it has expired, is larger than MaxBytes, or
//     comes during a drain.
//   - I6 Time does not run backwards: now is clamped once, at entry.
//   - I7 Lent slots count as in use; nothing is lent while anyone waits, while over
//     the limit, or where it matters who is admitted or when: with Tenants, a Reserve or
//     an Allowance.
//   - I8 Order, within a tenant and priority: see Order. Ties go to the earlier root arrival, then to the
//     earlier offer.
//   - I9 Decisions depend on calls and arguments alone.
//   - I10 What is told others moves slowly. Per window a law takes its limit to at most
//     twice of what it was, or 4 more if that is more, and to no less than half, so never to 0;
//     whoever calls SetLimit, Reconfigure or Resize sets it at once. Retry-After moves by
//     at most a second up per window of a second, or halves; it is longer only while
//     the queue itself takes longer to drain, and is 1 to 20 s, before jitter.
//   - I11 The depth in force never exceeds the derived one, which carries the
//     arithmetic that gave it: a Derivation. Below that it is what keeps the
//     slots busy at Stats.Load: see Standing; times what of it has turned out to be too
//     little. While the law searches it is never below.
//   - I12 A slot is released exactly once; releasing more than is in use is a
//     bug of the driver and panics.
//   - I13 Fairness: while two tenants wait in one priority, neither at its ceiling,
//     what they are served, in cost over weight, differs by no more than the largest
//     cost of each over its weight. Virtual time does not fall, and nobody has a start
//     tag before it for the time in which it asked for nothing.
//   - I14 A grant leaves a tenant within its MaxInUse; all that tenants have in use is
//     at most what is in use.
//   - I15 In any span t a tenant is granted at most what of it waited at the start
//     and, besides, the burst of its quota and rate x t: a quota is spent when a
//     request is accepted, and what is dropped is paid back. A Charge is found out
//     later, and delays what comes next. Who is refused for it is told when it has
//     enough.
//   - I16 Under LatestOnly no two wait with the same key of the same tenant.
//   - I17 Over any time in which a priority waits it is granted its reserve of what
//     all are granted, less the largest request of each priority and one more of the
//     largest, once it is known what a request costs. With reserves of nearly 1 the
//     aging guard takes some of it.
//   - I18 Where sizes are trusted each line has a schedule of who waits, in the order of
//     EDF, or is too long for one. Nobody gives way to a newcomer that is refused, or
//     that ranks below: see schedule.go.
//   - I19 In any span t what is granted costs at most the burst of the Allowance and
//     rate x t. A Charge is found out later, and delays what comes next, or is given back.
//   - I20 While there is nothing to run work on nothing is granted or lent, and the law is not
//     asked. Who waits does so for at most MaxAbsence of that time, as it was when it began: the
//     alarm of a newcomer is no later, and nobody waits from before it once that has passed.
package admission
