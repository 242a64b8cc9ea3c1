package goodputhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// Everything at once, over HTTP/1.1 and h2c: bodies, deadlines, clients that
// leave at any moment, panics, cut-off responses, hijacked connections. Each
// request that was offered ends in one outcome, and nothing is left behind.
func TestConformance(t *testing.T) {
	t.Run("requests", func(t *testing.T) { conform(t, &Server{DeadlineCap: patience, MaxBuffered: 1 << 20}, 80) })
	t.Run("streams", func(t *testing.T) {
		conform(t, &Server{
			DeadlineCap: patience, Stream: true, MaxBody: 50_000, Markers: allMarkers, ServerTiming: true, ForwardStart: true,
			DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatMillis}}, Trusted: func(*http.Request) bool { return true },
		}, 30)
	})
}

// conform has each of the workers send so many requests to s.
func conform(t *testing.T, s *Server, each int) {
	const slots, workers = 3, 12
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	lim := limiter(slots, goodput.Config{Objective: 50 * time.Millisecond, MaxBytes: 1 << 20})
	var running, peak, ran atomic.Int64
	s.Limiter = one(lim)
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ran.Add(1)
		now := running.Add(1)
		for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
		}
		slotted := sync.OnceFunc(func() { running.Add(-1) })
		defer slotted()
		switch r.URL.Path {
		case "/panic":
			panic("bug")
		case "/abort":
			fmt.Fprint(w, "half of")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/exit":
			runtime.Goexit()
		case "/error":
			w.WriteHeader(500)
		case "/hijack":
			slotted() // the slot is given back within Hijack
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				conn.Close()
			}
		case "/wait":
			<-r.Context().Done()
		case "/body":
			_, _ = io.Copy(w, r.Body)
		}
	})
	srv := start(t, s)
	all := clients(t)
	goroutines := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for worker := range workers {
		client := all[[]string{"HTTP/1.1", "h2c"}[worker%2]]
		rng := rand.New(rand.NewPCG(seed, uint64(worker)))
		wg.Go(func() {
			for range each {
				chaos(rng, client, srv.URL)
			}
		})
	}
	wg.Wait()
	st := settled(t, lim)
	if peak.Load() > slots {
		t.Errorf("%d ran at once, limit %d", peak.Load(), slots)
	}
	started := st.Outcomes[goodput.Completed] + st.Outcomes[goodput.Late] + st.Outcomes[goodput.Failed] + st.Outcomes[goodput.Abandoned]
	if started < uint64(ran.Load()) || st.Arrivals > uint64(workers*each) {
		t.Errorf("%d ran, outcomes %v of %d", ran.Load(), st.Outcomes, st.Arrivals)
	}
	t.Logf("%v", st.Outcomes)
	until(t, "nothing is left", func() bool {
		n := s.Stats()
		return n.Buffered == 0 && n.Upgraded == 0 && n.Held == 0 && s.own.upgrades.places.Load() == 0 && s.own.lingering.Load() == 0
	})
	for _, c := range all {
		c.CloseIdleConnections()
	}
	srv.CloseClientConnections()
	until(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines+4 })
}

// chaos sends one request of any kind.
func chaos(rng *rand.Rand, client *http.Client, url string) {
	path := []string{"/", "/panic", "/abort", "/exit", "/error", "/hijack", "/wait", "/body", "/body"}[rng.IntN(9)]
	var body io.Reader
	switch rng.IntN(4) {
	case 0:
		body = bytes.NewReader(make([]byte, rng.IntN(100_000)))
	case 1:
		body = struct{ io.Reader }{strings.NewReader("of unknown length")}
	case 2:
		// A client that leaves behind more than the socket buffers take is not
		// noticed by a handler that does not read: see watch.
		if path != "/wait" && rng.IntN(8) == 0 {
			body = bytes.NewReader(make([]byte, 2<<20))
		}
	}
	ctx, cancel := context.WithTimeout(background, time.Duration(1+rng.IntN(40))*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, body)
	if err != nil {
		panic(err)
	}
	if rng.IntN(3) == 0 {
		r.Header.Set([]string{"Connect-Timeout-Ms", "X-Mine"}[rng.IntN(2)], fmt.Sprint(rng.IntN(50)))
	}
	if rng.IntN(6) == 0 {
		r.Header.Set("X-Request-Start", fmt.Sprint(time.Now().Add(-time.Duration(rng.IntN(20))*time.Millisecond).UnixMilli()))
	}
	if rng.IntN(6) == 0 {
		r.Header.Set("Content-Type", "application/grpc")
	}
	if rng.IntN(6) == 0 {
		r.Header.Set("Expect", "100-continue")
	}
	if res, err := client.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// Draining says so to each request and ends the connection, in HTTP/2 by GOAWAY:
// the client opens another one, which may lead elsewhere.
func TestDrainingEndsConnections(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := start(t, Handler(lim, http.NotFoundHandler()))
	if err := lim.Drain(background); err != nil {
		t.Fatal(err)
	}
	for proto, client := range clients(t) {
		for range 3 {
			res, err := client.Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
			if res.Header.Get("Goodput-Rejected") != "draining" {
				t.Errorf("%s: %d %v", proto, res.StatusCode, res.Header)
			}
			if res.ProtoMajor == 1 && !res.Close {
				t.Errorf("%s: the connection stays open", proto)
			}
		}
	}
}

// FuzzServe: whatever a request says, it is answered or aborted, its slot comes
// back, and the limiter's books balance.
func FuzzServe(f *testing.F) {
	f.Add("application/grpc", "5S", "100", "0", "1.5", "keep-alive", "", "100-continue", "body", true)
	f.Add("", "", "-1", "99999999999999999999", "NaN", "upgrade", "websocket", "", "", false)
	f.Add("application/grpc-web", "0n", "", "", "0", "close, Upgrade", "h2c", "", "x", true)
	lim := limiter(2, goodput.Config{})
	s := &Server{Limiter: one(lim), DeadlineCap: time.Minute, MaxPreread: 8}
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx := r.Context(); BudgetFrom(ctx).Deadline.IsZero() {
			f.Error("no deadline in spite of the cap")
		}
		ForwardDeadline(r.Context(), r.Header)
		_, _ = io.Copy(w, r.Body)
	})
	f.Fuzz(func(t *testing.T, kind, grpc, connect, envoy, within, connection, upgrade, expect, body string, known bool) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		if !known {
			r.ContentLength = -1
		}
		for name, v := range map[string]string{
			"Content-Type": kind, "Grpc-Timeout": grpc, "Connect-Timeout-Ms": connect, "X-Envoy-Expected-Rq-Timeout-Ms": envoy,
			"Expect-Within": within, "Connection": connection, "Upgrade": upgrade, "Expect": expect,
		} {
			if v != "" {
				r.Header[name] = []string{v}
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(interruptible{w}, r)
		if rejected := w.Header().Get("Goodput-Rejected"); rejected == "" && w.Body.String() != body {
			t.Errorf("echoed %q for %q", w.Body, body)
		}
		st := lim.Stats()
		var ended uint64
		for _, n := range st.Outcomes {
			ended += n
		}
		if st.InUse != 0 || st.Waiting != 0 || ended != st.Arrivals || s.Stats().Buffered != 0 || s.own.upgrades.places.Load() != 0 {
			t.Errorf("%d in use, %d waiting, %d of %d ended", st.InUse, st.Waiting, ended, st.Arrivals)
		}
	})
}
