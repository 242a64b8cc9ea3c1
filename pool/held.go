package pool

import (
	"context"
	"sync"
)

// A held is the slot of a task that runs, for what the task itself waits for. It is the
// context of the task as well.
//
// Invariants: one at a time runs within it, while busy is set. The slot is given back once
// over is set, which waits for that one; so nothing runs within a slot that is not held
// any more, even if the context of the task outlives it.
type held struct {
	context.Context // of the work of the slot

	p     *Pool
	cost  int
	outer *held // of the task that waits for this one; nil if nobody does

	mu         sync.Mutex
	busy, over bool
	left       chan struct{} // close waits for it; nil while close does not wait
}

type heldKey struct{}

// Value returns h itself for its key, as a context made by context.WithValue would.
func (h *held) Value(key any) any {
	if key == (heldKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// outermost returns what a task may run in that is waited for with ctx.
func outermost(ctx context.Context) *held {
	h, _ := ctx.Value(heldKey{}).(*held)
	return h
}

// heldIn returns the slot of p that ctx belongs to. Between it and ctx there may be tasks
// of other pools, each waited for by the one outside it.
func heldIn(ctx context.Context, p *Pool) *held {
	for h := outermost(ctx); h != nil; h = h.outer {
		if h.p == p {
			return h
		}
	}
	return nil
}

// enter returns the slot of p that ctx belongs to, for a task of that cost to run in; nil
// if there is none, if something runs in it already, or if it would not hold the cost.
// Work whose ctx is over is for the limiter to refuse.
func enter(ctx context.Context, p *Pool, cost int) *held {
	h := heldIn(ctx, p)
	if h == nil || cost > h.cost || ctx.Err() != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy || h.over {
		return nil
	}
	h.busy = true
	return h
}

func (h *held) leave() {
	h.mu.Lock()
	h.busy = false
	if h.left != nil {
		close(h.left)
	}
	h.mu.Unlock()
}

// close lets nobody in any more, and returns when nobody is.
func (h *held) close() {
	h.mu.Lock()
	h.over = true
	if h.busy {
		h.left = make(chan struct{})
	}
	left := h.left
	h.mu.Unlock()
	if left != nil {
		<-left
	}
}

// within runs the task in a slot that is held and was entered, for one that waits with
// ctx, and returns when it has ended. The goroutine of its own keeps a runtime.Goexit from
// ending whoever waits.
func (t *task) within(ctx context.Context, h *held) {
	t.own.Context, t.own.outer = t.ctx, outermost(ctx)
	t.own.p.nested.Add(1)
	go func() {
		defer func() {
			t.own.close()
			h.leave()
			close(t.done)
		}()
		t.invoke()
	}()
	<-t.done
}
