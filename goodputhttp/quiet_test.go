package goodputhttp

import (
	"bytes"
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// A locked buffer, for a log that a server writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A stream that is reset while it waits ends without a word: no panic in the log,
// and nothing else either.
func TestQueuedStreamsAreResetQuietly(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	release := hold(t, lim, 1)
	srv := httptest.NewUnstartedServer(Handler(lim, http.NotFoundHandler()))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	said := new(lockedBuffer)
	srv.Config.ErrorLog = log.New(said, "", 0)
	srv.Start()
	defer srv.Close()
	client := clients(t)["h2c"]
	for range 5 {
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := client.Do(r); err == nil {
				res.Body.Close()
			}
		}()
		until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
		leave()
		<-done
		until(t, "it has left", func() bool { return lim.Stats().Waiting == 0 })
	}
	release()
	settled(t, lim)
	srv.Close()
	if s := said.String(); s != "" {
		t.Errorf("the server said:\n%s", s)
	}
}

// Somebody above us may end a request that waits; over HTTP/2 its client is told
// that it did not happen.
func TestEndedFromAboveIsNoSuccess(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	release := hold(t, lim, 1)
	defer release()
	ended := make(chan context.CancelFunc, 1)
	h := Handler(lim, http.NotFoundHandler())
	srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		ended <- cancel
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	go func() {
		cancel := <-ended
		until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
		cancel()
	}()
	res, err := clients(t)["h2c"].Get(srv.URL)
	if err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v, %v", res, err)
	}
}

// A tunnel over HTTP/2 may be silent for longer than a slow client.
func TestUpgradedStreamsAreNotPaced(t *testing.T) {
	w := &response{visit: &visit{server: &Server{}}}
	w.writing.allowed, w.writing.cut = -time.Hour, func(*response) { t.Error("cut") }
	w.upgrade()
	w.writing.begin(0)
	w.writing.ring()
	if _, ok := Hold(context.WithValue(t.Context(), visitKey{}, &visit{run: w})); ok {
		t.Error("held a slot that was given back")
	}
}
