package goodput

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrUnneeded is matched by the cause of the context of a call that nobody waits for any
// more: enough others have come, too few can come, or one panicked.
var ErrUnneeded = errors.New("goodput: the call is not needed any more")

// How a gathering ends before its time.
var (
	errEnough   = fmt.Errorf("%w: enough others have come", ErrUnneeded)
	errHopeless = fmt.Errorf("%w: too few can come", ErrUnneeded)
	errLingered = fmt.Errorf("%w: enough have come, and it took longer than Linger", ErrUnneeded)
	errBroken   = fmt.Errorf("%w: another one panicked", ErrUnneeded)
)

// errTimeUp is the cause of a gathering that ended at its time.
var errTimeUp = fmt.Errorf("goodput: of the time of the gathering only the margin is left: %w", context.DeadlineExceeded)

// A Missing is a result that is not in a Gathered. Outcome says why, in the words of a
// limiter:
//
//	Failed     it returned an error that is not one of these
//	Rejected   it returned a *Rejection: it was not executed
//	Late       it had not returned when the time was up, or that of Linger
//	Expired    it had not been started then
//	Abandoned  it had not returned when it was not needed any more, or when the caller left
//	Cancelled  it had not been started then
type Missing struct {
	Index   int
	Outcome Outcome

	// Err is what the call returned if it Failed or was Rejected. Else it is what ended
	// the gathering: it matches context.DeadlineExceeded, or ErrUnneeded, or is the cause
	// of the caller's context.
	Err error
}

// executed reports whether any of the call may have been executed.
func (m *Missing) executed() bool {
	switch m.Outcome {
	case Rejected, Expired, Cancelled:
		return false
	}
	return true
}

// A Shortfall says that fewer results came than were needed.
//
// errors.Is and errors.As find the errors of the calls that failed, and what ended the
// gathering: context.DeadlineExceeded if its time was up, the cause of the caller's context
// if that was cancelled. They find a *Rejection only if no call was executed at all,
// because who is told ErrRejected may send the whole again; the others are in Missing.
type Shortfall struct {
	Min  int // that many were needed
	Came int // that many came
	Of   int // that many calls

	// Missing is that of the Gathered.
	Missing []Missing
}

// Error returns one sentence with the counts and the first error of a call.
func (s *Shortfall) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goodput: %d of %d results came and %d are needed", s.Came, s.Of, s.Min)
	var counts [Abandoned + 1]int
	for i := range s.Missing {
		counts[s.Missing[i].Outcome]++
	}
	sep := ": "
	for o, n := range counts {
		if n > 0 {
			fmt.Fprintf(&b, "%s%d %v", sep, n, Outcome(o))
			sep = ", "
		}
	}
	for i := range s.Missing {
		if m := &s.Missing[i]; m.own() {
			fmt.Fprintf(&b, "; call %d: %v", m.Index, m.Err)
			break
		}
	}
	return b.String()
}

// own reports whether Err is that of the call, and not of the gathering.
func (m *Missing) own() bool { return m.Outcome == Failed || m.Outcome == Rejected }

// Unwrap returns the errors of the calls and what ended the gathering.
func (s *Shortfall) Unwrap() (errs []error) {
	executed := s.Came > 0
	for i := range s.Missing {
		executed = executed || s.Missing[i].executed()
	}
	ended := false
	for i := range s.Missing {
		switch m := &s.Missing[i]; {
		case executed && errors.Is(m.Err, ErrRejected): // also a cause: errgroup makes the first error one
		case m.own():
			errs = append(errs, m.Err)
		case !ended: // one for all that share it
			ended = true
			errs = append(errs, m.Err)
		}
	}
	return errs
}

// A Panic is the panic of a call that Gather made. It is the value of the panic that goes
// on in the caller, and the error of a call that panicked when nobody needed it any more.
type Panic struct {
	Index int
	Value any
	Stack []byte // of the goroutine of the call
}

// Error says which call panicked, with what, and where.
func (p *Panic) Error() string {
	return fmt.Sprintf("goodput: call %d of a gathering panicked: %v\n\n%s", p.Index, p.Value, p.Stack)
}

// Unwrap returns the value of the panic if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
