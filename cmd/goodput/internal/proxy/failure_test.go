package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
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

func TestUpstreamThatIsDownIs502(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		w := start(t, scheme+"://"+closedPort(t), nil)
		for i, client := range []*http.Client{w.h1, w.h2} {
			res, body := w.get(client, "/")
			if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "not executed") {
				t.Errorf("%s: %s %s", scheme, res.Status, body)
			}
			s := w.settle("failed", func(s goodput.Stats) bool { return s.Outcomes[goodput.Failed] == uint64(i+1) })
			if s.Derivation.Samples != 0 {
				t.Error("a failure became a sample of the service time")
			}
		}
		if n := w.proxy.Failures()["unreachable"]; n != 2 {
			t.Errorf("%d counted as unreachable: %v", n, w.proxy.Failures())
		}
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
				continue // what there was had not left the buffer: no answer at all
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil || strings.Trim(string(body), "x") != "" || len(body) > 500 {
				t.Errorf("%s %s: %d bytes %q, error %v", res.Proto, path, len(body), body, err)
			}
		}
	}
	w.settle("all failed", func(s goodput.Stats) bool { return s.Outcomes[goodput.Failed] == uint64(n) })
	if strings.Contains(w.log.String(), "panic") {
		t.Errorf("the abort was logged as a panic:\n%s", w.log)
	}
}

// C007: clients that reset in the middle of a download leave no slot behind, no
// stack trace, and no blame on the service.
func TestResetsMidDownload_C007(t *testing.T) {
	const clients = 1000
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(50) })
	var wg sync.WaitGroup
	turn := make(chan struct{}, 50)
	for range clients {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			c, err := net.DialTimeout("tcp", w.addr, patience)
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			c.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // TCP
			if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
				t.Error(err)
			}
			c.(*net.TCPConn).SetLinger(0) //nolint:errcheck // Close sends a reset
			c.Close()
		})
	}
	wg.Wait()
	s := w.settle("every slot is back", idle)
	if s.Outcomes[goodput.Failed] != 0 || s.Outcomes[goodput.Abandoned] != clients {
		t.Errorf("%d abandoned and %d failed of %d; the service was not to blame: %v", s.Outcomes[goodput.Abandoned], s.Outcomes[goodput.Failed], clients, s.Outcomes)
	}
	if log := w.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "upstream failed") {
		t.Errorf("the log blames somebody:\n%.2000s", log)
	}
}

// C085: where the client leaves decides the outcome: in the queue, before the
// header, in the body. None is a failure of the service.
func TestClientLeaves_C085(t *testing.T) {
	entered := make(chan string, 10)
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		entered <- r.URL.Path
		<-r.Context().Done()
	}))
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(2) })
	get := func(path string) net.Conn { return w.raw("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n") }
	header := get("/header")
	<-entered
	body := get("/body")
	<-entered
	if _, err := http.ReadResponse(bufio.NewReader(body), nil); err != nil {
		t.Fatal(err)
	}
	queued := get("/queued")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })

	queued.Close()
	w.settle("cancelled", func(s goodput.Stats) bool { return s.Waiting == 0 && s.Outcomes[goodput.Cancelled] == 1 })
	header.Close()
	w.settle("abandoned", func(s goodput.Stats) bool { return s.Outcomes[goodput.Abandoned] == 1 })
	body.Close()
	s := w.settle("abandoned", func(s goodput.Stats) bool { return s.Outcomes[goodput.Abandoned] == 2 })
	if s.Outcomes[goodput.Failed]+s.Outcomes[goodput.Completed]+s.Outcomes[goodput.Late] != 0 || s.Derivation.Samples != 0 {
		t.Errorf("%v, %d samples", s.Outcomes, s.Derivation.Samples)
	}
	for kind, n := range w.proxy.Failures() {
		if n != 0 {
			t.Errorf("%d failures of the service: %s", n, kind)
		}
	}
	if len(entered) != 0 {
		t.Error("the request that left the queue was executed")
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
		io.Copy(io.Discard, r.Body) //nolint:errcheck // that is the point
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

// C098: the service answers 413 without reading the body and closes. The 413 is
// relayed; the proxy invents nothing.
func TestEarlyAnswerIsRelayed_C098(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
				c.(*net.TCPConn).CloseWrite()                      //nolint:errcheck // as a server lingers:
				c.SetReadDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // it reads on,
				io.Copy(io.Discard, io.LimitReader(c, 512<<10))    //nolint:errcheck // but not to the end
			}()
		}
	}()
	w := start(t, l.Addr().String(), nil)
	for i := range 20 {
		res, err := w.h1.Post(w.url, "application/octet-stream", io.LimitReader(zeros{}, 5<<20))
		if err != nil {
			t.Fatalf("try %d: %v", i, err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "too large" {
			t.Fatalf("try %d: %s %s\n%s", i, res.Status, body, w.log)
		}
	}
	s := w.settle("idle", idle)
	if s.Outcomes[goodput.Failed] != 0 || s.Outcomes[goodput.Rejected] != 0 {
		t.Errorf("counted against the service or as overload: %v", s.Outcomes)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// C075: Expect: 100-continue, and the service answers without reading: the
// client gets the answer; nobody reads the body after its handler has ended.
func TestExpectContinueWithEarlyAnswer_C075(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	w := start(t, addr, nil)
	errs := make(chan error, 16)
	var wg sync.WaitGroup
	for range cap(errs) {
		wg.Go(func() {
			for range 1000 / cap(errs) {
				if err := expect401(w.addr); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	w.settle("idle", idle)
	if strings.Contains(w.log.String(), "panic") {
		t.Errorf("%s", w.log)
	}
}

func expect401(addr string) error {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // TCP
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", 5<<20)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusUnauthorized {
		return errors.New(res.Status)
	}
	return nil
}
