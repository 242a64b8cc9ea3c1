package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// What the proxy knows of a request beside its door: the class, under which it also is after a
// reload, the client as far as proxies are trusted, and the server that answered.
func TestEnded(t *testing.T) {
	upstream := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello")
				conn.Close()
			}
			return
		}
		io.WriteString(w, "answer")
	}))
	u, err := url.Parse("http://" + upstream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.One(u)
	first := &cfg.Classes[0]
	first.Limiter.Limit, first.Limiter.Objective = limit.Fixed(4), 10*time.Second
	cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	type end struct {
		Ended
		client, server string
	}
	var mu sync.Mutex
	var all []end
	p, err := New(cfg, Options{Logger: slog.New(slog.DiscardHandler), Servers: true, Ended: func(_ *http.Request, e Ended) {
		client, server := e.Client().String(), e.Server() // while it lasts
		mu.Lock()
		defer mu.Unlock()
		kept := *e.Ended
		e.Ended = &kept
		all = append(all, end{e, client, server})
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p)
	defer srv.Close()
	last := func(n int) end {
		t.Helper()
		for give := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // wall clock: the handler returns after the answer
			mu.Lock()
			got := len(all)
			mu.Unlock()
			if got >= n {
				mu.Lock()
				defer mu.Unlock()
				return all[n-1]
			}
			if time.Now().After(give) {
				t.Fatalf("%d are told, want %d", got, n)
			}
		}
	}
	ask := func(header ...string) {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /x HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", strings.Join(append(header, "Connection: close"), "\r\n"))
		io.Copy(io.Discard, c)
	}
	ask("X-Forwarded-For: 203.0.113.9, 192.0.2.7")
	if e := last(1); e.Class != "default" || e.client != "192.0.2.7" || e.server != upstream || e.Status != 200 || e.Bytes != 6 || !e.Offered {
		t.Errorf("%+v", e)
	}
	ask("Connect-Timeout-Ms: 0")
	if e := last(2); e.server != "" || e.client != "127.0.0.1" || e.Reason != "deadline" || e.Status != 504 {
		t.Errorf("%+v", e)
	}
	ask("Upgrade: x", "Connection: Upgrade")
	if e := last(3); e.server != upstream || !e.Upgraded || e.Status != 101 {
		t.Errorf("%+v", e)
	}
	// The same class, whose connections are not limited one by one.
	one := *cfg
	one.Classes = []config.Class{{Name: first.Name, Upstream: first.Upstream, Mode: config.Connection}}
	if err := p.Reconfigure(&one); err != nil {
		t.Fatal(err)
	}
	ask()
	if e := last(4); e.Class != "default" || e.Limiter != nil || e.server != upstream || e.Total <= 0 {
		t.Errorf("%+v", e)
	}
	// Of no class.
	for i, c := range []struct {
		reason string
		status int
		change func(*http.Request)
	}{
		{"connect", 405, func(r *http.Request) { r.Method = http.MethodConnect }},
		{"bad_host", 400, func(r *http.Request) { r.ProtoMajor, r.Host = 2, "a b" }},
		{"bad_upgrade", 400, func(r *http.Request) { r.Header.Set("Upgrade", "\x01") }},
	} {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		c.change(r)
		p.ServeHTTP(w, r)
		e := last(5 + i)
		if e.Class != "" || e.Reason != c.reason || e.Status != c.status || e.Bytes != int64(w.Body.Len()) || e.client != "192.0.2.1" || e.Arrival.IsZero() {
			t.Errorf("%+v", e)
		}
	}
}

// Without somebody to tell, a door has no hook.
func TestNobodyIsTold(t *testing.T) {
	w := start(t, "127.0.0.1:1", nil)
	if c := w.proxy.now.Load().classes[0]; c.door.Ended != nil {
		t.Error("there is a hook")
	}
}
