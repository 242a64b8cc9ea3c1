package upstream

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What a transport must be so that the limiter is the only queue.
func TestTransportIsTransparent(t *testing.T) {
	back := newTransport("http", dial, func(context.Context, error) {})
	for name, tr := range map[string]*http.Transport{"h1": back.h1, "h2": back.h2} {
		for what, holds := range map[string]bool{
			"connections have no cap":                    tr.MaxConnsPerHost == 0 && tr.MaxIdleConns == 0,
			"all are kept idle":                          tr.MaxIdleConnsPerHost >= limit.Max,
			"but shorter than servers keep them":         tr.IdleConnTimeout > 0 && tr.IdleConnTimeout < 5*time.Second,
			"bodies stay as they are":                    tr.DisableCompression,
			"keep-alive is on":                           !tr.DisableKeepAlives,
			"the environment's proxy is not asked":       tr.Proxy == nil,
			"connects end":                               tr.DialContext != nil && tr.TLSHandshakeTimeout > 0,
			"answers take as long as the deadline says":  tr.ResponseHeaderTimeout == 0,
			"100-continue ends":                          tr.ExpectContinueTimeout > 0,
			"response headers have a bound":              tr.MaxResponseHeaderBytes > 0,
			"a dead HTTP/2 connection is noticed":        tr.HTTP2.SendPingTimeout > 0 && tr.HTTP2.PingTimeout > 0,
			"streams beyond a connection's open another": !tr.HTTP2.StrictMaxConcurrentRequests,
		} {
			if !holds {
				t.Errorf("%s: it does not hold that %s", name, what)
			}
		}
	}
}
