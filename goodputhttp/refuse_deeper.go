package goodputhttp

import (
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
	reason, text := rej.Reason, "Overloaded: the request was not completed. A part of it may have been done."
	if r.Context().Err() == http.ErrHandlerTimeout || timedOut(r) {
		reason = goodput.Deadline
	}
	f := *refusals[reason]
	if reason == goodput.Deadline {
		text = "The time limit of the request passed. A part of it may have been done."
	} else {
		f.status, f.grpc = http.StatusServiceUnavailable, "14"
	}
	f.overload, f.text = false, text // 429 would be an answer like others, and no failure, in front

	v := &visit{server: defaults, w: w, r: r, grpc: isGRPC(r.Header)}
	h := w.Header()
	for _, name := range unstarted {
		delete(h, name)
	}
	var after time.Duration
	if f.again == retryAfter {
		after = retryIn(rej, v.grpc)
	}
	v.write(&f, after)
	return true
}
