package proxy

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// Bytes of an answer whose length is known pass as they come, as those of any other; and before
// the first one the header does.
func TestBytesOfAKnownLengthPassAtOnce(t *testing.T) {
	heard := make(chan struct{})
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		for i := range 6 {
			if i > 0 {
				io.WriteString(w, "x")
			}
			http.NewResponseController(w).Flush()
			select {
			case <-heard:
			case <-time.After(patience):
				t.Errorf("byte %d was not heard", i)
			}
		}
	}))
	lasting(t, up, func(*Config) {}, func(w *world) {
		w.both(func(c *http.Client) {
			res, err := c.Get(w.url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			heard <- struct{}{}
			for range 5 {
				if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				heard <- struct{}{}
			}
		})
	})
}

// A limit that is met while the answer ends is not: its writer is net/http's again, and that of
// HTTP/2 panics, in the goroutine of a timer, which would end the process.
func TestNobodyCutsWhatHasEnded(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	c := w.proxy.now.Load().classes[0].carrier
	var late *flow
	served := make(chan struct{})
	srv := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := *c
		inner.next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			late = w.(*flow)
			io.WriteString(w, "all")
		})
		inner.carry(w, r)
	})}
	srv.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { srv.Serve(l); close(served) }()
	res, err := w.h2.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	srv.Shutdown(t.Context()) // the handler has returned
	<-served
	late.cut(expired)
	if string(body) != "all" || err != nil || c.traffic.cut[expired].Load() != 0 {
		t.Errorf("%q, %v, %d cut", body, err, c.traffic.cut[expired].Load())
	}
}

// An answer that is cut by a limit, by its deadline or by the service has what had come of it,
// the status above all, in every mode: its client can tell that the rest is missing.
func TestCutAnswersHaveTheirStatus(t *testing.T) {
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		if r.URL.Path == "/breaks" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}))
	for path, change := range map[string]func(*Config){
		"/breaks":   func(*Config) {},
		"/idle":     func(c *Config) { c.Idle = 50 * time.Millisecond },
		"/total":    func(c *Config) { c.Total = 50 * time.Millisecond },
		"/deadline": func(c *Config) { c.Deadline = 100 * time.Millisecond },
	} {
		modes(t, up, change, func(w *world) {
			mode := w.proxy.Config().Classes[0].Mode
			if mode == config.Request && (path == "/idle" || path == "/total") || mode == config.Connection && path == "/deadline" {
				return // that mode has no such limit
			}
			w.both(func(c *http.Client) {
				res, err := c.Get(w.url + path)
				if err != nil {
					w.Fatalf("%s: %v", path, err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK || string(body) != "half" || err == nil {
					w.Errorf("%s %s: %s %q, %v", res.Proto, path, res.Status, body, err)
				}
			})
		})
	}
}
