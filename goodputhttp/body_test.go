package goodputhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// echoBody sends the request body back, and what it ended with.
func echoBody(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%d %d %v", r.ContentLength, len(b), err)
}

// C095 (dolthub/doltlite#1761): as many uploads as there are slots trickle in.
// They hold no slot, others are served, and their time is bounded.
func TestC095SlowBodiesHoldNoSlot(t *testing.T) {
	const slots = 4
	for name, head := range map[string]string{
		"length":  "Content-Length: 1000\r\n\r\nx",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n3e8\r\nx",
	} {
		t.Run(name, func(t *testing.T) {
			lim := limiter(slots, goodput.Config{})
			s := &Server{Limiter: one(lim), Next: http.HandlerFunc(echoBody), PrereadTimeout: 500 * time.Millisecond}
			srv := start(t, s)
			request := "POST / HTTP/1.1\r\nHost: x\r\n" + head
			var slow [slots]io.ReadWriter
			for i := range slow {
				slow[i] = dial(t, srv, request)
			}
			until(t, "they are read", func() bool { return s.Stats().Buffered > 0 })
			for range slots {
				res, err := http.Post(srv.URL, "", strings.NewReader("quick"))
				if err != nil || text(t, res) != "5 5 <nil>" {
					t.Error(res, err)
				}
			}
			for _, c := range slow {
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != 408 || !res.Close || res.Header.Get("Goodput-Rejected") != "slow_body" || res.Header.Get("Retry-After") != "" {
					t.Errorf("%d %v", res.StatusCode, res.Header)
				}
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: slots})
			if st := s.Stats(); st.SlowBodies != slots {
				t.Errorf("%d slow bodies counted", st.SlowBodies)
			}
			until(t, "memory is given back", func() bool { return s.Stats().Buffered == 0 })
		})
	}
}

// http.Server.ReadTimeout ends a slow body in the same way.
func TestReadTimeout(t *testing.T) {
	s := &Server{Limiter: one(limiter(1, goodput.Config{})), Next: http.HandlerFunc(echoBody)}
	srv := httptest.NewUnstartedServer(s)
	srv.Config.ReadTimeout = 200 * time.Millisecond
	srv.Start()
	defer srv.Close()
	if res := answer(t, dial(t, srv, post(1000)+"x")); res.StatusCode != 408 || !res.Close {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if n := s.Stats().SlowBodies; n != 1 {
		t.Errorf("%d slow bodies", n)
	}
}

// A deadline that passes while the body trickles in is a deadline: 504, offered
// and expired.
func TestDeadlineWhileTheBodyArrives(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	srv := start(t, Handler(lim, http.HandlerFunc(echoBody)))
	c := dial(t, srv, "POST / HTTP/1.1\r\nHost: x\r\nExpect-Within: 0.1\r\nContent-Length: 1000\r\n\r\nx")
	if res := answer(t, c); res.StatusCode != 504 || !res.Close {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Expired: 1})
}

// The same over h2c, where the length is known; a stream is not waited for.
func TestPrereadHTTP2(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), PrereadTimeout: 200 * time.Millisecond}
	entered := make(chan struct{}, 1)
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		echoBody(w, r)
	})
	srv := start(t, s)
	client := clients(t)["h2c"]
	pipe, feed := io.Pipe()
	defer feed.Close()
	r, _ := http.NewRequest(http.MethodPost, srv.URL, pipe)
	r.ContentLength = 10
	if res, err := client.Do(r); err != nil || res.StatusCode != 408 {
		t.Error(res, err)
	}
	pipe, feed = io.Pipe()
	r, _ = http.NewRequest(http.MethodPost, srv.URL, pipe)
	done := make(chan string, 1)
	go func() {
		res, err := client.Do(r)
		if err != nil {
			done <- err.Error()
			return
		}
		done <- text(t, res)
	}()
	receive(t, "a stream runs before it has a body", entered)
	fmt.Fprint(feed, "hello")
	feed.Close()
	if got := receive(t, "answer", done); got != "-1 5 <nil>" {
		t.Errorf("%q", got)
	}
	r, _ = http.NewRequest(http.MethodPost, srv.URL, strings.NewReader("hello"))
	if res, err := client.Do(r); err != nil || text(t, res) != "5 5 <nil>" {
		t.Error(res, err)
	}
}

// C096 (yesodweb/wai#418): an honest slow stream, on a route of its own that
// reads nothing in advance. It is kept for as long as it lives, and counted.
func TestC096SlowStreamIsKept(t *testing.T) {
	streams, rest := limiter(100, goodput.Config{}), limiter(1, goodput.Config{})
	got := make(chan byte)
	telemetry := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for b := make([]byte, 1); ; {
			if _, err := r.Body.Read(b); err != nil {
				fmt.Fprint(w, err)
				return
			}
			got <- b[0]
		}
	})
	const timeout = 20 * time.Millisecond
	mux := http.NewServeMux()
	mux.Handle("/telemetry", &Server{Limiter: one(streams), Next: telemetry, MaxPreread: NoPreread, PrereadTimeout: timeout})
	mux.Handle("/", &Server{Limiter: one(rest), Next: http.NotFoundHandler(), PrereadTimeout: timeout})
	c := dial(t, start(t, mux), "POST /telemetry HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, b := range []byte("slow") {
		<-time.After(3 * timeout) // the client's pace
		fmt.Fprintf(c, "1\r\n%c\r\n", b)
		if r := receive(t, "byte", got); r != b {
			t.Errorf("%c, want %c", r, b)
		}
		if streams.Stats().InUse != 1 || rest.Stats().InUse != 0 {
			t.Errorf("%d streams, %d others", streams.Stats().InUse, rest.Stats().InUse)
		}
	}
	fmt.Fprint(c, "0\r\n\r\n")
	if res := answer(t, c); res.StatusCode != 200 {
		t.Error(res.StatusCode)
	}
	outcomes(t, streams, map[goodput.Outcome]uint64{goodput.Completed: 1})
}

// Whatever is read in advance, the handler gets the same bytes and the same end.
func TestBodyIsTheSame(t *testing.T) {
	for _, most := range []int64{NoPreread, 1, 4 << 10, 4<<10 + 1, 100_000} {
		for _, size := range []int{0, 1, 4 << 10, 4<<10 + 1, 8 << 10, 99_999, 100_000, 100_001, 300_000} {
			for _, chunked := range []bool{false, true} {
				want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
				var got []byte
				var end error
				h := &Server{Limiter: one(limiter(1, goodput.Config{})), MaxPreread: most, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					got, end = io.ReadAll(r.Body)
				})}
				srv := start(t, h)
				var body io.Reader = bytes.NewReader(want)
				if chunked {
					body = struct{ io.Reader }{body}
				}
				res, err := http.Post(srv.URL, "", body)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if !bytes.Equal(got, want) || end != nil {
					t.Errorf("most %d size %d chunked %v: %d bytes, %v", most, size, chunked, len(got), end)
				}
				if n := h.Stats().Buffered; n != 0 {
					t.Errorf("%d bytes still counted", n)
				}
				srv.Close()
			}
		}
	}
}

// Over MaxBuffered nothing more is read in advance, and nobody is refused for it.
func TestMaxBuffered(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: 10})
	s := &Server{Limiter: one(lim), Next: http.HandlerFunc(echoBody), MaxBuffered: 5000}
	srv := start(t, s)
	release := hold(t, lim, 1)
	done := make(chan string, 3)
	for range 3 {
		go func() {
			res, err := http.Post(srv.URL, "", strings.NewReader(strings.Repeat("x", 4000)))
			if err != nil {
				done <- err.Error()
				return
			}
			done <- text(t, res)
		}()
	}
	until(t, "all wait", func() bool { return lim.Stats().Waiting == 3 })
	if n := s.Stats().Buffered; n > 5000 {
		t.Errorf("%d bytes in memory", n)
	}
	if n := lim.Stats().WaitingBytes; n != 4000 {
		t.Errorf("%d bytes are charged, want those of one body", n)
	}
	release()
	for range 3 {
		if got := receive(t, "answer", done); got != "4000 4000 <nil>" {
			t.Errorf("%q", got)
		}
	}
}

// A malformed body is a 400 that no limiter hears of; a client that breaks off
// is a cancelled request; what a http.MaxBytesReader says is for the handler.
func TestBadBodies(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			w.WriteHeader(413)
		}
	})}
	srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 100)
		s.ServeHTTP(w, r)
	}))
	if res := answer(t, dial(t, srv, post(1000)+strings.Repeat("x", 1000))); res.StatusCode != 413 {
		t.Error(res.StatusCode)
	}
	if res := answer(t, dial(t, srv, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")); res.StatusCode != 400 || !res.Close {
		t.Error(res.StatusCode)
	}
	dial(t, srv, post(50)+"half").Close()
	until(t, "it is noticed", func() bool { return s.Stats().Left == 1 })
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1, goodput.Cancelled: 1})
	if n := s.Stats().BadBodies; n != 1 {
		t.Errorf("%d bad bodies", n)
	}
}

// A transport may read a body after its handler returned: it gets an error, not
// the memory of somebody else.
func TestBodyAfterTheHandler(t *testing.T) {
	kept := make(chan io.Reader, 1)
	srv := start(t, Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept <- r.Body })))
	res, err := http.Post(srv.URL, "", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	b := receive(t, "body", kept)
	until(t, "it is closed", func() bool {
		n, err := b.Read(make([]byte, 1))
		return n == 0 && errors.Is(err, http.ErrBodyReadAfterClose)
	})
}

// 100 Continue is sent when the handler reads, so after the admission, and not
// at all to who is refused.
func TestContinueAfterAdmission(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	srv := start(t, Handler(lim, http.HandlerFunc(echoBody)))
	release := hold(t, lim, 1)
	c := dial(t, srv, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	until(t, "it waits", func() bool { return lim.Stats().Waiting == 1 })
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes before it was admitted", n)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	release()
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatal(line, err)
	}
	fmt.Fprint(c, "hello")
	_, _ = r.ReadString('\n')
	res, err := http.ReadResponse(r, nil)
	if err != nil || text(t, res) != "5 5 <nil>" {
		t.Error(res, err)
	}
}

// A writer that cannot interrupt a read gets no body read in advance.
func TestNoPrereadWithoutDeadline(t *testing.T) {
	s := new(Server)
	for w, want := range map[http.ResponseWriter]bool{
		httptest.NewRecorder():                                false,
		interruptible{httptest.NewRecorder()}:                 true,
		wrapper{interruptible{httptest.NewRecorder()}}:        true,
		struct{ http.ResponseWriter }{httptest.NewRecorder()}: false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
		if got := s.visit(w, r).mayPreread(); got != want {
			t.Errorf("%T: %v", w, got)
		}
	}
}

// A stuckBody is a body that does not come, on a connection that net/http would
// give up: the read that fails cancels the context.
type stuckBody struct {
	http.ResponseWriter
	rang  chan struct{}
	leave context.CancelFunc
}

func (s *stuckBody) SetReadDeadline(time.Time) error {
	s.leave()
	close(s.rang)
	return nil
}

func (s *stuckBody) Read([]byte) (int, error) {
	<-s.rang
	return 0, os.ErrDeadlineExceeded
}

// A deadline that ends a read in advance is a deadline, although net/http takes
// the failed read for a client that left.
func TestLateBodyIsLate(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	b := &stuckBody{httptest.NewRecorder(), make(chan struct{}), cancel}
	r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(b)).WithContext(ctx)
	r.ContentLength = 10
	v := new(Server).visit(b, r)
	v.budget.shorten(time.Now().Add(20*time.Millisecond), "test")
	got, ok := v.preread(ctx, cancel)
	if !ok || !errors.Is(got.Err(), context.DeadlineExceeded) || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("%v, %v", ok, got.Err())
	}
}

// A bell that was stopped does not touch the writer, however late it tolls.
func TestBell(t *testing.T) {
	w := &stuckBody{httptest.NewRecorder(), make(chan struct{}), func() { t.Error("it rang") }}
	b := ring(w, time.Hour)
	if b.stop() {
		t.Error("it says that it rang")
	}
	b.toll(w)
	w.leave = func() {}
	b = ring(w, time.Hour)
	if b.toll(w); !b.stop() {
		t.Error("it says that it did not ring")
	}
}

type interruptible struct{ http.ResponseWriter }

func (interruptible) SetReadDeadline(time.Time) error { return nil }

type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Bodies that wait are those that have been read before: a GET without one has none, over HTTP/1 and
// over HTTP/2, and one that is said to have one, of a length that nobody knows, and does not send it neither.
func TestNoBodyHasNoBytes(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: 10})
	s := &Server{Limiter: one(lim), Next: http.HandlerFunc(echoBody)}
	srv := start(t, s)
	release := hold(t, lim, 1)
	done, n := make(chan string, 4), 0
	send := func(c *http.Client, body io.Reader) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		n++
		go func() {
			res, err := c.Do(req)
			if err != nil {
				done <- err.Error()
				return
			}
			done <- text(t, res)
		}()
	}
	unsent, end := io.Pipe()
	for name, c := range clients(t) {
		send(c, nil)
		if name == "h2c" {
			send(c, unsent)
		}
	}
	until(t, "all wait", func() bool { return lim.Stats().Waiting == n })
	if b := lim.Stats().WaitingBytes; b != 0 || s.Stats().Buffered != 0 {
		t.Errorf("%d bytes wait, %d in memory", b, s.Stats().Buffered)
	}
	release()
	_ = end.Close()
	for range n {
		receive(t, "answer", done)
	}
}
