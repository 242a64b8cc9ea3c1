package goodputhttp

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/retry"
)

// mayHedge reports whether the call may have a hedge, which only its first attempt has. It
// comes before that attempt, so a panic of Idempotent leaves the body to it.
func (c *call) mayHedge() (may bool) {
	if c.dep.Hedge == nil {
		return false
	}
	known := false
	defer func() {
		if !known {
			closeBody(c.req)
		}
	}()
	may = rewinds(c.req) && c.idempotent()
	known = true
	return may
}

// hedged makes the first attempt, with a hedge if it takes too long.
func (c *call) hedged(attempts *retry.Call, ctx context.Context, cancel context.CancelFunc) (*attempt, error) {
	r := &race{call: *c, attempts: attempts, ctx: ctx, outer: cancel, second: make(chan finish, 1)}
	r.call.race = r
	r.left.Store(1)
	f := r.run()
	c.beside = r.beside
	return f.a, f.err
}

// heed makes f say no less than what was answered to a hedge that failed as well: the next
// attempt goes to the same service.
func (c *call) heed(f *retry.Fault) {
	if c.beside == nil {
		return
	}
	h := retry.HTTPFault(c.beside.StatusCode, c.beside.Header, time.Now()).Hint
	c.beside = nil
	if !f.Hint.Never && (h.Never || h.Said && (!f.Hint.Said || h.After > f.Hint.After)) {
		f.Hint = h
	}
}

// A race is an attempt that may be hedged. The first request is made by the goroutine of
// RoundTrip. The second is made by that of a timer, which the answer of the first stops,
// so that a request that is not hedged costs a timer and no goroutine. Whoever is first
// with a good answer cancels the other one, which gives its slot back by itself.
type race struct {
	call     call
	attempts *retry.Call        // under mu while the first is under way
	ctx      context.Context    // of both
	outer    context.CancelFunc // ends ctx, with the last of them; nil if that is the caller's
	left     atomic.Int32       // of them, those that have not ended
	began    time.Time          // when the first was sent
	timer    *time.Timer        // starts the second; nil if it never does
	beside   *http.Response     // of the second, if both failed: its body is closed

	mu         sync.Mutex
	state      state
	stopFirst  context.CancelFunc
	stopSecond context.CancelFunc // once there are both
	second     chan finish        // how the second ended, unless the first has won
}

type state uint8

const (
	alone     state = iota // the first is under way, or waits for its slot
	both                   // and so is the second
	firstWon               // the second is cancelled, or never starts
	secondWon              // the first is cancelled
)

// A finish is how an attempt ended; a is nil if it was not sent.
type finish struct {
	a   *attempt
	err error
}

// good reports whether f ends the race, rather than leave it to the other one.
func (f finish) good() bool { return f.a != nil && f.err == nil && f.a.fault == nil }

// lose drops an answer that is not wanted.
func (f finish) lose() {
	if f.a != nil && f.err == nil {
		f.a.discard()
	}
}

// ending returns what ends the context of one of the two: the context of both ends with
// the last.
func (r *race) ending(stop context.CancelFunc) context.CancelFunc {
	return func() {
		stop()
		if r.left.Add(-1) == 0 && r.outer != nil {
			r.outer()
		}
	}
}

// run makes the first request and returns how the race ended.
func (r *race) run() (won finish) {
	ctx, stop := context.WithCancel(r.ctx)
	r.stopFirst = stop
	first := finish{err: errPanicked}
	defer func() { // a panic goes on, and nobody wants the second
		if first.err == errPanicked && r.finishFirst(true) == secondWon {
			(<-r.second).lose()
		}
	}()
	first.a, first.err = r.call.try(ctx, r.ending(stop), 1)
	took := time.Since(r.began)
	switch before := r.finishFirst(first.good() || first.a == nil); {
	case before == secondWon:
		r.note(took)
		first.lose()
		return <-r.second
	case first.good():
		r.note(took)
	case before == both:
		second := <-r.second // it may still be good
		if second.good() {
			first.lose()
			return second
		}
		if second.a != nil && second.err == nil {
			r.beside = second.a.res
		}
		second.lose()
	}
	return first
}

// finishFirst takes the end of the first request and returns the state before it. If it
// settles the race, or no second is under way, there will be none.
func (r *race) finishFirst(settles bool) (before state) {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Lock()
	before = r.state
	var late finish
	switch {
	case before == alone:
		r.state = firstWon
	case before == both && settles:
		r.state = firstWon
		r.stopSecond()
		select {
		case late = <-r.second: // it had ended badly
		default:
		}
	}
	r.mu.Unlock()
	late.lose()
	return before
}

// begin starts the timer of the second request, at the moment at which the first is sent.
func (r *race) begin() {
	r.began = time.Now()
	if d := r.call.dep.Hedge.Delay(); d > 0 {
		r.timer = time.AfterFunc(d, r.hedge)
	}
}

// hedge makes the second request.
func (r *race) hedge() {
	counts := &r.call.dep.counts
	counts.running.Add(1)
	defer counts.running.Add(-1)
	defer func() { _ = recover() }() // a panic of Work or GetBody: there is no second, and nobody could recover it
	c, a, out := r.join()
	if out == nil {
		return
	}
	second := finish{err: errPanicked} // a panic of Base is an error here
	defer func() { r.finishSecond(second) }()
	err := c.send(a, out, 2) // the attempt after the first
	second = finish{a, err}
}

// join makes it two requests, if the first is still under way and the call may have one
// more. RoundTrip does not return without mu, and once it has the request is its caller's
// again: whatever the second needs of it is copied here.
func (r *race) join() (c call, a *attempt, out *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != alone {
		return c, nil, nil
	}
	ctx, stop := context.WithCancel(r.ctx)
	r.left.Add(1)
	c, a = r.call, new(attempt)
	c.race, c.hedge = nil, r.attempts
	c.req = c.req.Clone(c.req.Context())
	if out, _ = c.prepare(a, ctx, r.ending(stop), 2); out != nil {
		r.state, r.stopSecond = both, stop
	}
	return c, a, out
}

// finishSecond takes the end of the second request.
func (r *race) finishSecond(second finish) {
	r.mu.Lock()
	won := r.state == both && second.good()
	lost := r.state == firstWon
	if won {
		r.state = secondWon
		r.stopFirst()
	}
	if !lost {
		r.second <- second
	}
	r.mu.Unlock()
	switch {
	case won:
		r.call.dep.counts.hedgeWins.Add(1)
	case lost:
		second.lose()
	}
}

func (r *race) note(took time.Duration) { r.call.dep.Hedge.note(took) }
