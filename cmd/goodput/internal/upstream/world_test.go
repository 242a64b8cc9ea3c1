package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// A world is a network of pipes with a few servers in it, and a pool before them, in the
// time of synctest.
type world struct {
	*testing.T
	pool  *Pool
	hosts map[string]*host
	log   *lines
	mu    sync.Mutex
	dials []time.Time // of connects that failed
}

// A host is one server: it listens or not, and serves or breaks.
type host struct {
	net.Listener
	conns   chan net.Conn
	mu      sync.Mutex
	down    bool // nobody listens
	silent  bool // nobody says even that
	breaks  bool // a connection is closed at its first request
	handler http.Handler
	served  int
	open    []net.Conn
}

var errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

func (h *host) Accept() (net.Conn, error) {
	c, ok := <-h.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (h *host) Close() error   { return nil }
func (h *host) Addr() net.Addr { return &net.TCPAddr{} }

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	breaks, handler := h.breaks, h.handler
	h.served++
	h.mu.Unlock()
	if breaks {
		panic(http.ErrAbortHandler)
	}
	handler.ServeHTTP(w, r)
}

// serve has the host answer by handler from now on.
func (h *host) serve(handler http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handler = handler
}

// set makes the host listen or not; what is open breaks when it does not.
func (h *host) set(down, breaks bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down, h.breaks = down, breaks
	if down {
		for _, c := range h.open {
			c.Close()
		}
		h.open = nil
	}
}

func (h *host) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.served
}

// lines collects a log without its times.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, text, _ := strings.Cut(string(b), "msg=")
	l.all = append(l.all, strings.TrimSpace(text))
	return len(b), nil
}

func (l *lines) count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		n += strings.Count(s, what)
	}
	return n
}

// play runs a story in a world of n servers called a, b, c.
func play(t *testing.T, n int, change func(*config.Upstream), story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, hosts: map[string]*host{}, log: new(lines)}
		cfg := w.config(n, change)
		w.pool = newPool(cfg, slog.New(slog.NewTextHandler(w.log, nil)), w.dial)
		story(w)
		w.pool.Close()
		for _, h := range w.hosts {
			h.set(true, false)
			close(h.conns)
		}
		synctest.Wait()
		for i, k := range w.pool.in() {
			if k != 0 {
				t.Errorf("%d in flight at server %d in the end", k, i)
			}
		}
	})
}

// config describes an upstream of the first n servers, which exist from then on.
func (w *world) config(n int, change func(*config.Upstream)) config.Upstream {
	cfg := config.DefaultUpstream()
	for _, name := range strings.Split("abcdefgh", "")[:n] {
		cfg.Servers = append(cfg.Servers, config.Server{URL: &url.URL{Scheme: "http", Host: name}})
		if w.hosts[name] == nil {
			h := &host{conns: make(chan net.Conn), handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })}
			w.hosts[name] = h
			go (&http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}).Serve(h) // ends with conns
		}
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func (w *world) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	name, _, _ := net.SplitHostPort(addr)
	h := w.hosts[name]
	h.mu.Lock()
	down, silent := h.down, h.silent
	h.mu.Unlock()
	if silent {
		select {
		case <-time.After(dialTimeout): // as the dialer of the pool has it
			return nil, &net.OpError{Op: "dial", Err: errors.New("i/o timeout")}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if down {
		w.mu.Lock()
		w.dials = append(w.dials, time.Now())
		w.mu.Unlock()
		return nil, errRefused
	}
	ours, theirs := net.Pipe()
	h.mu.Lock()
	h.open = append(h.open, theirs)
	h.mu.Unlock()
	select {
	case h.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask sends one request and returns what was answered.
func (w *world) ask(method string, body io.Reader) (string, error) {
	return w.within(w.Context(), method, body)
}

func (w *world) within(ctx context.Context, method string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, "/", body)
	if err != nil {
		w.Fatal(err)
	}
	r.URL = &url.URL{Path: "/"}
	r.GetBody = nil
	res, err := w.pool.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	return string(text), err
}

// gets sends n requests one after the other and returns how many failed.
func (w *world) gets(n int) (failed int) {
	for range n {
		if _, err := w.ask(http.MethodGet, nil); err != nil {
			failed++
		}
	}
	return failed
}

func (w *world) stats(i int) ServerStats { return w.pool.Stats()[i] }
