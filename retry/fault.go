package retry

import "time"

// A Fault is how an attempt ended, as far as it matters for another one.
type Fault struct {
	Err         error // of the transport; nil if there was an answer
	Status      int   // of HTTP; 0 without one
	Code        Code  // of gRPC; OK without one
	NotExecuted bool  // the server says so: Goodput-Rejected and the like
	Idempotent  bool  // executing it twice does no more than once
	Sent        bool  // some of the request may have reached the server
	Hint        Hint  // what the server said about when
}

// A Code is a status of gRPC.
type Code uint8

// A Hint is what a server said about when to come back; the zero Hint is nothing.
type Hint struct {
	After time.Duration
	Said  bool // After counts
	Never bool // do not try again
}

// A Verdict says what a Fault allows.
type Verdict uint8

// Verdicts.
const (
	Answer    Verdict = iota // it is no fault of the service: give it to the caller
	Retryable                // another attempt may succeed and does no harm
	Final                    // another attempt cannot succeed, or might execute it twice
)

// Verdict is the classification table.
func (f Fault) Verdict() Verdict { panic("not built") }

// A Stop says why there is no further attempt.
type Stop uint8

// Stops. Retry is none.
const (
	Retry     Stop = iota
	Permanent      // the fault does not allow it
	Attempts       // there have been enough
	NoBudget       // too many calls are being retried already
	TooLate        // the wait would end after the deadline of the call
	TooLong        // the server says to come back later than MaxAfter
	Pushback       // the server says not to come back
	NoRewind       // the body of the request cannot be sent again
	Gone           // the caller has left
)
