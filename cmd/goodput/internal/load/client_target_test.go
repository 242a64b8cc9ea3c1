package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// secure starts a server over TLS that chooses the protocols that it is given, and returns
// what a client needs to trust it.
func secure(t *testing.T, http2 bool, h http.HandlerFunc) (*url.URL, *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	s.StartTLS()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = nil
	return u, config
}

// A redirect is an answer: nobody but the target is asked.
func TestClientFollowsNoRedirect(t *testing.T) {
	var other atomic.Int64
	_, elsewhere := target(t, 250, func(http.ResponseWriter, *http.Request) { other.Add(1) })
	_, u := target(t, 250, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.String(), http.StatusFound)
	})
	for _, http2 := range []bool{true, false} {
		a := dial(t, HTTP{URL: u, HTTP2: http2}).Send(t.Context())
		if a.Status != http.StatusFound || a.Refused() || a.Failed() || other.Load() != 0 {
			t.Errorf("HTTP/2 %v: %+v, and %d requests elsewhere", http2, a, other.Load())
		}
	}
}

// The connection goes to Addr and nowhere else. Host and the name for TLS are those of the URL.
func TestClientConnectsToAddr(t *testing.T) {
	const name = "example.com" // the certificate of httptest has it
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.Host != name || r.TLS != nil && r.TLS.ServerName != name {
			w.WriteHeader(http.StatusMisdirectedRequest)
		}
	}
	_, plain := target(t, 250, h)
	over, trust := secure(t, true, h)
	for _, tc := range []struct {
		url  string
		addr string
		tls  *tls.Config
	}{
		{"http://" + name, plain.Host, nil},
		{"https://" + name, over.Host, trust},
	} {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		for _, http2 := range []bool{true, false} {
			to := HTTP{URL: u, Addr: tc.addr, TLS: tc.tls, HTTP2: http2}
			if a := dial(t, to).Send(t.Context()); a.Status != http.StatusOK {
				t.Errorf("%s, HTTP/2 %v: %+v", tc.url, http2, a)
			}
			if !Speaks(t.Context(), to) {
				t.Errorf("%s: does not speak HTTP/2", tc.url)
			}
		}
	}
}

// What the environment says of proxies is nothing to a client. It is read once in a process, so
// that a test cannot set it: what would read it must not be there.
func TestClientUsesNoProxy(t *testing.T) {
	_, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	plain := dial(t, HTTP{URL: u}).via.(*stock).transport
	two := dial(t, HTTP{URL: u, HTTP2: true}).via.(*pool).transport
	if plain.Proxy != nil || two.Proxy != nil {
		t.Error("a transport looks for a proxy")
	}
}

// Whom Speaks believes is then spoken to, and the server sees the protocol that was chosen.
func TestSpeaks(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }
	_, both := target(t, 250, h)
	one := httptest.NewServer(http.HandlerFunc(h))
	t.Cleanup(one.Close)
	plain, err := url.Parse(one.URL)
	if err != nil {
		t.Fatal(err)
	}
	two, trust := secure(t, true, h)
	old, trustOld := secure(t, false, h)
	for _, tc := range []struct {
		name string
		h    HTTP
		want bool
	}{
		{"clear text, both", HTTP{URL: both}, true},
		{"clear text, HTTP/1.1", HTTP{URL: plain}, false},
		{"TLS, both", HTTP{URL: two, TLS: trust}, true},
		{"TLS, HTTP/1.1", HTTP{URL: old, TLS: trustOld}, false},
		{"TLS, not trusted", HTTP{URL: two}, false},
		{"TLS to clear text", HTTP{URL: &url.URL{Scheme: "https", Host: both.Host}}, false},
		{"clear text to TLS", HTTP{URL: &url.URL{Scheme: "http", Host: two.Host}}, false},
		{"nobody", HTTP{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}, false},
	} {
		if got := Speaks(t.Context(), tc.h); got != tc.want {
			t.Errorf("%s: speaks HTTP/2 is %v", tc.name, got)
		}
		if tc.want {
			tc.h.HTTP2 = true
			if a := dial(t, tc.h).Send(t.Context()); a.Status != 200 || a.Content.Size != int64(len("HTTP/2.0")) {
				t.Errorf("%s: %+v", tc.name, a)
			}
		}
	}
}

// A server that takes the connection and says nothing.
func TestSpeaksGivesUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, scheme := range []string{"http", "https"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // wall clock: a network
		if Speaks(ctx, HTTP{URL: &url.URL{Scheme: scheme, Host: l.Addr().String()}}) {
			t.Errorf("%s: silence is HTTP/2", scheme)
		}
		cancel()
	}
}

func TestClientSendsItsBody(t *testing.T) {
	body := strings.Repeat("a body of 20 bytes, ", 5000)
	_, u := target(t, 250, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != body || r.ContentLength != int64(len(body)) {
			t.Errorf("%s: %d bytes of %d said, %v", r.Proto, len(got), r.ContentLength, err)
		}
	})
	for _, http2 := range []bool{true, false} {
		c := dial(t, HTTP{URL: u, Method: "POST", Body: []byte(body), HTTP2: http2})
		for range 3 {
			if a := c.Send(t.Context()); a.Status != 200 {
				t.Errorf("HTTP/2 %v: %+v", http2, a)
			}
		}
	}
}

// Two bodies have one sum if they are equal, however they came.
func TestContent(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	_, u := target(t, 250, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		switch r.URL.Path {
		case "/long":
			io.WriteString(w, long)
		case "/pieces":
			for i := range 100 {
				io.WriteString(w, long[i*1000:][:1000])
				w.(http.Flusher).Flush()
			}
		case "/other":
			io.WriteString(w, long[1:]+"1")
		}
	})
	get := func(http2 bool, path, kind string) Content {
		t.Helper()
		at := *u
		at.Path, at.RawQuery = path, url.Values{"type": {kind}}.Encode()
		a := dial(t, HTTP{URL: &at, HTTP2: http2}).Send(t.Context())
		if a.Status != 200 {
			t.Errorf("%s: %+v", path, a)
		}
		return a.Content
	}
	want := get(true, "/long", "text/plain")
	if want.Type != "text/plain" || want.Size != int64(len(long)) || want.Sum == 0 {
		t.Errorf("%+v", want)
	}
	for _, http2 := range []bool{true, false} {
		for _, path := range []string{"/long", "/pieces"} {
			if got := get(http2, path, "Text/Plain ; charset=utf-8"); got != want {
				t.Errorf("HTTP/2 %v, %s: %+v, want %+v", http2, path, got, want)
			}
		}
		if got := get(http2, "/other", "text/plain"); got.Size != want.Size || got.Sum == want.Sum {
			t.Errorf("HTTP/2 %v: another body is %+v", http2, got)
		}
		if got := get(http2, "/", "a/b"); got != (Content{Type: "a/b"}) {
			t.Errorf("HTTP/2 %v: no body is %+v", http2, got)
		}
	}
}

// A body that ends before its length is no answer.
func TestCutBodyIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
			c.Close()
		}
	}()
	if a := dial(t, HTTP{URL: &url.URL{Scheme: "http", Host: l.Addr().String()}}).Send(t.Context()); a.Err == nil {
		t.Errorf("%+v", a)
	}
}

// Of two fields of Retry-After clients take either, or neither.
func TestTwoRetryAftersAreNone(t *testing.T) {
	_, u := target(t, 250, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Retry-After"] = []string{"1", "0"}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for _, http2 := range []bool{true, false} {
		a := dial(t, HTTP{URL: u, HTTP2: http2}).Send(t.Context())
		if wait, ok := a.Wait(); ok || a.RetryAfter != "1, 0" {
			t.Errorf("HTTP/2 %v: %q is %v", http2, a.RetryAfter, wait)
		}
	}
}

// Retry-After comes with the date that it counts from, and the word with who said it.
func TestClientTellsWhatRefusalsSay(t *testing.T) {
	_, u := target(t, 250, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
		w.Header().Set("Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT")
		w.Header().Set("Goodput-Rejected", "queue_full")
		w.WriteHeader(http.StatusOK)
	})
	for _, http2 := range []bool{true, false} {
		a := dial(t, HTTP{URL: u, HTTP2: http2}).Send(t.Context())
		wait, ok := a.Wait()
		if a.Status != 200 || !a.Marked || !a.Refused() || wait != 3*time.Second || !ok {
			t.Errorf("HTTP/2 %v: %+v, wait %v", http2, a, wait)
		}
	}
}
