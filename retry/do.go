package retry

import "context"

// Do calls fn until it succeeds or another attempt is not allowed, and returns nil or an
// *Error that wraps the error of the last attempt and says why there was no other. ctx
// of fn ends with the attempt; attempt counts from 1. A context that is over when Do is
// called is an Error with no attempt.
//
// What an error of fn means, fn says: see Fault.Mark, Never, NotExecuted and After; the
// rest is the table of Fault.Verdict. A call that is not marked by Idempotent is repeated only after
// an attempt that was certainly not executed. A panic of fn goes on.
//
// Inside an attempt of another call, Do makes one attempt, unless Policy.Multiply: the
// outermost call repeats.
//
// The error is that of fn, as it is, if Policy.Classify says that it is an Answer.
func (p *Policy) Do(ctx context.Context, fn func(ctx context.Context, attempt int) error) error {
	c := p.Begin(ctx)
	defer c.over.Store(true) // also if fn panics
	if ctx.Err() != nil {
		return c.stillborn()
	}
	for {
		err := c.try(fn)
		if err == nil {
			c.Done()
			return nil
		}
		switch c.Again(Fault{Err: err}) {
		case Retry:
		case Answered:
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

// stillborn ends a call whose caller had left before the first attempt.
func (c *Call) stillborn() error {
	c.attempt = 0
	c.policy.attempts.Add(^uint64(0))
	c.fault = Fault{Err: c.ctx.Err(), NotExecuted: true}
	c.stop = TooLate
	if c.ctx.Err() == context.Canceled {
		c.stop = Gone
	}
	c.finish(c.stop)
	return c.Err(c.ctx.Err())
}
