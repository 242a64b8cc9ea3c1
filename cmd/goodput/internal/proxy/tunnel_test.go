package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// switching is a service that upgrades, and hands the connection to do.
func switching(t *testing.T, do func(*net.TCPConn, *bufio.Reader)) string {
	return backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol := r.Header.Get("Upgrade")
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		do(conn.(*net.TCPConn), buf.Reader)
	}))
}

func upgradeTo(protocol string) string {
	return "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"
}

// upgrade opens a tunnel, with more written behind the request.
func (w *world) upgrade(protocol, more string) (*net.TCPConn, *bufio.Reader) {
	w.Helper()
	c := w.raw(upgradeTo(protocol) + more)
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		w.Fatalf("%v, %v", res, err)
	}
	return c.(*net.TCPConn), in
}

// eventually waits for something that other goroutines bring about.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	ctx, cancel := contextFor(patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			w.Fatalf("never came true: %s\n%+v", what, w.proxy.Traffic())
		case <-time.After(time.Millisecond):
		}
	}
}

func (w *world) noTunnels() {
	w.Helper()
	w.eventually("no tunnel is open", func() bool {
		return w.proxy.Traffic()[0].Tunnels == 0 && w.proxy.Traffic()[0].Requests == 0 && w.proxy.Door().Upgraded == 0 &&
			len(w.proxy.tunnels.all(func(*tunnel) bool { return true })) == 0
	})
}

// modes runs do in a world of each mode of a class.
func modes(t *testing.T, upstream string, change func(*Config), do func(*world)) {
	for _, mode := range []config.Mode{config.Request, config.Stream, config.Connection} {
		t.Run(mode.String(), func(t *testing.T) {
			do(start(t, upstream, func(c *Config, lc *goodput.Config) {
				c.Mode = mode
				lc.Limit, lc.Depth = limit.Fixed(8), goodput.NoQueue
				if change != nil {
					change(c)
				}
			}))
		})
	}
}

// golang/go#35892: who has said all still hears the rest, in both directions.
func TestHalfClosePasses(t *testing.T) {
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		all, err := io.ReadAll(in) // to the end of what the client has to say
		if err != nil {
			t.Error(err)
		}
		io.WriteString(c, strings.ToUpper(string(all)))
	})
	modes(t, up, nil, func(w *world) {
		c, in := w.upgrade("echo", "")
		io.WriteString(c, "hello")
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(in); string(all) != "HELLO" || err != nil {
			t.Errorf("%q, %v", all, err)
		}
		w.noTunnels()
	})
	up = switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, "that is all")
		c.CloseWrite()
		if got, err := in.ReadString('\n'); got != "and that\n" {
			t.Errorf("the service got %q, %v", got, err)
		}
	})
	modes(t, up, nil, func(w *world) {
		c, in := w.upgrade("echo", "")
		if all, err := io.ReadAll(in); string(all) != "that is all" || err != nil {
			t.Errorf("%q, %v", all, err)
		}
		io.WriteString(c, "and that\n")
		c.Close()
		w.noTunnels()
	})
}

// What a client sends before it has the answer is not lost (golang/go#80875).
func TestEarlyBytesPass(t *testing.T) {
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) { io.CopyN(c, in, 10) })
	modes(t, up, nil, func(w *world) {
		c, in := w.upgrade("echo", "early")
		io.WriteString(c, " late")
		if all, err := io.ReadAll(in); string(all) != "early late" || err != nil {
			t.Errorf("%q, %v", all, err)
		}
		c.Close()
		w.noTunnels()
	})
}

// What is large passes whole, in both directions at once, and an error of either side ends
// the copy with the bytes that went through.
func TestLargeTunnelsAreWhole(t *testing.T) {
	const n = 3 << 20
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) { io.CopyN(c, in, n) })
	w := start(t, up, nil)
	c, in := w.upgrade("echo", "")
	sent := make([]byte, n)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < n; i++ {
		sent[i] = byte(r.Uint32())
	}
	go c.Write(sent)
	if got, err := io.ReadAll(in); !bytes.Equal(got, sent) || err != nil {
		t.Errorf("%d bytes of %d, or others, %v", len(got), n, err)
	}
	c.Close()
	w.noTunnels()

	broken := errors.New("broken")
	for _, r := range []struct {
		from io.Reader
		to   io.Writer
		n    int64
		err  error
	}{
		{bytes.NewReader(sent), io.Discard, n, nil},
		{iotest.DataErrReader(bytes.NewReader(sent)), io.Discard, n, nil},
		{io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(broken)), io.Discard, n, broken},
		{bytes.NewReader(sent), &narrowing{5000, broken}, 5000, broken},
	} {
		if n, err := relay(r.to, r.from); n != r.n || err != r.err {
			t.Errorf("%d, %v, want %d, %v", n, err, r.n, r.err)
		}
	}
}

// narrowing takes some bytes and then fails.
type narrowing struct {
	left int
	err  error
}

func (w *narrowing) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	if w.left -= n; n < len(p) {
		return n, w.err
	}
	return n, nil
}

// hung is a service that upgrades and then waits until its connection ends.
func hung(t *testing.T) (addr string, ended chan error) {
	ended = make(chan error, 10)
	return switching(t, func(_ *net.TCPConn, in *bufio.Reader) {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}), ended
}

// A tunnel in which nothing moves ends, at both sides, and so does one that lasts too long;
// a WebSocket is told.
func TestTunnelLimits(t *testing.T) {
	for _, c := range []struct {
		idle, total time.Duration
		protocol    string
		want        Traffic
	}{
		{50 * time.Millisecond, 0, "echo", Traffic{CutIdle: 1}},
		{time.Minute, 50 * time.Millisecond, "echo", Traffic{CutTotal: 1}},
		{50 * time.Millisecond, time.Minute, "WebSocket", Traffic{CutIdle: 1}},
	} {
		up, ended := hung(t)
		modes(t, up, func(k *Config) { k.Idle, k.Total = c.idle, c.total }, func(w *world) {
			client, in := w.upgrade(c.protocol, "")
			if c.protocol == "WebSocket" {
				word := make([]byte, len(goingAwayFrame))
				if _, err := io.ReadFull(in, word); err != nil || !bytes.Equal(word, goingAwayFrame) {
					t.Errorf("% x, %v", word, err)
				}
				client.CloseWrite()
			}
			if rest, err := io.ReadAll(in); len(rest) != 0 || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%q, %v", rest, err)
			}
			w.take("the end at the service", ended)
			w.noTunnels()
			got := w.proxy.Traffic()[0]
			if got.CutIdle != c.want.CutIdle || got.CutTotal != c.want.CutTotal || got.TunnelsTotal != 1 {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func (w *world) take(what string, from chan error) error {
	w.Helper()
	select {
	case err := <-from:
		return err
	case <-time.After(patience):
		w.Fatalf("never came: %s", what)
		return nil
	}
}

// A tunnel is idle only when neither side says anything: one direction is enough.
func TestOneDirectionKeepsATunnel(t *testing.T) {
	const idle, beats = 600 * time.Millisecond, 6
	beat := func(c net.Conn) {
		for range beats {
			time.Sleep(idle / 4) // wall clock: longer than the limit in all, and a fourth of it each
			c.Write([]byte{'.'})
		}
	}
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		if b, err := in.ReadByte(); err != nil || b == 's' {
			beat(c)
			return
		}
		io.CopyN(io.Discard, in, beats)
	})
	w := start(t, up, func(c *Config, _ *goodput.Config) { c.Idle = idle })
	c, in := w.upgrade("echo", "s")
	if all, err := io.ReadAll(in); len(all) != beats || err != nil {
		t.Errorf("service to client: %q, %v", all, err)
	}
	c.Close()
	c, in = w.upgrade("echo", "c")
	beat(c)
	if all, err := io.ReadAll(in); len(all) != 0 || err != nil {
		t.Errorf("client to service: %q, %v", all, err)
	}
	if got := w.proxy.Traffic()[0]; got.CutIdle != 0 {
		t.Errorf("%+v", got)
	}
}

// traefik#3630, caddy#4762: at a drain a WebSocket ends with 1001 at a boundary of frames, its service is told
// by the client, and nothing is left open; Drain waits for it and no longer.
func TestDrainClosesWebSockets(t *testing.T) {
	said := make(chan []byte, 10)
	half := make(chan struct{})
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		first := frame(2, 300, 2, false)
		c.Write(first[:100])
		<-half
		c.Write(append(first[100:], frame(2, 5, 0, false)...))
		all, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		said <- all
	})
	modes(t, up, nil, func(w *world) {
		half = make(chan struct{})
		c, in := w.upgrade("websocket", "")
		io.ReadFull(in, make([]byte, 100))
		drained := make(chan error, 1)
		go func() { drained <- w.proxy.Drain(0, patience, w.server) }()
		w.eventually("it was told", func() bool {
			return len(w.proxy.tunnels.all(func(t *tunnel) bool { return t.told.Load() })) == 1
		})
		close(half)
		rest := make([]byte, 204+len(goingAwayFrame))
		if _, err := io.ReadFull(in, rest); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(rest, append(frame(2, 300, 2, false)[100:], goingAwayFrame...)) {
			t.Errorf("the client got % x", rest)
		}
		c.Write([]byte{0x88, 0x82, 0, 0, 0, 0, 3, 233}) // its own close frame
		c.CloseWrite()
		if more, err := io.ReadAll(in); len(more) != 0 || err != nil {
			t.Errorf("behind the close frame: % x, %v", more, err)
		}
		if got := <-said; len(got) != 8 {
			t.Errorf("the service heard % x", got)
		}
		if err := w.take("the end of the drain", drained); err != nil {
			t.Error(err)
		}
		w.noTunnels()
	})
}

// What is no WebSocket has the time of the drain, then it is cut, and Drain says so.
func TestDrainCutsOtherTunnels(t *testing.T) {
	up, ended := hung(t)
	modes(t, up, nil, func(w *world) {
		_, in := w.upgrade("echo", "")
		err := w.proxy.Drain(0, 300*time.Millisecond, w.server)
		if err == nil || !strings.Contains(err.Error(), "1 upgraded connections were cut") {
			t.Errorf("%v", err)
		}
		io.Copy(io.Discard, in)
		w.take("the end at the service", ended)
		w.noTunnels()
	})
}

// Many tunnels, ended from all sides at once: none is left, and each was counted once.
func TestTunnelsEndFromAllSides(t *testing.T) {
	const n = 60
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		b, _ := in.ReadByte()
		switch b {
		case 's':
			return
		case 'r':
			c.SetLinger(0)
			return
		}
		io.Copy(c, in)
	})
	modes(t, up, func(c *Config) {
		c.Idle = 100 * time.Millisecond
		c.Limiter.Limit = limit.Fixed(n)
	}, func(w *world) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				protocol := "websocket"
				if i%5 == 3 {
					protocol = "echo" // it ends for being idle: without a farewell
				}
				c, in := w.upgrade(protocol, string("srcix"[i%5]))
				switch i % 5 {
				case 2:
					c.Close()
				case 4:
					c.SetLinger(0)
					c.Close()
				}
				io.Copy(io.Discard, in)
				c.Close()
			})
		}
		all.Wait()
		w.noTunnels()
		if got := w.proxy.Traffic()[0]; got.TunnelsTotal != n {
			t.Errorf("%+v", got)
		}
		if w.lim != nil {
			w.settle("idle", idle)
		}
	})
}
