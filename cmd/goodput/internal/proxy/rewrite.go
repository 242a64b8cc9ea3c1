package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// forwarding are the headers that say where a request came from and when, beside Forwarded, which
// ReverseProxy drops itself, and all that begin with X-Forwarded-. Applications believe them, so
// they pass from trusted peers only. An earlier arrival would be served before others by
// whoever trusts us.
var forwarding = []string{"X-Real-Ip", "X-Request-Start", "X-Queue-Start"}

// isForwarding reports whether a service may take a header for one of them. CGI and WSGI write an
// underscore for a dash, so to those services X_Forwarded_For is the same name.
func isForwarding(name string) bool {
	if strings.Contains(name, "_") {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" || slices.Contains(forwarding, name)
}

// rewrite makes the outgoing request. It runs after the hop-by-hop headers were
// removed, so what is set here arrives: a client cannot name it in Connection.
func (p *Proxy) rewrite(t *table, r *httputil.ProxyRequest) {
	r.Out.Trailer = nil                    // they could name anything that is dropped or set below; RFC 9110, 6.5.1, lets us discard them
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came: we decide nothing by it, so nobody is fooled by how we would read it
	r.Out.Host = r.In.Host                 // the service behind a sidecar has the name that clients use
	trusted := t.trusts(r.In.RemoteAddr)
	if trusted {
		keep(r, "Forwarded")
		keep(r, "X-Forwarded-For") // SetXForwarded appends the peer
	} else {
		if len(r.In.Header["X-Forwarded-For"])+len(r.In.Header["Forwarded"]) > 0 {
			t.stranger.Do(func() {
				p.log.Warn("forwarding headers are dropped: their sender is no trusted proxy; if it is one of yours, name it in trusted_proxies, or the service takes it for the client",
					"component", "proxy", "peer", r.In.RemoteAddr)
			})
		}
		for name := range r.Out.Header { // each service has its own: -Scheme, -Ssl, -User
			if isForwarding(name) {
				delete(r.Out.Header, name)
			}
		}
	}
	r.SetXForwarded()
	if trusted {
		keep(r, "X-Forwarded-Host")
		keep(r, "X-Forwarded-Proto")
	}
	if r.Out.Body != nil {
		r.Out.Body = &clientBody{ReadCloser: r.Out.Body}
	}
	p.forwardBudget(r)
}

// keep restores a header of the incoming request that was dropped or replaced.
func keep(r *httputil.ProxyRequest, name string) {
	if v, ok := r.In.Header[name]; ok {
		r.Out.Header[name] = slices.Clone(v)
	}
}

// trusts reports whether a peer is a trusted proxy.
func (t *table) trusts(remote string) bool { return among(t.cfg.TrustedProxies, remote) }

// among reports whether a peer is in one of the ranges. Who has no address, on a unix socket,
// is in none.
func among(ranges []netip.Prefix, remote string) bool {
	if len(ranges) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && contains(ranges, plain(peer.Addr()))
}

// A clientBody remembers that the client's body, not the service, broke a
// request. The transport may still read it while the handler asks.
type clientBody struct {
	io.ReadCloser
	broken atomic.Bool
	large  atomic.Bool
}

func (b *clientBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if err != nil && err != io.EOF && err != http.ErrBodyReadAfterClose {
		b.broken.Store(true)
		b.large.Store(errors.As(err, new(*http.MaxBytesError)))
	}
	return n, err
}
