package goodputhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// refuser is a server whose queue is full.
func refuser(t testing.TB) (*Server, func(request string) *net.TCPConn) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	s := &Server{Limiter: one(lim), Next: http.NotFoundHandler()}
	srv := start(t, s)
	hold(t, lim, 1)
	return s, func(request string) *net.TCPConn { return dial(t, srv, request) }
}

// C080 (jetty/jetty.project#2867): clients that write 2 MB before they read
// anything get to read the whole refusal: all of them but at most 1 in 1000.
func TestC080EarlyRefusalIsRead(t *testing.T) {
	const size = 2 << 20
	payload := strings.Repeat("x", size)
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, payload)
	for name, request := range map[string]string{
		"length":  post(size) + payload,
		"chunked": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"expect":  "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " + fmt.Sprint(size) + "\r\n\r\n" + payload,
	} {
		t.Run(name, func(t *testing.T) {
			rounds := 200
			switch {
			case underRace:
				rounds = 40
			case name == "length":
				rounds = 1000
			}
			s, dial := refuser(t)
			var lost atomic.Int64
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range rounds / 4 {
						if err := readsRefusal(dial(""), request); err != nil {
							lost.Add(1)
							t.Log(err)
						}
					}
				})
			}
			wg.Wait()
			if lost.Load() > int64(rounds/1000) {
				t.Errorf("%d of %d lost the answer", lost.Load(), rounds)
			}
			until(t, "nobody lingers", func() bool { return s.own.lingering.Load() == 0 })
		})
	}
}

func readsRefusal(c net.Conn, request string) error {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, request); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	got, err := io.ReadAll(res.Body)
	if err != nil || string(got) != busy+"\n" || res.StatusCode != 503 {
		return fmt.Errorf("read %d %q: %w", res.StatusCode, got, err)
	}
	return nil
}

// Over HTTP/2 the stream alone is reset, after the answer.
func TestEarlyRefusalHTTP2(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	srv := start(t, Handler(lim, http.NotFoundHandler()))
	hold(t, lim, 1)
	client := clients(t)["h2c"]
	for range 50 {
		res, err := client.Post(srv.URL, "", strings.NewReader(strings.Repeat("x", 2<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); res.StatusCode != 503 || got != busy+"\n" {
			t.Errorf("%d %q", res.StatusCode, got)
		}
	}
}

// The lingering is bounded: in time for a client that sends nothing, and a body
// that is declared longer than lingerBytes is not read.
func TestLingerIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		request string
	}{
		"nothing is sent":   {post(2 << 20)},
		"announced only":    {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"},
		"too long to drain": {post(1 << 30)},
	} {
		t.Run(name, func(t *testing.T) {
			s, dial := refuser(t)
			began := time.Now()
			conn := dial(c.request)
			_ = conn.SetReadDeadline(began.Add(patience))
			got, err := io.ReadAll(conn) // until the server closes
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 503 ") || strings.Contains(string(got), "100 Continue") {
				t.Errorf("%q %v", got, err)
			}
			// lingerTime, 500 ms by net/http, and a busy machine.
			if took := time.Since(began); took > lingerTime+500*time.Millisecond+4*time.Second {
				t.Errorf("it took %v", took)
			}
			until(t, "nobody lingers", func() bool { return s.own.lingering.Load() == 0 })
		})
	}
}

// Where the body is small, or read, the connection lives on.
func TestRefusalKeepsTheConnection(t *testing.T) {
	_, dial := refuser(t)
	const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	c := dial(post(5) + "hello" + get + post(100_000) + strings.Repeat("x", 100_000) + get)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	var got string
	buf := make([]byte, 4096)
	for strings.Count(got, busy) < 4 {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got += string(buf[:n])
	}
	if strings.Contains(got, "Connection: close") {
		t.Errorf("%q", got)
	}
}
