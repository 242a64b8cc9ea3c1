package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	listeners "github.com/goodput/goodput/cmd/goodput/internal/listen"
	"github.com/goodput/goodput/limit"
)

// certificate writes one and its key.
func certificate(t *testing.T) *config.TLS {
	t.Helper()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	pair := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := &config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for path, b := range map[string]*pem.Block{
		files.Cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, files.Key: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// behind serves w's proxy at a listener of package listen.
func (w *world) behind(change func(*config.Listener)) *listeners.Listener {
	w.Helper()
	cfg := config.DefaultListener()
	cfg.Address = "127.0.0.1:0"
	change(&cfg)
	l, err := listeners.Open(cfg, nil)
	if err != nil {
		w.Fatal(err)
	}
	srv := w.proxy.Server(cfg)
	go srv.Serve(l) // ends with Close
	w.Cleanup(func() { srv.Close() })
	return l
}

func (w *world) dial(l *listeners.Listener, secure bool) net.Conn {
	w.Helper()
	c, err := net.DialTimeout(l.Addr().Network(), l.Addr().String(), patience)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience)) // a connection of the kernel has deadlines
	if secure {
		return tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	}
	return c
}

// Over each kind of listener: a tunnel passes half-closes, counts as an open connection of
// the listener until it ends, and its place is somebody else's then.
func TestTunnelsAtListeners(t *testing.T) {
	up := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		all, _ := io.ReadAll(in) // to the half-close
		c.Write(all)
	})
	secure := certificate(t)
	path := filepath.Join(t.TempDir(), "s")
	for name, change := range map[string]func(*config.Listener){
		"tcp":  func(*config.Listener) {},
		"tls":  func(l *config.Listener) { l.TLS = secure },
		"unix": func(l *config.Listener) { l.Network, l.Address = "unix", path },
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, up, func(c *Config, _ *goodput.Config) { c.Mode = config.Connection })
			w.T = t
			l := w.behind(func(l *config.Listener) {
				change(l)
				l.MaxConnections = 1
			})
			for range 5 {
				c := w.dial(l, name == "tls")
				io.WriteString(c, upgradeTo("echo")) // the read fails then
				in := bufio.NewReader(c)
				res, err := http.ReadResponse(in, nil)
				if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
					t.Fatalf("%v, %v", res, err)
				}
				if s := l.Stats(); s.Open != 1 {
					t.Errorf("%+v while a tunnel is open", s)
				}
				io.WriteString(c, "hello")
				if err := c.(closeWriter).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if all, err := io.ReadAll(in); string(all) != "hello" || err != nil {
					t.Errorf("%q, %v", all, err)
				}
				c.Close()
			}
			w.noTunnels()
			w.eventually("no connection is open", func() bool { return l.Stats().Open == 0 })
			if s := l.Stats(); s.Accepted != 5 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A pure proxy: at its limit of connections nobody is refused and nobody is dropped. Who
// comes waits in the accept queue, and is served when somebody leaves.
func TestConnectionsWaitInTheAcceptQueue(t *testing.T) {
	up, entered, release := held(t)
	w := start(t, up, func(c *Config, _ *goodput.Config) { c.Mode = config.Connection })
	l := w.behind(func(l *config.Listener) { l.MaxConnections, l.Backlog = 2, 16 })
	const n = 6
	answers := make(chan error, n)
	for range n {
		c := w.dial(l, false)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n") // the read fails then
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil && res.StatusCode != 200 {
				err = errors.New(res.Status)
			}
			answers <- err
		}()
	}
	<-entered
	<-entered
	w.eventually("the others wait", func() bool {
		s := l.Stats()
		return s.Open == 2 && (!s.QueueKnown || s.Queue == n-2)
	})
	if len(entered) > 0 || w.proxy.Traffic()[0].Requests != 2 {
		t.Errorf("%+v", w.proxy.Traffic())
	}
	close(release)
	for range n {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	w.eventually("all have left", func() bool { return l.Stats().Open == 0 })
	if s := l.Stats(); s.Accepted != n || s.Full == 0 || s.FullFor <= 0 {
		t.Errorf("%+v", s)
	}
}

// Under a standing overload new connections are accepted one by one, and the open ones are
// served as ever; when it is over nobody is held back.
func TestOverloadHoldsBackAccepts(t *testing.T) {
	up := backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		time.Sleep(50 * time.Millisecond) // wall clock: the work, so slow that a busy machine offers more
	}))
	w := start(t, up, func(_ *Config, lc *goodput.Config) {
		lc.Limit, lc.Objective, lc.Service = limit.Fixed(1), 400*time.Millisecond, 50*time.Millisecond
	})
	l := w.behind(func(l *config.Listener) { l.PauseAccepts = 50 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { listeners.Watch(ctx, w.proxy.Overloaded, l) })
	loading, unload := context.WithCancel(ctx)
	var load sync.WaitGroup
	for range 40 { // as many as 20/s can serve in 2 s, of which a queue holds a tenth
		load.Go(func() {
			for loading.Err() == nil {
				if res, err := w.h1.Get("http://" + l.Addr().String()); err == nil {
					res.Body.Close()
				}
			}
		})
	}
	w.eventually("accepts are held back", func() bool {
		c := w.dial(l, false) // Accept is asked again with each that comes
		c.Close()
		return l.Stats().Paused > 0
	})
	unload()
	load.Wait()
	w.settle("idle", idle)
	w.eventually("accepts are as ever", func() bool {
		before := l.Stats().Paused
		for range 3 {
			w.dial(l, false).Close()
		}
		accepted := l.Stats().Accepted
		w.dial(l, false).Close()
		w.eventually("one more", func() bool { return l.Stats().Accepted > accepted })
		return l.Stats().Paused == before
	})
}
