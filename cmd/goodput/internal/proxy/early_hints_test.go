package proxy

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// Early hints pass, and nothing of them is in the response that follows, nor of what we add.
func TestEarlyHintsPass(t *testing.T) {
	w := start(t, backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		}
		io.WriteString(w, "answer")
		w.(http.Flusher).Flush() // of unknown length
	})), nil)
	for _, c := range []*http.Client{w.h1, w.h2} {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if hints++; code != http.StatusEarlyHints || h.Get("Link") == "" || h.Get("Content-Length") != "" {
					t.Errorf("%d %v", code, h)
				}
				return nil
			},
		})
		req, _ := http.NewRequestWithContext(ctx, "GET", w.url, nil) // the URL is one
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(body) != "answer" || hints != 3 || res.Header.Get("Link") != "" || res.ContentLength != -1 {
			t.Errorf("%s %q %v, %d hints, %v, %d bytes", res.Proto, body, err, hints, res.Header, res.ContentLength)
		}
	}
}

// What net/http may still be reading of a response before the last is a copy: it makes one of
// a header with a length. A length that the response itself has is there afterwards.
func TestEarlyHeaderIsCopied(t *testing.T) {
	for _, length := range []string{"", "7"} {
		seen := &lengths{ResponseRecorder: httptest.NewRecorder()}
		w := &early{seen}
		if length != "" {
			w.Header().Set("Content-Length", length)
		}
		w.WriteHeader(http.StatusEarlyHints)
		if got := w.Header().Get("Content-Length"); !seen.there || got != length {
			t.Errorf("length %q: there while it was written: %v; then %q", length, seen.there, got)
		}
	}
}

type lengths struct {
	*httptest.ResponseRecorder
	there bool
}

func (l *lengths) WriteHeader(status int) {
	if status < 200 {
		_, l.there = l.Header()["Content-Length"]
	}
}

// So it is in classes of all modes.
func TestEarlyHeaderIsCopiedInAllModes(t *testing.T) {
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
	}))
	for _, mode := range []config.Mode{config.Request, config.Stream, config.Connection} {
		w := start(t, up, func(c *Config, _ *goodput.Config) { c.Mode = mode })
		seen := &lengths{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.ProtoMajor = 2
		w.proxy.ServeHTTP(seen, r)
		if !seen.there {
			t.Errorf("%v: what was written before the last response is no copy", mode)
		}
	}
}

// Clients of HTTP/2 that reset while hints are on their way: the race detector knows whether
// a header is read and written at once.
func TestResetsDuringEarlyHints(t *testing.T) {
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		for range 200 {
			w.WriteHeader(http.StatusEarlyHints)
		}
	}))
	for _, mode := range []config.Mode{config.Request, config.Stream, config.Connection} {
		t.Run(mode.String(), func(t *testing.T) {
			resetDuringHints(t, start(t, up, func(c *Config, _ *goodput.Config) { c.Mode = mode }))
		})
	}
}

func resetDuringHints(t *testing.T, w *world) {
	end := make(chan struct{})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
				req, _ := http.NewRequestWithContext(ctx, "GET", w.url, nil) // the URL is one
				if res, err := w.h2.Do(req); err == nil {
					res.Body.Close()
				}
				cancel()
			}
		})
	}
	time.Sleep(long(t, time.Second/3))
	close(end)
	all.Wait()
	if w.lim != nil {
		w.settle("idle", idle)
	}
}
