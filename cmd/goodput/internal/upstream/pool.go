// Package upstream is the service behind the proxy: one or more servers before which
// there is one queue.
//
// The model: late binding. A request that was admitted is sent to the server that is well
// and has the most room at that moment, so the next free slot of any server takes the next
// request, and none waits behind a server that is slow while another one is idle. Neither
// the pool nor its transports queue: who waits, waits in the limiter, where a deadline
// bounds it.
package upstream

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// A Pool is the servers of one upstream. It is an http.RoundTripper for requests whose URL
// has a path and a query and no host.
type Pool struct {
	cfg     atomic.Pointer[config.Upstream]
	servers []*server
}

// A server is one address with its connections.
type server struct {
	target *url.URL // of outgoing requests: the URL with a scheme that net/http knows
	back   *transport
}

// New returns the pool of cfg. Close ends it.
func New(cfg config.Upstream, log *slog.Logger) *Pool {
	p := &Pool{}
	p.cfg.Store(&cfg)
	for _, s := range cfg.Servers {
		p.servers = append(p.servers, &server{target(s.URL), newTransport(s.URL.Scheme)})
	}
	return p
}

// Reconfigure puts cfg in force: what is in flight at a server that stays goes on and
// counts; a server that is not in cfg takes nothing new.
func (p *Pool) Reconfigure(cfg config.Upstream) { p.cfg.Store(&cfg) }

// RoundTrip sends r to a server.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	s := p.servers[0]
	host := r.Host
	pr := httputil.ProxyRequest{Out: r}
	pr.SetURL(s.target)
	r.Host = host // SetURL has taken it for that of the server
	return s.back.RoundTrip(r)
}

// CloseIdle closes the connections that carry nothing.
func (p *Pool) CloseIdle() {
	for _, s := range p.servers {
		s.back.closeIdle()
	}
}

// Close ends the health checks and closes idle connections. What is in flight goes on.
func (p *Pool) Close() { p.CloseIdle() }
