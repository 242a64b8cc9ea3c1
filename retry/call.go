package retry

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/internal/attempts"
)

// A Call is one logical call with all its attempts, for one goroutine at a time.
//
//	c := p.Begin(ctx)
//	for {
//		ctx, cancel := c.Context()
//		res, err := send(ctx)            // and cancel once the body is read
//		if stop := c.Again(fault(res, err)); stop != retry.NoStop {
//			return res, err
//		}
//	}
type Call struct {
	policy     *Policy
	settings   settings
	ctx        context.Context
	start, end time.Time // end is 0 if nothing bounds it
	base       int       // number of the first attempt, on the wire
	attempt    int
	idempotent bool
	nested     bool
	counted    bool        // by the budget, as one that may need a retry
	executed   bool        // an attempt may have been: then the call as a whole may have been
	over       atomic.Bool // it has ended: what its contexts are used for is not inside it

	// How the last attempt ended.
	stop   Stop
	fault  Fault
	why    string
	wait   time.Duration // that there was no time for
	left   time.Duration // until end
	passed bool          // the deadline has
	budget BudgetStats
	first  attemptContext // saves an allocation
}

// Begin starts a call whose attempts the caller makes itself, as an adapter of a
// protocol does. Whether it is idempotent it takes from ctx, or from each Fault.
//
// The deadline is that of ctx or Total from now, whichever is earlier: each call has
// its own, and its attempts share it.
func (p *Policy) Begin(ctx context.Context) *Call {
	c := new(Call)
	c.Begin(ctx, p)
	return c
}

// Begin is Policy.Begin for a zero Call that is a part of something else, which saves an
// allocation.
func (c *Call) Begin(ctx context.Context, p *Policy) {
	c.policy, c.settings, c.ctx, c.start = p, p.checked(), ctx, time.Now()
	c.base, c.attempt, c.idempotent = 1, 1, IsIdempotent(ctx)
	c.end, _ = ctx.Deadline()
	if p.Total > 0 {
		if end := c.start.Add(p.Total); c.end.IsZero() || end.Before(c.end) {
			c.end = end
		}
	}
	outer := attemptOf(ctx)
	if outer != nil {
		c.base = outer.number
		c.nested = outer.inside() && !p.Multiply
	}
	c.counted = !c.nested && (outer == nil || !outer.inside() || outer.number == 1)
	if c.counted {
		c.settings.budget.Request() // it may need a retry, and is none itself
	}
	p.calls.Add(1)
	p.attempts.Add(1)
}

// Attempt returns the number of the attempt, from 1.
func (c *Call) Attempt() int { return c.attempt }

// Number returns the number of the attempt for the server (Goodput-Attempt): Attempt,
// unless the call is made for a later attempt of another one, which counts on.
func (c *Call) Number() int { return c.base + c.attempt - 1 }

// Context returns the context of this attempt: ctx as given to Begin, ended by the
// earlier of PerAttempt and the end of the call, and for AttemptFrom. cancel is called
// when the attempt, its response body included, is over; it ends a context that has a
// deadline of its own, and is nothing where ctx is all there is.
func (c *Call) Context() (ctx context.Context, cancel context.CancelFunc) {
	a := &c.first
	if a.call != nil {
		a = new(attemptContext)
	}
	*a = attemptContext{c.ctx, c, c.Number()}
	end := c.end
	if own := c.policy.PerAttempt; own > 0 {
		if t := time.Now().Add(own); end.IsZero() || t.Before(end) {
			end = t
		}
	}
	if has, ok := c.ctx.Deadline(); end.IsZero() || ok && !end.Before(has) {
		return a, func() {}
	}
	return context.WithDeadline(a, end)
}

// Again is Decide and then Wait, for callers that hold nothing through the wait.
func (c *Call) Again(f Fault) Stop {
	if stop := c.Decide(f); stop != NoStop {
		return stop
	}
	return c.Wait()
}

// Decide decides about another attempt after one that ended as f. It returns the word
// NoStop, and is followed by Wait then, or says why there is no other attempt: the response
// of this one is the last. It does not wait, and there is no wait that the deadline would
// not outlast.
func (c *Call) Decide(f Fault) Stop {
	now := time.Now()
	c.left = c.end.Sub(now)
	alive := c.ctx.Err() == nil && (c.end.IsZero() || c.left > 0)
	f = f.filled()
	f.Idempotent = f.Idempotent || c.idempotent
	f.OwnTime = f.OwnTime || alive && (f.Err != nil || c.policy.PerAttempt > 0)
	c.fault = f
	c.executed = c.executed || !f.Unsent && !f.safe(f.row()) || f.executed
	if c.stop = c.decide(f, alive); c.stop != NoStop {
		return c.finish(c.stop)
	}
	return NoStop
}

// Wait waits for the time of the attempt that Decide allowed and counts it, or says why
// there is none after all: the wait ends with the caller.
func (c *Call) Wait() Stop {
	if c.stop = c.pause(c.wait); c.stop != NoStop {
		c.settings.budget.unsent(true) // who leaves during the wait sends nothing
		return c.finish(c.stop)
	}
	c.attempt++
	c.policy.attempts.Add(1)
	return NoStop
}

// decide returns NoStop, with c.wait before it, or why there is no other attempt.
func (c *Call) decide(f Fault, alive bool) Stop {
	var verdict Verdict
	if verdict, c.why = f.judge(); c.policy.Classify != nil {
		verdict, c.why = c.policy.Classify(f), "Policy.Classify says so"
	}
	switch {
	case verdict == VerdictAnswer:
		return StopAnswered
	case !alive && c.ctx.Err() == context.Canceled:
		return StopGone
	case !alive:
		c.passed = true
		return StopTooLate
	case f.Hint.Never:
		return StopPushback
	case verdict != VerdictRetry: // one that does not exist is none that allows anything
		return StopPermanent
	case f.NoRewind:
		return StopNoRewind
	case c.nested:
		return StopNested
	case c.attempt >= c.settings.attempts:
		return StopExhausted
	case f.Hint.Said && f.Hint.After > c.settings.maxAfter:
		return StopTooLong
	}
	c.wait = c.pick(f.Hint)
	switch {
	case !c.end.IsZero() && c.wait >= c.left:
		return StopTooLate
	case !c.settings.budget.Spend():
		c.budget = c.settings.budget.Stats()
		return StopRetriesSpent
	}
	return NoStop
}

// pick returns the wait before the next attempt: what the backoff draws, and no less
// than the hint. A hint is a minimum that all who were refused together have heard, so
// unless it was spread where it was made up to half of it is added, as far as that fits
// the time that is left.
func (c *Call) pick(h Hint) time.Duration {
	wait := attempts.Wait(c.settings.backoff, c.settings.maxBackoff, c.attempt, c.random())
	if !h.Said {
		return wait
	}
	hinted := h.After
	if !h.Exact {
		spread := h.After / 2
		if !c.end.IsZero() {
			spread = max(0, min(spread, (c.left-h.After)/2))
		}
		hinted += time.Duration(c.random() * float64(spread))
	}
	return max(wait, hinted)
}

func (c *Call) random() float64 {
	if c.policy.draw != nil {
		return c.policy.draw()
	}
	return rand.Float64()
}

// pause waits for d, and returns why there is no attempt after it, if the caller has left
// meanwhile or a timer that came late has left no time for one.
func (c *Call) pause(d time.Duration) Stop {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	}
	switch {
	case c.ctx.Err() == context.Canceled:
		return StopGone
	case c.ctx.Err() != nil, !c.end.IsZero() && !time.Now().Before(c.end):
		c.passed = true
		return StopTooLate
	}
	return NoStop
}

// Hedge takes one more attempt, beside one that runs, out of the number and the budget
// of the call, and reports whether there was one. It does not wait. After the end of the
// call or its deadline, and when the caller has left, there is none.
func (c *Call) Hedge() bool {
	if c.over.Load() || c.ctx.Err() != nil || !c.end.IsZero() && !time.Now().Before(c.end) {
		return false
	}
	if c.nested || c.attempt >= c.settings.attempts || !c.settings.budget.Spend() {
		return false
	}
	c.attempt++
	c.policy.attempts.Add(1)
	return true
}

// Done says that the server took the call: the last attempt is an answer, whatever it
// says.
func (c *Call) Done() { c.finish(StopAnswered) }

// finish ends the call, once.
func (c *Call) finish(s Stop) Stop {
	if !c.over.Swap(true) {
		c.policy.stops[s].Add(1)
	}
	return s
}
