package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// An Error says why a call has failed and is not tried again. It wraps the error of the
// last attempt and, if the caller has left or the deadline has passed, that of a context.
// It matches goodput.ErrRejected only if no attempt can have been executed.
type Error struct {
	Name     string // of the Policy
	Stop     Stop
	Attempts int           // that were made
	Took     time.Duration // with all its waits
	Wait     time.Duration // that there was no time for: StopTooLate, if the deadline had not passed
	Left     time.Duration // until the deadline, when it was decided; 0 without one
	Hint     Hint          // of the last attempt
	Budget   BudgetStats   // as it was, if Stop is StopRetriesSpent
	Err      error         // of the last attempt

	fault Fault  // of the call as a whole, for a call outside
	why   string // of StopPermanent
	most  int
	after time.Duration // MaxAfter
	ctx   error
}

// Err returns the *Error of a call that has ended, where err is what the last attempt
// ended as.
func (c *Call) Err(err error) error {
	e := &Error{
		Name: c.policy.Name, Stop: c.stop, Attempts: c.attempt, Took: time.Since(c.start),
		Hint: c.fault.Hint, Budget: c.budget, Err: err,
		fault: c.fault, why: c.why, most: c.settings.attempts, after: c.settings.maxAfter,
	}
	switch {
	case c.stop == StopGone:
		e.ctx = c.ctx.Err()
	case c.stop == StopTooLate && c.passed:
		e.ctx = context.DeadlineExceeded
	case c.stop == StopTooLate:
		e.Wait, e.Left = c.wait, c.left
	}
	e.fault.executed = c.executed
	return e
}

// Error returns one sentence with the numbers that decided.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("retry: ")
	if e.Name != "" {
		b.WriteString(e.Name + ": ")
	}
	switch e.Attempts {
	case 0:
		b.WriteString("not tried")
	case 1:
		fmt.Fprintf(&b, "tried once in %v", rounded(e.Took))
	default:
		fmt.Fprintf(&b, "tried %d times in %v", e.Attempts, rounded(e.Took))
	}
	b.WriteString(", " + e.because())
	heard := e.Attempts > 0 && (e.Hint.Said || e.Hint.Never || e.Hint.Text != "")
	if heard && e.Stop != StopTooLong && e.Stop != StopPushback {
		fmt.Fprintf(&b, "; %s %v", e.who(), e.Hint)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// because is the reason in words.
func (e *Error) because() string {
	switch e.Stop {
	case StopPermanent:
		return "and not again: " + e.why
	case StopExhausted:
		if e.most == 1 {
			return "and not again: one attempt is all there is"
		}
		return fmt.Sprintf("and not again: %d attempts are all there are", e.most)
	case StopRetriesSpent:
		return fmt.Sprintf("and not again: the retry budget is spent (%v)", e.Budget)
	case StopTooLate:
		if e.ctx == nil {
			return fmt.Sprintf("and not again: the wait would take %v and %v are left", rounded(e.Wait), rounded(e.Left))
		}
		return "and not again: its deadline has passed"
	case StopTooLong:
		return fmt.Sprintf("and not again: %s %v, and no more than %v is waited for", e.who(), e.Hint, e.after)
	case StopPushback:
		return fmt.Sprintf("and not again: %s %v", e.who(), e.Hint)
	case StopNoRewind:
		return "and not again: the body of the request cannot be sent a second time"
	case StopGone:
		return "and not again: the caller has left"
	case StopNested:
		return "and not again in here: the call outside makes the attempts (see Policy.Multiply)"
	case StopAnswered:
		return "and answered"
	case StopKept:
		if e.Attempts == 0 {
			return "kept here"
		}
		return "and not again: kept here"
	}
	return "and goes on"
}

// who says what the hint is of: a server that has answered, or the function or a limiter
// of this process.
func (e *Error) who() string {
	if e.fault.byError() {
		return "it is said"
	}
	return "the server says"
}

func rounded(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Round(100 * time.Microsecond)
}

// Unwrap returns the error of the last attempt and that of the context, as far as there
// are any. A refusal of the last attempt is in Err only if an attempt before it may have been
// executed: who is told goodput.ErrRejected may send the whole again.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Err != nil && !(e.fault.executed && errors.Is(e.Err, goodput.ErrRejected)) {
		all = append(all, e.Err)
	}
	if e.ctx != nil && !errors.Is(e.Err, e.ctx) {
		all = append(all, e.ctx)
	}
	return all
}
