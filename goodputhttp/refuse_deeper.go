package goodputhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// Refuse answers a request whose handler was refused what it needs, a slot of another
// limiter, a connection or a call, and returns true. If err is no refusal it writes nothing
// and returns false. It is for handlers, which may have done a part of the work before:
//
//	if err := charge(ctx, order); err != nil {
//		if !goodputhttp.Refuse(w, r, err) {
//			http.Error(w, "charging failed", http.StatusBadGateway)
//		}
//		return
//	}
//
// The answer is 503, or 504 if the deadline of r or of what was refused has passed; for gRPC
// UNAVAILABLE or DEADLINE_EXCEEDED. Retry-After and pushback are those of the table in the
// package comment. It never has Goodput-Rejected, because nobody knows here whether the
// handler did something: a client repeats it only if the request is idempotent. Nothing of
// the response may have been written. A Server in front counts it as failed, without a sample
// of the service time, or as late if the deadline has passed.
//
// Refusals are, wrapped or not: a *goodput.Rejection, as of goodputsql, pool and Gather, but
// not one because a context was cancelled; an *Unsent; a *retry.Throttled; a *retry.Error
// whose last attempt ended as one of those; and a *goodput.Shortfall if each of its calls
// that failed did.
func Refuse(w http.ResponseWriter, r *http.Request, err error) bool {
	rej := refusalIn(err)
	if rej == nil {
		return false
	}
	f := *refusals[rej.Reason]
	if rej.Reason == goodput.Deadline || r.Context().Err() == context.DeadlineExceeded {
		f = *refusals[goodput.Deadline]
		f.text = "The time limit of the request passed. A part of it may have been done."
	} else {
		f.status, f.grpc = http.StatusServiceUnavailable, "14"
		f.text = "Overloaded: the request was not completed. A part of it may have been done."
	}
	f.overload = false // 429 would be no failure for the limiter in front

	v := &visit{server: defaults, w: w, r: r, grpc: isGRPC(r.Header)}
	h := w.Header()
	for _, name := range unfit {
		delete(h, name)
	}
	var after time.Duration
	if f.again == retryAfter {
		after = retryIn(rej, v.grpc)
	}
	v.write(&f, after)
	return true
}

// unfit are the headers that a handler may have set, or copied from elsewhere, and that are
// not true of this answer: what promises that nothing was executed, and what describes a
// body that is not sent.
var unfit = [...]string{
	rejectedHeader, "Finagle-Http-Nack", "Finagle-Http-Nonretryable-Nack", "Retry-After", "Grpc-Retry-Pushback-Ms",
	"Content-Encoding", "Content-Length", "Etag", "Last-Modified",
}

// refusalIn returns the refusal that err is, as one of a limiter, or nil if it is none.
func refusalIn(err error) *goodput.Rejection {
	var (
		short  *goodput.Shortfall
		again  *retry.Error
		rej    *goodput.Rejection
		unsent *Unsent
	)
	switch {
	case errors.As(err, &short):
		return refusalOf(short)
	case errors.As(err, &again) && again.Err != nil: // it hides a refusal after an attempt that was executed
		return refusalIn(again.Err)
	case errors.As(err, &rej):
		if _, ok := refusals[rej.Reason]; ok { // else a context was cancelled
			return rej
		}
	case errors.As(err, &unsent):
		return unsent.rejection()
	case errors.Is(err, retry.ErrThrottled):
		return &goodput.Rejection{Outcome: goodput.Rejected, Reason: goodput.Unavailable, RetryAfter: throttledFor}
	}
	return nil
}

// refusalOf returns the one with the longest hint, if all calls that failed were refused: who
// comes back earlier would be refused by that one again. nil if one failed otherwise.
func refusalOf(s *goodput.Shortfall) (longest *goodput.Rejection) {
	for _, m := range s.Missing {
		if m.Outcome != goodput.Failed && m.Outcome != goodput.Rejected {
			continue // it did not end by itself
		}
		rej := refusalIn(m.Err)
		if rej == nil {
			return nil
		}
		if longest == nil || rej.RetryAfter > longest.RetryAfter {
			longest = rej
		}
	}
	return longest
}

// rejection returns u as a limiter would have said it.
func (u *Unsent) rejection() *goodput.Rejection {
	return &goodput.Rejection{
		Limiter: u.Dependency, Outcome: u.Reason.Outcome(), Reason: u.Reason, RetryAfter: throttledFor,
	}
}
