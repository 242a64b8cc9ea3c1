//go:build linux

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// A WebSocket server in Python, through goodput and through HAProxy and goodput: messages
// of any size, pings and close codes pass in both directions. What is open holds no slot,
// is counted among connections, and is told 1001 when goodput leaves (C092, C096).
func TestWebSocket_C096(t *testing.T) {
	for _, name := range []string{"goodput", "HAProxy and goodput"} {
		t.Run(name, func(t *testing.T) {
			s := rig.Python(t, "websockets", ".", "testdata/websocket.py")
			p := rig.Protect(t, s.URL(), "--limit", "1")
			front := p.Addr
			if name != "goodput" {
				b := rig.Balance(t, p)
				b.Await(t, 0, "UP", 5*time.Second)
				front = b.Addr
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			dial := func() *websocket.Conn {
				t.Helper()
				c, _, err := websocket.Dial(ctx, "ws://"+front+"/chat", nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.CloseNow() }) //nolint:errcheck // the test is over
				c.SetReadLimit(2 << 20)
				return c
			}
			var open []*websocket.Conn
			for range 20 { // at a limit of 1
				open = append(open, dial())
			}
			for _, c := range open {
				echo(t, ctx, c, websocket.MessageText, []byte("hello"))
			}
			echo(t, ctx, open[0], websocket.MessageBinary, bytes.Repeat([]byte{0, 1, 2, 255}, 200<<10))

			m := p.Metrics(t)
			if upgraded := m[`goodput_connections_usage{kind="upgraded"}`]; upgraded != float64(len(open)) {
				t.Errorf("%v connections are counted as upgraded, %d are", upgraded, len(open))
			}
			if l := p.Limiter(t); l.InUse != 0 {
				t.Errorf("WebSockets hold slots: %v", l)
			}
			// The only slot is free. To this server a request that is no WebSocket is 426.
			res, err := http.Get("http://" + front + "/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close() //nolint:errcheck // the status is what counts
			if res.StatusCode != http.StatusUpgradeRequired {
				t.Errorf("beside WebSockets a request is answered %s", res.Status)
			}

			if err := open[0].Close(4001, "enough"); err != nil {
				t.Errorf("closing with 4001: %v", err)
			}
			if err := open[1].Write(ctx, websocket.MessageText, []byte("close 4002")); err != nil {
				t.Fatal(err)
			}
			ended(t, ctx, open[1], 4002, "as you wish")
			eventually(t, p, 2*time.Second, "two are closed", func(rig.Limiter) bool {
				return p.Metrics(t)[`goodput_connections_usage{kind="upgraded"}`] == float64(len(open)-2)
			})
			leaves(t, ctx, p, open[2:])
		})
	}
}

// echo sends a message and wants it back, with a ping on the way.
func echo(t *testing.T, ctx context.Context, c *websocket.Conn, kind websocket.MessageType, message []byte) {
	t.Helper()
	if err := c.Write(ctx, kind, message); err != nil {
		t.Fatal(err)
	}
	k, got, err := c.Read(ctx)
	if err != nil || k != kind || !bytes.Equal(got, message) {
		t.Fatalf("%d bytes came back as %d of kind %v, %v", len(message), len(got), k, err)
	}
}

func ended(t *testing.T, ctx context.Context, c *websocket.Conn, code websocket.StatusCode, reason string) {
	t.Helper()
	_, _, err := c.Read(ctx)
	if websocket.CloseStatus(err) != code || !strings.Contains(err.Error(), reason) {
		t.Errorf("want to be closed with %d %s, it is %v", code, reason, err)
	}
}

// leaves ends goodput: who has a WebSocket open is told to go elsewhere.
func leaves(t *testing.T, ctx context.Context, p *rig.Proxy, open []*websocket.Conn) {
	t.Helper()
	start := time.Now()
	p.Signal(t, syscall.SIGTERM)
	for _, c := range open {
		ended(t, ctx, c, websocket.StatusGoingAway, "")
	}
	if code := p.Exit(t, 5*time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
	figure(t, "leaving with open WebSockets", "%d told 1001, exit 0 after %s", len(open), millis(time.Since(start)))
}
