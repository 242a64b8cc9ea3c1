package goodputhttp

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// grpcFailure returns the status of gRPC in h, a header or trailers, if it blames the
// server.
func grpcFailure(h http.Header) error {
	if v := h[grpcStatusHeader]; len(v) > 0 && blamesServer(v[0]) {
		return failedStatus("a gRPC error")
	}
	return nil
}

const grpcStatusHeader = "Grpc-Status"

// refused reports whether res is a refusal by an overloaded service, this one or one
// behind it: see retry.HTTPFault. It is a drop signal and no service sample, because a
// refusal in 1 ms says nothing of how long the work takes.
func refused(res *http.Response, grpc bool) bool {
	if res.StatusCode < 400 && !grpc {
		return false
	}
	return retry.HTTPFault(res.StatusCode, res.Header, time.Time{}).Shed
}

// aboutLoad reports whether a refusal with header h says that there is too much. The reason in
// Goodput-Rejected may say something else: that this request is too large, that its tenant
// has had its share, that its time is over, or that the instance leaves. Those would be
// refused on an idle service too, so fewer requests are no answer to them.
func aboutLoad(h http.Header) bool {
	v := h[rejectedHeader]
	return len(v) == 0 || !ofItself[v[0]]
}

var ofItself = map[string]bool{
	goodput.TooCostly.String(): true, goodput.TooLarge.String(): true, goodput.OverQuota.String(): true,
	goodput.Replaced.String(): true, goodput.Deadline.String(): true, goodput.Draining.String(): true,
}

// unreached reports whether err says that there was no connection to be had: nobody listens,
// or nobody takes more. A name that is not found says nothing of who would have answered.
func unreached(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" && !errors.As(err, &dns)
}

// fault describes the end of an attempt to the policy.
func (c *call) fault(a *attempt, err error) retry.Fault {
	f := retry.Fault{Err: err}
	if err == nil {
		f = retry.HTTPFault(a.res.StatusCode, a.res.Header, time.Now())
	}
	f.Idempotent = c.idempotent()
	f.NoRewind = !rewinds(c.req)
	f.OwnTime = c.dep.policy.PerAttempt > 0 && a.caller.Err() == nil
	return f
}

// idempotent reports whether executing the request twice does no more than once.
func (c *call) idempotent() bool {
	if c.dep.Idempotent != nil {
		return c.dep.Idempotent(c.req)
	}
	switch c.req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return c.req.Header.Get("Idempotency-Key") != "" || retry.IsIdempotent(c.req.Context())
}

// rewinds reports whether the body of r can be sent again.
func rewinds(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}
