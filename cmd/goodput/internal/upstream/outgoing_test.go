package upstream

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// A noted body remembers what became of it.
type noted struct {
	io.Reader
	mu           sync.Mutex
	read, closes int
}

func (n *noted) Read(b []byte) (int, error) {
	n.mu.Lock()
	n.read++
	n.mu.Unlock()
	return n.Reader.Read(b)
}

func (n *noted) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closes++
	return nil
}

// What another server gets of a request that one server did not answer: a request that was
// not executed if its body is untouched, and one that may have been only if that makes no
// difference. No server gets it twice, and its body is closed once.
func TestWhoGetsItNext(t *testing.T) {
	for _, c := range []struct {
		what         string
		method       string
		body         string
		header       string // Name: value
		down, breaks string // servers
		ok           bool
		served       int // requests that reached a server
	}{
		{what: "all is well", method: "POST", body: "x", ok: true, served: 1},
		{what: "one is down, a body", method: "POST", body: "x", down: "a", ok: true, served: 1},
		{what: "two are down", method: "POST", down: "ab", ok: true, served: 1},
		{what: "all are down", method: "GET", down: "abc"},
		{what: "all are down, a body", method: "POST", body: "x", down: "abc"},
		{what: "one breaks, and it may be repeated", method: "GET", breaks: "a", ok: true, served: 2},
		{what: "two break: a request that kills servers stops there", method: "GET", breaks: "ab", served: 2},
		{what: "one breaks, and it may not be repeated", method: "POST", breaks: "a", served: 1},
		{what: "unless its client says so", method: "POST", header: "Idempotency-Key: 7", breaks: "a", ok: true, served: 2},
		{what: "one breaks that has read the body", method: "POST", body: "x", breaks: "a", served: 1},
		{what: "also if it may be repeated", method: "GET", body: "x", breaks: "a", served: 1},
		{what: "one is down, then one breaks", method: "GET", down: "a", breaks: "b", ok: true, served: 2},
		{what: "an upgrade", method: "GET", header: "Upgrade: websocket", breaks: "a", served: 1},
	} {
		play(t, 3, nil, func(w *world) {
			for name, h := range w.hosts {
				h.set(strings.Contains(c.down, name), strings.Contains(c.breaks, name))
			}
			// In the order a, b, c.
			for i := range 3 {
				w.pool.server(i).inFlight.Add(int64(10 * i))
				defer w.pool.server(i).inFlight.Add(int64(-10 * i))
			}
			r, _ := http.NewRequest(c.method, "/", nil)
			r.URL = &url.URL{Path: "/"}
			if name, value, ok := strings.Cut(c.header, ": "); ok {
				r.Header.Set(name, value)
			}
			body := &noted{Reader: strings.NewReader(c.body)}
			if c.body != "" {
				r.Body, r.ContentLength = body, int64(len(c.body))
			}
			res, err := w.pool.RoundTrip(r)
			if (err == nil) != c.ok {
				t.Errorf("%s: %v", c.what, err)
			}
			if err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			synctest.Wait()
			served := 0
			for _, h := range w.hosts {
				if h.count() > 1 {
					t.Errorf("%s: a server got it %d times", c.what, h.count())
				}
				served += h.count()
			}
			if served != c.served {
				t.Errorf("%s: %d servers got it, want %d", c.what, served, c.served)
			}
			if c.body != "" && body.closes != 1 {
				t.Errorf("%s: its body was closed %d times", c.what, body.closes)
			}
			if c.body == "" && r.URL.Host != "" && c.ok && r.URL.Path != "/" {
				t.Errorf("%s: it ended as %v", c.what, r.URL)
			}
		})
	}
}

// A body that is taken back while a transport reads it is either read there or sent on, never
// both, and it is closed once.
func TestRevokeAgainstRead(t *testing.T) {
	for range 2000 {
		from := &noted{Reader: strings.NewReader("abc")}
		b := &parcel{from: from}
		var both sync.WaitGroup
		var n int
		var revoked bool
		both.Go(func() { n, _ = b.Read(make([]byte, 3)); b.Close() })
		both.Go(func() { revoked = b.revoke(); b.settle() })
		both.Wait()
		if revoked != (n == 0) || from.read > 0 == revoked || from.closes != 1 {
			t.Fatalf("revoked %v, %d bytes read, closed %d times", revoked, n, from.closes)
		}
	}
}

// What is in flight at a server counts until its response has ended, been closed or broken.
func TestInFlightToTheEnd(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		release := make(chan bool)
		w.hosts["a"].handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			io.WriteString(rw, "first")
			rw.(http.Flusher).Flush()
			if whole := <-release; !whole {
				panic(http.ErrAbortHandler)
			}
		})
		for _, end := range []string{"read", "closed", "broken", "empty"} {
			if end == "empty" {
				w.hosts["a"].handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(204) })
			}
			r, _ := http.NewRequest("GET", "/", nil)
			res, err := w.pool.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if end != "empty" {
				synctest.Wait()
				if n := w.stats(0).InFlight; n != 1 {
					t.Errorf("%s: %d in flight while the body comes", end, n)
				}
				if end == "closed" {
					res.Body.Close()
				}
				release <- end == "read"
				if end != "closed" {
					io.ReadAll(res.Body)
				}
			}
			if n := w.stats(0).InFlight; n != 0 {
				t.Errorf("%s: %d in flight", end, n)
			}
			res.Body.Close()
			if n := w.stats(0).InFlight; n != 0 {
				t.Errorf("%s: %d in flight once it is closed again", end, n)
			}
		}
	})
}

// An upgraded connection counts at its server until it is closed, whichever side has ended.
func TestUpgradedCounts(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.hosts["a"].handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Connection", "Upgrade")
			rw.Header().Set("Upgrade", "echo")
			rw.WriteHeader(http.StatusSwitchingProtocols)
			c, _, err := rw.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
		r, _ := http.NewRequest("GET", "/", nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "echo")
		res, err := w.pool.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		c := res.Body.(io.ReadWriteCloser)
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("the server has hung up, and there is more")
		}
		if n := w.stats(0).InFlight; n != 1 {
			t.Errorf("%d in flight", n)
		}
		c.Close()
		if n := w.stats(0).InFlight; n != 0 {
			t.Errorf("%d in flight once it is closed", n)
		}
	})
}

// A reload: servers are known by their URL, and keep what is in flight and how well they are; one
// that is gone takes nothing new while its requests end; one that is new is taken for well.
func TestReconfigure(t *testing.T) {
	play(t, 3, nil, func(w *world) {
		release := make(chan struct{})
		w.hosts["a"].handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { <-release; io.WriteString(rw, "a") })
		w.hosts["b"].set(true, false)
		for w.stats(1).Well {
			w.pool.server(0).inFlight.Store(1000) // not there
			w.gets(1)
		}
		w.pool.server(0).inFlight.Store(0)
		w.pool.server(2).inFlight.Store(1000)
		answers := make(chan string)
		go func() {
			text, err := w.ask("GET", nil)
			if err != nil {
				text = err.Error()
			}
			answers <- text
		}()
		synctest.Wait()
		w.pool.server(2).inFlight.Store(0)
		a, b := w.pool.server(0), w.pool.server(1)

		cfg := w.config(4, func(u *config.Upstream) {
			u.Servers = append(u.Servers[1:], u.Servers[0]) // b c d a
			u.Servers[0].Limit = 7
		})
		w.pool.Reconfigure(cfg)
		if w.pool.server(0) != b || w.pool.server(3) != a || b.share.Load() != 0 || a.inFlight.Load() != 1 || w.stats(0).Limit != 7 {
			t.Errorf("%+v", w.pool.Stats())
		}
		if c := w.pool.Capacity(); c.Servers != 4 || c.Well != 3 {
			t.Errorf("%+v", c)
		}
		cfg.Servers = cfg.Servers[:3] // b c d: a is gone
		w.pool.Reconfigure(cfg)
		if n := w.gets(30); n != 0 || w.hosts["a"].count() != 1 || w.hosts["c"].count() == 0 || w.hosts["d"].count() == 0 {
			t.Errorf("%d failed; served a %d, c %d, d %d", n, w.hosts["a"].count(), w.hosts["c"].count(), w.hosts["d"].count())
		}
		close(release)
		if text := <-answers; text != "a" || a.inFlight.Load() != 0 {
			t.Errorf("what was in flight at the server that is gone got %q; %d in flight there", text, a.inFlight.Load())
		}
		cfg.Servers = cfg.Servers[:1] // b alone, which is out
		w.pool.Reconfigure(cfg)
		if w.pool.Capacity().Present {
			t.Error("the only server is out, and it is there")
		}
		w.hosts["b"].set(false, false)
		time.Sleep(lastBackoff * 2)
		if !w.pool.Capacity().Present {
			t.Error("the only server listens, and is still out")
		}
		// Checks begin and end with the configuration.
		cfg.Health = &config.Health{Path: "/", Interval: time.Second, Timeout: time.Second, Fall: 1, Rise: 1}
		w.pool.Reconfigure(cfg)
		time.Sleep(time.Minute)
		n := w.stats(0).Checks
		cfg.Health = nil
		w.pool.Reconfigure(cfg)
		time.Sleep(time.Minute)
		if w.stats(0).Checks != n || n < 50 {
			t.Errorf("%d checks in a minute, %d in another one without them", n, w.stats(0).Checks-n)
		}
	})
}

// Watchers are called without a lock, one call after the other, the last one with what is so,
// and not any more once they have stopped.
func TestWatch(t *testing.T) {
	play(t, 2, func(u *config.Upstream) { u.SlowStart = 0 }, func(w *world) {
		var mu sync.Mutex
		var told []Capacity
		calls := 0
		stop := w.pool.Watch(func(c Capacity) {
			if !mu.TryLock() {
				t.Error("two calls at a time")
				return
			}
			defer mu.Unlock()
			told = append(told, c)
			w.pool.Stats() // would hang if a lock were held
			time.Sleep(time.Millisecond)
		})
		never := w.pool.Watch(func(Capacity) { calls++ })
		never()
		for i := range 20 {
			for _, h := range w.hosts {
				h.set(i%2 == 0, false)
			}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() { w.gets(3) })
			}
			all.Wait()
			time.Sleep(20 * time.Second)
			synctest.Wait()
			mu.Lock()
			if last := told[len(told)-1]; last.Present != (i%2 == 1) || last != w.pool.Capacity() {
				t.Errorf("told %+v, it is %+v", last, w.pool.Capacity())
			}
			mu.Unlock()
		}
		n := len(told)
		for i := 1; i < n; i++ {
			if told[i] == told[i-1] {
				t.Errorf("told twice: %+v", told[i])
			}
		}
		stop()
		w.hosts["a"].set(true, false)
		w.hosts["b"].set(true, false)
		w.gets(9)
		if len(told) != n || calls != 1 {
			t.Errorf("told after they stopped: %d, %d", len(told)-n, calls-1)
		}
	})
}
