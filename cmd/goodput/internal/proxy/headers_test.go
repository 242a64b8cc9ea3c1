package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// echo answers with the header that it got, a line per value.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "Host: %s\nProto: %s\nURI: %s\n", r.Host, r.Proto, r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			fmt.Fprintf(w, "%s: %s\n", name, v)
		}
	}
})

func line(body, name string) string {
	var found []string
	for l := range strings.Lines(body) {
		if v, ok := strings.CutPrefix(l, name+": "); ok {
			found = append(found, strings.TrimSpace(v))
		}
	}
	return strings.Join(found, " | ")
}

// C077: several Connection lines, the first empty, the second naming headers
// that the proxy sets: the hop-by-hop ones go, what we add is there.
func TestConnectionCannotStripOurHeaders_C077(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	c := w.raw("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection:\r\n" +
		"Connection: close, X-Tenant, X-Envoy-Expected-Rq-Timeout-Ms, X-Forwarded-For\r\n" +
		"X-Tenant: acme\r\nX-Envoy-Expected-Rq-Timeout-Ms: 5000\r\nX-Forwarded-For: 6.6.6.6\r\n" +
		"Keep-Alive: timeout=9\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\n\r\n")
	_, body := w.answer(c)
	for _, gone := range []string{"X-Tenant", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Connection"} {
		if got := line(body, gone); got != "" {
			t.Errorf("%s: %s reached the service", gone, got)
		}
	}
	if got := line(body, "X-Forwarded-For"); got != "127.0.0.1" {
		t.Errorf("X-Forwarded-For is %q, want the peer alone", got)
	}
	if ms, err := strconv.Atoi(line(body, "X-Envoy-Expected-Rq-Timeout-Ms")); err != nil || ms <= 0 || ms >= 5000 {
		t.Errorf("the service was told that %d ms are left of 5000, %v", ms, err)
	}
	if got := line(body, "Host"); got != "shop.example" {
		t.Errorf("Host is %q, want what the client asked for", got)
	}
}

// C078: whatever an untrusted peer writes about where it comes from is dropped.
func TestForwardedIsUntrusted_C078(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	forged := []string{
		"X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\nX-Forwarded-For: [::1]:80",
		"X-Forwarded-For: " + strings.Repeat("9.9.9.9, ", 100) + "9.9.9.9", "X-Forwarded-For:   ",
		"X-Forwarded-For: unknown, \"evil\"", "Forwarded: for=1.2.3.4;host=evil;proto=https",
		"X-Real-IP: 1.2.3.4", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "X-Forwarded-Port: 443", "X-Forwarded-Prefix: /evil",
		"x-forwarded-scheme: https", "X-Forwarded-Preferred-Username: root",
	}
	for _, f := range forged {
		c := w.raw("GET / HTTP/1.1\r\nHost: shop.example\r\n" + f + "\r\nConnection: close\r\n\r\n")
		_, body := w.answer(c)
		for name, want := range map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "shop.example",
			"Forwarded": "", "X-Real-Ip": "", "X-Forwarded-Port": "", "X-Forwarded-Prefix": "",
			"X-Forwarded-Scheme": "", "X-Forwarded-Preferred-Username": "",
		} {
			if got := line(body, name); got != want {
				t.Errorf("%.60q: the service got %s: %q, want %q", f, name, got, want)
			}
		}
	}
}

func TestForwardedOfTrustedPeersIsExtended_C078(t *testing.T) {
	trust := func(c *Config, _ *goodput.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}
	}
	w := start(t, backend(t, echo), trust)
	c := w.raw("GET / HTTP/1.1\r\nHost: inner\r\nX-Forwarded-For: 6.6.6.6, 1.2.3.4\r\nX-Forwarded-Proto: https\r\n" +
		"X-Forwarded-Host: shop.example\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\n" +
		"X-Request-Start: t=1700000000000\r\nConnection: close\r\n\r\n")
	_, body := w.answer(c)
	for name, want := range map[string]string{
		"X-Request-Start": "t=1700000000000", // the first hop's is the one that counts
		"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example",
		"Forwarded": "for=1.2.3.4", "X-Real-Ip": "1.2.3.4",
	} {
		if got := line(body, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for remote, want := range map[string]bool{
		"127.0.0.1:1": true, "[::ffff:127.0.0.1]:1": true, "[fe80::1%eth0]:1": false, "9.9.9.9:1": false, "@": false, "": false,
	} {
		if got := w.proxy.now.Load().trusts(remote); got != want {
			t.Errorf("trusts(%q) = %v", remote, got)
		}
	}
}

// C087: gRPC servers look for "te: trailers"; no other coding passes.
func TestTrailersAreAnnounced_C087(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	for in, want := range map[string]string{"trailers": "trailers", "gzip, trailers": "trailers", "gzip": "", "": ""} {
		for _, c := range []*http.Client{w.h1, w.h2} {
			req, _ := http.NewRequest("POST", w.url, nil)
			req.Header.Set("Content-Type", "application/grpc")
			if in != "" {
				req.Header.Set("TE", in)
			}
			if c == w.h2 && in != "trailers" {
				continue // RFC 9113, 8.2.2: no other coding exists in HTTP/2
			}
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if got := line(string(body), "Te"); got != want {
				t.Errorf("%s: TE %q arrived as %q, want %q", res.Proto, in, got, want)
			}
		}
	}
}

func TestPathOfTheUpstreamComesFirst(t *testing.T) {
	addr := backend(t, echo)
	for upstream, want := range map[string]string{
		"http://" + addr:             "/a%2Fb?q=1;2&r=%zz",
		"http://" + addr + "/":       "/a%2Fb?q=1;2&r=%zz",
		"http://" + addr + "/base":   "/base/a%2Fb?q=1;2&r=%zz",
		"http://" + addr + "/base/x": "/base/x/a%2Fb?q=1;2&r=%zz",
	} {
		w := start(t, upstream, nil)
		c := w.raw("GET /a%2Fb?q=1;2&r=%zz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		_, body := w.answer(c)
		got := line(body, "URI")
		if got != want {
			t.Errorf("%s: the service was asked for %s", upstream, got)
		}
	}
}

// An upgrade to HTTP/2 would carry requests past the limiter: it is not offered
// to the service, so the request stays one request.
func TestUpgradeToH2CIsNotForwarded(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	for _, up := range []string{"h2c", "H2C", "websocket, h2c"} {
		c := w.raw("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " + up +
			"\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")
		res, body := w.answer(c)
		if res.StatusCode != 200 || line(body, "Upgrade") != "" || line(body, "Http2-Settings") != "" {
			t.Errorf("Upgrade: %s: %s\n%s", up, res.Status, body)
		}
	}
}

func TestConnectIsRefused(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	res, body := w.answer(w.raw("CONNECT evil:443 HTTP/1.1\r\nHost: evil:443\r\nConnection: close\r\n\r\n"))
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%s: %s", res.Status, body)
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// When a request entered the system is said by us where nobody who is believed has said it.
func TestStampsOfStrangersAreReplaced(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	before := time.Now().Add(-time.Millisecond) // the stamp has whole ones
	c := w.raw("GET / HTTP/1.1\r\nHost: inner\r\nX-Request-Start: t=1\r\nX-Queue-Start: 1\r\nX_Forwarded_For: 6.6.6.6\r\nX_REAL_IP: 6.6.6.6\r\nConnection: close\r\n\r\n")
	_, body := w.answer(c)
	stamp, _ := strings.CutPrefix(line(body, "X-Request-Start"), "t=")
	ms, err := strconv.ParseInt(stamp, 10, 64)
	if at := time.UnixMilli(ms); err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("X-Request-Start is %q", stamp)
	}
	if strings.Contains(body, "6.6.6.6") {
		t.Errorf("names with underscores pass:\n%s", body)
	}
	if got := line(body, "X-Queue-Start"); got != "" {
		t.Errorf("X-Queue-Start is %q", got)
	}
}
