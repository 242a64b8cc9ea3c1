package goodput

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"
)

// A Gathering says how much a fan-out needs and when it has enough. T is what one call
// answers. Two numbers say it all:
//
//	all of n              Min: n                  over at once when one is missing
//	the first k           Min: k, Enough: k       the others are cancelled at once
//	a quorum              the same with k = n/2+1
//	what comes in time    Min: m                  waits for all n; fewer than m is an error
//	good enough           Min: m, Enough: k       at most k; with m it makes do at the end
//	and not for long      Min: m, Linger: d       with m it makes do d later
//
// It is over as soon as what is still to come cannot change the verdict: Enough have
// come, or so many failed that Min cannot be reached.
type Gathering[T any] struct {
	// Min is how many results make an answer; fewer are a *Shortfall: 1 to 2^20. Default
	// 1, so that an answer without any part is never taken for one; what came is returned
	// with the Shortfall, and who can do with nothing ignores that. With n = 0 and no Min
	// nothing is needed.
	Min int

	// Enough ends the gathering when so many results have come: Min to 2^20, where more
	// than n are n. Default n: every call that can still answer in time is waited for.
	Enough int

	// Linger is how much longer the rest is waited for once Min have come: 1 ns to 24 h.
	// Default: until the time is up. Without it one part that hangs costs each gathering all
	// of its time, and whoever calls holds its slot so long: 20 slots that wait half a second
	// for the fifth of five shards serve 40 requests per second, and with 20 ms a few hundred.
	Linger time.Duration

	// Margin is kept back from the deadline, to assemble the answer and to send it: 1 ns,
	// which is none, to 24 h. Default 20 ms, or a tenth of the time that is left if that
	// is less. Go lets another goroutine run for 10 ms before it is told to make place, so
	// on a busy machine Gather may go on that much later than its timer says, and 10 ms
	// are left for the answer; a budget of 50 ms has no 20 ms to give, so it gives 5.
	// Without a deadline there is nothing to keep it back from.
	Margin time.Duration

	// Parallel is how many calls run at once: 1 to 65,536. Default 1,024. A goroutine
	// takes about 8 KiB with what an HTTP call puts on its stack, so 1,024 take 8 MiB. The
	// others wait for their turn in the order of their index, and are not started any more
	// once the gathering is over.
	Parallel int

	// Discard is told what a call returned that came too late or was not needed any more,
	// for a result that must be closed or an error that must be logged. If the call
	// panicked after the gathering was over, err is the *Panic. It runs in the goroutine of
	// the call, perhaps after Gather has returned, and a panic of it is not caught. nil
	// drops what comes late.
	Discard func(i int, v T, err error)
}

// MaxGather is how many calls one Gather may make: 2^20. A part that is kept has an index,
// a value and a byte of state; a million of them are a report, not an answer.
const MaxGather = 1 << 20

const (
	// mostParallel bounds goroutines: 65,536 x 8 KiB = 512 MiB.
	mostParallel    = 1 << 16
	defaultParallel = 1 << 10
	defaultMargin   = 20 * time.Millisecond
	longestMargin   = 24 * time.Hour
)

// Validate returns one sentence about the first field that is out of range or contradicts
// another, or nil.
func (g Gathering[T]) Validate() error {
	switch {
	case g.Min < 0 || g.Min > MaxGather:
		return fmt.Errorf("a gathering needs %d results: 1 to %d, or 0 for 1", g.Min, MaxGather)
	case g.Enough < 0 || g.Enough > MaxGather:
		return fmt.Errorf("%d results are enough for a gathering: 1 to %d, or 0 for all", g.Enough, MaxGather)
	case g.Enough > 0 && g.Enough < g.Min:
		return fmt.Errorf("a gathering has enough with %d results and needs %d: enough is at least what is needed", g.Enough, g.Min)
	case g.Linger < 0 || g.Linger > longestMargin:
		return fmt.Errorf("a gathering lingers for %v: 1ns to %v, or 0 for as long as there is time", g.Linger, longestMargin)
	case g.Margin < 0 || g.Margin > longestMargin:
		return fmt.Errorf("the margin of a gathering is %v: 1ns to %v, or 0 for the default", g.Margin, longestMargin)
	case g.Parallel < 0 || g.Parallel > mostParallel:
		return fmt.Errorf("a gathering runs %d calls at once: 1 to %d, or 0 for %d", g.Parallel, mostParallel, defaultParallel)
	}
	return nil
}

// Gather makes n calls at once and returns what they answered inside the budget of ctx,
// with a note of what is missing. It is for work that is split over shards or replicas: a
// page with 97 of 100 parts in time is worth more than a full one that nobody waits for.
// At 100 calls, of which each is slow once in a hundred times, 63 % of all pages have a
// slow part (1 - 0.99^100).
//
//	got, err := goodput.Gather(ctx, goodput.Gathering[Hits]{Min: 90}, len(shards),
//		func(ctx context.Context, i int) (Hits, error) { return shards[i].Search(ctx, query) })
//
// The context of the calls ends Margin before the deadline of ctx, never later than ctx:
// there is no fresh budget. It also ends when the gathering is over, with a cause that
// matches ErrUnneeded. So a result must be complete when its call returns: read the body
// of a response in the call. A call may Gather in turn, and keeps a margin of what it was
// given.
//
// Gather returns when the gathering is over, whatever the calls do. A call that looks at
// its context ends with it. One that does not keeps its goroutine until it returns: it
// writes nothing any more, and what it returns goes to Discard. Gathered.Left counts them.
// Without a deadline, Gather waits for the calls that are needed, as long as they take.
//
// The error is a *Shortfall if fewer than Min came, and nil otherwise, even if ctx has
// ended meanwhile. The Gathered is never nil and has what came in both cases.
//
// A panic of a call ends the gathering and goes on in the caller, as a *Panic with the
// stack of the call; what had come goes to Discard. A call that panics when the gathering
// is over has no caller any more, and ends nothing: the *Panic goes to Discard and to
// Gathered.Wait. runtime.Goexit counts as a failure.
//
// The time of a call is time elsewhere only if the call says so with Downstream, as our
// Transport does by itself. Spans that overlap count once, so a caller that waits here
// marks nothing on its own.
//
// A limiter belongs before the fan-out and not inside: one refusal at the door costs
// nothing, one refusal in the middle has cost the work of all others.
//
// It panics if g is invalid or n is not in 0 to MaxGather.
func Gather[T any](ctx context.Context, g Gathering[T], n int, call func(ctx context.Context, i int) (T, error)) (*Gathered[T], error) {
	if err := g.Validate(); err != nil {
		panic("goodput: " + err.Error())
	}
	if n < 0 || n > MaxGather {
		panic(fmt.Sprintf("goodput: a gathering of %d calls: 0 to %d", n, MaxGather))
	}
	return newFanOut(ctx, g, n, call).run(ctx)
}

// resolved returns g with its defaults for n calls that have left until the deadline, which
// is 0 if there is none.
func (g Gathering[T]) resolved(n int, left time.Duration) Gathering[T] {
	if g.Min == 0 {
		g.Min = min(1, n)
	}
	if g.Enough == 0 || g.Enough > n {
		g.Enough = max(n, g.Min)
	}
	if g.Margin == 0 {
		g.Margin = max(min(defaultMargin, left/10), 0)
	}
	if g.Parallel == 0 {
		g.Parallel = defaultParallel
	}
	return g
}

// Gathered is what a Gather returned. Values and Missing are the caller's: no call that is
// left writes to them.
type Gathered[T any] struct {
	// Values has the result of each call at its index, the zero T where it is missing.
	Values []T

	// Missing says which results are not there and why, by index.
	Missing []Missing

	left *left
}

// All returns the results that came, by index.
func (g *Gathered[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		missing := g.Missing
		for i, v := range g.Values {
			if len(missing) > 0 && missing[0].Index == i {
				missing = missing[1:]
				continue
			}
			if !yield(i, v) {
				return
			}
		}
	}
}

// Came returns how many results came.
func (g *Gathered[T]) Came() int { return len(g.Values) - len(g.Missing) }

// Left returns how many calls have not returned yet, Discard included. It is 0 soon after
// Gather has returned unless calls ignore their context.
func (g *Gathered[T]) Left() int {
	g.left.mu.Lock()
	defer g.left.mu.Unlock()
	return g.left.running
}

// Wait returns nil when no call is left, the *Panic of the first call that panicked after
// the gathering was over, or the cause of ctx. It is for tests and for a shutdown that must
// not pull away what calls still use.
func (g *Gathered[T]) Wait(ctx context.Context) error {
	select {
	case <-g.left.idle:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	g.left.mu.Lock()
	defer g.left.mu.Unlock()
	if g.left.panicked != nil {
		return g.left.panicked
	}
	return nil
}

// left is what a gathering knows of its calls for as long as one is left; without the
// results, so that a caller who keeps a Gathered keeps nothing else.
type left struct {
	mu       sync.Mutex
	over     bool // nothing is started or kept any more: Values and Missing are the caller's
	running  int  // calls that were started and have not returned
	idle     chan struct{}
	panicked *Panic // the first of a call after the end
}

// leave says that a call has returned. The caller holds the lock.
func (l *left) leave() {
	l.running--
	l.settle()
}

// settle says so when nothing is left. The caller holds the lock.
func (l *left) settle() {
	if l.over && l.running == 0 {
		close(l.idle)
	}
}
