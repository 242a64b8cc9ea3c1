package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/goodput/goodput"
)

// ErrGoexit is the outcome of a task whose function ended its goroutine by
// runtime.Goexit, as testing.T.FailNow does. It counts as failed.
var ErrGoexit = errors.New("pool: the task called runtime.Goexit")

// A PanicError is the outcome of a task whose function panicked. The pool goes on, and
// the task counts as failed.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of its goroutine, as debug.Stack prints it
}

// Error says what it panicked with. The stack is not part of it.
func (e *PanicError) Error() string { return fmt.Sprintf("pool: the task panicked: %v", e.Value) }

// Unwrap returns the value if it is an error, as that of a run-time panic is.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errFailed is what a slot is told about every failure: the limiter takes a context error
// for a caller that left, and an error of fn may wrap one that says something else.
var errFailed = errors.New("pool: the task failed")

// errTaken is why the place of a task in the queue is given up that runs already.
var errTaken = errors.New("pool: the task runs within the slot of the one that waits for it")

// A Task is what was accepted by Submit or Start. It has exactly one outcome.
type Task[T any] struct {
	task
	value T
}

// Done returns a channel that is closed when the task has its outcome.
func (t *Task[T]) Done() <-chan struct{} { return t.done }

// Wait waits for the outcome and returns it: what the function returned; a
// *goodput.Rejection if it was refused after a wait and did not run; a *PanicError;
// ErrGoexit. If ctx is over first, Wait returns its error and the task goes on: end the
// context that the task was submitted with to end the task. Done tells the two apart.
//
// Several goroutines may wait, and more than once. In a task of the same pool that waits
// for one that it has submitted itself, the other runs within the slot that is held
// already if it has none yet: see Do.
func (t *Task[T]) Wait(ctx context.Context) (T, error) {
	if err := t.wait(ctx); err != nil {
		var none T
		return none, err
	}
	return t.value, t.err
}

// newTask returns a task that calls fn.
func newTask[T any](ctx context.Context, p *Pool, cost int, fn func(context.Context) (T, error)) *Task[T] {
	t := &Task[T]{task: task{ctx: ctx, own: held{p: p, cost: cost}, done: make(chan struct{})}}
	t.call = func(ctx context.Context) (err error) {
		t.value, err = fn(ctx)
		return err
	}
	return t
}

// task is the part that does not depend on the type of the value.
//
// Invariant: whoever sets claimed settles it: the goroutine that gets its slot or its
// refusal, or a Wait that runs it in another slot. So it runs once at most, and has one
// outcome: err is written before done is closed, and read after it.
type task struct {
	ctx      context.Context // of the submitter
	own      held            // what it holds while it runs; the pool and the cost from the beginning
	call     func(context.Context) error
	withdraw context.CancelCauseFunc // gives up its place in the queue; nil but for one submitted in a task
	claimed  atomic.Bool
	left     bool // it failed because its ctx is over
	err      error
	done     chan struct{}

	prev, next *task // in Pool.running
}

// run calls the function in slot, in the goroutine that it is called in, and gives the
// slot back however it ends. outer is what the caller holds who waits for it.
func (t *task) run(slot *goodput.Slot, outer *held) {
	t.own.Context, t.own.outer = slot.Context(t.ctx), outer
	t.own.p.begin(t)
	defer func() {
		t.own.close()
		switch {
		case t.err == nil:
			slot.Release()
		case t.left:
			slot.Abandon()
		default:
			slot.Fail(errFailed)
		}
		t.own.p.end(t)
		close(t.done)
		t.own.p.settle()
		_ = t.own.p.follow()
	}()
	t.invoke()
}

// invoke calls the function and sets the outcome, in any case.
func (t *task) invoke() {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			t.err = &PanicError{Value: v, Stack: debug.Stack()}
			t.own.p.panics.Add(1)
		} else if !returned {
			t.err = ErrGoexit
			t.own.p.exits.Add(1)
		}
		t.call = nil // what it holds may be large, and the task be kept for its value
	}()
	t.err = t.call(&t.own)
	t.left = t.err != nil && errors.Is(t.err, t.ctx.Err()) // may panic: it asks the error
	returned = true
}

// refuse sets the outcome of a task that was refused after a wait.
func (t *task) refuse(err error) {
	t.err, t.call = err, nil
	close(t.done)
}

func (t *task) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	default:
	}
	if t.withdraw != nil && t.help(ctx) {
		return nil
	}
	span := goodput.Downstream(ctx)
	defer span.End()
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// help runs the task within what ctx holds, if it has not begun.
func (t *task) help(ctx context.Context) bool {
	h := enter(ctx, t.own.p, t.own.cost)
	if h == nil {
		return false
	}
	if t.ctx.Err() != nil || !t.claimed.CompareAndSwap(false, true) {
		h.leave()
		return false
	}
	t.withdraw(errTaken)
	t.within(ctx, h)
	return true
}
