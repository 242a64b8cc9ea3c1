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
		MaxUpgraded: goodputhttp.DefaultMaxUpgraded,
	}
}

// MaxUpgraded returns how many connections may be upgraded at once.
func (p *Proxy) MaxUpgraded() int { return p.admit.MaxUpgraded }

// forwardBudget tells the upstream how much time is left after the queue, so
// that it does not work longer than the client waits.
func (p *Proxy) forwardBudget(r *httputil.ProxyRequest) {
	ctx := r.In.Context()
	p.sources.count(goodputhttp.BudgetFrom(ctx).Source)
	goodputhttp.ForwardDeadline(ctx, r.Out.Header)
}
