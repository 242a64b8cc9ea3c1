package load

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
)

// A closer is a server that closes each connection in the place of an answer, but for the first
// answers of all, after each of which it keeps the connection.
func closer(t *testing.T, answers int64) (u *url.URL, dialled, asked *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	dialled, asked = new(atomic.Int64), new(atomic.Int64)
	serve := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if asked.Add(1) > answers {
				return
			}
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			go serve(c)
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, dialled, asked
}

// Whose connection ends before an answer came over it, and was made for this request, is not sent
// again: nothing says that the next one would do better, and a service that closes is asked as
// often as was said.
func TestStockDialsOncePerRequest(t *testing.T) {
	u, dialled, asked := closer(t, 0)
	s := newStock(&http.Transport{}, u)
	defer s.closeIdle()
	for n := int64(1); n <= 5; n++ {
		if status, err := get(t, s, "GET", u); err == nil {
			t.Errorf("an answer of a server that has none: %d", status)
		}
		if dialled.Load() != n || asked.Load() != n {
			t.Errorf("%d requests are %d connections and %d requests on the wire", n, dialled.Load(), asked.Load())
		}
	}
}

// Several kept connections that end when they are used are tried three times in all, and not as
// long as there is one.
func TestStockTriesThreeTimes(t *testing.T) {
	const kept = 6
	u, dialled, asked := closer(t, kept)
	s := newStock(&http.Transport{}, u)
	defer s.closeIdle()
	req, err := http.NewRequestWithContext(t.Context(), "GET", u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*http.Response // answered, and not yet closed: each has a connection of its own
	for range kept {
		resp, err := s.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, resp)
	}
	for _, resp := range all {
		resp.Body.Close()
	}
	again := 0
	s.again = func() bool { again++; return true }
	if status, err := get(t, s, "GET", u); err == nil {
		t.Errorf("an answer of a server that has none: %d", status)
	}
	if tries := asked.Load() - kept; tries != 3 || again != 2 || dialled.Load() != kept {
		t.Errorf("%d tries, asked %d times whether it may, %d connections; want 3, 2 and %d", tries, again, dialled.Load(), kept)
	}
}

// A connection that ended while it was kept is not handed out: its request, which happens once,
// would be lost on it.
func TestStockPassesOverDeadConnections(t *testing.T) {
	u, made := counted(t, func(http.ResponseWriter, *http.Request) {})
	s := newStock(&http.Transport{}, u)
	defer s.closeIdle()
	if status, err := get(t, s, "POST", u); status != 200 {
		t.Fatal(err)
	}
	until(t, "it is kept", s.look(func() bool { return len(s.idle) == 1 }))
	s.idle[0].Close()
	if status, err := get(t, s, "POST", u); status != 200 || made.Load() != 2 {
		t.Errorf("%d, %v, over %d connections, want the second", status, err, made.Load())
	}
}
