package proxy

import (
	"net/http"
	"net/http/httputil"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// admission puts the limiter in front of next.
func (p *Proxy) admission(next http.Handler) *goodputhttp.Server {
	return &goodputhttp.Server{
		Limiter:     func(*http.Request) *goodput.Limiter { return p.cfg.Limiter },
		Next:        next,
		Deadline:    p.cfg.Deadline,
		DeadlineCap: p.cfg.DeadlineCap,
		MaxBuffered: p.cfg.MaxBuffered,
	}
}

// forwardBudget tells the upstream how much time is left after the queue, so
// that it does not work longer than the client waits.
func (p *Proxy) forwardBudget(r *httputil.ProxyRequest) {
	goodputhttp.ForwardDeadline(r.In.Context(), r.Out.Header)
}
