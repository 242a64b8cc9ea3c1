package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/goodput/goodput"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// saying is a service that answers each request on a connection with what it is told, to the
// byte, and then waits for the end of that connection. closed counts those ends.
func saying(t *testing.T, answer func(*http.Request) string) (addr string, closed chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	closed = make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						closed <- struct{}{}
						return
					}
					io.Copy(io.Discard, r.Body) // what is left unread destroys the answer when c is closed
					io.WriteString(c, answer(r))
				}
			}()
		}
	}()
	return l.Addr().String(), closed
}

// inFlight is what the first server has in flight.
func (w *world) inFlight() int {
	for _, servers := range w.proxy.Upstreams() {
		return servers[0].InFlight
	}
	return -1
}

// A service that changes the protocol where nobody asked for it, or to another one, has given
// a bad answer: that is said, its connection is closed, and its place is free.
func TestChangeOfProtocolThatNobodyAskedFor(t *testing.T) {
	asking := "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for _, tc := range []struct{ name, header, answer string }{
		{"unasked", "", "Connection: Upgrade\r\nUpgrade: websocket\r\n"},
		{"another", asking, "Connection: Upgrade\r\nUpgrade: evil\r\n"},
		{"no ASCII", asking, "Connection: Upgrade\r\nUpgrade: web\xc3\xa9socket\r\n"},
		{"none", asking, ""},
		{"none and unasked", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up, closed := saying(t, func(*http.Request) string { return "HTTP/1.1 101 Switching Protocols\r\n" + tc.answer + "\r\n" })
			modes(t, up, nil, func(w *world) {
				res, body := w.answer(w.raw("GET / HTTP/1.1\r\nHost: h\r\n" + tc.header + "\r\n"))
				if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "a change of protocol that nobody asked for") {
					w.Errorf("%s %q", res.Status, body)
				}
				w.eventually("the service's connection is closed", func() bool { return len(closed) == 1 })
				<-closed
				w.eventually("nothing is in flight", func() bool { return w.inFlight() == 0 })
				w.noTunnels()
				for _, s := range w.proxy.Upstreams()["default"] {
					if s.Requests != 1 || s.Failures != 0 {
						w.Errorf("%+v", s)
					}
				}
				if n := w.proxy.Failures()["malformed"]; n != 1 {
					w.Errorf("failures %v", w.proxy.Failures())
				}
			})
		})
	}
}

// In HTTP/2 there is no change of protocol, and 101 would be a response before the last: to a
// client of HTTP/1.1 it would be one.
func TestChangeOfProtocolInHTTP2(t *testing.T) {
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
			go switching2(c)
		}
	}()
	w := start(t, "h2c://"+l.Addr().String(), nil)
	res, body := w.answer(w.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "a change of protocol that nobody asked for") {
		t.Errorf("%s %q\n%s", res.Status, body, w.log)
	}
	w.settle("idle", func(s goodput.Stats) bool { return idle(s) && s.Outcomes[goodput.Failed] == 1 })
	if n := w.inFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// switching2 answers each stream of HTTP/2 with 101 and then 200.
func switching2(c net.Conn) {
	defer c.Close()
	io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if h, ok := frame.(*http2.HeadersFrame); ok {
			for _, status := range []string{"101", "200"} {
				var block bytes.Buffer
				hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status})
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: status == "200"})
			}
		}
	}
}

// Responses before the last have a bound, and the last one comes behind any number of them.
func TestInformationalResponsesHaveABound(t *testing.T) {
	up, _ := saying(t, func(*http.Request) string {
		return strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n", 500) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	})
	w := start(t, up, nil)
	w.both(func(c *http.Client) {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
		})
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil) // the URL is one
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if hints != 16 || string(body) != "ok" || err != nil {
			t.Errorf("%s: %d hints, %q, %v", res.Proto, hints, body, err)
		}
	})
}

// What an answer was that was none is said as what it was: the service did not hang up.
func TestMalformedAnswersAreSaid(t *testing.T) {
	const malformed, closed = "goodput: the upstream's answer is malformed", "goodput: the upstream closed the connection"
	for _, tc := range []struct{ answer, want, kind string }{
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", malformed, "malformed"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello!", malformed, "malformed"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\nhello!", malformed, "malformed"},
		{"HTTP/1.1 200 OK\r\nnot a header\r\n\r\n", malformed, "malformed"},
		{"garbage\r\n\r\n", malformed, "malformed"},
		{"HTTP/1.1 twohundred OK\r\n\r\n", malformed, "malformed"},
		{"HTTP/1.1 099 Less\r\nContent-Length: 5\r\n\r\nhello", malformed, "malformed"},
		{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", malformed, "malformed"},
	} {
		up, _ := saying(t, func(*http.Request) string { return tc.answer })
		w := start(t, up, nil)
		res, err := w.h1.Post(w.url, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusBadGateway || !strings.HasPrefix(string(body), tc.want) || w.proxy.Failures()[tc.kind] != 1 {
			t.Errorf("%.60q: %s %q %v", tc.answer, res.Status, body, w.proxy.Failures())
		}
		if n := w.inFlight(); n != 0 {
			t.Errorf("%.60q: %d in flight", tc.answer, n)
		}
	}
	up := backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	w := start(t, up, nil)
	res, err := w.h1.Post(w.url, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if !strings.HasPrefix(string(body), closed) || w.proxy.Failures()["broken"] != 1 || w.proxy.Failures()["malformed"] != 0 {
		t.Errorf("%s %q %v", res.Status, body, w.proxy.Failures())
	}
}

// A protocol that is no name is the client's fault, and no failure of the service.
func TestMalformedUpgradeIs400(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	for i, protocol := range []string{"web\xc3\xa9socket", "web\x7fsocket"} {
		res, body := w.answer(w.raw(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", i, protocol)))
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %s %q", protocol, res.Status, body)
		}
	}
	for kind, n := range w.proxy.Failures() {
		if n != 0 {
			t.Errorf("%d %s", n, kind)
		}
	}
}
