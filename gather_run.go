package goodput

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"
)

// A fanOut is one Gather at work. Whoever first sees a reason for its end, a call that
// returns or the caller whose time is up, sets over under the lock. Up to then each call
// that returns writes its result; from then on none does, so that what is handed to the
// caller is never written again. That is all the synchronization there is.
type fanOut[T any] struct {
	Gathering[T] // with its defaults
	*left

	call   func(context.Context, int) (T, error)
	ctx    context.Context // of the calls
	cancel context.CancelCauseFunc
	end    time.Time     // of ctx: the deadline less the margin; zero without a deadline
	ended  chan struct{} // closed with over

	// Under the lock of left. The calls are started in order: those from next on have not
	// been. values and missing together have those that returned before the end.
	values  []T
	state   []Outcome // Pending until it returned
	missing []Missing
	next    int
	came    int
	cause   error       // why it is over; nil if every call has returned
	late    bool        // it is over because its time is up
	raise   *Panic      // it is over because a call panicked
	linger  *time.Timer // runs since Min have come; nil before, and without Linger
}

func newFanOut[T any](ctx context.Context, g Gathering[T], n int, call func(context.Context, int) (T, error)) *fanOut[T] {
	f := &fanOut[T]{
		left:   &left{idle: make(chan struct{})},
		call:   call,
		ended:  make(chan struct{}),
		values: make([]T, n),
		state:  make([]Outcome, n),
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		f.Gathering = g.resolved(n, 0)
	} else {
		f.Gathering = g.resolved(n, time.Until(deadline))
		f.end = deadline.Add(-f.Margin)
	}
	return f
}

// run makes the calls and returns when it is over.
func (f *fanOut[T]) run(ctx context.Context) (*Gathered[T], error) {
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	if !f.end.IsZero() {
		var release context.CancelFunc
		f.ctx, release = context.WithDeadlineCause(f.ctx, f.end, errTimeUp)
		defer release()
	}
	f.begin()
	select {
	case <-f.ended:
	case <-f.ctx.Done():
		f.mu.Lock()
		f.expire()
		f.mu.Unlock()
	}
	f.cancel(f.cause)
	if f.raise != nil {
		f.drop()
		panic(f.raise)
	}
	return f.result()
}

// begin starts the calls, unless it is over before they are.
func (f *fanOut[T]) begin() {
	n := len(f.values)
	f.mu.Lock()
	switch {
	case n < f.Min:
		f.finish(errHopeless)
	case n == 0:
		f.finish(nil)
	case f.timeUp():
		f.expire()
	}
	over := f.over
	f.mu.Unlock()
	if over {
		return
	}
	work := f.work // one closure for all
	for range min(f.Parallel, n) {
		go work()
	}
}

// work makes one call after the other until there is nothing left to do.
func (f *fanOut[T]) work() {
	for {
		i, ok := f.take()
		if !ok {
			return
		}
		f.one(i)
	}
}

// take returns the next call to make.
func (f *fanOut[T]) take() (i int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.next == len(f.values) {
		return 0, false
	}
	f.next++
	f.running++
	return f.next - 1, true
}

// one makes call i, however it ends.
func (f *fanOut[T]) one(i int) {
	returned := false
	defer func() {
		if returned {
			return
		}
		var none T
		if value := recover(); value != nil {
			p := &Panic{Index: i, Value: value, Stack: debug.Stack()}
			f.returned(i, none, p, Failed, p)
			return
		}
		f.returned(i, none, errUnwound, Failed, nil)
		go f.work() // runtime.Goexit takes this goroutine with it
	}()
	v, err := f.call(f.ctx, i)
	o := Completed
	switch {
	case err == nil:
	case errors.Is(err, ErrRejected): // here, because an error may panic when it is asked: a nil that has a type
		o = Rejected
	default:
		o = Failed
	}
	returned = true
	f.returned(i, v, err, o, nil)
}

// returned notes how call i ended, as o; p is its panic.
func (f *fanOut[T]) returned(i int, v T, err error, o Outcome, p *Panic) {
	f.mu.Lock()
	if f.keep(i, v, err, o, p) {
		f.leave()
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	defer func() { // Discard may end the goroutine
		f.mu.Lock()
		f.leave()
		f.mu.Unlock()
	}()
	if f.Discard != nil {
		f.Discard(i, v, err)
	}
}

// keep writes how call i ended, unless it is over, and ends the gathering if that decides
// it. The caller holds the lock.
func (f *fanOut[T]) keep(i int, v T, err error, o Outcome, p *Panic) bool {
	switch {
	case f.over:
		if f.panicked == nil {
			f.panicked = p
		}
		return false
	case p != nil:
		f.raise = p
		f.finish(errBroken)
		return true
	case err == nil:
		f.values[i], f.state[i] = v, Completed
		f.came++
	case f.timeUp():
		// Its error is that its time was up, and it is a moment before the caller.
		f.expire()
		return false
	default:
		f.state[i] = o
		f.missing = append(f.missing, Missing{Index: i, Outcome: o, Err: err})
	}
	if f.Linger > 0 && f.came == f.Min && f.linger == nil {
		f.linger = time.AfterFunc(f.Linger, f.makeDo)
	}
	switch n := len(f.values); {
	case f.came == f.Enough:
		f.finish(errEnough)
	case n-len(f.missing) < f.Min:
		f.finish(errHopeless)
	case f.came+len(f.missing) == n:
		f.finish(nil)
	}
	return true
}

// makeDo ends the gathering with what has come: the timer of Linger.
func (f *fanOut[T]) makeDo() {
	f.mu.Lock()
	f.late = f.late || !f.over
	f.finish(errLingered)
	f.mu.Unlock()
}

// timeUp reports whether the context of the calls is over. It looks at the clock as well,
// because a call may know the deadline and end before the timer of the context has run.
func (f *fanOut[T]) timeUp() bool {
	return f.ctx.Err() != nil || !f.end.IsZero() && !time.Now().Before(f.end)
}

// expire ends the gathering, if it is not over, because its time is up or the caller has
// left. The caller holds the lock.
func (f *fanOut[T]) expire() {
	cause := context.Cause(f.ctx)
	if cause == nil {
		cause = errTimeUp // by the clock: the context will say so in a moment
	}
	f.late = f.late || !f.over && (f.ctx.Err() == nil || errors.Is(f.ctx.Err(), context.DeadlineExceeded))
	f.finish(cause)
}

// finish ends the gathering, unless it is over. The caller holds the lock.
func (f *fanOut[T]) finish(cause error) {
	if f.over {
		return
	}
	f.over, f.cause = true, cause
	if f.linger != nil {
		f.linger.Stop()
	}
	close(f.ended)
	f.settle()
}

// result is what the caller gets. It is over, so nothing of f changes any more.
func (f *fanOut[T]) result() (*Gathered[T], error) {
	started, unstarted := Abandoned, Cancelled
	if f.late {
		started, unstarted = Late, Expired
	}
	for i, o := range f.state {
		switch {
		case o != Pending:
		case i < f.next:
			f.missing = append(f.missing, Missing{Index: i, Outcome: started, Err: f.cause})
		default:
			f.missing = append(f.missing, Missing{Index: i, Outcome: unstarted, Err: f.cause})
		}
	}
	slices.SortFunc(f.missing, func(a, b Missing) int { return cmp.Compare(a.Index, b.Index) })
	got := &Gathered[T]{Values: f.values, Missing: f.missing, left: f.left}
	if f.came < f.Min {
		return got, &Shortfall{Min: f.Min, Came: f.came, Of: len(f.values), Missing: f.missing}
	}
	return got, nil
}

// drop gives what had come to Discard, because the caller panics instead of having it.
func (f *fanOut[T]) drop() {
	if f.Discard == nil {
		return
	}
	for i, o := range f.state {
		if o == Completed {
			f.Discard(i, f.values[i], nil)
		}
	}
}
