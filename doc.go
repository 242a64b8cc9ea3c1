// Package goodput keeps a service useful while it is overloaded.
//
// A [Limiter] is one limit and one bounded queue in front of one resource: an
// endpoint, a database pool, a downstream service. It decides at the door. A
// request either runs, or waits in a queue that is short enough for it to be
// answered in time, or is told no at once and with numbers: a [*Rejection].
//
//	lim := goodput.New(goodput.Config{
//		Limit:     limit.Fixed(60),        // what may run at once
//		Objective: 400 * time.Millisecond, // p99 of wait + service that admitted work must meet
//	})
//
//	err := lim.Do(ctx, func(ctx context.Context) error {
//		return search(ctx, query)
//	})
//
// Most callers want [Limiter.Do], which gives the slot back whatever happens.
// [Limiter.Acquire] is for work that is not one function call,
// [Limiter.AcquireWork] for work whose cost, size, priority or deadline should
// count, [Limiter.TryAcquire] for work that must not wait.
//
// # How deep the queue is
//
// It is derived, not configured: the largest depth from which the last one in
// still leaves within the objective, re-derived while the service time changes.
// While an overload lasts the depth shrinks to what keeps the slots busy,
// because a queue that never empties makes everybody late and serves nobody.
// [Limiter.Explain] shows the arithmetic.
//
// # Who gets what there is
//
// Without a word about it, who sends most. [Config.Tenants] gives each tenant a share by
// weight, a quota and a ceiling, [Config.Reserve] leaves a part to each priority, and
// [Work.User] has the same users shed everywhere. A [Group] is several limiters under one
// budget that lend what they do not use. [Limiter.Tenants] and [Limiter.Explain] say who
// has what. All of it costs nothing where it is not used; with Tenants or a Reserve every
// request takes the lock.
//
// # Words
//
// The deadline is when the caller stops caring: that of its context, or
// Work.Deadline if that is earlier. The objective is the latency that admitted
// work must meet; it sizes the queue and is never a deadline. Work is in time
// if it ended before its deadline and, if it has none, within the objective of
// its arrival. Each arrival has exactly one [Outcome], and [Limiter.Stats]
// counts them all.
//
// # Cost
//
// A Limiter owns no goroutine and no timer and needs no Close. Acquire and
// Release allocate nothing, unless they wait or cost more than one unit, and a
// refusal at the door does not either; while slots are free each is one
// compare-and-swap.
// The clock is read for one request in k only: k is 1 below 10,000 requests per
// second, so such services are timed exactly, and grows with the rate up to 64.
// Requests that carry a deadline or that waited are timed always. An end that
// was not timed counts as in time or late like the last one that was, and the
// histograms of [Stats] hold what was timed, each for those that it stands for.
//
// A Limiter is safe for concurrent use. Time is monotonic: steps of the wall
// clock change nothing.
package goodput
