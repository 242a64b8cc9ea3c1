package goodputhttp

import (
	"net/http"
	"time"

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
