package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

var edges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

// C078: who a client is, behind proxies that are believed, is what nobody else could have
// written: counted from the right, to the first address that is not a proxy of ours.
func TestClientBehindTrustedProxies_C078(t *testing.T) {
	hundred := strings.Repeat("1.2.3.4, ", 99) + "5.6.7.8"
	for _, tc := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"nobody is in between", "9.9.9.9:1", nil, "9.9.9.9"},
		{"an untrusted peer forges", "9.9.9.9:1", []string{"1.1.1.1"}, "9.9.9.9"},
		{"a trusted one", "10.0.0.1:1", []string{"1.1.1.1"}, "1.1.1.1"},
		{"two trusted ones", "10.0.0.1:1", []string{"1.1.1.1, 10.0.0.2"}, "1.1.1.1"},
		{"forged in front", "10.0.0.1:1", []string{"6.6.6.6, 1.1.1.1"}, "1.1.1.1"},
		{"forged with an address of ours", "10.0.0.1:1", []string{"10.3.3.3, 1.1.1.1, 10.0.0.2"}, "1.1.1.1"},
		{"several lines", "10.0.0.1:1", []string{"6.6.6.6", "1.1.1.1", "10.0.0.2"}, "1.1.1.1"},
		{"spaces and a port", "10.0.0.1:1", []string{" 1.1.1.1:4711 ,\t10.0.0.2 "}, "1.1.1.1"},
		{"IPv6 in brackets", "10.0.0.1:1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 in brackets with a port", "10.0.0.1:1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"IPv6 bare", "10.0.0.1:1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv4 in IPv6", "10.0.0.1:1", []string{"::ffff:1.1.1.1"}, "1.1.1.1"},
		{"IPv4 in IPv6 of a proxy", "[::ffff:10.0.0.1]:1", []string{"1.1.1.1"}, "1.1.1.1"},
		{"a proxy by IPv6 with a zone", "[fd00::1%eth0]:1", []string{"1.1.1.1"}, "1.1.1.1"},
		{"garbage is the peer", "10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		{"garbage behind a proxy is that proxy", "10.0.0.1:1", []string{"1.1.1.1, _hidden, 10.0.0.2"}, "10.0.0.2"},
		{"empty", "10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"empty items", "10.0.0.1:1", []string{"1.1.1.1,,"}, "10.0.0.1"},
		{"only proxies", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"a hundred", "10.0.0.1:1", []string{hundred}, "5.6.7.8"},
		{"a hundred of ours", "10.0.0.1:1", []string{strings.Repeat("10.0.0.7,", 99) + "10.0.0.8"}, "10.0.0.7"},
		{"a unix socket", "@", []string{"1.1.1.1"}, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: tc.peer, Header: http.Header{"X-Forwarded-For": tc.lines}}
		if got := clientOf(r, edges).String(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func FuzzClientOf(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 10.0.0.2")
	f.Add("[fd00::1%a]:1", "[::1]:a,[],:,%")
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		got := clientOf(r, edges)
		at, err := netip.ParseAddrPort(peer)
		switch {
		case err != nil:
			if got.IsValid() {
				t.Errorf("%v of a peer without an address", got)
			}
		case !contains(edges, plain(at.Addr())):
			if got != plain(at.Addr()) {
				t.Errorf("an untrusted peer %s chose %v", peer, got)
			}
		}
	})
}

func TestWork(t *testing.T) {
	uri, _ := url.Parse("spiffe://x/web")
	verified := func(c x509.Certificate) *tls.ConnectionState {
		return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&c}}}
	}
	const believed, stranger = "10.0.0.1:1", "9.9.9.9:1"
	type w = goodput.Work
	for _, tc := range []struct {
		name   string
		class  config.Class
		peer   string
		header []string // name, value, ...
		length int64
		tls    *tls.ConnectionState
		want   goodput.Work
	}{
		{"a tenant by header", config.Class{Tenant: config.Key{From: config.Named, Header: "X-Tenant"}}, believed, []string{"X-Tenant", " acme "}, 0, nil, w{Tenant: "acme"}},
		{"that nobody vouches for", config.Class{Tenant: config.Key{From: config.Named, Header: "X-Tenant"}}, stranger, []string{"X-Tenant", "acme"}, 0, nil, w{}},
		{"twice", config.Class{Tenant: config.Key{From: config.Named, Header: "X-Tenant"}}, believed, []string{"X-Tenant", "acme", "X-Tenant", "b"}, 0, nil, w{}},
		{"a user", config.Class{User: config.Key{From: config.Named, Header: "X-User"}}, believed, []string{"X-User", "u1"}, 0, nil, w{User: "u1"}},
		{"a tenant by address", config.Class{Tenant: config.Key{From: config.Address}}, stranger, nil, 0, nil, w{Tenant: "9.9.9.9"}},
		{"behind a proxy", config.Class{Tenant: config.Key{From: config.Address}}, believed, []string{"X-Forwarded-For", "2001:db8::1:2"}, 0, nil, w{Tenant: "2001:db8::/64"}},
		{"by a wider network", config.Class{Tenant: config.Key{From: config.Address, V4: 24, V6: 48}}, stranger, nil, 0, nil, w{Tenant: "9.9.9.0/24"}},
		{"on a unix socket", config.Class{Tenant: config.Key{From: config.Address}}, "@", nil, 0, nil, w{}},
		{"a certificate's URI", config.Class{Tenant: config.Key{From: config.Cert}}, stranger, nil, 0, verified(x509.Certificate{URIs: []*url.URL{uri}, DNSNames: []string{"d"}}), w{Tenant: "spiffe://x/web"}},
		{"its DNS name", config.Class{Tenant: config.Key{From: config.Cert}}, stranger, nil, 0, verified(x509.Certificate{DNSNames: []string{"d"}, Subject: pkix.Name{CommonName: "c"}}), w{Tenant: "d"}},
		{"its common name", config.Class{Tenant: config.Key{From: config.Cert}}, stranger, nil, 0, verified(x509.Certificate{Subject: pkix.Name{CommonName: "c"}}), w{Tenant: "c"}},
		{"a certificate that was not verified", config.Class{Tenant: config.Key{From: config.Cert}}, stranger, nil, 0, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{DNSNames: []string{"d"}}}}, w{}},
		{"a fixed priority", config.Class{Priority: config.Priority{Fixed: goodput.Background}}, stranger, nil, 0, nil, w{Priority: goodput.Background}},
		{"by header", config.Class{Priority: config.Priority{Header: "X-P", Fixed: goodput.Sheddable}}, believed, []string{"X-P", "critical"}, 0, nil, w{Priority: goodput.Critical}},
		{"by an unknown word", config.Class{Priority: config.Priority{Header: "X-P", Fixed: goodput.Sheddable}}, believed, []string{"X-P", "highest"}, 0, nil, w{Priority: goodput.Sheddable}},
		{"by a stranger's header", config.Class{Priority: config.Priority{Header: "X-P", Fixed: goodput.Sheddable}}, stranger, []string{"X-P", "critical"}, 0, nil, w{Priority: goodput.Sheddable}},
		{"a fixed cost", config.Class{Cost: config.Amount{Fixed: 4}}, stranger, nil, 0, nil, w{Cost: 4}},
		{"by header", config.Class{Cost: config.Amount{Fixed: 4, Header: "X-C", Most: 8}}, believed, []string{"X-C", "6"}, 0, nil, w{Cost: 6}},
		{"beyond the most", config.Class{Cost: config.Amount{Fixed: 4, Header: "X-C", Most: 8}}, believed, []string{"X-C", "999"}, 0, nil, w{Cost: 8}},
		{"negative", config.Class{Cost: config.Amount{Fixed: 4, Header: "X-C", Most: 8}}, believed, []string{"X-C", "-6"}, 0, nil, w{Cost: 4}},
		{"zero", config.Class{Cost: config.Amount{Fixed: 4, Header: "X-C", Most: 8}}, believed, []string{"X-C", "0"}, 0, nil, w{Cost: 4}},
		{"a stranger's", config.Class{Cost: config.Amount{Fixed: 4, Header: "X-C", Most: 8}}, stranger, []string{"X-C", "1"}, 0, nil, w{Cost: 4}},
		{"a size by header", config.Class{Size: config.Amount{Header: "X-Tokens", Fixed: 500}}, believed, []string{"X-Tokens", "2147483647"}, 0, nil, w{Size: 1<<31 - 1}},
		{"too large to be one", config.Class{Size: config.Amount{Header: "X-Tokens", Fixed: 500}}, believed, []string{"X-Tokens", "2147483648"}, 0, nil, w{Size: 500}},
		{"by body", config.Class{Cost: config.Amount{Per: 1000, Most: 5}}, stranger, nil, 2001, nil, w{Cost: 3}},
		{"by a large body", config.Class{Cost: config.Amount{Per: 1000, Most: 5}}, stranger, nil, 1 << 62, nil, w{Cost: 5}},
		{"by a body of unknown length", config.Class{Cost: config.Amount{Per: 1000, Most: 5}}, stranger, nil, -1, nil, w{Cost: 5}},
		{"without a body", config.Class{Cost: config.Amount{Per: 1000, Most: 5, Fixed: 2}}, stranger, nil, 0, nil, w{Cost: 2}},
	} {
		table := &table{cfg: &config.Config{TrustedProxies: edges}}
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr, r.ContentLength, r.TLS = tc.peer, tc.length, tc.tls
		for i := 0; i < len(tc.header); i += 2 {
			r.Header.Add(tc.header[i], tc.header[i+1])
		}
		if got := table.work(&tc.class)(r); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
	if (&table{}).work(&config.Class{}) != nil {
		t.Error("there is nothing to say, and each request is asked")
	}
}
