package goodputhttp

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/goodput/goodput"
)

// A wrappingListener hands out connections as one does that counts them.
type wrappingListener struct {
	net.Listener
	half bool
}

type wrappedConn struct{ net.Conn }

type halfWrapped struct{ wrappedConn }

func (c halfWrapped) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (l wrappingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if l.half {
		return halfWrapped{wrappedConn{c}}, err
	}
	return wrappedConn{c}, err
}

// TestHalfCloseOfWrapped: a handler that has upgraded can end its half of a connection that
// a listener has wrapped, and still read the other; where the wrapper cannot, nothing says
// that it could. Either way Close counts once.
func TestHalfCloseOfWrapped(t *testing.T) {
	for _, half := range []bool{true, false} {
		type closeWriter interface{ CloseWrite() error }
		could, rest := make(chan bool, 1), make(chan string, 1)
		s := &Server{Limiter: one(limiter(1, goodput.Config{})), Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			c, ok := conn.(closeWriter)
			could <- ok
			if ok {
				if err := c.CloseWrite(); err != nil {
					t.Error(err)
				}
				b, _ := io.ReadAll(buf)
				rest <- string(b)
			}
		})}
		srv := httptest.NewUnstartedServer(s)
		srv.Listener = wrappingListener{srv.Listener, half}
		srv.Start()
		t.Cleanup(srv.Close)
		c := dial(t, srv, upgradeRequest)
		if got := receive(t, "the upgrade", could); got != half {
			t.Errorf("half %v: CloseWrite %v", half, got)
		}
		if res := answer(t, c); res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("half %v: %d", half, res.StatusCode)
		}
		if half {
			if _, err := io.Copy(io.Discard, c); err != nil { // its half is over
				t.Fatal(err)
			}
			fmt.Fprint(c, "after all")
			c.Close()
			if got := receive(t, "the rest", rest); got != "after all" {
				t.Errorf("read %q after the half-close", got)
			}
		}
		until(t, "the connection is counted out", func() bool { return s.Stats().Upgraded == 0 })
	}
}
