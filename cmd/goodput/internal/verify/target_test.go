package verify

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8080":        "http://127.0.0.1:8080/",
		"https://service/search?q=a&b": "https://service/search?q=a&b",
		"http://[::1]:80/x":            "http://[::1]:80/x",
	} {
		if u, err := ParseURL(text); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v", text, u, err)
		}
	}
	for text, want := range map[string]string{
		"":               "http:// or https://",
		"127.0.0.1:8080": "not a URL",
		"localhost:8080": "http:// or https://",
		"ftp://h/":       "http:// or https://",
		"h2c://h/":       "http:// or https://",
		"http://":        "no host",
		"http:///path":   "no host",
		"http://u:p@h/":  "--header 'Authorization",
		"http://u@h/":    "a user or a password",
		"http://h/#top":  "fragment, #top",
		"http://h:port/": "not a URL",
		"http://h/\x00":  "not a URL",
	} {
		if _, err := ParseURL(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"ftp://me:hunter2@h/", "http://me:hunter2@", "http://me:hunter2@h:port/", "http://me:hun/ter2@h/", "http://me:hunter2@h/"} {
		if _, err := ParseURL(text); err == nil || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is of this machine: loopback, the address of an interface, and nothing else.
func TestLocal(t *testing.T) {
	mine := []net.Addr{&net.IPNet{IP: net.IPv4(192, 0, 2, 7), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2001:db8::7"), Mask: net.CIDRMask(64, 128)}}
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "127.8.0.1": true, "::1": true, "0.0.0.0": true, "::": true,
		"192.0.2.7": true, "2001:db8::7": true,
		"192.0.2.8": false, "2001:db8::8": false, "10.0.0.1": false, "169.254.0.1": false,
	} {
		if got := isLocal(netip.MustParseAddr(addr), mine); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	here, there := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.8")
	for _, tc := range []struct {
		addrs []netip.Addr
		want  bool
	}{
		{[]netip.Addr{here}, true},
		{[]netip.Addr{there}, false},
		{[]netip.Addr{here, there}, false},
		{[]netip.Addr{there, here}, false},
		{[]netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1"), here}, true},
	} {
		if got := allLocal(tc.addrs, mine); got != tc.want {
			t.Errorf("%v: %v", tc.addrs, got)
		}
	}
	u, err := ParseURL("http://127.0.0.1:1/")
	if err != nil {
		t.Fatal(err)
	}
	target, err := Resolve(t.Context(), u)
	if err != nil || !target.Local || target.port != "1" {
		t.Fatalf("%+v, %v", target, err)
	}
	if err := target.Pin(t.Context()); err == nil || !strings.Contains(err.Error(), "the target is not there") {
		t.Errorf("nobody listens on port 1: %v", err)
	}
	for text, port := range map[string]string{"http://127.0.0.1/": "80", "https://127.0.0.1/": "443", "http://[::ffff:127.0.0.1]/": "80"} {
		u, _ := ParseURL(text)
		if target, err := Resolve(t.Context(), u); err != nil || !target.Local || target.port != port {
			t.Errorf("%s: %+v, %v", text, target, err)
		}
	}
}

// Everything goes to the one address, whatever the name means meanwhile, the answer points
// elsewhere, and the environment has a proxy; and the request is what was asked for.
func TestOneAddress(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request went elsewhere: %s %s", r.Host, r.URL)
	}))
	defer elsewhere.Close()
	t.Setenv("HTTP_PROXY", elsewhere.URL)
	t.Setenv("http_proxy", elsewhere.URL)
	var got *http.Request
	var body string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	at := netip.MustParseAddrPort(s.Listener.Addr().String())

	for version, want := range map[string]string{"auto": "HTTP/2", "1.1": "HTTP/1.1", "2": "HTTP/2"} {
		cfg := Config{
			// No resolver knows this name (RFC 2606): only the address can have been used.
			Target: &Target{URL: &url.URL{Scheme: "http", Host: "service.invalid", Path: "/x"}, addrs: []netip.Addr{at.Addr()}, port: "1"},
			HTTP:   version, Body: []byte("hello"), Header: http.Header{"X-A": {"b"}},
			Settings: Settings{Method: "PATCH", Deadline: 1500 * time.Millisecond},
		}
		cfg.Target.port = s.Listener.Addr().String()[strings.LastIndex(s.Listener.Addr().String(), ":")+1:]
		if err := cfg.Target.Pin(t.Context()); err != nil {
			t.Fatal(err)
		}
		client, protocol, err := cfg.dial(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := client.Send(t.Context())
		client.Close()
		if a.Status != http.StatusFound || protocol != want || !strings.HasPrefix(got.Proto, want) {
			t.Errorf("%s: answer %+v over %s, which is %s", version, a, protocol, got.Proto)
		}
		if got.Method != "PATCH" || got.Host != "service.invalid" || got.Header.Get("X-A") != "b" || body != "hello" ||
			got.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms") != "1500" {
			t.Errorf("%s: %s %s %v %q", version, got.Method, got.Host, got.Header, body)
		}
	}
}

// A server without HTTP/2 is found out, too.
func TestOnlyHTTP1(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	u, _ := ParseURL(s.URL)
	target, err := Resolve(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Pin(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Target: target, HTTP: "auto", Settings: Settings{Deadline: time.Second}}
	client, protocol, err := cfg.dial(t.Context(), nil)
	if err != nil || protocol != "HTTP/1.1" {
		t.Fatalf("%s, %v", protocol, err)
	}
	defer client.Close()
	if a := client.Send(t.Context()); a.Status != 200 {
		t.Errorf("%+v", a)
	}
	cfg.HTTP = "2"
	if _, _, err := cfg.dial(t.Context(), nil); err == nil {
		a := load.Answer{}
		if client, _, err := cfg.dial(t.Context(), nil); err == nil {
			a = client.Send(t.Context())
			client.Close()
		}
		if a.Err == nil {
			t.Errorf("HTTP/2 from one that does not speak it: %+v", a)
		}
	}
}

func TestHeader(t *testing.T) {
	h, err := Header([]string{"accept: text/html", "X-A:b", "X-A: c:d ", "X-Empty:"})
	if err != nil || h.Get("Accept") != "text/html" || len(h["X-A"]) != 2 || h["X-A"][1] != "c:d" || len(h["X-Empty"]) != 1 {
		t.Errorf("%v, %v", h, err)
	}
	for line, want := range map[string]string{
		"Accept":                               "is no header",
		": x":                                  "is no header",
		"A b: x":                               "is no header",
		"A: x\r\nB: y":                         "is no header",
		"connection: close":                    "--header Connection",
		"TE: trailers":                         "of a connection",
		"Transfer-Encoding: chunked":           "of a connection",
		"Upgrade: websocket":                   "of a connection",
		"host: other":                          "that of the URL",
		"content-length: 7":                    "--body",
		"x-envoy-expected-rq-timeout-ms: 5000": "--deadline",
	} {
		if _, err := Header([]string{line}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// A line that is no header is not said in full if it may be a secret.
func TestHeaderIsHushed(t *testing.T) {
	for line, want := range map[string]string{
		"X-Api-Key hushhush":     `"X-Api-Key ..."`,
		"Authorization=hushhush": `"Authorization ..."`,
		"Cookie: a\x01hushhush":  `"Cookie ..."`,
		"token":                  `"token ..."`,
		"Accept text/html":       `"Accept text/html"`,
		"":                       `""`,
	} {
		if _, err := Header([]string{line}); err == nil || !strings.Contains(err.Error(), "--header "+want+" is no header") {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

// A cap that is as high as it may be is not to be raised.
func TestFitsSaysWhatHelps(t *testing.T) {
	s := settings()
	for rate, want := range map[float64]bool{1000: true, maxMaxRate: false} {
		s.MaxRate = rate
		if got := s.fits(50_000, 0); !strings.Contains(got, "--max-rate") || strings.Contains(got, "or raise it") != want {
			t.Errorf("%v/s: %s", rate, got)
		}
	}
	s.Loads, s.MaxRate = []float64{0.5, 2}, maxMaxRate
	for n, want := range map[int64]bool{1000: true, maxMaxRequests: false} {
		s.MaxRequests, s.Length = n, maxLength
		if got := s.fits(40_000, 0); !strings.Contains(got, "--max-requests") || strings.Contains(got, "or raise it") != want {
			t.Errorf("%d in all: %s", n, got)
		}
	}
}

func TestParseURLPort(t *testing.T) {
	for port, ok := range map[string]bool{"1": true, "65535": true, "0": false, "65536": false, "99999": false} {
		if _, err := ParseURL("http://127.0.0.1:" + port + "/"); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "port "+port) {
			t.Errorf("port %s: %v", port, err)
		}
	}
}
