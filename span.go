package goodput

import (
	"context"
	"sync"
	"time"
)

// A Span is the time in which the work of a slot is elsewhere: in something that has a
// limit of its own, or waiting for it. The zero Span is over. It must not be copied, which
// go vet reports.
type Span struct {
	of *absence
	_  noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Downstream says that the work of ctx goes elsewhere now, until the Span is ended:
//
//	span := goodput.Downstream(ctx)
//	defer span.End()
//
// The slot that is meant is the innermost whose context ctx is, or is below: Do,
// goodputhttp.Server and Slot.Context give such contexts. The slot is held all the same,
// and its request takes as long as it takes: the depth, the doomed test and the counters
// go by the whole time. But a law that takes longer service for a sign of contention
// (limit.Window.Own) does not hear of this part, because fewer slots here would not make a
// dependency faster; and Stats.Elsewhere and Explain show how much it is.
//
// Do marks a span of the context that it is given, and so do goodputhttp.Transport, goodputsql and
// pool. Mark by hand what waits for something else that has a bound of its own. Spans
// may overlap, as those of a fan-out do, and may be ended by any goroutine: time counts
// once. Without a slot, or if it is one of those that are not timed (see the package
// comment), there is nothing to do and Downstream returns the zero Span. It allocates
// nothing.
func Downstream(ctx context.Context) Span {
	a, _ := ctx.Value(absenceKey{}).(*absence)
	if a != nil {
		a.begin()
	}
	return Span{of: a}
}

// End ends the span. Only the first call on the same variable counts. A span that is
// never ended lasts as long as the slot.
func (s *Span) End() {
	if s.of != nil {
		s.of.end()
		s.of = nil
	}
}

type absenceKey struct{}

// An absence adds up the time in which the work of one slot is elsewhere. It may outlive
// the slot: nobody looks at it then.
type absence struct {
	l     *Limiter
	mu    sync.Mutex
	open  int           // spans that have not ended
	over  bool          // the slot has been given back
	since time.Duration // since when there is one
	total time.Duration // up to then
}

func (a *absence) begin() {
	a.mu.Lock()
	if a.open == 0 {
		a.since = a.l.now()
	}
	a.open++
	a.mu.Unlock()
}

func (a *absence) end() {
	a.mu.Lock()
	if a.open == 0 { // a copy was ended as well
		a.mu.Unlock()
		return
	}
	if a.open--; a.open == 0 {
		a.total += max(a.l.now()-a.since, 0)
	}
	a.mu.Unlock()
}

// close ends it with its slot, and returns how much it was.
func (a *absence) close(now time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.open == 0 {
		return a.total
	}
	return a.total + max(now-a.since, 0)
}

// holds reports whether the innermost slot that ctx is the context of is one of l, and is
// still held.
func (l *Limiter) holds(ctx context.Context) bool {
	a, _ := ctx.Value(absenceKey{}).(*absence)
	if a == nil || a.l != l {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.over
}

// A slotContext is a context on the account of a slot, and the rare part of a slot that
// had none: one allocation for all.
type slotContext struct {
	context.Context
	absence *absence // that of its slot: own, if it is the first of it
	own     absence
	rare    rare
}

func (c *slotContext) Value(key any) any {
	if key == (absenceKey{}) {
		return c.absence
	}
	return c.Context.Value(key)
}

// Context returns a context for the work of the slot, below ctx: what that work says to be
// Downstream is on the account of this slot. Call it before the work starts; a second
// context of the same slot is on the same account. For
// a slot that is not timed or has ended it is ctx itself. It costs one allocation of
// about 200 bytes.
func (s *Slot) Context(ctx context.Context) context.Context {
	if s.of.l == nil || s.start == 0 {
		return ctx
	}
	c := &slotContext{Context: ctx}
	if s.rare == nil {
		c.rare = plain
		s.rare = &c.rare
	}
	if s.rare.absence == nil {
		c.own.l = s.of.l
		s.rare.absence = &c.own
	}
	c.absence = s.rare.absence
	return c
}
