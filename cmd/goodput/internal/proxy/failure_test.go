package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// closedPort returns an address on which nobody listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A service that is down: who was admitted is refused with the promise that nothing was
// executed, and that is what it is, whether or not the pool knows yet.
func TestUpstreamThatIsDownIsUnavailable(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		w := start(t, scheme+"://"+closedPort(t), nil)
		for i, client := range []*http.Client{w.h1, w.h2} {
			res, body := w.get(client, "/")
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Goodput-Rejected") != "unavailable" ||
				res.Header.Get("Retry-After") == "" || !strings.Contains(body, "not started") {
				t.Errorf("%s: %s %s", scheme, res.Status, body)
			}
			w.settle("failed", func(s goodput.Stats) bool { return s.Outcomes[goodput.Failed] == uint64(i+1) })
			w.settle("a drop", func(s goodput.Stats) bool { return s.Dropped == uint64(i+1) })
		}
		if n := w.proxy.Failures()["unreachable"]; n != 2 {
			t.Errorf("%d counted as unreachable: %v", n, w.proxy.Failures())
		}
		w.unsampled()
		if lines := strings.Count(w.log.String(), "upstream failed"); lines != 1 {
			t.Errorf("%d log lines for two failures within a second:\n%s", lines, w.log)
		}
	}
}

// A service that hangs up before it answered: 502 without the promise that
// nothing was executed.
func TestUpstreamThatHangsUpIs502(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	w := start(t, addr, nil)
	res, err := w.h1.Post(w.url, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusBadGateway || strings.Contains(string(body), "not executed") || w.proxy.Failures()["broken"] != 1 {
		t.Errorf("%s %s %v", res.Status, body, w.proxy.Failures())
	}
}

// C084: the service dies after half a response. The client must be able to tell
// that it is incomplete, and gets no byte that the service did not send.
func TestHalfAResponseStaysHalf_C084(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "1000")
		}
		io.WriteString(w, strings.Repeat("x", 500))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	w := start(t, addr, nil)
	n := 0
	for _, client := range []*http.Client{w.h1, w.h2} {
		for _, path := range []string{"/length", "/chunked"} {
			n++
			res, err := client.Get(w.url + path)
			if err != nil {
				t.Fatal(err) // what there was is said: see sayAll
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil || strings.Trim(string(body), "x") != "" || len(body) > 500 {
				t.Errorf("%s %s: %d bytes %q, error %v", res.Proto, path, len(body), body, err)
			}
		}
	}
	w.settle("all failed", func(s goodput.Stats) bool { return s.Outcomes[goodput.Failed] == uint64(n) })
	if n := w.lim.Stats().Dropped; n != 0 {
		t.Errorf("%d drops: the service was at it, and failed", n)
	}
	if strings.Contains(w.log.String(), "panic") {
		t.Errorf("the abort was logged as a panic:\n%s", w.log)
	}
}

func TestDeadlineIs504AndForwarded(t *testing.T) {
	got := make(chan string, 1)
	addr := backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms")
		<-r.Context().Done()
	}))
	w := start(t, addr, func(c *Config, _ *goodput.Config) { c.Deadline = 150 * time.Millisecond })
	res, body := w.get(w.h1, "/")
	if res.StatusCode != http.StatusGatewayTimeout || !strings.Contains(body, "deadline") {
		t.Errorf("%s %s", res.Status, body)
	}
	if left := <-got; len(left) == 0 || len(left) > 3 || left > "150" {
		t.Errorf("the service was told %q ms of 150", left)
	}
	if w.proxy.Failures()["timed_out"] != 1 {
		t.Errorf("%v", w.proxy.Failures())
	}
	w.settle("idle", idle)
}

func TestBrokenRequestBodyIs400(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // that is the point
	}))
	w := start(t, addr, nil)
	c := w.raw("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n")
	res, body := w.answer(c)
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("%s %s", res.Status, body)
	}
	w.settle("idle", idle)
	for kind, n := range w.proxy.Failures() {
		if n != 0 {
			t.Errorf("%d failures of the service: %s", n, kind)
		}
	}
}

// A call of gRPC that failed on its way is answered in the terms of gRPC: its client would take
// a 502 or a 504 for UNAVAILABLE, and repeat what may have been executed.
func TestFailedCallsOfGRPC(t *testing.T) {
	hangs := make(chan struct{})
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-r.Context().Done():
			case <-hangs:
			}
		}
		panic(http.ErrAbortHandler)
	}))
	defer close(hangs)
	ask := func(w *world, path, want string) {
		for _, client := range []*http.Client{w.h1, w.h2} {
			req, _ := http.NewRequest("POST", w.url+path, nil)
			req.Header.Set("Content-Type", "application/grpc+proto")
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK || res.Header.Get("Grpc-Status") != want ||
				res.Header.Get("Goodput-Rejected") != "" || res.Header.Get("Content-Type") != "application/grpc+proto" {
				t.Errorf("%s over %s: %s %v", path, res.Proto, res.Status, res.Header)
			}
		}
	}
	w := start(t, addr, func(c *Config, _ *goodput.Config) { c.Deadline = 300 * time.Millisecond })
	ask(w, "/slow", "4")
	ask(w, "/broken", "2")
	w.settle("idle", idle)
	streams := start(t, addr, func(c *Config, g *goodput.Config) {
		c.Mode, c.Idle, g.Depth = config.Stream, 200*time.Millisecond, goodput.NoQueue
	})
	ask(streams, "/slow", "4") // cut before it began
	streams.settle("idle", idle)
}

// Forwarding headers that nobody vouches for are dropped, and that is said, once.
func TestDroppedForwardingIsSaid(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	for range 3 {
		req, _ := http.NewRequest("GET", w.url, nil)
		req.Header.Set("X-Forwarded-For", "203.0.113.9")
		res, err := w.h1.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if n := strings.Count(w.log.String(), "trusted_proxies"); n != 1 {
		t.Errorf("said %d times:\n%s", n, w.log)
	}
}

// A request that was sent into a connection that then broke may have been executed, also if the
// service is gone when it is sent once more: no promise is made.
func TestSentAndThenGoneIsNoPromise(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
		_, _ = http.ReadRequest(in) // it is at work,
		l.Close()                   // and dies
	}()
	w := start(t, l.Addr().String(), nil)
	if res, _ := w.get(w.h1, "/"); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if res, body := w.get(w.h1, "/"); res.StatusCode != http.StatusBadGateway || res.Header.Get("Goodput-Rejected") != "" {
		t.Errorf("%s, Goodput-Rejected %q: %s", res.Status, res.Header.Get("Goodput-Rejected"), body)
	}
	if res, _ := w.get(w.h1, "/"); res.Header.Get("Goodput-Rejected") != "unavailable" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
}
