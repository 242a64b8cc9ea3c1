package retry

import (
	"context"
	"time"
)

// A Policy describes the attempts of a call. The zero value of each field means its
// documented default, so the zero Policy is ready to use. It is safe for concurrent use
// and must not be copied or changed once it is in use.
//
// A Policy belongs to one dependency: its budget is shared by all calls made with it.
type Policy struct {
	// Attempts in all, the first one included: 1 to 10, default 3.
	Attempts int

	// Backoff is the bound of the wait before the second attempt; it doubles with each
	// further one, and the wait is drawn evenly from 0 to it. 1 ns to 1 h, default 50 ms.
	Backoff time.Duration

	// MaxBackoff caps the bound: 1 ns to 24 h, default 10 s, at least Backoff.
	MaxBackoff time.Duration

	// PerAttempt bounds each attempt. 0, the default: an attempt may use all that is left.
	PerAttempt time.Duration

	// Total bounds the call with all its attempts and waits. The deadline of its context
	// counts as well: the earlier of the two is in force, from the first attempt on, and
	// no attempt ever gets a fresh one. Default 0: the context alone.
	Total time.Duration

	// MaxAfter is the longest hint of a server (Retry-After, pushback) that is waited
	// for; a longer one ends the call, with the hint in the Error. Default 60 s.
	MaxAfter time.Duration

	// Budget bounds the retries of all calls together. nil, the default: one of its own,
	// with the defaults of Budget. Share one between policies that load the same service.
	Budget *Budget

	// Classify says what a failed attempt allows. nil, the default: Fault.Verdict.
	Classify func(Fault) Verdict
}

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (p *Policy) Validate() error { panic("not built") }

// Do calls fn until it succeeds or another attempt is not allowed, and returns nil or
// the error of the last attempt: an *Error that wraps it, if there was more than one or
// if it says why there was no other. ctx of fn ends with the attempt; attempt counts from 1.
//
// What an error of fn means, fn says: see Permanent, NotExecuted and After; the rest is
// the table of Fault.Verdict. A panic of fn goes on.
func (p *Policy) Do(ctx context.Context, fn func(ctx context.Context, attempt int) error) error {
	panic("not built")
}

// Begin starts a call whose attempts the caller makes itself, as an adapter of a
// protocol does.
func (p *Policy) Begin(ctx context.Context) *Call { panic("not built") }

// A Call is one logical call with all its attempts, for one goroutine at a time.
type Call struct{}

// Attempt returns the number of the attempt, from 1.
func (c *Call) Attempt() int { panic("not built") }

// Context returns the context of this attempt: ctx as given to Begin, ended by the
// earlier of PerAttempt and the end of the call. cancel is called when the attempt,
// its response body included, is over.
func (c *Call) Context() (ctx context.Context, cancel context.CancelFunc) { panic("not built") }

// Again decides about another attempt after one that ended as f. It returns the word
// Retry and has waited and counted, or says why there is no other attempt.
func (c *Call) Again(f Fault) Stop { panic("not built") }

// Done says that the server took the call: the last attempt is an answer, whatever it says.
func (c *Call) Done() { panic("not built") }
