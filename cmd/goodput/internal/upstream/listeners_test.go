package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// What needs the sockets of the kernel: connections that break, ports that are closed and
// opened again, certificates.

// patience bounds what must happen: how long a broken test takes, not a passing one.
const patience = 20 * time.Second

// A restarted server listens at the same address each time.
type restarted struct {
	addr   string
	server *http.Server
	served atomic.Int64
}

func (r *restarted) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	r.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Millisecond)
			r.served.Add(1)
			io.WriteString(w, "ok")
		}),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	go r.server.Serve(l) // ends with Close
}

// real returns a pool of servers that listen.
func real(t *testing.T, n int) (*Pool, []*restarted) {
	var all []*restarted
	cfg := config.DefaultUpstream()
	cfg.SlowStart = 100 * time.Millisecond
	for range n {
		s := &restarted{addr: "127.0.0.1:0"}
		s.start(t)
		t.Cleanup(func() { s.server.Close() })
		all = append(all, s)
		cfg.Servers = append(cfg.Servers, config.Server{URL: &url.URL{Scheme: "http", Host: s.addr}})
	}
	p := New(cfg, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p, all
}

// settles waits until ok holds.
func settles(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func send(p *Pool, method string, body io.Reader) error {
	r, err := http.NewRequest(method, "/", body)
	if err != nil {
		return err
	}
	r.URL, r.GetBody = &url.URL{Path: "/"}, nil
	res, err := p.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// Three servers are restarted one after the other, once with a shutdown and once by a kill,
// while requests come: none that may be repeated fails, and nobody gets an error for a
// request that was not executed.
func TestRollingRestart(t *testing.T) {
	p, all := real(t, 3)
	var stop atomic.Bool
	var clients sync.WaitGroup
	var sent, killed atomic.Int64
	for range 4 {
		clients.Go(func() {
			for !stop.Load() {
				if err := send(p, http.MethodGet, nil); err != nil {
					t.Errorf("GET: %v", err)
				}
				if err := send(p, http.MethodPost, strings.NewReader("x")); err != nil {
					killed.Add(1)
					if unexecuted(err) {
						t.Errorf("POST that was not executed: %v", err)
					}
				}
				sent.Add(2)
			}
		})
	}
	for round := range 2 {
		for i, s := range all {
			if round == 0 {
				s.server.Shutdown(context.Background())
			} else {
				s.server.Close()
			}
			settles(t, "it is noticed", func() bool { return !p.Stats()[i].Well })
			s.start(t)
			before := s.served.Load()
			settles(t, "it serves again", func() bool { return p.Stats()[i].Share == 1 && s.served.Load() > before })
		}
	}
	stop.Store(true)
	clients.Wait()
	t.Logf("%d requests, of which %d POST broke in a kill", sent.Load(), killed.Load())
	for _, s := range p.Stats() {
		// Whoever is out was found out by three requests, or a few more that were under way.
		if s.InFlight != 0 || s.Ejections != 2 {
			t.Errorf("%+v", s)
		}
	}
	// A kill breaks what is in flight, at most 4 requests, and of those on connections that
	// were idle nobody can say whether they were executed.
	if n := killed.Load(); n > 3*8 {
		t.Errorf("%d POST failed in 3 kills with 4 clients", n)
	}
}

// A certificate that nobody known has signed is refused, and the request was not executed: the
// next server gets it.
func TestCertificatesAreVerified(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent to a stranger") }))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	secure.StartTLS()
	defer secure.Close()
	u, _ := url.Parse(secure.URL)
	cfg := config.DefaultUpstream(u)
	p := New(cfg, slog.New(slog.DiscardHandler))
	defer p.Close()
	for range 3 {
		err := send(p, http.MethodPost, strings.NewReader("x"))
		if cert := (*tls.CertificateVerificationError)(nil); !errors.As(err, &cert) {
			t.Errorf("%v", err)
		}
	}
	if s := p.Stats()[0]; s.Well || s.Failures != 3 {
		t.Errorf("%+v", s)
	}
	if err := p.server(0).connect(t.Context()); err == nil {
		t.Error("a connect finds it well")
	}

	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	other, _ := url.Parse(plain.URL)
	q := New(config.DefaultUpstream(u, other), slog.New(slog.DiscardHandler))
	defer q.Close()
	for range 10 {
		if err := send(q, http.MethodPost, strings.NewReader("x")); err != nil {
			t.Errorf("with another server: %v", err)
		}
	}
}

// Close ends what a pool has begun.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		cfg := config.DefaultUpstream(&url.URL{Scheme: "http", Host: "127.0.0.1:1"}, &url.URL{Scheme: "http", Host: "127.0.0.1:2"})
		cfg.Health = &config.Health{Path: "/", Interval: time.Millisecond, Timeout: time.Second, Fall: 1, Rise: 1}
		p := New(cfg, slog.New(slog.DiscardHandler))
		p.Watch(func(Capacity) {})
		settles(t, "they are found out", func() bool { return !p.Capacity().Present })
		if err := send(p, http.MethodGet, nil); !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
		p.Close()
		p.Close() // twice is nothing more
	}
	settles(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+2 })
}
