// Package proxy puts limiters in front of services in any language: an HTTP
// reverse proxy that asks before it forwards.
//
// The model: a request is of one class, and the limiter of its class is the only queue.
// The transport behind it has none (no cap on connections, idle ones are kept), because a
// wait that the limiter does not see is a wait that no deadline bounds. A request takes the
// path
//
//	server -> ServeHTTP -> table (which class) -> goodputhttp.Server (admit, wait or refuse)
//	       -> httputil.ReverseProxy -> upstream.Pool (which server) -> http.Transport
//
// See package listen for what clients speak, and upstream for what servers are spoken to in.
package proxy

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/goodputhttp"
	"golang.org/x/net/http/httpguts"
)

// Options are what a proxy has beside its configuration.
type Options struct {
	// Logger gets at most one line a second about an upstream that fails.
	// Default slog.Default().
	Logger *slog.Logger

	// NewLimiter makes the limiter of a class. Default goodput.New.
	NewLimiter func(goodput.Config) *goodput.Limiter

	// Ended is told what became of each request, once, as goodputhttp.Server.Ended is.
	// Default: nobody is told.
	Ended func(r *http.Request, e Ended)

	// Servers has Ended know which server has answered, for two allocations a request.
	Servers bool
}

// A Proxy is an http.Handler that forwards what its limiters admit. It serves
// any number of connections at once.
type Proxy struct {
	log        *slog.Logger
	quiet      *log.Logger // what net/http has to say of single requests
	newLimiter func(goodput.Config) *goodput.Limiter
	ended      func(*http.Request, Ended)
	servers    bool

	reload   sync.Mutex        // of Reconfigure and SetObserve
	turned   map[string]turned // by class: what was said of observe mode; guarded by reload
	now      atomic.Pointer[table]
	observed atomic.Pointer[[]Observing] // of now; whoever looks does not wait for a reload
	failures failures
	sources  sources
	retiring retirement
	open     atomic.Int64
	tunnels  tunnels
}

// New returns a proxy under cfg, or one sentence about what is wrong with it.
func New(cfg *config.Config, o Options) (*Proxy, error) {
	p := &Proxy{log: o.Logger, newLimiter: o.NewLimiter, ended: o.Ended, servers: o.Servers, turned: map[string]turned{}}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.quiet = slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)
	p.failures.log = p.log.With("component", "proxy")
	if err := p.Reconfigure(cfg); err != nil {
		return nil, err
	}
	return p, nil
}

// ServeHTTP admits and forwards one request, or says why not.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		grow(0)
		if !httpguts.ValidHostHeader(r.Host) {
			// net/http checks that of HTTP/1 alone, and would send another on than what
			// the classes are matched with.
			p.refuse(w, r, "bad_host", "goodput: the host is malformed", http.StatusBadRequest)
			return
		}
	}
	if r.Method == http.MethodConnect {
		// A tunnel to a host of the client's choice is another product.
		p.refuse(w, r, "connect", "goodput: CONNECT is not supported: this is a reverse proxy", http.StatusMethodNotAllowed)
		return
	}
	if up := r.Header["Upgrade"]; up != nil {
		if offersH2C(up) {
			// A connection that became HTTP/2 between client and service would
			// carry requests past the limiter. A server may ignore an upgrade.
			r.Header.Del("Upgrade")
		} else if !printable(up) {
			// ReverseProxy would give up on it as if the service had failed.
			p.refuse(w, r, "bad_upgrade", "goodput: the Upgrade header is malformed", http.StatusBadRequest)
			return
		}
	}
	if (p.retiring.last(r) && r.Header["Upgrade"] == nil) || ambiguous(r) {
		// HTTP/1.1 closes after this answer, HTTP/2 sends GOAWAY. What becomes a
		// WebSocket needs the Connection header for itself.
		w.Header().Set("Connection", "close")
		r = r.WithContext(context.WithValue(r.Context(), closingKey{}, true))
	}
	c := p.now.Load().class(r)
	if c == nil {
		p.refuse(w, r, "ambiguous_path", "goodput: the path is ambiguous: write it without dot segments, empty ones, semicolons and backslashes", http.StatusBadRequest)
		return
	}
	if r.ProtoMajor == 2 && c.lim == nil {
		w = &early{w}
	}
	c.door.ServeHTTP(w, p.asks(r))
}

// ambiguous reports whether somebody before us may see another end of r than we
// do. A request with both Transfer-Encoding and Content-Length looks to us like
// one with the former alone: net/http has dropped the other. RFC 9112, 6.1, then
// has a server close the connection, and with it goes what an attacker put
// behind the end. The price is a new connection after each chunked request.
func ambiguous(r *http.Request) bool { return r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 }

// closingKey marks the requests whose answer already says that it is the last.
type closingKey struct{}

func offersH2C(upgrade []string) bool {
	for _, v := range upgrade {
		if strings.Contains(strings.ToLower(v), "h2c") {
			return true
		}
	}
	return false
}

// printable reports whether values are of ASCII that can be seen.
func printable(values []string) bool {
	for _, v := range values {
		if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' }) {
			return false
		}
	}
	return true
}

// Open returns how many client connections speak HTTP. Upgraded ones (WebSocket)
// no longer do: Door counts them.
func (p *Proxy) Open() int64 { return p.open.Load() }

// Door returns what is counted beside the limiters, of all classes together: deadlines that
// could not be read, bodies that never came, clients that were too slow, refusals of the
// upstream itself, upgrades.
func (p *Proxy) Door() goodputhttp.Stats {
	all := goodputhttp.Stats{DeadlineErrors: map[string]uint64{}}
	for _, c := range p.now.Load().all() {
		all.Add(c.door.Stats())
	}
	// Of what is upgraded a door has a part: it is not asked in classes of connections.
	all.Upgraded, all.UpgradedTotal = 0, 0
	for _, c := range p.now.Load().all() {
		counts := c.carrier.traffic
		all.Upgraded += counts.tunnels.Load()
		all.UpgradedTotal += counts.tunnelsEver.Load()
		all.UpgradedRefused += counts.upgradesRefused.Load()
	}
	return all
}

// MaxUpgraded returns how many connections may be upgraded at once, in all classes.
func (p *Proxy) MaxUpgraded() int {
	n := 0
	for _, c := range p.now.Load().classes {
		n += c.maxUpgraded()
	}
	return n
}

// Failures returns how often the upstream failed, by kind; every kind is there.
func (p *Proxy) Failures() map[string]uint64 { return p.failures.counts() }

// Overloaded reports whether every class that has a queue and something to do is in a standing
// overload, and one at least: a new connection then brings requests that will be refused. A class
// without a queue cannot have one that stands.
func (p *Proxy) Overloaded() bool {
	over := false
	for _, c := range p.now.Load().classes {
		if c.lim == nil || c.cfg.Limiter.Depth == goodput.NoQueue {
			continue
		}
		switch s := c.lim.Stats(); {
		case s.Overload:
			over = true
		case s.Load > 0.01: // a hundredth of what it can serve comes: not nothing
			return false
		}
	}
	return over
}

// Close ends the health checks, and closes the connections to the upstreams that carry
// nothing.
func (p *Proxy) Close() {
	for _, pool := range p.now.Load().pools {
		pool.Close()
	}
}

// connState counts connections. A hijacked one has left HTTP.
func (p *Proxy) connState(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		p.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		p.open.Add(-1)
	}
}

// bufferSize is one read of a response body: what ReverseProxy would allocate
// for each request if it had no pool.
const bufferSize = 32 << 10

// bufferPool keeps arrays, not slices: a pointer to an array fits an interface
// without an allocation.
type bufferPool struct{ sync.Pool }

var buffers = bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

func (b *bufferPool) Get() []byte  { return b.Pool.Get().(*[bufferSize]byte)[:] }
func (b *bufferPool) Put(s []byte) { b.Pool.Put((*[bufferSize]byte)(s)) }
