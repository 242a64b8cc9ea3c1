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
	g, ok, refusal := l.door(ctx, &r)
	if refusal == nil && !ok {
		g, refusal = l.slow(ctx, &r)
	}
	if refusal != nil {
		return Slot{}, refusal
	}
	return Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}, nil
}

// door admits r if that takes no lock, or refuses a caller that is not there any more.
func (l *Limiter) door(ctx context.Context, r *admission.Request) (g grant, ok bool, refusal *Rejection) {
	if l.observe.Load() {
		if g, ok = l.pass(r); ok {
			return g, true, nil
		}
	}
	switch err := ctx.Err(); {
	case err == nil:
		g, ok = l.fast(r)
		return g, ok, nil
	case errors.Is(err, context.DeadlineExceeded):
		r.Deadline = min(r.Deadline, l.now()-1) // over, whatever the context says when
		r.Exempt = false                        // a probe that nobody waits for runs no more than others
		return grant{}, false, nil
	}
	return grant{}, false, l.refuseGone(ctx)
}

// Go is AcquireWork for callers that do not wait: the door decides at once, and fn runs
// in a goroutine of its own. If the request is refused at the door, Go returns the
// *Rejection and fn is not called. Otherwise Go returns nil and fn is called exactly
// once: with the slot, which it has to end and whose Slot.Context is that of the work, or
// with the *Rejection of a request that was refused after a wait, and a slot that holds
// nothing.
//
// So there are as many of these goroutines as requests that run or wait, and those whose
// wait has just ended. Where newcomers take the place of those that wait (EvictOldest,
// LatestOnly), a loop that only calls Go makes more of the latter than it lets run: it
// should yield (runtime.Gosched), as pool.Submit does.
//
// A panic of fn ends the process, as in any goroutine. Under Block a request waits beyond
// the depth, up to Config.MaxItems.
func (l *Limiter) Go(ctx context.Context, w Work, fn func(slot *Slot, err error)) error {
	r := l.request(ctx, w)
	g, ok, refusal := l.door(ctx, &r)
	if ok {
		go fn(&Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}, nil)
		return nil
	}
	var o offer
	if refusal == nil {
		refusal = l.offer(&r, &o)
	}
	if refusal != nil {
		return refusal
	}
	l.later(ctx, r, o, fn)
	return nil
}

// later calls fn when it is known what becomes of an offer. It has a frame of its own so
// that only those that get here pay for what a goroutine takes with it.
func (l *Limiter) later(ctx context.Context, r admission.Request, o offer, fn func(slot *Slot, err error)) {
	go func() {
		g, refusal := l.outcome(ctx, &r, &o)
		if refusal != nil {
			fn(new(Slot), refusal)
			return
		}
		fn(&Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}, nil)
	}()
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
	g := s.grant(r, now, nil)
	if !always && r.Size == 1 {
		g.due = sampled
	}
	return g, true
}

// grant is for r, which starts now. own is a rare part to use, if one is needed.
func (s *settings) grant(r *admission.Request, now time.Duration, own *rare) (g grant) {
	g.start, g.due = now, each
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
	var o offer
	if refusal := l.offer(r, &o); refusal != nil {
		return grant{}, refusal
	}
	return l.outcome(ctx, r, &o)
}

// An offer is a request that the core did not refuse at the door.
type offer struct {
	at     time.Duration
	exempt bool
	own    *rare         // of one that was admitted at once, or is observed
	w      *waiter       // of one that waits; nil if it was admitted
	alarm  time.Duration // of w, from at
}

// offer asks the core.
func (l *Limiter) offer(r *admission.Request, o *offer) (refusal *Rejection) {
	now := l.enter()
	if r.Arrival == 0 {
		r.Arrival = now
	}
	o.at = now
	if l.observe.Load() { // since it was at the door
		o.own = l.watch(now, r)
		l.leave(now)
		return nil
	}
	d := l.offerCall(now, r)
	o.exempt = d.Exempt
	switch d.Verdict {
	case admission.Admitted:
		l.rec.admitted++
		o.own = l.account(r, d.Share)
	case admission.Queued:
		o.w, o.alarm = l.enqueue(&d), d.Waiter.Alarm()-now
	default:
		refusal = l.refusalFor(now, &d, r)
	}
	l.leave(now)
	return refusal
}

// outcome waits, if it must, for what becomes of an offer.
func (l *Limiter) outcome(ctx context.Context, r *admission.Request, o *offer) (grant, *Rejection) {
	if o.w != nil {
		if refusal := l.await(ctx, o.w, o.alarm); refusal != nil {
			return grant{}, refusal
		}
	}
	s := l.settings.Load()
	free := o.w != nil && o.w.free != nil
	if free {
		o.own = o.w.free
	}
	g := s.grant(r, o.at, o.own) // only now: it may allocate, which a refusal must not
	switch {
	case o.exempt:
		g.with().kind = exempt
	case o.w != nil:
		g.start, g.with().waited = o.w.decidedAt, o.w.waited()
		if !free {
			g.rare.share = o.w.place.Share()
		}
		if g.due == each {
			g.due = o.at + s.objective // from its arrival, not from its slot
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
	now := l.enter()
	r.Arrival = now
	if l.observe.Load() {
		own := l.watch(now, &r)
		l.leave(now)
		return l.settings.Load().grant(&r, now, own), true
	}
	d := l.offerCall(now, &r)
	admitted := d.Verdict == admission.Admitted
	var own *rare
	if admitted {
		l.rec.admitted++
		own = l.account(&r, d.Share)
	} else {
		l.refusalFor(now, &d, &r)
	}
	l.leave(now)
	return l.settings.Load().grant(&r, now, own), admitted
}

// TryAcquireWork is TryAcquire for work that says more about itself, with the tenant, the
// priority and the deadline of ctx as for AcquireWork: it takes a slot if all of its cost is
// free and nobody waits for it. It panics if w.Priority is not one of the four.
func (l *Limiter) TryAcquireWork(ctx context.Context, w Work) (Slot, bool) {
	r := l.request(ctx, w)
	r.NoWait = true
	g, ok, refusal := l.door(ctx, &r)
	if refusal == nil && !ok {
		g, refusal = l.slow(ctx, &r)
	}
	if refusal != nil {
		return Slot{}, false
	}
	return Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}, true
}

// errUnwound is what Do fails a slot with whose function did not return.
var errUnwound = errors.New("goodput: the function panicked or called runtime.Goexit")

// Do runs fn in a slot and returns its error, or a *Rejection without running
// it. It is what most callers want: the slot is given back however fn ends. An
// error of fn counts as failed; so do a panic, which goes on, and
// runtime.Goexit. If ctx is over and fn returns its error, the caller has left:
// that counts as abandoned.
//
// The context of fn is one of the slot, see Slot.Context, and Do itself is Downstream of
// ctx: a limiter in front of this one does not take the time here for its own.
//
// Do returns when fn does. If fn ignores a context that is over, it holds its
// slot until it returns: what runs is never more than the limit.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	span := Downstream(ctx)
	defer span.End()
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
	err = fn(slot.Context(ctx))
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
