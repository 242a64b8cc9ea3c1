package goodputhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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

// How a handler ends, and what its slot ends as. Served requests give a sample.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		header  []string
		handler http.HandlerFunc
		want    goodput.Outcome
	}{
		{"nothing written", nil, func(http.ResponseWriter, *http.Request) {}, goodput.Completed},
		{"200", nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, goodput.Completed},
		{"404", nil, http.NotFound, goodput.Completed},
		{"413", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(413) }, goodput.Completed},
		{"500", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, goodput.Failed},
		{"103 and 503", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(503) }, goodput.Failed},
		{"200, and 500 too late", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(500) }, goodput.Completed},
		{"panic", nil, func(http.ResponseWriter, *http.Request) { panic("bug") }, goodput.Failed},
		{"panic after 200", nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x"); panic("bug") }, goodput.Failed},
		{"cut off", nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, goodput.Failed},
		{"cut off, wrapped", nil, func(http.ResponseWriter, *http.Request) { panic(fmt.Errorf("x: %w", http.ErrAbortHandler)) }, goodput.Failed},
		{"shed further down", nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Goodput-Rejected", "queue_full")
			w.WriteHeader(429)
		}, goodput.Failed},
		{"late", []string{"Expect-Within: 0.05"}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, goodput.Late},
		{"late with an error", []string{"Expect-Within: 0.05"}, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(502)
		}, goodput.Late},
		{"late and cut off", []string{"Expect-Within: 0.05"}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}, goodput.Late},
		{"late, panicking", []string{"Expect-Within: 0.05"}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic("bug")
		}, goodput.Failed},
		{"gRPC ok", []string{grpcKind}, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "0") }, goodput.Completed},
		{"gRPC not found", []string{grpcKind}, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "5") }, goodput.Completed},
		{"gRPC unavailable", []string{grpcKind}, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "14") }, goodput.Failed},
		{"gRPC internal, in trailers", []string{grpcKind}, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "message")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "13")
		}, goodput.Failed},
	} {
		for proto, client := range clients(t) {
			t.Run(c.name+" "+proto, func(t *testing.T) {
				lim := limiter(1, goodput.Config{})
				srv := start(t, Handler(lim, c.handler))
				r, _ := http.NewRequest(http.MethodGet, srv.URL, nil)
				for _, h := range c.header {
					name, value, _ := strings.Cut(h, ": ")
					r.Header.Set(name, value)
				}
				if res, err := client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				outcomes(t, lim, map[goodput.Outcome]uint64{c.want: 1})
			})
		}
	}
}

// A panic keeps its value and the frames of the handler in what net/http logs;
// http.ErrAbortHandler logs nothing (C007, golang/go#56228).
func TestPanicsPassOn(t *testing.T) {
	var mu sync.Mutex
	var logged bytes.Buffer
	srv := httptest.NewUnstartedServer(Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		theHandlerThatPanics(r)
	})))
	srv.Config.ErrorLog = log.New(lockedWriter{&mu, &logged}, "", 0)
	srv.Start()
	defer srv.Close()
	for _, path := range []string{"/abort", "/bug"} {
		if res, err := http.Get(srv.URL + path); err == nil {
			res.Body.Close()
			t.Errorf("%s: answered %d", path, res.StatusCode)
		}
	}
	srv.Close()
	mu.Lock()
	defer mu.Unlock()
	got := logged.String()
	if strings.Count(got, "panic serving") != 1 || !strings.Contains(got, "a bug") || !strings.Contains(got, "theHandlerThatPanics") {
		t.Errorf("logged:\n%s", got)
	}
}

func theHandlerThatPanics(r *http.Request) {
	if r.URL.Path == "/abort" {
		panic(http.ErrAbortHandler)
	}
	panic("a bug")
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Panics and runtime.Goexit, many times: no slot stays away.
func TestPanicsReleaseSlots(t *testing.T) {
	lim := limiter(3, goodput.Config{})
	h := Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exit":
			runtime.Goexit()
		case "/abort":
			panic(http.ErrAbortHandler)
		}
		panic("bug")
	}))
	for i := range 3000 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			path := [...]string{"/bug", "/abort", "/exit"}[i%3]
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		}()
		<-done
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 3000})
}

// C006 (resilience4j/resilience4j#332): the client closes after the first of
// three chunks. C085(c): that is abandoned, no failure, and no sample.
func TestC006ClientLeavesMidBody(t *testing.T) {
	const rounds = 500
	for proto, client := range clients(t) {
		t.Run(proto, func(t *testing.T) {
			lim := limiter(10, goodput.Config{})
			srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "chunk one")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				fmt.Fprint(w, "chunk two")
			})))
			for range rounds {
				ctx, leave := context.WithCancel(background)
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(res.Body, make([]byte, len("chunk one"))); err != nil {
					t.Fatal(err)
				}
				leave()
				res.Body.Close()
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Abandoned: rounds})
			unsampled(t, lim)
		})
	}
}

// C007 (golang/go#28239): clients reset the connection in the middle of a
// download. What copies the body gives up by panicking, as ReverseProxy does.
func TestC007ResetMidDownload(t *testing.T) {
	const rounds = 300 // 1000 in the case; the race detector has 2 cores
	lim := limiter(10, goodput.Config{})
	srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		for block := make([]byte, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	})))
	for range rounds {
		c := dial(t, srv, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetLinger(0) // Close sends a reset
		c.Close()
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Abandoned: rounds})
}

// C085 (bnema/gordon#209): (a) in the queue, (b) before the header; (c) is C006.
func TestC085ClientLeaves(t *testing.T) {
	for proto, client := range clients(t) {
		t.Run(proto, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			entered := make(chan struct{})
			s := &Server{Limiter: one(lim), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				<-r.Context().Done()
				w.WriteHeader(http.StatusBadGateway) // what a reverse proxy answers then
			})}
			srv := start(t, s)
			get := func() (leave func(), left <-chan error) {
				ctx, cancel := context.WithCancel(background)
				err := make(chan error, 1)
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
				go func() {
					res, e := client.Do(r)
					if e == nil {
						res.Body.Close()
					}
					err <- e
				}()
				return cancel, err
			}
			leave, left := get()
			receive(t, "handler", entered)
			leaveQueue, leftQueue := get()
			until(t, "one waits", func() bool { return lim.Stats().Waiting == 1 })
			leaveQueue()
			if err := receive(t, "the one in the queue", leftQueue); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			until(t, "nobody waits", func() bool { return lim.Stats().Waiting == 0 })
			leave()
			receive(t, "the one that ran", left)
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Cancelled: 1, goodput.Abandoned: 1})
			until(t, "it is counted", func() bool { return s.Stats().Left == 1 })
		})
	}
}

// Of 100 requests that wait, every other one is cancelled. Those never run, all
// others do, and never more at once than there are slots.
func TestCancelledNeverRuns(t *testing.T) {
	const slots, n = 2, 100
	lim := limiter(slots, goodput.Config{Depth: n})
	var running, peak atomic.Int64
	h := Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if now := running.Add(1); now > peak.Load() {
			peak.Store(now)
		}
		if r.URL.Path != "/runs" {
			t.Error("a cancelled request ran")
		}
		runtime.Gosched()
		running.Add(-1)
	}))
	release := hold(t, lim, slots)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(background)
	for i := range n {
		wg.Go(func() {
			if i%2 == 0 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/runs", nil))
				return
			}
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Error(p)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/never", nil).WithContext(ctx))
		})
	}
	until(t, "all wait", func() bool { return lim.Stats().Waiting == n })
	cancel()
	until(t, "half of them wait", func() bool { return lim.Stats().Waiting == n/2 })
	release()
	wg.Wait()
	if peak.Load() > slots {
		t.Errorf("%d ran at once", peak.Load())
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: n/2 + slots, goodput.Cancelled: n / 2})
}

// The slot is held to the end of the body, the sample ends at the header. 128
// requests, because the estimate is its prior below 100 samples, and each with a
// deadline, because those are all timed.
func TestSampleEndsAtTheHeader(t *testing.T) {
	const n, download = 128, 500 * time.Millisecond
	lim := limiter(n, goodput.Config{Service: time.Millisecond})
	sent, finish := make(chan struct{}, n), make(chan struct{})
	srv := start(t, &Server{Limiter: one(lim), Deadline: time.Hour, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "x")
		_ = http.NewResponseController(w).Flush()
		sent <- struct{}{}
		<-finish
	})})
	client := clients(t)["h2c"]
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if res, err := client.Get(srv.URL); err != nil {
				t.Error(err)
			} else {
				text(t, res)
			}
		})
	}
	for range n {
		receive(t, "headers", sent)
	}
	if in := lim.Stats().InUse; in != n {
		t.Errorf("%d in use while the bodies go on, want %d", in, n)
	}
	time.AfterFunc(download, func() { close(finish) })
	wg.Wait()
	until(t, "the samples are in", func() bool { return lim.Stats().Derivation.Samples == n })
	d := settled(t, lim).Derivation
	// The prior of 1 ms still has a weight, hence the half.
	if d.Service >= download/2 || d.Mean <= download/2 {
		t.Errorf("service p99 %v, held for %v; the download of %v belongs to the second only", d.Service, d.Mean, download)
	}
}

// Without a limiter a request passes as it came.
func TestNotLimited(t *testing.T) {
	s := &Server{
		Limiter: func(*http.Request) *goodput.Limiter { return nil }, DeadlineCap: time.Second,
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, ok := r.Context().Deadline(); ok {
				t.Error("a deadline")
			}
			if _, wrapped := w.(interface{ Unwrap() http.ResponseWriter }); wrapped {
				t.Error("a wrapped writer")
			}
		}),
	}
	if res, err := http.Get(start(t, s).URL); err != nil || res.StatusCode != 200 {
		t.Error(res, err)
	}
}

// The function of Server.Work and the pre-read body both reach the limiter.
func TestWork(t *testing.T) {
	lim := limiter(8, goodput.Config{Depth: 100})
	s := &Server{
		Limiter: one(lim), Next: http.NotFoundHandler(),
		Work: func(r *http.Request) goodput.Work { return goodput.Work{Cost: 8, Priority: goodput.Background} },
	}
	srv := start(t, s)
	release := hold(t, lim, 1)
	done := make(chan int)
	go func() {
		res, err := http.Post(srv.URL, "", strings.NewReader("twelve bytes"))
		if err != nil {
			t.Error(err)
			done <- 0
			return
		}
		res.Body.Close()
		done <- res.StatusCode
	}()
	until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
	if st := lim.Stats(); st.WaitingCost != 8 || st.WaitingBytes != 12 {
		t.Errorf("cost %d bytes %d, want 8 and 12", st.WaitingCost, st.WaitingBytes)
	}
	release()
	if code := receive(t, "answer", done); code != 404 {
		t.Error(code)
	}
	settled(t, lim)
	until(t, "its memory is given back", func() bool { return s.Stats().Buffered == 0 })
}

// Observe mode refuses nothing, whatever it counts.
func TestObserve(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue, Observe: true})
	g := newGate(t)
	srv := start(t, Handler(lim, g))
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			res, err := http.Get(srv.URL)
			if err != nil {
				t.Error(err)
				return
			}
			if got := text(t, res); res.StatusCode != 200 || got != "done" {
				t.Error(res.StatusCode, got)
			}
		})
	}
	for range 5 {
		receive(t, "all run", g.entered)
	}
	g.open()
	wg.Wait()
}

func TestHandlerNeedsBoth(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Handler(nil, http.NotFoundHandler())
}
