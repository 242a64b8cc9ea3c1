package goodput

import (
	"context"
	"errors"
	"time"

	"github.com/goodput/goodput/admission"
)

// Acquire waits for a slot. It returns a *Rejection if the request was refused,
// cannot be served in time, or its context ended first; then there is nothing
// to release. A context that is over already is never admitted, except in observe
// mode, which refuses nobody.
//
// The caller ends the work with Slot.Release, usually deferred; Do is harder to
// get wrong. While it waits, a request may be told at any time that it cannot
// be served within its deadline any more, so the error can come before the
// deadline does.
//
// Work that holds a slot may acquire from the same limiter, but slots that wait
// for each other only end with the bound on waiting (Config.MaxWait or the
// deadline).
func (l *Limiter) Acquire(ctx context.Context) (Slot, error) {
	// Never cancelled, and nothing that the core would ask about.
	if ctx.Done() == nil && ctx.Value(attrsKey{}) == nil {
		if n, ok := l.lent.take(); ok {
			if l.rec.skips(n) {
				return Slot{of: owner{l}}, nil
			}
			return Slot{of: owner{l}, start: l.now()}, nil
		}
	}
	return l.AcquireWork(ctx, Work{})
}

// AcquireWork is Acquire for work that says more about itself. It panics if
// w.Priority is not one of the four.
func (l *Limiter) AcquireWork(ctx context.Context, w Work) (Slot, error) {
	r := l.request(ctx, w)
	g, ok := grant{}, false
	switch err := ctx.Err(); {
	case l.observe:
		g, ok = l.pass(&r), true
	case err == nil:
		g, ok = l.fast(&r)
	case errors.Is(err, context.DeadlineExceeded):
		r.Deadline = min(r.Deadline, l.now()-1) // over, whatever the context says when
		r.Exempt = false                        // a probe that nobody waits for runs no more than others
	default:
		return Slot{}, l.refuseGone(ctx)
	}
	if !ok {
		var refusal *Rejection
		if g, refusal = l.slow(ctx, &r); refusal != nil {
			return Slot{}, refusal
		}
	}
	return Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}, nil
}

// A grant is what a slot starts with.
type grant struct {
	start, due time.Duration
	rare       *rare
}

// with returns the rare part of the slot, to write.
func (g *grant) with() *rare {
	if g.rare == nil {
		own := plain
		g.rare = &own
	}
	return g.rare
}

// fast admits r on a lent slot. Nobody waits then, so the only questions that
// the core would ask are whether r has expired and whether it could ever wait.
func (l *Limiter) fast(r *admission.Request) (grant, bool) {
	s := l.settings.Load()
	if r.Cost != 1 || r.Exempt || r.Bytes > s.maxBytes {
		return grant{}, false
	}
	always := r.Deadline != admission.Never || r.Arrival != 0
	var now time.Duration
	if always {
		if now = l.now(); r.Deadline <= now {
			return grant{}, false
		}
	}
	n, ok := l.lent.take()
	switch {
	case !ok:
		return grant{}, false
	case !always && r.Size == 1 && l.rec.skips(n):
		return grant{}, true
	case !always:
		now = l.now()
	}
	return s.grant(r, now, nil), true
}

// grant is for r, which starts now. own is a rare part to use, if one is needed.
func (s *settings) grant(r *admission.Request, now time.Duration, own *rare) (g grant) {
	g.start = now
	switch {
	case r.Deadline != admission.Never:
		g.due = r.Deadline - 1
	case r.Arrival != 0 && r.Arrival < now:
		g.due = r.Arrival + s.objective
	}
	if own == nil && (r.Cost != 1 || r.Size != 1) {
		own = new(rare)
	}
	if own != nil {
		own.cost, own.size = int32(r.Cost), r.Size
		g.rare = own
	}
	return g
}

// account returns the rare part of a slot that was granted at once: nil for one that
// is like most. The caller holds the lock.
func (l *Limiter) account(r *admission.Request, share admission.Share) *rare {
	if share == 0 && r.Cost == 1 && r.Size == 1 {
		return nil
	}
	own := l.accounts.takeRare()
	own.share = share
	return own
}

// slow asks the core, and waits if it says so.
func (l *Limiter) slow(ctx context.Context, r *admission.Request) (grant, *Rejection) {
	var refusal *Rejection
	var w *waiter
	var own *rare
	var alarm time.Duration
	now := l.enter()
	if r.Arrival == 0 {
		r.Arrival = now
	}
	s := l.settings.Load()
	d := l.offerCall(now, r)
	switch d.Verdict {
	case admission.Admitted:
		l.rec.admitted++
		own = l.account(r, d.Share)
	case admission.Queued:
		w, alarm = enqueue(&d), d.Waiter.Alarm()-now
	default:
		refusal = l.refusalFor(now, &d, r)
	}
	l.leave(now)
	if w != nil {
		refusal = l.await(ctx, w, alarm)
	}
	if refusal != nil {
		return grant{}, refusal
	}
	g := s.grant(r, now, own) // only now: it may allocate, which a refusal must not
	switch {
	case d.Exempt:
		g.with().kind = exempt
	case w != nil:
		g.start, g.with().waited = w.decidedAt, w.waited
		g.rare.share = w.place.Share()
		if g.due == 0 {
			g.due = now + s.objective // from its arrival, not from its slot
		}
	}
	return g, nil
}

// TryAcquire takes a slot if one is free and nobody waits for it. It never
// waits and never overtakes. A false return is counted as a refusal. It has no context,
// so it is on the account of the tenants without a row: see Work.Tenant.
func (l *Limiter) TryAcquire() (Slot, bool) {
	if n, ok := l.lent.take(); ok {
		if l.rec.skips(n) {
			return Slot{of: owner{l}}, true
		}
		return Slot{of: owner{l}, start: l.now()}, true
	}
	g, ok := l.try()
	if !ok {
		return Slot{}, false
	}
	return Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}, true
}

func (l *Limiter) try() (grant, bool) {
	r := admission.Request{Cost: 1, Size: 1, Priority: Default, Deadline: admission.Never, NoWait: true}
	if l.observe {
		return l.pass(&r), true
	}
	now := l.enter()
	r.Arrival = now
	d := l.offerCall(now, &r)
	admitted := d.Verdict == admission.Admitted
	var own *rare
	if admitted {
		l.rec.admitted++
		own = l.account(&r, d.Share)
	}
	l.leave(now)
	return l.settings.Load().grant(&r, now, own), admitted
}

// errUnwound is what Do fails a slot with whose function did not return.
var errUnwound = errors.New("goodput: the function panicked or called runtime.Goexit")

// Do runs fn in a slot and returns its error, or a *Rejection without running
// it. It is what most callers want: the slot is given back however fn ends. An
// error of fn counts as failed; so do a panic, which goes on, and
// runtime.Goexit. If ctx is over and fn returns its error, the caller has left:
// that counts as abandoned.
//
// Do returns when fn does. If fn ignores a context that is over, it holds its
// slot until it returns: what runs is never more than the limit.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	slot, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned {
			slot.Fail(errUnwound)
		}
	}()
	err = fn(ctx)
	returned = true
	switch {
	case err == nil:
		slot.Release()
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		slot.Abandon()
	default:
		slot.finish(Failed, true)
	}
	return err
}
