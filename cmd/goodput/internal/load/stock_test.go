package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counted starts a server and says how many connections were made to it.
func counted(t *testing.T, h http.HandlerFunc) (*url.URL, *atomic.Int64) {
	t.Helper()
	made := new(atomic.Int64)
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u, made
}

func get(t *testing.T, via http.RoundTripper, method string, u *url.URL) (status int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, err
}

func TestStockKeepsConnections(t *testing.T) {
	u, made := counted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			w.Header().Set("Connection", "close")
		}
		io.WriteString(w, r.URL.Path)
	})
	s := newStock(&http.Transport{}, u)
	defer s.closeIdle()
	for _, step := range []struct {
		path string
		want int64 // connections, all in all
	}{{"/", 1}, {"/", 1}, {"/last", 1}, {"/", 2}, {"/", 2}} {
		u.Path = step.path
		if status, err := get(t, s, "GET", u); status != 200 || err != nil || made.Load() != step.want {
			t.Errorf("%s: %d, %v, over %d connections, want %d", step.path, status, err, made.Load(), step.want)
		}
	}
	until(t, "one is kept, and no dial is left", s.look(func() bool { return len(s.idle) == 1 && s.dialing == 0 }))
}

// Who says that a connection was its last request means it: none is lost on it.
func TestStockDropsWhatTheServerCloses(t *testing.T) {
	u, made := counted(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	s := newStock(&http.Transport{}, u)
	defer s.closeIdle()
	const all = 200
	for range all {
		if status, err := get(t, s, "POST", u); status != 200 {
			t.Fatalf("%d, %v", status, err)
		}
	}
	if made.Load() != all || len(s.idle) != 0 {
		t.Errorf("%d connections for %d requests, %d kept", made.Load(), all, len(s.idle))
	}
}

// Nobody waits for somebody else's answer: there are as many connections as requests.
func TestStockMakesAsManyAsAreNeeded(t *testing.T) {
	const all = 2 * maxDials
	var arrived sync.WaitGroup
	arrived.Add(all)
	u, made := counted(t, func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait() // answers nobody before all are here
	})
	s := newStock(&http.Transport{}, u)
	defer s.closeIdle()
	var sends sync.WaitGroup
	for range all {
		sends.Go(func() {
			if status, err := get(t, s, "GET", u); status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	sends.Wait()
	if made.Load() != all || len(s.idle) != all {
		t.Errorf("%d connections, %d kept, for %d requests", made.Load(), len(s.idle), all)
	}
}

// held is a stock of which the first dials may connect, and the others wait for release.
func held(u *url.URL, first int64) (s *stock, release func()) {
	var dials atomic.Int64
	free := make(chan struct{})
	s = newStock(&http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) > first {
			select {
			case <-free:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}, u)
	return s, sync.OnceFunc(func() { close(free) })
}

// until waits for what other goroutines are about to do.
//
// wall clock: they talk over a network
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (s *stock) look(f func() bool) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return f()
	}
}

// What comes free goes to who waits, while the dial that was made for it is under way.
func TestStockServesWaitersWithWhatComesFree(t *testing.T) {
	answer := make(chan struct{})
	_, u := target(t, 250, func(http.ResponseWriter, *http.Request) { <-answer })
	s, release := held(u, 1)
	defer s.closeIdle()
	var sends sync.WaitGroup
	send := func() {
		sends.Go(func() {
			if status, err := get(t, s, "GET", u); status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	send()
	until(t, "the first is sent", s.look(func() bool { return s.waiting.Len() == 0 && s.dialing == 0 }))
	send()
	send()
	until(t, "two wait for a dial", s.look(func() bool { return s.waiting.Len() == 2 && s.dialing == 2 }))
	close(answer)
	sends.Wait() // no dial has succeeded but the first
	if len(s.idle) != 1 || s.dialing != 2 {
		t.Errorf("%d kept, %d dials", len(s.idle), s.dialing)
	}
	release()
	until(t, "the late dials are kept", s.look(func() bool { return len(s.idle) == 3 && s.dialing == 0 }))
}

// Who leaves, leaves the list; the connection that was for it is for another one.
func TestStockForgetsWhoLeaves(t *testing.T) {
	_, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	s, release := held(u, 0)
	defer s.closeIdle()
	ctx, cancel := context.WithCancel(t.Context())
	var sends sync.WaitGroup
	for range 3 * maxDials {
		sends.Go(func() {
			if taken := s.take(ctx); taken.err != context.Canceled {
				t.Errorf("%+v", taken)
			}
		})
	}
	until(t, "all wait", s.look(func() bool { return s.waiting.Len() == 3*maxDials }))
	if s.dialing != maxDials {
		t.Errorf("%d dials, want %d", s.dialing, maxDials)
	}
	cancel()
	sends.Wait()
	release()
	until(t, "no dial is left", s.look(func() bool { return s.dialing == 0 && s.waiting.Len() == 0 }))
	if n := len(s.idle); n == 0 || n > maxDials {
		t.Errorf("%d are kept", n)
	}
}

func TestStockTellsWhyThereIsNone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := newStock(&http.Transport{}, &url.URL{Scheme: "http", Host: l.Addr().String()})
	defer s.closeIdle()
	for range 3 {
		var refused *net.OpError
		if taken := s.take(t.Context()); !errors.As(taken.err, &refused) {
			t.Errorf("%+v", taken)
		}
	}
}

// A server that closes a connection that was kept, at the moment at which it is used: who asked
// for nothing that happens once is sent again, over another one, and the others are told.
func TestStockSendsAgainOverAnotherConnection(t *testing.T) {
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
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				if _, err := http.ReadRequest(in); err == nil {
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					http.ReadRequest(in) // and closes
				}
			}()
		}
	}()
	u := &url.URL{Scheme: "http", Host: l.Addr().String()}
	yes, no := func() bool { return true }, func() bool { return false }
	for _, tc := range []struct {
		method string
		asked  func() bool
		again  bool
	}{{"GET", nil, true}, {"PUT", yes, true}, {"POST", yes, false}, {"GET", no, false}} {
		s := newStock(&http.Transport{}, u)
		s.again = tc.asked
		if status, err := get(t, s, tc.method, u); status != 200 {
			t.Errorf("%s: %d, %v", tc.method, status, err)
		}
		if status, err := get(t, s, tc.method, u); (status == 200) != tc.again || (err == nil) != tc.again {
			t.Errorf("%s over a connection that ends: %d, %v", tc.method, status, err)
		}
		s.closeIdle()
	}
}

func TestStockIsClosed(t *testing.T) {
	_, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	s := newStock(&http.Transport{}, u)
	out := s.take(t.Context())
	if status, err := get(t, s, "GET", u); status != 200 {
		t.Fatal(err)
	}
	s.closeIdle()
	s.give(out)
	if len(s.idle) != 0 || out.conn.Err() == nil {
		t.Errorf("%d are kept", len(s.idle))
	}
	if taken := s.take(t.Context()); taken.err == nil {
		t.Error("a connection of a stock that is closed")
	}
}
