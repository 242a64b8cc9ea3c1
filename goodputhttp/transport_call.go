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
	join   func() bool // takes the attempt out of those of the call; nil if it is no hedge
	first  *attempt    // the memory of the first attempt

	last    *attempt // that another one is to follow; its response is still there
	lastErr error
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
		return a.res, nil
	}
	first := new(struct { // one allocation for what each call needs
		attempt  attempt
		attempts retry.Call
	})
	c.first = &first.attempt
	attempts := &first.attempts
	attempts.Begin(c.req.Context(), d.policy)
	for {
		ctx, cancel := c.req.Context(), context.CancelFunc(nil)
		if d.bounds {
			ctx, cancel = attempts.Context()
		}
		n := attempts.Attempt()
		a, err := c.one(attempts, ctx, cancel, n)
		if a == nil { // not sent, and that is final
			attempts.Kept(err)
			return c.unsent(err)
		}
		switch c.again(attempts, a, err) {
		case retry.Retry:
			a.drained()
			c.last, c.lastErr = a, err
		case retry.Gone:
			a.discard()
			return nil, context.Cause(c.req.Context())
		default:
			return a.res, err // one of them
		}
	}
}

// unsent returns how a call ends of which an attempt was not sent, for err: as the attempt
// before it, if there was one, and with err if not.
func (c *call) unsent(err error) (*http.Response, error) {
	switch {
	case c.last == nil:
		return nil, err
	case c.req.Context().Err() == context.Canceled:
		c.last.discard()
		return nil, err
	}
	return c.last.res, c.lastErr
}

// again decides whether a is followed by another attempt, and waits for its time.
func (c *call) again(attempts *retry.Call, a *attempt, err error) retry.Stop {
	if err == nil && a.fault == nil && a.res.StatusCode < 400 {
		attempts.Done()
		return retry.Answered
	}
	f := c.fault(a, err)
	if a.body != nil && !f.NoRewind && c.verdict(f) == retry.Retryable {
		a.settle()
	}
	return attempts.Again(f)
}

func (c *call) verdict(f retry.Fault) retry.Verdict {
	if classify := c.dep.policy.Classify; classify != nil {
		return classify(f)
	}
	return f.Verdict()
}

// try makes the n-th attempt. It returns nil if nothing was sent, with the reason. cancel
// ends ctx, and is nil if ctx is the caller's. The first attempt closes the body of the
// request in any case, later ones have a body of their own.
func (c *call) try(ctx context.Context, cancel context.CancelFunc, n int) (*attempt, error) {
	d := c.dep
	a := c.first
	if n > 1 {
		a = new(attempt)
	}
	a.dep, a.ctx, a.caller, a.cancel, a.grpc = d, ctx, c.req.Context(), cancel, c.grpc
	sent, returned := false, false
	defer func() {
		if !returned {
			a.end(errPanicked)
		}
		if n == 1 && (!sent || !returned) {
			closeBody(c.req)
		}
	}()
	b, err := c.admit(a, n)
	if err != nil {
		a.over.Store(true)
		a.stop()
		returned = true
		return nil, err
	}
	out, err := c.request(a, &b, n)
	if err != nil { // of GetBody
		a.over.Store(true)
		a.slot.Abandon()
		a.stop()
		returned = true
		return nil, err
	}
	if c.race != nil {
		c.race.begin()
	}
	d.counts.attempts.Add(1)
	if c.join != nil {
		d.counts.hedges.Add(1)
	}
	if n > 1 && c.last != nil {
		d.counts.retries.Add(1)
		c.last.discard()
		c.last = nil
	}
	sent = true
	a.res, err = c.base.RoundTrip(out)
	a.answered(c.req, err)
	returned = true
	return a, err
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
	case c.join != nil:
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
		if a.slot, ok = lim.TryAcquire(); !ok {
			return errNoHedge
		}
	}
	if !c.join() {
		a.slot.Abandon()
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
