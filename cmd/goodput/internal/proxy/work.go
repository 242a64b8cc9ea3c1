package proxy

import (
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/goodputhttp"
)

// What a request is, for its limiter: who sends it, how much it is, how much it matters.
// All of that gives somebody an advantage, so what headers say counts from trusted proxies
// only; from everybody else the configuration speaks.

// maxValue bounds the text of a number in a header: 2^31-1 has ten digits.
const maxValue = 10

// work returns what says what a request of a class is; nil if there is nothing to say.
func (t *table) work(c *config.Class) func(*http.Request) goodput.Work {
	if c.Tenant.From == config.Nobody && c.User.From == config.Nobody && c.Priority == (config.Priority{}) &&
		c.Cost == (config.Amount{}) && c.Size == (config.Amount{}) {
		return nil
	}
	tenant, user := t.key(&c.Tenant), t.key(&c.User)
	return func(r *http.Request) goodput.Work {
		from := &peer{r: r, trusted: t.trusts(r.RemoteAddr)}
		return goodput.Work{
			Tenant:   tenant(from),
			User:     user(from),
			Priority: from.priority(&c.Priority),
			Cost:     from.amount(&c.Cost),
			Size:     from.amount(&c.Size),
		}
	}
}

// exempt says which requests are probes: see config.Class.Exempt.
func exempt(paths []string, probe func(*http.Request) bool) func(*http.Request) bool {
	if len(paths) == 0 {
		return nil
	}
	return func(r *http.Request) bool { return slices.Contains(paths, r.URL.Path) || probe(r) }
}

// A peer is who sent a request, and whether it is believed.
type peer struct {
	r       *http.Request
	trusted bool
}

// header returns the one value of a header of a trusted peer. Of several nobody knows which
// one somebody behind us would take, so they are none.
func (p *peer) header(name string) string {
	if !p.trusted || name == "" {
		return ""
	}
	if v := p.r.Header.Values(name); len(v) == 1 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

// key returns what takes a key from a request.
func (t *table) key(k *config.Key) func(*peer) string {
	switch k.From {
	case config.Named:
		return func(p *peer) string { return p.header(k.Header) }
	case config.Cert:
		return func(p *peer) string { return certName(p.r) }
	case config.Address:
		name := goodputhttp.ByAddress(k.V4, k.V6)
		return func(p *peer) string {
			client := clientOf(p.r, t.cfg.TrustedProxies)
			if !client.IsValid() {
				return ""
			}
			return name(&http.Request{RemoteAddr: netip.AddrPortFrom(client, 0).String()})
		}
	}
	return func(*peer) string { return "" }
}

// certName is the name in a client certificate that was verified: a URI, as SPIFFE has it, a
// DNS name, or the common name.
func certName(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ""
	}
	cert := r.TLS.VerifiedChains[0][0]
	switch {
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	}
	return cert.Subject.CommonName
}

func (p *peer) priority(c *config.Priority) goodput.Priority {
	switch p.header(c.Header) {
	case "critical":
		return goodput.Critical
	case "default":
		return goodput.Default
	case "sheddable":
		return goodput.Sheddable
	case "background":
		return goodput.Background
	}
	return c.Fixed
}

// amount is a number of units; 0 where nothing says one.
func (p *peer) amount(a *config.Amount) int {
	if v := p.header(a.Header); v != "" && len(v) <= maxValue {
		if n, err := strconv.ParseUint(v, 10, 31); err == nil && n > 0 {
			return min(int(n), most(a))
		}
	}
	switch length := p.r.ContentLength; {
	case a.Per > 0 && length < 0 && a.Most > 0:
		return a.Most // nobody pays less for not saying how much
	case a.Per > 0 && length > 0:
		return int(min((length-1)/a.Per+1, int64(most(a))))
	}
	return a.Fixed
}

func most(a *config.Amount) int {
	if a.Most > 0 {
		return a.Most
	}
	return math.MaxInt32
}

// maxHops bounds how much of X-Forwarded-For is looked at.
const maxHops = 64

// clientOf returns the address of the client: the peer, or, where that is a trusted
// proxy, the last one in X-Forwarded-For that is none. From the right, because what is on the left of an
// address that is not ours was written by whom it belongs to. What cannot be read ends the
// search at the last proxy that is believed.
func clientOf(r *http.Request, proxies []netip.Prefix) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // a unix socket has none
	}
	addr := plain(at.Addr())
	if !contains(proxies, addr) {
		return addr
	}
	lines := r.Header["X-Forwarded-For"]
	hops := 0
	for i := len(lines) - 1; i >= 0; i-- {
		rest := lines[i]
		for rest != "" {
			if hops++; hops > maxHops {
				return addr
			}
			var last string
			if j := strings.LastIndexByte(rest, ','); j >= 0 {
				rest, last = rest[:j], rest[j+1:]
			} else {
				rest, last = "", rest
			}
			next, ok := hop(last)
			if !ok {
				return addr
			}
			if addr = next; !contains(proxies, addr) {
				return addr
			}
		}
	}
	return addr
}

// hop reads an item of X-Forwarded-For: an address, in brackets or with a port as some
// balancers write it.
func hop(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	} else {
		s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	}
	addr, err := netip.ParseAddr(s)
	return plain(addr), err == nil
}

// plain is an address as ranges are written: IPv4 as such, and without the name of an
// interface.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
