package goodputhttp

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// notice is the second within which a client that left has to be noticed, and
// what a machine with two busy cores may add to it.
const notice = time.Second + 4*time.Second

// C074 (golang/go#23262, #33339): a request waits with its body unread, in every
// way that there is, and its client leaves. The entry leaves the queue within a
// second, never runs, and counts as cancelled.
func TestC074QueuedClientLeaves(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	leave := func(c *net.TCPConn) { c.Close() }
	for _, c := range []struct {
		name    string
		request string
		preread int64 // MaxPreread
		leave   func(*net.TCPConn)
	}{
		{"GET", get, 0, leave},
		{"GET, half-close", get, 0, func(c *net.TCPConn) { _ = c.CloseWrite() }},
		{"GET, pipelined", get + get, 0, leave},
		{"POST of 10 B", post(10) + "0123456789", 0, leave},
		{"POST of 10 B, unread", post(10) + "0123456789", NoPreread, leave},
		{"POST of 10 B, pipelined", post(10) + "0123456789" + get, 0, leave},
		{"POST of 1 MB, read ahead", post(1e6) + strings.Repeat("x", 1e6), 0, leave},
		{"POST of 1 MB, half of it sent", post(1e6) + strings.Repeat("x", 5e5), 0, leave},
		{"POST of 40 KB, unread", post(40e3) + strings.Repeat("x", 40e3), NoPreread, leave},
		{"POST of 5 MB, little of it sent", post(5e6) + strings.Repeat("x", 3e4), 0, leave},
		{"POST of 5 MB, reset", post(5e6) + strings.Repeat("x", 3e4), 0, func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() }},
		{"chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0, leave},
		{"chunked, unread", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", NoPreread, leave},
		{"100-continue", "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", 0, leave},
	} {
		t.Run(c.name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			s := &Server{Limiter: one(lim), MaxPreread: c.preread, Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("it ran")
			})}
			srv := start(t, s)
			release := hold(t, lim, 1)
			conn := dial(t, srv, c.request)
			// Half a body that is read ahead keeps the request at the door.
			if c.name != "POST of 1 MB, half of it sent" {
				until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
			} else {
				until(t, "it is read", func() bool { return s.Stats().Buffered >= 5e5 })
			}
			left := time.Now()
			c.leave(conn)
			until(t, "it is cancelled", func() bool { return lim.Stats().Outcomes[goodput.Cancelled] == 1 })
			if took := time.Since(left); took > notice {
				t.Errorf("noticed after %v", took)
			}
			release()
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Cancelled: 1, goodput.Completed: 1}) // and the one that held the slot
			until(t, "its memory is given back", func() bool { return s.Stats().Buffered == 0 })
		})
	}
}

// Who does not leave is not taken for gone: after several looks it still waits,
// and then it runs, with all of its body.
func TestWatchLeavesOthersAlone(t *testing.T) {
	for name, big := range map[string]bool{"small": false, "big": true} {
		t.Run(name, func(t *testing.T) {
			size := 10
			if big {
				size = 3e6
			}
			lim := limiter(1, goodput.Config{})
			srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			})))
			release := hold(t, lim, 1)
			got := make(chan string, 1)
			go func() {
				res, err := http.Post(srv.URL, "", strings.NewReader(strings.Repeat("x", size)))
				if err != nil {
					got <- err.Error()
					return
				}
				got <- text(t, res)
			}()
			until(t, "it has waited for three looks", func() bool { return lim.Stats().Age > 3*watchEvery })
			release()
			if s := receive(t, "answer", got); s != fmt.Sprint(size, nil) {
				t.Errorf("%q, want %d", s, size)
			}
		})
	}
}

// TLS makes no difference: nothing is read to find out.
func TestC074UnderTLS(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	srv := httptest.NewUnstartedServer(&Server{Limiter: one(lim), MaxPreread: NoPreread, Next: http.NotFoundHandler()})
	srv.Config.ConnContext = ConnContext
	srv.StartTLS()
	defer srv.Close()
	release := hold(t, lim, 1)
	c, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, post(10)+"0123456789")
	until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
	c.Close()
	until(t, "it is cancelled", func() bool { return lim.Stats().Outcomes[goodput.Cancelled] == 1 })
	release()
}

// A connection that is not TCP is not watched, and nothing breaks.
func TestWatchOtherNetworks(t *testing.T) {
	ln, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Skip(err)
	}
	lim := limiter(1, goodput.Config{})
	srv := &http.Server{Handler: Handler(lim, http.NotFoundHandler()), ConnContext: ConnContext}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	release := hold(t, lim, 1)
	c, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	until(t, "it has been looked at", func() bool { return lim.Stats().Age > 2*watchEvery })
	release()
	if res := answer(t, c); res.StatusCode != 404 {
		t.Error(res.StatusCode)
	}
	if ctx := ConnContext(background, nil); ctx != background {
		t.Error("a connection that cannot be watched")
	}
}

// A handler that never reads the body is told as well: it would hold its slot
// for nobody.
func TestRunningClientLeaves(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	entered := make(chan struct{})
	srv := start(t, Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})))
	c := dial(t, srv, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
	receive(t, "handler", entered)
	c.Close()
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Abandoned: 1})
}

// Once a connection is upgraded a half-close is a message to its new owner.
func TestUpgradedHalfClose(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the half-close
		select {
		case <-r.Context().Done():
			t.Error("cancelled by a half-close")
		case <-time.After(2 * watchEvery):
		}
	})))
	c := dial(t, srv, upgradeRequest)
	if res := answer(t, c); res.StatusCode != 101 {
		t.Error(res.StatusCode)
	}
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.Copy(io.Discard, c)
}

// A looker is a connection that counts the looks at it.
type looker struct {
	syscall.RawConn
	looks atomic.Int64
}

func (l *looker) Control(func(uintptr)) error {
	l.looks.Add(1)
	return nil
}

// Nobody looks after the handler has returned.
func TestWatchEnds(t *testing.T) {
	var l looker
	entered := time.Now()
	h := Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		until(t, "it is looked at", func() bool { return l.looks.Load() >= 2 })
	}))
	r := request()
	h.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(background, connKey{}, syscall.RawConn(&l))))
	if took := time.Since(entered); took < 2*watchEvery {
		t.Errorf("two looks in %v", took)
	}
	seen := l.looks.Load()
	<-time.After(2 * watchEvery) // what would show another
	if now := l.looks.Load(); now != seen {
		t.Errorf("%d more looks", now-seen)
	}
}

// Without ConnContext a body that was read is enough for net/http to notice.
func TestC074WithoutConnContext(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	srv := httptest.NewServer(Handler(lim, http.NotFoundHandler()))
	defer srv.Close()
	release := hold(t, lim, 1)
	defer release()
	for i, size := range []int{1, 4 << 10, 4<<10 + 1, 1e6} {
		c := dial(t, srv, post(size)+strings.Repeat("x", size))
		until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
		c.Close()
		until(t, "it is cancelled", func() bool { return lim.Stats().Outcomes[goodput.Cancelled] == uint64(i+1) })
	}
}
