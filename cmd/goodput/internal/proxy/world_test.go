package proxy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// patience bounds what a test waits for something that must happen: it is how
// long a broken test takes, not how long a passing one does.
const patience = 20 * time.Second

// A world is a service, a proxy in front of it and clients of both protocols.
type world struct {
	*testing.T
	lim    *goodput.Limiter
	proxy  *Proxy
	server *http.Server
	addr   string // of the proxy
	url    string
	h1, h2 *http.Client
	log    *logged
}

// logged collects the log.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// backend serves handler in HTTP/1.1 and h2c and returns its host:port.
func backend(t *testing.T, handler http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: handler, Protocols: both, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	go srv.Serve(l) // ends with Close
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

// A Config is what a test may change of a world: the class that all requests are of.
type Config struct {
	config.Class
	TrustedProxies []netip.Prefix
}

// start puts a proxy before upstream (host:port or a URL). change may set up the
// configuration.
func start(t *testing.T, upstream string, change func(*Config, *goodput.Config)) *world {
	t.Helper()
	if !strings.Contains(upstream, "://") {
		upstream = "http://" + upstream
	}
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, log: new(logged)}
	cfg := config.One(u)
	changed := Config{Class: cfg.Classes[0]}
	lc := &changed.Limiter
	lc.Limit, lc.Objective = limit.Fixed(64), 10*time.Second
	if change != nil {
		change(&changed, lc)
	}
	cfg.Classes[0], cfg.TrustedProxies = changed.Class, changed.TrustedProxies
	if w.proxy, err = New(cfg, Options{Logger: slog.New(slog.NewTextHandler(w.log, nil))}); err != nil {
		t.Fatal(err)
	}
	if all := w.proxy.Limiters(); len(all) > 0 { // a class of connections has none
		w.lim = all[0]
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.server = w.proxy.Server(cfg.Listeners[0])
	go w.server.Serve(l) // ends with Close
	w.addr = l.Addr().String()
	w.url = "http://" + w.addr
	w.h1, w.h2 = client(t, false), client(t, true)
	t.Cleanup(func() { w.server.Close() })
	return w
}

func client(t *testing.T, h2c bool) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(!h2c)
	p.SetUnencryptedHTTP2(h2c)
	tr := &http.Transport{Protocols: p, MaxIdleConnsPerHost: 1000, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// raw writes request to a fresh connection and returns it.
func (w *world) raw(request string) net.Conn {
	w.Helper()
	c, err := net.DialTimeout("tcp", w.addr, patience)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience)) // a TCP connection has deadlines
	if _, err := io.WriteString(c, request); err != nil {
		w.Fatal(err)
	}
	return c
}

// answer reads one response.
func (w *world) answer(c net.Conn) (*http.Response, string) {
	w.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res, string(body)
}

func (w *world) get(c *http.Client, path string) (*http.Response, string) {
	w.Helper()
	res, err := c.Get(w.url + path)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res, string(body)
}

// settle waits until ok holds for the statistics, and checks that every arrival
// is accounted for in each snapshot on the way.
func (w *world) settle(what string, ok func(goodput.Stats) bool) goodput.Stats {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		s := w.lim.Stats()
		n := uint64(s.Running + s.Waiting)
		for _, c := range s.Outcomes {
			n += c
		}
		if n != s.Arrivals {
			w.Fatalf("%d arrivals, but outcomes + running + waiting = %d: %+v", s.Arrivals, n, s.Stats)
		}
		if ok(s) {
			return s
		}
		select {
		case <-ctx.Done():
			w.Fatalf("never came true: %s\n%s", what, w.lim.Explain())
		case <-time.After(time.Millisecond):
		}
	}
}

// unsampled checks that the limiter has learned no service time from what has ended. It cannot
// know before their window is over, and it looks at it when something comes.
func (w *world) unsampled() {
	w.Helper()
	time.Sleep(150 * time.Millisecond) // wall clock: the longest window is 100 ms
	if slot, ok := w.lim.TryAcquire(); ok {
		slot.Detach() // gives no sample
	}
	if n := w.lim.Stats().Derivation.Samples; n != 0 {
		w.Errorf("%d service samples", n)
	}
}

func idle(s goodput.Stats) bool { return s.Running == 0 && s.Waiting == 0 && s.InUse == 0 }
