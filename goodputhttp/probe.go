package goodputhttp

import (
	"net/http"
	"strings"
)

// Probe is the default of Server.Exempt. It reports whether r looks like a
// health probe: a GET or HEAD for /livez, /readyz, /healthz or /health, or by
// the user agent of a kubelet (kube-probe/) or of Google's balancers
// (GoogleHC/); or a call of gRPC's health service.
//
// A service whose probes are refused under load is restarted or taken out of
// rotation, which moves its load to the rest: an overload becomes an outage.
// Anybody can pretend to be a probe, so exempt requests have a small bound of
// their own (goodput.Config.Exempt); beyond it they are treated like others.
func Probe(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		return r.URL.Path == "/grpc.health.v1.Health/Check"
	default:
		return false
	}
	switch r.URL.Path {
	case "/livez", "/readyz", "/healthz", "/health":
		return true
	}
	agent := r.Header["User-Agent"]
	return len(agent) > 0 &&
		(strings.HasPrefix(agent[0], "kube-probe/") || strings.HasPrefix(agent[0], "GoogleHC/"))
}
