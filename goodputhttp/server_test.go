package goodputhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
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
			if n := lim.Stats().Derivation.Samples; n != 0 {
				t.Errorf("%d service samples of requests that were abandoned", n)
			}
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

// A request that is cancelled in the queue never runs, whatever the moment, and
// each has one outcome.
func TestCancelledNeverRuns(t *testing.T) {
	lim := limiter(2, goodput.Config{Depth: 64})
	var ran, running, peak atomic.Int64
	h := Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now := running.Add(1); now > peak.Load() {
			peak.Store(now)
		}
		defer running.Add(-1)
		if r.Context().Err() != nil {
			t.Error("it ran with a context that was over")
		}
		ran.Add(1)
		runtime.Gosched()
	}))
	const rounds = 4000
	var wg sync.WaitGroup
	for i := range rounds {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler {
					panic(p)
				}
			}()
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			if i%2 == 0 {
				go cancel()
			}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		})
		if i%32 == 31 {
			wg.Wait()
		}
	}
	wg.Wait()
	st := settled(t, lim)
	if st.Arrivals != rounds || peak.Load() > 2 {
		t.Errorf("%d arrivals, %d at once", st.Arrivals, peak.Load())
	}
	if got := st.Outcomes[goodput.Completed] + st.Outcomes[goodput.Abandoned]; got < uint64(ran.Load()) {
		t.Errorf("%d ran, %v", ran.Load(), st.Outcomes)
	}
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

// What a handler may do with its writer is what it could do without us.
func TestWriterKeepsItsInterfaces(t *testing.T) {
	check := func(has int, w http.ResponseWriter) {
		t.Helper()
		got := (&response{ResponseWriter: w}).writer()
		if now := abilities(got); now != has {
			t.Errorf("%T: %04b, want %04b", w, now, has)
		}
		if http.NewResponseController(got) == nil || got.Header() == nil {
			t.Error("no header")
		}
	}
	type plain struct{ http.ResponseWriter }
	base := plain{httptest.NewRecorder()}
	var c everything
	for has := range 16 {
		var w http.ResponseWriter
		switch has {
		case 0:
			w = base
		case 1:
			w = struct {
				plain
				http.Flusher
			}{base, c}
		case 2:
			w = struct {
				plain
				http.Hijacker
			}{base, c}
		case 3:
			w = struct {
				plain
				http.Flusher
				http.Hijacker
			}{base, c, c}
		case 4:
			w = struct {
				plain
				io.ReaderFrom
			}{base, c}
		case 5:
			w = struct {
				plain
				http.Flusher
				io.ReaderFrom
			}{base, c, c}
		case 6:
			w = struct {
				plain
				http.Hijacker
				io.ReaderFrom
			}{base, c, c}
		case 7:
			w = struct {
				plain
				http.Flusher
				http.Hijacker
				io.ReaderFrom
			}{base, c, c, c}
		case 8:
			w = struct {
				plain
				http.Pusher
			}{base, c}
		case 9:
			w = struct {
				plain
				http.Flusher
				http.Pusher
			}{base, c, c}
		case 15:
			w = struct {
				plain
				http.Flusher
				http.Hijacker
				io.ReaderFrom
				http.Pusher
			}{base, c, c, c, c}
		default:
			continue // Push with an odd mixture
		}
		check(has, w)
	}
}

type everything struct{}

func (everything) Flush()                                       {}
func (everything) Push(string, *http.PushOptions) error         { return nil }
func (everything) ReadFrom(io.Reader) (int64, error)            { return 0, nil }
func (everything) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// Deadlines and full duplex are set through http.ResponseController.
func TestResponseController(t *testing.T) {
	srv := start(t, Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(patience)), c.EnableFullDuplex(), c.Flush()); err != nil {
			t.Error(err)
		}
	})))
	if res, err := http.Get(srv.URL); err != nil || res.StatusCode != 200 {
		t.Error(res, err)
	}
}

// io.Copy into the writer uses ReadFrom, and the bytes are all there.
func TestReadFrom(t *testing.T) {
	for _, size := range []int{0, 1, sniffed - 1, sniffed, sniffed + 1, 300_000} {
		want := bytes.Repeat([]byte("goodput."), size/8+1)[:size]
		lim := limiter(1, goodput.Config{})
		srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n, err := w.(io.ReaderFrom).ReadFrom(bytes.NewReader(want)); n != int64(size) || err != nil {
				t.Error(n, err)
			}
		})))
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); got != string(want) {
			t.Errorf("%d bytes, want %d", len(got), size)
		}
		outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
	}
}

func TestHandlerNeedsBoth(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Handler(nil, http.NotFoundHandler())
}
