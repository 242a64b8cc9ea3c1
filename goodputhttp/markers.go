package goodputhttp

import (
	"net/http"

	"github.com/goodput/goodput"
)

// Markers are what refusals say, beside Goodput-Rejected, to neighbours that speak another
// dialect. It is a set of bits.
type Markers uint8

const (
	// EnvoyMarkers are for an Envoy or an Istio in front: X-Envoy-Overloaded: true where
	// the service has too much, and X-Envoy-Ratelimited: true where a retry cannot win or
	// has to wait longer than Envoy would: for a quota, and where Retry-After is missing.
	// Envoy does not retry what has the latter, unless it is told to (retry_on
	// envoy-ratelimited). The rest it may retry, on another host: one that is overloaded is
	// no reason to fail what others could serve (envoyproxy/envoy#10706).
	EnvoyMarkers Markers = 1 << iota

	// FinagleMarkers are for clients of Finagle. They go with 503 alone, since those do
	// not look at any other: Finagle-Http-Nack: true, which says that the request may be
	// sent again at once, to requests without a body, and
	// Finagle-Http-Nonretryable-Nack: true where a retry cannot win.
	FinagleMarkers

	allMarkers = EnvoyMarkers | FinagleMarkers
)

// Names of the markers, of which isShed reads all but the second: that is about the
// caller.
const (
	envoyOverloaded  = "X-Envoy-Overloaded"
	envoyRatelimited = "X-Envoy-Ratelimited"
	finagleNack      = "Finagle-Http-Nack"
	finagleNever     = "Finagle-Http-Nonretryable-Nack"
	skipperShed      = "Admission-Control"
)

var yes = []string{"true"} // its capacity is 1: who appends gets a copy

// mark writes the markers of a refusal that is answered with status.
func (v *visit) mark(h http.Header, f *refusal, status int) {
	m := v.server.Markers
	if m == 0 {
		return
	}
	if m&EnvoyMarkers != 0 {
		if f.aboutLoad() {
			h[envoyOverloaded] = yes
		}
		if f.again == retryNever || f == refusals[goodput.OverQuota] {
			h[envoyRatelimited] = yes
		}
	}
	if m&FinagleMarkers == 0 || status != http.StatusServiceUnavailable {
		return
	}
	switch {
	case f.again == retryNever:
		h[finagleNever] = yes
	case v.r.ContentLength == 0 || v.r.Body == nil || v.r.Body == http.NoBody:
		h[finagleNack] = yes
	}
}

// aboutLoad reports whether f says that there is too much, and not something of the
// request: see the function of that name.
func (f *refusal) aboutLoad() bool {
	return f.status == http.StatusServiceUnavailable && !ofItself[f.reason]
}
