package retry

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/goodput/goodput"
)

// A Fault is how an attempt ended, as far as it matters for another one. The zero value
// of each field is the careful one: it may have been executed, and executing it twice
// may do harm. HTTPFault makes one of a response.
type Fault struct {
	Err         error // nil if there was an answer
	Status      int   // of HTTP; 0 without one
	Code        Code  // of gRPC; 0 is OK
	NotExecuted bool  // the server says so: Goodput-Rejected and the like
	Unsent      bool  // nothing of the request has reached the server
	Idempotent  bool  // executing it twice does no more than once; see also the function
	NoRewind    bool  // the body of the request is gone, and cannot be sent again
	Shed        bool  // the server refused it for load; that alone is no promise that it did not execute it
	OwnTime     bool  // the attempt had less time than its call: that it took too long does not end the call
	Hint        Hint  // what the server said about when

	executed bool // Executed, or an attempt of a call inside may have been, whatever its last one was
}

// A Code is a status of gRPC: retry.Code(status.Code(err)).
type Code uint8

var codes = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
	"ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
	"UNAUTHENTICATED",
}

// String returns the name of the code as gRPC spells it.
func (c Code) String() string {
	if int(c) < len(codes) {
		return codes[c]
	}
	return "code " + strconv.Itoa(int(c))
}

// HTTPFault reads a response: its status, what it says about when, and the markers of
// those who refuse work for load,
//
//	Goodput-Rejected                  not executed; without Retry-After, and not draining: never again
//	Finagle-Http-Nack                 not executed
//	Finagle-Http-Nonretryable-Nack    not executed, never again
//	X-Envoy-Overloaded                shed, which is no promise: it may come from further down
//	Admission-Control (Skipper)       shed, the same
//	429, 503 with Retry-After         shed, the same
//
// and of gRPC in a response without a body (Trailers-Only), Grpc-Status, of which
// RESOURCE_EXHAUSTED and UNAVAILABLE are shed, and Grpc-Retry-Pushback-Ms. now is used if
// the response has no Date.
func HTTPFault(status int, h http.Header, now time.Time) Fault {
	f := Fault{Status: status, Hint: HTTPHint(h, now)}
	if v := h["Grpc-Status"]; len(v) > 0 && status == http.StatusOK {
		f.Status, f.Code = 0, codeOf(v[0])
		f.Shed = f.Code == 8 || f.Code == 14
		if v := h["Grpc-Retry-Pushback-Ms"]; len(v) > 0 {
			f.Hint = GRPCHint(v[0])
		}
	} else if status < 400 {
		return f // the markers belong to refusals
	}
	f.Shed = f.Shed || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && len(h["Retry-After"]) > 0
	if v := h["Goodput-Rejected"]; len(v) > 0 {
		f.NotExecuted, f.Shed = true, true
		f.Hint.Exact = f.Hint.Said // it is spread where it is made
		if !f.Hint.Said && v[0] != "draining" {
			f.Hint.Never = true
		}
	}
	if len(h["Finagle-Http-Nack"]) > 0 {
		f.NotExecuted, f.Shed = true, true
	}
	if len(h["Finagle-Http-Nonretryable-Nack"]) > 0 {
		f.NotExecuted, f.Shed, f.Hint.Never = true, true, true
	}
	if len(h["X-Envoy-Overloaded"]) > 0 || len(h["Admission-Control"]) > 0 {
		f.Shed = true
	}
	return f
}

func codeOf(s string) Code {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return Code(n)
	}
	return 2 // UNKNOWN, as in gRPC for a status that is none
}

// filled returns f with what its error says by itself: a mark of Never, NotExecuted, Executed
// or After, a refusal by a limiter, a call that a Throttle kept, and a call inside that
// has made its attempts. Of several errors in one, that nothing was executed counts only
// if each says so.
func (f Fault) filled() Fault {
	if f.Err == nil {
		return f
	}
	if f.byParts() {
		f.executed = true
	}
	var inner *Error
	errors.As(f.Err, &inner)
	// What an error inside inner says of itself, inner has heard.
	var m *marked
	if errors.As(f.Err, &m) && (inner == nil || errors.As(m.err, &inner)) {
		f.executed = f.executed || m.fault.executed
		f.merge(m.fault)
	}
	if inner != nil {
		in := inner.fault
		in.Idempotent = false                                    // the call outside does more than that
		f.executed = f.executed || in.executed && !f.NotExecuted // a mark around it knows better
		f.merge(in)
	}
	var rej *goodput.Rejection
	switch {
	case inner != nil:
	case errors.As(f.Err, &rej):
		f.merge(Fault{NotExecuted: true, Shed: true, Hint: Hint{
			After: rej.RetryAfter, Said: rej.RetryAfter > 0, Never: rej.RetryAfter <= 0 && rej.Reason != goodput.Draining, // another may take that
			Exact: rej.Reason == goodput.OverQuota,
		}})
	case errors.Is(f.Err, goodput.ErrRejected):
		f.merge(Fault{NotExecuted: true, Shed: true})
	}
	return f
}

// byParts reports whether the error of f is several, as those of a fan-out, not each of
// which says that nothing was executed: what one part says is not said of the whole.
func (f *Fault) byParts() bool {
	for err := f.Err; err != nil; {
		switch e := err.(type) {
		case *marked, *Error: // they know of the whole
			return false
		case *goodput.Shortfall:
			return fellShort(e)
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), mayBeExecuted)
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return false
		}
	}
	return false
}

// fellShort reports whether any call of a gathering may have been executed: those that came
// and those that did not return were, and those that returned an error say so themselves.
func fellShort(s *goodput.Shortfall) bool {
	return s.Came > 0 || slices.ContainsFunc(s.Missing, func(m goodput.Missing) bool {
		switch m.Outcome {
		case goodput.Expired, goodput.Cancelled: // it had not been started
			return false
		case goodput.Failed, goodput.Rejected:
			return mayBeExecuted(m.Err)
		}
		return true
	})
}

// mayBeExecuted reports whether what ended with err may have been executed.
func mayBeExecuted(err error) bool {
	f := Fault{Err: err}.filled()
	return !f.Unsent && !f.safe(f.row()) || f.executed
}

// merge adds what in says and f does not. Err and OwnTime are those of f.
func (f *Fault) merge(in Fault) {
	if f.Status == 0 && f.Code == 0 {
		f.Status, f.Code = in.Status, in.Code
	}
	f.NotExecuted = f.NotExecuted || in.NotExecuted
	f.Unsent = f.Unsent || in.Unsent
	f.Idempotent = f.Idempotent || in.Idempotent
	f.NoRewind = f.NoRewind || in.NoRewind
	f.Shed = f.Shed || in.Shed
	if !f.Hint.Said && !f.Hint.Never && in.Hint != (Hint{}) {
		f.Hint = in.Hint
	}
}

// A Verdict says what a Fault allows.
type Verdict uint8

// Verdicts.
const (
	VerdictAnswer Verdict = iota // it is no fault of the service: give it to the caller
	VerdictRetry                 // another attempt may succeed and does no harm
	VerdictFinal                 // another attempt cannot succeed, or might execute it twice
)

var verdicts = [...]string{"answer", "retryable", "final"}

// String returns the verdict in a word.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return fmt.Sprintf("verdict(%d)", v)
}

// Verdict is the classification table, whose rows are in table.go with their reasons.
//
//	VerdictAnswer  below 400; 4xx but those below
//	               OK, INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
//	               FAILED_PRECONDITION, OUT_OF_RANGE, UNAUTHENTICATED
//	VerdictFinal   5xx but those below, so 500 501 505 511
//	               CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, ABORTED, UNIMPLEMENTED, INTERNAL, DATA_LOSS
//	               a context that is over, no such host, an address that is none, TLS, a *Throttled
//	VerdictRetry if Idempotent or Unsent, else VerdictFinal
//	               408 429 502 503 504
//	               UNAVAILABLE, RESOURCE_EXHAUSTED with a pushback
//	               a connection that broke, a timeout of the attempt alone, errors not known
//	VerdictRetry   425
//	               no connection, DNS that is away, no TLS handshake in time
//	               REFUSED_STREAM, a GOAWAY before the request
//
// NotExecuted makes VerdictRetry of each of them but the errors that are final, and a
// *goodput.Rejection has it. Hint.Never makes VerdictFinal of all but an answer below 400.
func (f Fault) Verdict() Verdict {
	f = f.filled()
	v, _ := f.judge()
	return v
}
