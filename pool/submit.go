package pool

import (
	"context"
	"fmt"
	"time"

	"github.com/goodput/goodput"
)

// Submit hands in a task and does not wait. The door decides at once: either the error
// is a *goodput.Rejection, fn will never run and there is no task; or the task runs, or
// waits in the queue of the limiter, and its outcome comes by Task.Wait. Whoever is
// evicted, displaced, replaced, expired, doomed or drained while it waits has that for
// its outcome.
//
// fn gets a context below ctx. If ctx is over while the task waits, it is refused; while
// fn runs, it is for fn to notice: it holds its slot until it returns. The context of an
// HTTP request is over when its handler returns: pass context.WithoutCancel(ctx), which
// has no deadline either, for what goes on after it. w.Deadline counts as long as the task
// waits.
//
// Under goodput.Block Submit does not block: the task is accepted beyond the depth, up to
// Config.MaxItems and MaxBytes. Who ought to be slowed down calls Start or Do.
func Submit[T any](ctx context.Context, p *Pool, w goodput.Work, fn func(context.Context) (T, error)) (*Task[T], error) {
	w, cost := p.admit(w)
	t := newTask(ctx, p, cost, fn)
	place := ctx
	if heldIn(ctx, p) != nil {
		place, t.withdraw = context.WithCancelCause(ctx)
	}
	p.accept()
	err := p.lim.Go(place, w, func(slot *goodput.Slot, err error) {
		if t.withdraw != nil {
			defer t.withdraw(nil)
		}
		switch {
		case !t.claimed.CompareAndSwap(false, true):
			slot.Abandon()
			p.settle()
		case err != nil:
			t.refuse(err)
			p.settle()
		default:
			t.run(slot, nil)
		}
	})
	if err != nil {
		p.settle()
		if t.withdraw != nil {
			t.withdraw(nil)
		}
		return nil, err
	}
	p.makeWay()
	return t, nil
}

// Start waits until the task has a slot and returns while it runs: a producer that is
// faster than the pool goes at the pace of the pool, and at most as many of its tasks
// are under way as there are slots. It returns a *goodput.Rejection if the task was
// refused, at the door or while it waited. Under goodput.Block only the bound of its wait
// does that: Config.MaxWait, or the deadline.
//
// In a task of the same pool Start waits for a slot while it holds one, until that bound.
func Start[T any](ctx context.Context, p *Pool, w goodput.Work, fn func(context.Context) (T, error)) (*Task[T], error) {
	w, cost := p.admit(w)
	span := goodput.Downstream(ctx)
	slot, err := p.lim.AcquireWork(ctx, w)
	span.End()
	if err != nil {
		return nil, err
	}
	p.accept()
	t := newTask(ctx, p, cost, fn)
	go t.run(&slot, nil)
	return t, nil
}

// Do hands in a task and waits for its outcome: what fn returned, a *PanicError,
// ErrGoexit, or a *goodput.Rejection if it was not admitted and did not run. The time
// that it takes is downstream of the slot that ctx belongs to, if any: see
// goodput.Downstream.
//
// What fn returns comes as it is. If that is the refusal of something that fn has called,
// its Rejection.Limiter says whose; the task has run.
//
// If ctx is over while fn runs, Do returns at once with an error that wraps the error of
// ctx, and is no rejection. fn goes on and holds its slot until it returns, so what runs
// is never more than the limit: Stats.Left counts such tasks.
//
// In a task of the same pool, with the context of that task, fn runs within the slot that
// is held already, at once and without the limiter, and Do returns when fn does: a task
// that waits for another computes nothing, and if it waited for a second slot all slots
// could be held by tasks that wait for one. This holds as well if there is a task of
// another pool in between. What costs more than the slot that is held, and a second Do
// of the same task at the same time, asks the limiter like any other: its wait is bounded
// by the deadline or Config.MaxWait. What runs within the slot of a task must not wait for
// the end of that task: neither would end.
func Do[T any](ctx context.Context, p *Pool, w goodput.Work, fn func(context.Context) (T, error)) (T, error) {
	var none T
	w, cost := p.admit(w)
	if w.Deadline.IsZero() || time.Now().Before(w.Deadline) {
		if h := enter(ctx, p, cost); h != nil {
			t := newTask(ctx, p, cost, fn)
			t.within(ctx, h)
			return t.value, t.err
		}
	}
	span := goodput.Downstream(ctx)
	defer span.End()
	slot, err := p.lim.AcquireWork(ctx, w)
	if err != nil {
		return none, err
	}
	p.accept()
	t := newTask(ctx, p, cost, fn)
	go t.run(&slot, outermost(ctx))
	select {
	case <-t.done:
	case <-ctx.Done():
		select {
		case <-t.done:
		default:
			return none, fmt.Errorf("pool: the task of %s has begun and goes on: %w", p.lim.Name(), ctx.Err())
		}
	}
	return t.value, t.err
}
