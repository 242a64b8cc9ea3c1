package goodputhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

// streams returns a Server for streams, of which n may be open at once.
func streams(n int, next http.HandlerFunc) (*Server, *goodput.Limiter) {
	lim := limiter(n, goodput.Config{Depth: goodput.NoQueue})
	return &Server{Limiter: one(lim), Stream: true, Next: next}, lim
}

// unsampled checks that a limiter has learned no service time from what has ended: samples count once their window is over.
func unsampled(t *testing.T, lim *goodput.Limiter) {
	t.Helper()
	time.Sleep(150 * time.Millisecond) // the longest window is 100 ms
	if slot, ok := lim.TryAcquire(); ok {
		slot.Detach() // ends it
	}
	if n := lim.Stats().Derivation.Samples; n != 0 {
		t.Errorf("%d service samples", n)
	}
}

// An event stream holds its unit to its true end, whoever ends it, and the next one is
// refused: over all protocols.
func TestStreamHoldsItsUnit(t *testing.T) {
	end := make(chan struct{})
	s, lim := streams(2, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: begun\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	completed := uint64(0)
	for _, p := range overAll(t, s) {
		open := func() (*http.Response, context.CancelFunc) {
			ctx, leave := context.WithCancel(background)
			t.Cleanup(leave)
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
			res, err := p.client.Do(r)
			if err != nil {
				t.Fatal(p.name, err)
			}
			p.isTheirs(t, res)
			return res, leave
		}
		first, leave := open()
		second, _ := open()
		if n := lim.Stats().InUse; n != 2 || first.StatusCode != 200 || second.StatusCode != 200 {
			t.Fatalf("%s: %d in use", p.name, n)
		}
		third, _ := open()
		if third.StatusCode != 503 || third.Header.Get("Goodput-Rejected") != "queue_full" {
			t.Errorf("%s: a third is open: %d", p.name, third.StatusCode)
		}
		text(t, third)
		leave()
		until(t, "the client that left gives its unit back", func() bool { return lim.Stats().InUse == 1 })
		end <- struct{}{}
		if got := text(t, second); got != "data: begun\n\n" {
			t.Errorf("%s: %q", p.name, got)
		}
		until(t, "the end gives the unit back", func() bool { return lim.Stats().InUse == 0 })
		completed += 2
	}
	unsampled(t, lim)
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: completed + 1, goodput.Rejected: 3})
}

// A stream is in time if it begins in time; how long it lasts is its own affair. One that has
// not begun within the objective is late.
func TestStreamInTime(t *testing.T) {
	for begins, want := range map[time.Duration]goodput.Outcome{0: goodput.Completed, 2 * time.Second: goodput.Late} {
		synctest.Test(t, func(t *testing.T) {
			lim := limiter(1, goodput.Config{Objective: time.Second})
			s := &Server{Limiter: one(lim), Stream: true, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(begins)
				w.WriteHeader(http.StatusOK)
				time.Sleep(time.Hour)
			})}
			status(s, from("192.0.2.1:80"))
			outcomes(t, lim, map[goodput.Outcome]uint64{want: 1})
			if s := lim.Stats(); s.Derivation.Samples != 0 {
				t.Errorf("%d samples", s.Derivation.Samples)
			}
		})
	}
}

// C096: a client that sends a little now and then is kept, on a route that is a stream: its
// silence may be longer than SlowClient. Nothing is read in advance.
func TestC096StreamOfASilentClient(t *testing.T) {
	const silence = 60 * time.Millisecond
	entered := make(chan struct{}, 1)
	s, lim := streams(1, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		got, _ := io.ReadAll(r.Body)
		_, _ = w.Write(got)
	})
	s.SlowClient = silence / 4
	for _, p := range overAll(t, s) {
		body, feed := io.Pipe()
		go func() {
			<-entered // without a byte of it
			for _, c := range "abc" {
				time.Sleep(silence)
				fmt.Fprintf(feed, "%c", c)
			}
			feed.Close()
		}()
		r, _ := http.NewRequest(http.MethodPost, p.url, body)
		res, err := p.client.Do(r)
		if err != nil {
			t.Fatal(p.name, err)
		}
		p.isTheirs(t, res)
		if got := text(t, res); got != "abc" {
			t.Errorf("%s: %q", p.name, got)
		}
	}
	if n := s.Stats().SlowClients; n != 0 {
		t.Errorf("%d were cut", n)
	}
	unsampled(t, lim)
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 4})
}

// An upgraded connection keeps its unit until it is closed: by a handler that stays with it,
// through a reverse proxy, and by one that has handed it to somebody else.
func TestStreamUpgrades(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(echo))
	defer backend.Close()
	target, _ := url.Parse(backend.URL)
	for name, next := range map[string]http.Handler{
		"handler": http.HandlerFunc(echo),
		"proxy":   &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) }},
		"handed on": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			go func() {
				defer conn.Close()
				defer conn.Close() // the second says nothing
				fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				_, _ = io.Copy(conn, buf)
			}()
		}),
		"panics": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			echo(w, r)
			panic(http.ErrAbortHandler)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s, lim := streams(2, next.ServeHTTP)
			srv := start(t, s)
			conns := make([]net.Conn, 2)
			for i := range conns {
				c := dial(t, srv, upgradeRequest)
				if res := answer(t, c); res.StatusCode != http.StatusSwitchingProtocols {
					t.Fatal(res.StatusCode)
				}
				conns[i] = c
			}
			if st := lim.Stats(); st.InUse != 2 || s.Stats().Upgraded != 2 {
				t.Errorf("%d in use, %d upgraded", st.InUse, s.Stats().Upgraded)
			}
			if res := answer(t, dial(t, srv, upgradeRequest)); res.StatusCode != 503 || res.Header.Get("Goodput-Rejected") != "queue_full" {
				t.Errorf("a third: %d %v", res.StatusCode, res.Header)
			}
			for i, c := range conns {
				fmt.Fprint(c, "ping")
				got := make([]byte, 4)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
					t.Fatal(string(got), err)
				}
				c.Close()
				until(t, "its unit is back", func() bool { return lim.Stats().InUse == 1-i && s.Stats().Upgraded == int64(1-i) })
			}
			until(t, "nothing is held", func() bool { return s.Stats().Held == 0 && s.own.upgrades.places.Load() == 0 })
			unsampled(t, lim)
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 3, goodput.Rejected: 1})
		})
	}
}

// A tunnel within HTTP/2 holds its unit until its handler returns.
func TestStreamConnect(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	s, lim := streams(1, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(entered)
		<-finish
	})
	r, _ := http.NewRequest(http.MethodConnect, start(t, s).URL, nil)
	res, err := clients(t)["h2c"].Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	receive(t, "tunnel", entered)
	if lim.Stats().InUse != 1 || s.Stats().Upgraded != 1 {
		t.Errorf("%d slots in use, %d upgraded", lim.Stats().InUse, s.Stats().Upgraded)
	}
	close(finish)
	until(t, "tunnel is closed", func() bool { return s.Stats().Upgraded == 0 && lim.Stats().InUse == 0 })
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
}

// What is refused further down is no stream: it fails, and is a drop. A panic fails, and so
// does an error.
func TestStreamFails(t *testing.T) {
	s, lim := streams(1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("bug")
		case "/shed":
			w.Header().Set("X-Envoy-Overloaded", "true")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	srv := start(t, s)
	for _, path := range []string{"/panic", "/error", "/shed"} {
		if res, err := http.Get(srv.URL + path); err == nil {
			text(t, res)
		}
		settled(t, lim)
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 3})
	drops(t, lim, 1)
	if n := s.Stats().UpstreamShed; n != 1 {
		t.Errorf("%d refused further down", n)
	}
}

// A stream that a client does not take is cut as any other response: it holds a unit for
// nobody.
func TestStreamThatNobodyTakes(t *testing.T) {
	s, lim := streams(1, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 1<<30))
	})
	s.SlowClient = 20 * time.Millisecond
	dial(t, start(t, s), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	until(t, "it is cut", func() bool { return s.Stats().SlowClients == 1 && lim.Stats().InUse == 0 })
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1}) // it began in time, and nobody failed
}
