package goodputhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A call is one request with all its attempts. It lives in the goroutine of RoundTrip.
//
// One attempt is: time left? then the throttle, then a slot, then Base. A slot is never
// held while another one is waited for or a backoff is slept through.
type call struct {
	dep    *Dependency
	base   http.RoundTripper
	req    *http.Request // the caller's; nothing of it is changed
	grpc   bool
	silent bool        // the server is not told how much time is left
	prior  int         // attempts that somebody made before this call
	start  time.Time   // of the call
	limit  Budget      // what the headers of req allow from start on, and which to write
	race   *race       // this attempt may be hedged
	hedge  *retry.Call // whose attempts a hedge is one of; nil if this is none
	first  *attempt    // the memory of the first attempt

	last    *attempt // that was sent; its response is still there
	lastErr error
	beside  *http.Response // of the hedge of the last attempt, if both failed
}

// run makes attempts until one is the answer.
func (c *call) run() (*http.Response, error) {
	d := c.dep
	c.prior = max(priorAttempts(c.req.Header, c.grpc), retry.AttemptFrom(c.req.Context())-1)
	if d.policy == nil {
		c.first = new(attempt)
		a, err := c.try(c.req.Context(), nil, 1)
		if err != nil {
			return nil, err
		}
		return c.answer(a), nil
	}
	first := new(struct { // one allocation for what each call needs
		attempt  attempt
		attempts retry.Call
	})
	c.first = &first.attempt
	returned := false
	defer func() { // a panic of Idempotent, Classify or Work goes on
		if !returned && c.last != nil {
			c.last.discard()
		}
	}()
	first.attempts.Begin(c.req.Context(), d.policy)
	res, err := c.repeat(&first.attempts)
	returned = true
	return res, err
}

// repeat makes attempts until one is the last, and returns its end.
func (c *call) repeat(attempts *retry.Call) (*http.Response, error) {
	for {
		n := attempts.Attempt()
		hedged := n == 1 && c.mayHedge()
		ctx, cancel := c.req.Context(), context.CancelFunc(nil)
		if c.dep.bounds {
			ctx, cancel = attempts.Context()
		}
		var a *attempt
		var err error
		if hedged {
			a, err = c.hedged(attempts, ctx, cancel)
		} else {
			a, err = c.try(ctx, cancel, n)
		}
		if a == nil { // not sent, and that is final
			attempts.Kept(err)
			return c.unsent(err)
		}
		c.last, c.lastErr = a, err
		switch c.again(attempts) {
		case retry.NoStop:
		case retry.StopGone:
			a.discard()
			return nil, context.Cause(c.req.Context())
		default:
			if a.dropped() { // the wait took longer than it may
				c.dep.counts.late.Add(1)
				return nil, &Unsent{Dependency: c.dep.name(), Reason: goodput.Deadline}
			}
			return c.answer(a), err // one of them
		}
	}
}

// answer returns the response of a, if it has one.
func (c *call) answer(a *attempt) *http.Response {
	if a.res != nil {
		a.res.Request = c.req
	}
	return a.res
}

// unsent returns how a call ends of which an attempt was not sent, for err: as the attempt
// before it, if there was one and its response is still there, and with err if not.
func (c *call) unsent(err error) (*http.Response, error) {
	switch {
	case c.last == nil, c.last.dropped():
		return nil, err
	case c.req.Context().Err() == context.Canceled:
		c.last.discard()
		return nil, err
	}
	return c.answer(c.last), c.lastErr
}

// again decides whether another attempt follows the last one. Only if it does, the slot is
// put down, and the time of that attempt is waited for.
func (c *call) again(attempts *retry.Call) retry.Stop {
	a, err := c.last, c.lastErr
	if err == nil && a.fault == nil && a.res.StatusCode < 400 {
		attempts.Done()
		return retry.StopAnswered
	}
	f := c.fault(a, err)
	c.heed(&f)
	if stop := attempts.Decide(f); stop != retry.NoStop {
		return stop
	}
	a.settle()
	stop := attempts.Wait()
	if stop != retry.StopGone {
		a.drained()
	}
	return stop
}

// try makes the n-th attempt. It returns nil if nothing was sent, with the reason. cancel
// ends ctx, and is nil if ctx is the caller's. The first attempt closes the body of the
// request in any case, later ones have a body of their own.
func (c *call) try(ctx context.Context, cancel context.CancelFunc, n int) (*attempt, error) {
	a := c.first
	if n > 1 {
		a = new(attempt)
	}
	out, err := c.prepare(a, ctx, cancel, n)
	if err != nil {
		return nil, err
	}
	return a, c.send(a, out, n)
}

// prepare takes a slot for a and returns what is to be sent, or why nothing is.
func (c *call) prepare(a *attempt, ctx context.Context, cancel context.CancelFunc, n int) (out *http.Request, err error) {
	a.dep, a.ctx, a.caller, a.cancel, a.grpc = c.dep, ctx, c.req.Context(), cancel, c.grpc
	defer func() {
		if out != nil {
			return
		}
		a.over.Store(true) // perhaps by a panic of Work or GetBody: nothing was done in the slot
		a.slot.Abandon()
		a.stop()
		if n == 1 {
			closeBody(c.req)
		}
	}()
	b, err := c.admit(a, n)
	if err != nil {
		return nil, err
	}
	return c.request(a, &b, n)
}

// send sends out.
func (c *call) send(a *attempt, out *http.Request, n int) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		a.end(errPanicked)
		if n == 1 {
			closeBody(c.req)
		}
	}()
	if c.race != nil {
		c.race.begin()
	}
	counts := &c.dep.counts
	counts.attempts.Add(1)
	if c.hedge != nil {
		counts.hedges.Add(1)
	}
	if c.last != nil {
		counts.retries.Add(1)
		c.last.discard()
		c.last = nil
	}
	a.res, err = c.base.RoundTrip(out)
	a.answered(c.req, err)
	returned = true
	return err
}

// admit lets a be sent, with a slot and what the server is to be told, or says why not.
func (c *call) admit(a *attempt, n int) (Budget, error) {
	d := c.dep
	if a.ctx.Err() == context.Canceled {
		return Budget{}, context.Cause(a.ctx)
	}
	b := c.budget(a.ctx.Deadline())
	if tooLate(&b, c.now(n)) {
		return b, c.outOfTime(&b)
	}
	if d.Throttle != nil && d.Throttle.Refuses() {
		d.counts.throttled.Add(1)
		return b, &Unsent{Dependency: d.name(), Reason: goodput.Unavailable, Err: d.Throttle.Err()}
	}
	switch {
	case c.hedge != nil:
		return b, c.admitHedge(a)
	case d.Limiter == nil:
		return b, nil
	}
	var err error
	if a.slot, err = d.Limiter.AcquireWork(a.ctx, d.work(c.req, c.prior+n)); err != nil {
		d.counts.refused.Add(1)
		return b, err
	}
	if a.slot.Waited() > 0 && tooLate(&b, time.Now()) {
		a.slot.Abandon() // nothing was done in it
		return b, c.outOfTime(&b)
	}
	return b, nil
}

// admitHedge takes a slot that is free and then one of the attempts, in this order: what is
// not sent for want of a slot costs nothing of the retry budget.
func (c *call) admitHedge(a *attempt) error {
	if lim := c.dep.Limiter; lim != nil {
		var ok bool
		if a.slot, ok = lim.TryAcquireWork(a.ctx, c.dep.work(c.req, c.prior+2)); !ok {
			return errNoHedge
		}
	}
	if !c.hedge.Hedge() {
		return errNoHedge
	}
	return nil
}

// errNoHedge is never seen: the first request goes on alone.
var errNoHedge = errors.New("goodputhttp: no slot for a hedge")

// now is the time, read once for the first attempt of a call.
func (c *call) now(n int) time.Time {
	if n == 1 {
		return c.start
	}
	return time.Now()
}

func (c *call) outOfTime(b *Budget) error {
	c.dep.counts.late.Add(1)
	reason := goodput.NoBudget
	left := time.Until(b.Deadline)
	if ctx := c.req.Context(); ctx.Err() != nil || left < -or(c.dep.HopMargin, HopMargin) {
		reason = goodput.Deadline
	}
	return &Unsent{Dependency: c.dep.name(), Reason: reason, Left: left}
}

// work describes the n-th attempt of r to the limiter.
func (d *Dependency) work(r *http.Request, n int) goodput.Work {
	var w goodput.Work
	if d.Work != nil {
		w = d.Work(r)
	}
	if w.Attempt == 0 {
		w.Attempt = n
	}
	return w
}

// heard tells the throttle whether the server took a request or refused it.
func (d *Dependency) heard(took bool) {
	switch {
	case d.Throttle == nil:
	case took:
		d.Throttle.Accepted()
	default:
		d.Throttle.Refused()
	}
}

// request returns what is sent with the n-th attempt.
func (c *call) request(a *attempt, b *Budget, n int) (*http.Request, error) {
	now := c.now(n)
	if a.slot.Waited() > 0 {
		now = time.Now()
	}
	var out *http.Request
	if a.cancel != nil {
		out = c.req.WithContext(a.ctx)
	} else {
		a.req = *c.req
		out = &a.req
	}
	out.Header = c.header(a, b, now, n)
	if n > 1 && c.req.GetBody != nil {
		body, err := c.req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	return out, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
