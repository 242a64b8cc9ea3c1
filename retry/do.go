package retry

import (
	"context"
	"time"
)

// Do calls fn until it succeeds or another attempt is not allowed, and returns nil, or an
// *Error that wraps the error of the last attempt and says why there was no other. ctx
// of fn ends with the attempt; attempt counts from 1. A context that is over when Do is
// called is an Error with no attempt.
//
// What an error of fn means, fn says: see Fault.Mark, Never, NotExecuted, Executed and
// After; the rest is the table of Fault.Verdict. A call that is not marked by Idempotent is
// repeated only after an attempt that was certainly not executed. A panic of fn goes on.
//
// What an error promises is taken for all that fn did, so fn is one call, or marks with
// Executed the errors that come after a part of its work. An fn that charges and then calls
// something that refuses is otherwise repeated, and charges again.
//
// Inside an attempt of another call, Do makes one attempt, unless Policy.Multiply: the
// outermost call repeats.
//
// The error is that of fn, as it is, if it is a VerdictAnswer by Policy.Classify or the table, as a
// marked 404 is: the service has done its part.
func (p *Policy) Do(ctx context.Context, fn func(ctx context.Context, attempt int) error) error {
	if ctx.Err() != nil {
		return p.stillborn(ctx)
	}
	c := p.Begin(ctx)
	defer c.over.Store(true) // also if fn panics
	for {
		err := c.try(fn)
		if err == nil {
			c.Done()
			return nil
		}
		switch c.Again(Fault{Err: err}) {
		case NoStop:
		case StopAnswered:
			return err
		default:
			return c.Err(err)
		}
	}
}

// try makes one attempt, whose context ends with it.
func (c *Call) try(fn func(ctx context.Context, attempt int) error) error {
	ctx, release := c.Context()
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return fn(ctx, c.attempt)
}

// stillborn returns the error of a call whose caller had left before the first attempt.
// A budget does not hear of it: it can need no retry.
func (p *Policy) stillborn(ctx context.Context) error {
	c := &Call{policy: p, settings: p.checked(), ctx: ctx, start: time.Now(), stop: StopTooLate, passed: true}
	if ctx.Err() == context.Canceled {
		c.stop = StopGone
	}
	c.fault = Fault{Err: ctx.Err(), NotExecuted: true}
	p.calls.Add(1)
	p.untried.Add(1)
	c.finish(c.stop)
	return c.Err(ctx.Err())
}
