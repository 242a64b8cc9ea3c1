package retry

import "context"

// Kept ends a call whose attempt was not sent, for err: a limiter or a Throttle of this
// process, or the deadline, kept it here. That is final: who waits already waited there, and
// the service has not heard of it. So the budget counts it neither as a call, of which it
// would grant retries, nor as a retry. For an adapter that makes the attempts itself; Do
// takes a refusal by a limiter for a fault like any other. It returns StopKept, or StopGone
// if the caller has left.
func (c *Call) Kept(err error) Stop {
	stop := StopKept
	if c.ctx.Err() == context.Canceled {
		stop = StopGone
	}
	if c.over.Load() {
		return stop
	}
	c.stop = stop
	c.policy.kept.Add(1)
	first := c.attempt == 1
	if first {
		c.policy.unsent.Add(1)
		c.fault = Fault{Err: err, NotExecuted: true}.filled()
	}
	if c.counted || !first {
		c.settings.budget.unsent(!first)
	}
	c.attempt-- // Error.Attempts is what was made
	return c.finish(stop)
}

// unsent takes back what was counted for an attempt: a call, or a retry.
func (b *Budget) unsent(again bool) {
	now := b.enter()
	defer b.mu.Unlock()
	b.core.Unsent(now, again)
}
