package goodputhttp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goodput/goodput"
)

const upgradeRequest = "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n"

// echo upgrades and sends back what it reads until the client closes.
func echo(w http.ResponseWriter, _ *http.Request) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	defer conn.Close() // the second says nothing
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, buf)
}

// C009 (jetty/jetty.project#13324): a limit of 5 connections, 20 try, 3 close, 3
// more try. Exactly 5 are open; the gauge is never negative and 0 in the end.
// Once through the handler alone and once through a reverse proxy.
func TestC009Upgrades(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(echo))
	defer backend.Close()
	target, _ := url.Parse(backend.URL)
	for name, next := range map[string]http.Handler{
		"handler": http.HandlerFunc(echo),
		"proxy":   &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) }},
	} {
		t.Run(name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{}) // one slot: each gives it back
			s := &Server{Limiter: one(lim), Next: next, MaxUpgraded: 5}
			srv := start(t, s)
			open := func() (net.Conn, bool) {
				c := dial(t, srv, upgradeRequest)
				res := answer(t, c)
				if res.StatusCode == http.StatusSwitchingProtocols {
					return c, true
				}
				if res.StatusCode != 503 || res.Header.Get("Goodput-Rejected") != "unavailable" || res.Header.Get("Retry-After") == "" {
					t.Errorf("%d %v", res.StatusCode, res.Header)
				}
				return nil, false
			}
			var conns []net.Conn
			try := func(n int) {
				for range n {
					if c, ok := open(); ok {
						conns = append(conns, c)
					}
				}
			}
			is := func(n int64) func() bool {
				return func() bool {
					if now := s.Stats().Upgraded; now < 0 || now > 5 {
						t.Errorf("%d open", now)
					}
					return s.Stats().Upgraded == n && s.own.upgrades.places.Load() == n
				}
			}
			try(20)
			if len(conns) != 5 || !is(5)() {
				t.Fatalf("%d open, counted %d", len(conns), s.Stats().Upgraded)
			}
			for _, c := range conns {
				fmt.Fprint(c, "ping")
				got := make([]byte, 4)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
					t.Fatal(string(got), err)
				}
			}
			for _, c := range conns[:3] {
				c.Close()
			}
			conns = conns[3:]
			until(t, "3 are closed", is(2))
			try(3)
			if len(conns) != 5 || !is(5)() {
				t.Errorf("%d open, counted %d", len(conns), s.Stats().Upgraded)
			}
			for _, c := range conns {
				c.Close()
			}
			until(t, "all are closed", is(0))
			st := s.Stats()
			if st.UpgradedTotal != 8 || st.UpgradedRefused != 15 {
				t.Errorf("%d upgraded, %d refused", st.UpgradedTotal, st.UpgradedRefused)
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 8})
			unsampled(t, lim)
		})
	}
}

// Who asks for an upgrade and does not get it gives the place back, and its
// slot ends like any other.
func TestUpgradeDeclined(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), Next: http.NotFoundHandler(), MaxUpgraded: 1}
	srv := start(t, s)
	for range 3 {
		if res := answer(t, dial(t, srv, upgradeRequest)); res.StatusCode != 404 {
			t.Error(res.StatusCode)
		}
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 3})
	until(t, "places are free", func() bool { return s.own.upgrades.places.Load() == 0 })
}

// A tunnel that CONNECT opened over HTTP/2 has no connection of its own: it is
// open until its handler returns.
func TestConnect(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim)}
	entered, finish := make(chan struct{}), make(chan struct{})
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(entered)
		<-finish
	})
	srv := start(t, s)
	r, _ := http.NewRequest(http.MethodConnect, srv.URL, nil)
	res, err := clients(t)["h2c"].Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	receive(t, "tunnel", entered)
	if lim.Stats().InUse != 0 || s.Stats().Upgraded != 1 {
		t.Errorf("%d slots in use, %d upgraded", lim.Stats().InUse, s.Stats().Upgraded)
	}
	close(finish)
	until(t, "tunnel is closed", func() bool { return s.Stats().Upgraded == 0 })
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
}

// A handler that hijacks what did not ask for it is counted as well, and
// refused when there is no place. Its panic afterwards changes nothing.
func TestHijack(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), MaxUpgraded: 1}
	var first atomic.Value
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		first.Store(conn)
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		panic(http.ErrAbortHandler)
	})
	srv := start(t, s)
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	if res := answer(t, dial(t, srv, get)); res.StatusCode != 200 {
		t.Error(res.StatusCode)
	}
	if res := answer(t, dial(t, srv, get)); res.StatusCode != http.StatusTeapot {
		t.Error(res.StatusCode)
	}
	conn := first.Load().(net.Conn)
	for _, method := range []bool{hasMethod[interface{ CloseWrite() error }](conn), hasMethod[io.ReaderFrom](conn)} {
		if !method {
			t.Errorf("%T lost a method", conn)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { conn.Close() })
	}
	wg.Wait()
	if n := s.Stats().Upgraded; n != 0 {
		t.Errorf("%d open", n)
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 2})
}

func hasMethod[T any](v any) bool { _, ok := v.(T); return ok }

func TestWantsUpgrade(t *testing.T) {
	for raw, want := range map[string]bool{
		upgradeRequest: true,
		"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n":                                               true,
		"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\n\r\n":                                      false,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\n\r\n":                                false,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: a\r\nConnection: UPGRADE\r\nUpgrade: b\r\n\r\n": true,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgraded\r\nUpgrade: b\r\n\r\n":                 false,
	} {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewBufferString(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if got := wantsUpgrade(r); got != want {
			t.Errorf("%q: %v", raw, got)
		}
	}
}
