// Package proxy puts a limiter in front of a service in any language: an HTTP
// reverse proxy that asks before it forwards.
//
// The model: the limiter is the only queue. The transport behind it has none
// (no cap on connections, idle ones are kept), because a wait that the limiter
// does not see is a wait that no deadline bounds. A request takes the path
//
//	server -> ServeHTTP -> goodputhttp.Server (admit, wait or refuse)
//	       -> httputil.ReverseProxy -> upstream -> http.Transport
//
// Clients speak HTTP/1.1, or HTTP/2 without TLS by prior knowledge, on the same
// port. See upstream for what the service is spoken to in.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// A Config describes a proxy.
type Config struct {
	// Upstream is the service: http, https or h2c, a host, perhaps a port and a
	// path that is put before the request's. Required.
	Upstream *url.URL

	// Limiter admits. Required.
	Limiter *goodput.Limiter

	// Deadline of a request that brings none; 0: such a request has none.
	Deadline time.Duration

	// DeadlineCap is the longest deadline that a request may bring; 0: any.
	DeadlineCap time.Duration

	// MaxBuffered bounds the request bodies in memory because they were read
	// before their request queued, in bytes. Default 64 MiB.
	MaxBuffered int64

	// Finish is how long a request whose client has left, or whose deadline has
	// passed, keeps its slot while the service may still be at it. 0 cancels
	// it: the slot is free at once, and the service has to notice.
	Finish time.Duration

	// TrustedProxies are the peers whose X-Forwarded-* and Forwarded headers are
	// kept and extended. Those of everybody else are dropped: a client could
	// write anything into them.
	TrustedProxies []netip.Prefix

	// Logger gets at most one line a second about an upstream that fails.
	// Default slog.Default().
	Logger *slog.Logger
}

// Validate returns one sentence about what is wrong, or nil.
func (c Config) Validate() error {
	switch {
	case c.Upstream == nil:
		return errors.New("upstream is missing: say where the service listens, for example http://127.0.0.1:9000")
	case c.Limiter == nil:
		return errors.New("limiter is missing: a proxy without one protects nothing")
	}
	return CheckUpstream(c.Upstream)
}

// A Proxy is an http.Handler that forwards what its limiter admits. It serves
// any number of connections at once.
type Proxy struct {
	cfg      Config
	admit    *goodputhttp.Server
	back     *upstream
	target   *url.URL // of outgoing requests: Upstream with a scheme the transport knows
	failures failures
	sources  sources
	retiring atomic.Bool
	open     atomic.Int64
}

// New returns a proxy, or the sentence of Config.Validate.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	p := &Proxy{cfg: cfg, back: newUpstream(cfg.Upstream.Scheme)}
	p.failures.log = cfg.Logger.With("component", "proxy", "upstream", cfg.Upstream.Redacted())
	p.target = target(cfg.Upstream)
	var back http.RoundTripper = p.back
	if cfg.Finish > 0 {
		back = &finisher{p.back, cfg.Finish}
	}
	p.admit = p.admission(&httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      back,
		BufferPool:     &buffers,
		ModifyResponse: p.lastAnswer,
		ErrorHandler:   p.fail,
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		// FlushInterval stays 0: ReverseProxy flushes each write of an event
		// stream and of every body without a length by itself, and for the
		// others a flush per write is a system call and a timer for nothing.
	})
	return p, nil
}

// ServeHTTP admits and forwards one request, or says why not.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		// A tunnel to a host of the client's choice is another product.
		http.Error(w, "goodput: CONNECT is not supported: this is a reverse proxy", http.StatusMethodNotAllowed)
		return
	}
	if up := r.Header["Upgrade"]; up != nil && offersH2C(up) {
		// A connection that became HTTP/2 between client and service would
		// carry requests past the limiter. A server may ignore an upgrade.
		r.Header.Del("Upgrade")
	}
	if (p.retiring.Load() && r.Header["Upgrade"] == nil) || ambiguous(r) {
		// HTTP/1.1 closes after this answer, HTTP/2 sends GOAWAY: the peer
		// moves on without losing a request. What becomes a WebSocket needs the
		// Connection header for itself.
		w.Header().Set("Connection", "close")
		r = r.WithContext(context.WithValue(r.Context(), closingKey{}, true))
	}
	p.admit.ServeHTTP(w, r)
}

// ambiguous reports whether somebody before us may see another end of r than we
// do. A request with both Transfer-Encoding and Content-Length looks to us like
// one with the former alone: net/http has dropped the other. RFC 9112, 6.1, then
// has a server close the connection, and with it goes what an attacker put
// behind the end. The price is a new connection after each chunked request.
func ambiguous(r *http.Request) bool { return r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 }

// closingKey marks the requests whose answer already says that it is the last.
type closingKey struct{}

// lastAnswer does for the requests that were in flight when Retire was called
// what ServeHTTP does for those that come later.
func (p *Proxy) lastAnswer(res *http.Response) error {
	if p.retiring.Load() && res.StatusCode != http.StatusSwitchingProtocols &&
		res.Request.Context().Value(closingKey{}) == nil {
		res.Header.Set("Connection", "close")
	}
	return nil
}

func offersH2C(upgrade []string) bool {
	for _, v := range upgrade {
		if strings.Contains(strings.ToLower(v), "h2c") {
			return true
		}
	}
	return false
}

// Retire makes every answer from now on the last one of its connection. The
// listener stays open: who has not heard yet that we are leaving is served.
func (p *Proxy) Retire() { p.retiring.Store(true) }

// Open returns how many client connections speak HTTP. Upgraded ones (WebSocket)
// no longer do: Door counts them.
func (p *Proxy) Open() int64 { return p.open.Load() }

// Door returns what is counted beside the limiter: deadlines that could not be
// read, bodies that never came, clients that were too slow, refusals of the
// upstream itself, upgrades.
func (p *Proxy) Door() goodputhttp.Stats { return p.admit.Stats() }

// Failures returns how often the upstream failed, by kind; every kind is there.
func (p *Proxy) Failures() map[string]uint64 { return p.failures.counts() }

// CloseIdle closes the connections to the upstream that carry nothing.
func (p *Proxy) CloseIdle() { p.back.closeIdle() }

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
