package goodputhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// unhurried are settings under which nothing but the deadline ends a body that does not come:
// without it a test here waits for longer than its patience.
var unhurried = map[string]func(*Server){
	"patient": func(s *Server) { s.SlowClient = PatientClient },
	"paced":   func(s *Server) { s.SlowClient = 10 * patience },
	"stream":  func(s *Server) { s.Stream = true },
}

// stalled are requests over HTTP/1.1 of which no body comes.
var stalled = map[string]string{
	"large":             "Content-Length: 8388608\r\n\r\n",
	"small":             "Content-Length: 1000\r\n\r\n",
	"chunked":           "Transfer-Encoding: chunked\r\n\r\n",
	"begun":             "Transfer-Encoding: chunked\r\n\r\n800000\r\nxxxx",
	"grpc":              "Content-Type: application/grpc\r\nContent-Length: 8388608\r\n\r\n",
	"continue":          "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
	"continue, chunked": "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
}

// A deadline ends the reading of a body: the slot is free, the request is late and not one of a
// slow client, and its client gets the answer.
func TestDeadlineEndsABodyThatDoesNotCome(t *testing.T) {
	for setting, set := range unhurried {
		for name, head := range stalled {
			t.Run(setting+" "+name, func(t *testing.T) {
				t.Parallel()
				lim := limiter(1, goodput.Config{})
				got := make(chan error, 1)
				s := &Server{Limiter: one(lim), Deadline: 50 * time.Millisecond, MaxPreread: NoPreread}
				s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(io.Discard, r.Body)
					got <- err
					w.WriteHeader(http.StatusGatewayTimeout)
				})
				set(s)
				c := dial(t, start(t, s), "POST / HTTP/1.1\r\nHost: x\r\n"+head)
				if err := receive(t, "the handler's body ends", got); err != context.DeadlineExceeded {
					t.Errorf("the handler got %v", err)
				}
				outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Late: 1})
				if res := answer(t, c); res.StatusCode != http.StatusGatewayTimeout && res.StatusCode != http.StatusContinue {
					t.Error(res.Status)
				}
				if n := s.Stats().SlowClients; n != 0 {
					t.Errorf("%d slow clients counted", n)
				}
			})
		}
	}
}

// The same over HTTP/2, where the length may be known or not.
func TestDeadlineEndsAnHTTP2BodyThatDoesNotCome(t *testing.T) {
	for setting, set := range unhurried {
		for _, length := range []int64{-1, 1000, 8 << 20} {
			lim := limiter(1, goodput.Config{})
			got := make(chan error, 1)
			s := &Server{Limiter: one(lim), Deadline: 50 * time.Millisecond, MaxPreread: NoPreread}
			s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				got <- err
				w.WriteHeader(http.StatusGatewayTimeout)
			})
			set(s)
			body, w := io.Pipe()
			defer w.Close()
			r, _ := http.NewRequest(http.MethodPost, start(t, s).URL, body)
			r.ContentLength = length
			res, err := clients(t)["h2c"].Do(r)
			if err != nil {
				t.Fatal(setting, err)
			}
			res.Body.Close()
			if err := receive(t, "the handler's body ends", got); err != context.DeadlineExceeded || res.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("%s, %d bytes: the handler got %v, its client %s", setting, length, err, res.Status)
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Late: 1})
			if n := s.Stats().SlowClients; n != 0 {
				t.Errorf("%s, %d bytes: %d slow clients counted", setting, length, n)
			}
		}
	}
}

// httputil.ReverseProxy gives up with the context of a request, and then closes its body, which
// in net/http waits for the Read and for more of the body.
func TestDeadlineFreesAReverseProxy(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(func() { backend.CloseClientConnections(); backend.Close() })
	to, _ := url.Parse(backend.URL)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			if r.Context().Err() == context.DeadlineExceeded {
				w.WriteHeader(http.StatusGatewayTimeout)
			}
		},
	}
	for setting, set := range unhurried {
		for name, head := range stalled {
			t.Run(setting+" "+name, func(t *testing.T) {
				t.Parallel()
				lim := limiter(1, goodput.Config{})
				s := &Server{Limiter: one(lim), Deadline: 50 * time.Millisecond, MaxPreread: NoPreread, Next: proxy}
				set(s)
				c := dial(t, start(t, s), "POST / HTTP/1.1\r\nHost: x\r\n"+head)
				if res := answer(t, c); res.StatusCode != http.StatusGatewayTimeout && res.StatusCode != http.StatusContinue {
					t.Error(res.Status)
				}
				outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Late: 1})
			})
		}
	}
}

// net/http reads of a body in order to close it, and before it sends a header; no handler need
// have read any.
func TestDeadlineEndsWhatNetHTTPReadsOfABody(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"close": func(_ http.ResponseWriter, r *http.Request) { r.Body.Close() },
		"flush": func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"write": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64<<10)) },
	} {
		for setting, set := range unhurried {
			t.Run(setting+" "+name, func(t *testing.T) {
				t.Parallel()
				lim := limiter(1, goodput.Config{})
				s := &Server{Limiter: one(lim), Deadline: 50 * time.Millisecond, MaxPreread: NoPreread, Next: handle}
				set(s)
				dial(t, start(t, s), "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
				until(t, "it has had its slot", func() bool { return lim.Stats().Arrivals == 1 })
				settled(t, lim)
			})
		}
	}
}

// A handler may return for its deadline while another goroutine still reads, as a reverse proxy
// does; net/http would wait for that before it sends the answer.
func TestDeadlineEndsAReadThatIsLeftBehind(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	got := make(chan error, 8)
	s := &Server{Limiter: one(lim), Deadline: 20 * time.Millisecond, SlowClient: PatientClient, MaxPreread: NoPreread}
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			_, err := io.Copy(io.Discard, r.Body)
			got <- err
		}()
		<-r.Context().Done()
		w.WriteHeader(http.StatusGatewayTimeout)
	})
	srv := start(t, s)
	const rounds = 200 // each may return before or after what the deadline starts
	for range rounds {
		if res := answer(t, dial(t, srv, post(1000))); res.StatusCode != http.StatusGatewayTimeout {
			t.Error(res.Status)
		}
		if err := receive(t, "the reading ends", got); err == nil {
			t.Error("the whole body came")
		}
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Late: rounds})
}

// A body that has ended is not cut: the connection goes on, and so does the handler, whose answer
// is late.
func TestDeadlineAfterTheBody(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), Deadline: 50 * time.Millisecond, MaxPreread: NoPreread, Next: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			<-time.After(20 * time.Millisecond) // what would cut it has run
			if v := r.Context().Value(visitKey{}).(*visit); v.r.Context().Err() != nil {
				t.Error("the context of net/http is over, as if the client had left")
			}
		})}
	c := dial(t, start(t, s), "")
	for range 2 {
		if _, err := io.WriteString(c, post(3)+"abc"); err != nil {
			t.Fatal(err)
		}
		if res := answer(t, c); res.StatusCode != 200 || res.Close {
			t.Errorf("%s, close %v", res.Status, res.Close)
		}
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Late: 2})
}

// Who leaves before the deadline has left, and a body that is slow before it is slow.
func TestDeadlineThatHasNotPassed(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	slow := make(chan bool, 2)
	s := &Server{Limiter: one(lim), Deadline: 10 * patience, SlowClient: slowFor, MaxPreread: NoPreread, Next: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			if cut := SlowClient(r.Context()); cut != errors.Is(err, ErrSlowClient) {
				t.Errorf("cut %v, the handler got %v", cut, err)
			}
			slow <- SlowClient(r.Context())
		})}
	srv := start(t, s)
	dial(t, srv, post(1000)).Close()
	if receive(t, "a client leaves", slow) {
		t.Error("it is said to be slow")
	}
	dial(t, srv, post(1000))
	if !receive(t, "a client is slow", slow) {
		t.Error("it is not said to be slow")
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Abandoned: 2})
	if n := s.Stats().SlowClients; n != 1 {
		t.Errorf("%d slow clients counted", n)
	}
	if SlowClient(background) {
		t.Error("a context of no request is of a slow client")
	}
}
