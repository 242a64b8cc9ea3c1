package goodputhttp

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// copies notes whether the header had a length when each status was written: of such a header
// net/http sends a copy.
type copies struct {
	http.ResponseWriter
	of map[int]bool
}

func (c *copies) WriteHeader(status int) { _, c.of[status] = c.Header()["Content-Length"] }

// What net/http may still be reading of a response before the last is a copy over HTTP/2, where
// somebody else reads it. A length that the response itself has is there afterwards, and one
// that it has not is not.
func TestEarlyHeaderIsCopied(t *testing.T) {
	for _, major := range []int{1, 2} {
		for _, length := range []string{"", "7"} {
			seen := &copies{httptest.NewRecorder(), map[int]bool{}}
			r := request()
			r.ProtoMajor = major
			Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusOK)
			})).ServeHTTP(seen, r)
			if has := length != ""; seen.of[103] != (has || major == 2) || seen.of[200] != has || seen.Header().Get("Content-Length") != length {
				t.Errorf("HTTP/%d, length %q: %v, then %q", major, length, seen.of, seen.Header()["Content-Length"])
			}
		}
	}
}

// An untouched is a header whose reader somebody else is: a write to it ends the process, so
// the race detector watches one.
type untouched struct {
	http.ResponseWriter
	read chan http.Header
}

func (u *untouched) WriteHeader(status int) {
	if status < 200 {
		u.read <- u.Header()
	}
}

// Whoever is in front of us may have written early hints too, and we have no say in how. Then
// nothing of ours is written into a header that has nothing of what we drop.
func TestNothingIsWrittenIntoAHeaderWithoutMarkers(t *testing.T) {
	w := &untouched{httptest.NewRecorder(), make(chan http.Header)}
	w.Header().Set("Link", "</a.css>")
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		h := <-w.read
		for n := 0; ; n++ {
			for range h { // as net/http does, without a lock
			}
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	w.WriteHeader(http.StatusEarlyHints)
	h := Handler(limiter(1, goodput.Config{}), empty)
	for range 100 {
		h.ServeHTTP(w, request())
	}
	close(end)
	<-done
}

// Clients of HTTP/2 that reset while hints are on their way: the race detector knows whether a
// header is read and written at once.
func TestResetsDuringEarlyHints(t *testing.T) {
	srv := start(t, Handler(limiter(64, goodput.Config{}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 50 {
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		}
	})))
	client := clients(t)["h2c"]
	end := time.Now().Add(time.Second / 2) // wall clock: a race has no other; more of it finds more
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for time.Now().Before(end) {
				ctx, cancel := context.WithTimeout(background, time.Duration(rand.IntN(3000))*time.Microsecond)
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil) // the URL is one
				if res, err := client.Do(r); err == nil {
					res.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
}
