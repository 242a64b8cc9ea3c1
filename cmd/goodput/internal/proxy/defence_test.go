package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A header that does not come within the time of the listener, however steadily its bytes
// do, costs its sender the connection, and nothing else anybody anything.
func TestSlowHeaderIsCut(t *testing.T) {
	cfg := lanes(t, backend(t, echo), lane{"rest", limit.Fixed(1), 0, time.Second, "app", true})
	cfg.Listeners[0].HeaderTimeout = 200 * time.Millisecond
	c := newCrowd(t, cfg)
	for name, begin := range map[string]string{
		"nothing": "", "a word": "GE", "half of a header": "GET / HTTP/1.1\r\nHost: h\r\nX: ", "half of the preface of HTTP/2": "PRI * HTTP/2.0\r\n",
	} {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetReadDeadline(time.Now().Add(patience)) // TCP
		io.WriteString(conn, begin)                    // it is open
		stop := make(chan struct{})
		go func() { // a byte now and then
			for begin != "" {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					io.WriteString(conn, "a") // it may be closed
				}
			}
		}()
		_, err = io.Copy(io.Discard, conn) // until it is closed
		close(stop)
		if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
			t.Errorf("%s: it is still open", name)
		}
	}
	if n := c.all()[0].Stats().Arrivals; n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// A header that is longer than the listener takes is answered 431, and is no request of the
// limiter. In HTTP/2 a client that has heard of the bound does not send it, and one that is
// sent all the same may end the connection, because it cannot even be unpacked.
func TestLargeHeaderIsRefused(t *testing.T) {
	cfg := lanes(t, backend(t, echo), lane{"rest", limit.Fixed(1), 0, time.Second, "app", true})
	cfg.Listeners[0].MaxHeader = 8 << 10
	c := newCrowd(t, cfg)
	for name, set := range map[string]func(http.Header){
		"one value":     func(h http.Header) { h.Set("X", strings.Repeat("a", 30<<10)) },
		"many values":   func(h http.Header) { h["X"] = strings.Split(strings.Repeat("a ", 15<<10), " ") },
		"one long name": func(h http.Header) { h.Set(strings.Repeat("A", 30<<10), "x") },
	} {
		for _, use := range c.clients {
			req, _ := http.NewRequest("GET", "http://"+c.addr, nil) // the URL is one
			set(req.Header)
			res, err := use.Do(req)
			if err != nil {
				if use == c.clients[0] {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			res.Body.Close()
			if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %s %s", name, res.Proto, res.Status)
			}
		}
	}
	if n := c.all()[0].Stats().Arrivals; n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// A body above max_body is answered 413, whether it says how long it is or not; the service
// never gets all of it for whole.
func TestLargeBodyIsRefused(t *testing.T) {
	const most = 5000
	whole := make(chan int64, 100)
	w := start(t, backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err == nil {
			whole <- n
		}
	})), func(c *Config, _ *goodput.Config) { c.MaxBody = most })
	for _, c := range []struct {
		size     int
		declared bool
		want     int
	}{{most, true, 200}, {most, false, 200}, {most + 1, true, 413}, {most + 1, false, 413}, {3 << 20, true, 413}, {3 << 20, false, 413}} {
		for _, use := range []*http.Client{w.h1, w.h2} {
			body := io.Reader(strings.NewReader(strings.Repeat("b", c.size)))
			if !c.declared {
				body = struct{ io.Reader }{body}
			}
			res, err := use.Post(w.url, "", body)
			if err != nil {
				t.Errorf("%+v: %v", c, err)
				continue
			}
			io.Copy(io.Discard, res.Body) // only the status counts
			res.Body.Close()
			if res.StatusCode != c.want {
				t.Errorf("%+v: %s %s", c, res.Proto, res.Status)
			}
			if c.want == 200 {
				if n := <-whole; n != int64(c.size) {
					t.Errorf("%+v: the service got %d", c, n)
				}
			}
		}
	}
	w.settle("idle", idle)
	if len(whole) != 0 {
		t.Errorf("the service took %d bytes for a whole body", <-whole)
	}
}

// internals are what no answer of ours says: names of ours, addresses, and the words of
// the errors of Go.
func internals(t *testing.T, answer string) {
	t.Helper()
	for _, bad := range []string{
		"secret", "127.0.0.1", "localhost", ".invalid", "dial", "tcp", "EOF", "refused to", "connection reset", "lookup", "no such host",
		"goroutine", ".go:", "net/http", "i/o timeout", "read:", "write:", "panic", "malformed HTTP", "context", "tls:", "x509", "http:", "protocol",
	} {
		if strings.Contains(answer, bad) {
			t.Errorf("it says %q:\n%s", bad, answer)
		}
	}
}

// everything reads what a connection has, with its header.
func (w *world) everything(request string) string {
	w.Helper()
	c := w.raw(request)
	b, _ := io.ReadAll(c) // it ends as it ends
	c.Close()
	return string(b)
}

// What we answer ourselves says nothing about what is behind us, whatever went wrong there:
// who asks is anybody.
func TestAnswersHaveNoInternals(t *testing.T) {
	secret := func(c *Config, lc *goodput.Config) {
		lc.Name, c.Name = "secret-class", "secret-class"
	}
	ask := func(what string, w *world, headers ...string) {
		for _, accept := range []string{"Accept: */*", "Accept: application/problem+json", "Content-Type: application/grpc\r\nTE: trailers"} {
			answer := w.everything("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + accept + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 ") {
				t.Errorf("%s: no answer: %q", what, answer)
			}
			if strings.Contains(answer, "HTTP/1.1 200") && !strings.Contains(answer, "Grpc-Status") {
				t.Errorf("%s: not refused:\n%s", what, answer)
			}
			internals(t, answer)
		}
	}
	for what, upstream := range map[string]string{
		"nobody listens":    "http://127.0.0.1:1",
		"no such host":      "http://secret.invalid:80",
		"another protocol":  "https://" + backend(t, echo),
		"another protocol2": "h2c://" + answering(t, "SSH-2.0-secret\r\n"),
	} {
		ask(what, start(t, upstream, secret))
	}
	for _, wild := range wildAnswers[:7] { // the others begin as a response does
		ask(fmt.Sprintf("%.30q", wild), start(t, answering(t, wild), secret))
	}

	addr, entered, release := held(t)
	defer close(release)
	w := start(t, addr, func(c *Config, lc *goodput.Config) {
		secret(c, lc)
		lc.Limit, lc.Service, lc.MaxWait, lc.Depth, c.MaxBody = limit.Fixed(1), time.Second, 2*time.Second, 1, 10_000
	})
	w.ask(w.h1, "/")
	<-entered
	ask("the deadline passes before", w, "Expect-Within: 0")
	ask("no budget", w, "X-Envoy-Expected-Rq-Timeout-Ms: 1")
	ask("larger than any", w, "Content-Length: 30000\r\n\r\n"+strings.Repeat("b", 30_000))
	ask("a bad body", w, "Transfer-Encoding: chunked\r\n\r\nsecret")
	w.ask(w.h1, "/")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })
	ask("the queue is full", w)
	go w.lim.Drain(t.Context()) // cut with the test
	w.settle("draining", func(s goodput.Stats) bool { return s.Draining })
	ask("draining", w)

	slow := start(t, addr, secret)
	ask("the deadline passes there", slow, "X-Envoy-Expected-Rq-Timeout-Ms: 50")
	for _, request := range []string{
		"CONNECT secret:443 HTTP/1.1\r\nHost: secret:443\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", "complete nonsense\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 100_000) + "\r\n\r\n",
	} {
		internals(t, slow.everything(request))
	}
}

// answering is a service that says the same to everybody.
func answering(t *testing.T, what string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 4096)) // a request
				io.WriteString(c, what)    // it may have left
			}()
		}
	}()
	return l.Addr().String()
}

// Bodies that are read before their requests queue are in memory, and all of them together
// have a bound: beyond it a body stays where it is. A hundred uploads that stop half way are
// no more than that, and hold no slot.
func TestBodiesInMemoryAreBounded(t *testing.T) {
	const most, uploads = 64 << 10, 100
	w := start(t, backend(t, echo), func(c *Config, lc *goodput.Config) {
		lc.Limit, lc.MaxBytes, c.SlowClient = limit.Fixed(2), most, 200*time.Millisecond
	})
	stop := make(chan struct{})
	sampled := make(chan int64)
	go func() {
		highest := int64(0)
		for {
			select {
			case <-stop:
				sampled <- highest
				return
			case <-time.After(time.Millisecond):
				highest = max(highest, w.proxy.Door().Buffered)
			}
		}
	}()
	var all []net.Conn
	for range uploads {
		all = append(all, w.raw("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000\r\n\r\n"+strings.Repeat("b", 5000)))
	}
	w.settle("as much is in memory as may be", func(goodput.Stats) bool { return w.proxy.Door().Buffered > most-8000 })
	for _, c := range all {
		c.Close()
	}
	w.settle("nothing is left", func(s goodput.Stats) bool { return idle(s) && w.proxy.Door().Buffered == 0 })
	close(stop)
	if highest := <-sampled; highest > most {
		t.Errorf("%d bytes were in memory, and %d may be", highest, most)
	}
}
