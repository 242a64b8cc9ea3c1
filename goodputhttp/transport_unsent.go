package goodputhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/goodput/goodput"
)

// An Unsent is the error for a request that Transport did not send and that no limiter
// refused: its Dependency has been refusing most requests (goodput.Unavailable), or too
// little is left of the deadline (goodput.NoBudget), or nothing (goodput.Deadline).
//
// errors.Is: goodput.ErrRejected always; retry.ErrThrottled for the first,
// context.DeadlineExceeded for the other two. The request was not executed.
type Unsent struct {
	Dependency string
	Reason     goodput.Reason
	Left       time.Duration // until the deadline, less Dependency.HopMargin; 0 for Unavailable
	Err        error         // *retry.Throttled for Unavailable, with the arithmetic; else nil
}

// Error returns one sentence.
func (u *Unsent) Error() string {
	switch u.Reason {
	case goodput.Deadline:
		return fmt.Sprintf("goodputhttp: the request to %s was not sent: its deadline has passed", u.Dependency)
	case goodput.NoBudget:
		return fmt.Sprintf("goodputhttp: the request to %s was not sent: of its deadline %v are left after the way there and back, at least %v are needed",
			u.Dependency, u.Left.Round(time.Microsecond), minBudget)
	}
	return fmt.Sprintf("goodputhttp: the request to %s was not sent: %v", u.Dependency, u.Err)
}

// Unwrap returns Err.
func (u *Unsent) Unwrap() error { return u.Err }

// Is makes errors.Is tell the cases apart that a caller must.
func (u *Unsent) Is(target error) bool {
	return target == goodput.ErrRejected || target == context.DeadlineExceeded && u.Timeout()
}

// Timeout reports whether it was for the deadline: url.Error.Timeout asks for it.
func (u *Unsent) Timeout() bool { return u.Reason != goodput.Unavailable }

// ProxyError is an ErrorHandler for httputil.ReverseProxy that has a Transport and is
// behind a Server. A request that was not sent upstream, because its limiter refused it
// or as an *Unsent, is refused as Server would, with marker and hint. What took too long
// upstream is answered 504, and other errors 502, both without the marker, because
// nobody knows whether the request was executed.
//
// The marker promises that nothing was done, so ProxyError is only for where nothing can
// have been done before the request is sent on. In a handler that does anything itself it
// would make clients repeat what was done: such a one answers with Refuse.
//
// An upstream's own refusal is a response and not an error: the proxy passes it on as it
// is.
func ProxyError(w http.ResponseWriter, r *http.Request, err error) {
	v := &visit{server: defaults, w: w, r: r, grpc: isGRPC(r.Header)}
	if front, ok := r.Context().Value(visitKey{}).(*visit); ok {
		v.server, v.r = front.server, front.r
	}
	var rej *goodput.Rejection
	var unsent *Unsent
	switch {
	case errors.As(err, &rej):
		v.refuse(rej)
	case errors.As(err, &unsent):
		v.refuse(unsent.rejection())
	case errors.Is(err, context.DeadlineExceeded):
		w.WriteHeader(http.StatusGatewayTimeout)
	default:
		w.WriteHeader(http.StatusBadGateway) // to nobody, if the caller has left
	}
}

// throttledFor is the hint of a request that was kept at home. A Throttle forgets over
// minutes and lets some pass all the time: a second is the least that makes sense.
const throttledFor = time.Second

// defaults answers for what no Server has admitted.
var defaults = new(Server)
