// Package pool runs work that computes in as many goroutines as there are CPUs to compute
// on: thumbnails, compression, hashing of passwords, rendering. A [Pool] is fed by a
// [goodput.Limiter], so its queue is bounded, knows deadlines, and says no with numbers.
//
//	p := pool.New(goodput.New(goodput.Config{
//		Limit:     limit.Fixed(1), // the pool keeps it at GOMAXPROCS
//		Objective: 2 * time.Second,
//	}), pool.GOMAXPROCS)
//
//	thumbnail, err := pool.Do(ctx, p, goodput.Work{}, func(ctx context.Context) (image.Image, error) {
//		return scale(ctx, photo)
//	})
//
// Most callers want [Do], which waits for the result. [Submit] never waits and hands out
// a [Task]; [Start] waits for a slot but not for the result, for producers that should go
// at the pace of the pool. What a full queue does is [goodput.Config.Overflow] of the
// limiter: displace, refuse, evict, keep the latest of a key, block.
//
// More than GOMAXPROCS goroutines that compute make each other slower: all of them are
// late together, and the goroutines that serve the network wait for their turn among
// them. With as many as there are CPUs those that began are soon done, and who cannot be
// done in time is told so at the door.
//
// # One outcome each
//
// What is handed in ends in exactly one way: the value and the error of its function, a
// [*goodput.Rejection] if it never ran, a [*PanicError], [ErrGoexit]. A task that was
// refused at the door is refused by the call that hands it in; what waits and is evicted,
// replaced, expired, doomed or drained is told so when that is decided, which may be
// before its deadline.
//
// A function that ignores its context holds its slot until it returns, whoever has
// stopped waiting: no goroutine can be ended from outside, and a slot that is given back
// while the work goes on would be a limit that is not kept.
//
// # Goroutines
//
// A task has a goroutine from when it is accepted until it has its outcome. There are at
// most limit + depth of them (limit + MaxItems under Block), and about a thousand that have
// just lost their place. In observe mode there is no bound. There are no workers that wait
// for work. A goroutine of Go costs less to start than a parked one to wake, and has a stack that the runtime uses over and over; parked workers would have to
// be counted, resized when GOMAXPROCS changes and closed; and a worker that a task has left
// in an odd state, by runtime.LockOSThread or a grown stack, serves the next one.
// BenchmarkWorkers has them side by side: a bare goroutine is done in 0.2 to 0.4 µs, a worker
// on a channel in 0.35 to 0.5, and Do, with all that it decides and counts, in 0.7 to 0.9.
//
// # When not to use it
//
// For work that waits: for a database, a disk, another service. It would hold one of a few
// slots and compute nothing. Put a [goodput.Limiter] in front of what it waits for, with
// the limit of that (goodputsql, goodputhttp.Transport), and nothing in front of the
// waiting. A task that must wait in between, for a lock or a limiter, marks that by
// [goodput.Downstream].
//
// A task is one goroutine. If it starts others that compute, say how many by Work.Cost: a
// task that uses four threads costs 4.
package pool
