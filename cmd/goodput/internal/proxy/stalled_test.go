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
	"github.com/goodput/goodput/goodputhttp"
)

// stalled are requests of which no body comes that has to, and that cannot be read in advance.
var stalled = map[string]string{
	"large":       "Content-Length: 8388608",
	"begun":       "Transfer-Encoding: chunked\r\n\r\n800000\r\n" + strings.Repeat("x", goodputhttp.DefaultMaxPreread+1),
	"after a 100": "Expect: 100-continue\r\nContent-Length: 1000",
	"chunked":     "Expect: 100-continue\r\nTransfer-Encoding: chunked",
}

// last reads the answer behind a 100.
func (w *world) last(c net.Conn) *http.Response {
	w.Helper()
	in := bufio.NewReader(c)
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			w.Fatal(err)
		}
		if res.StatusCode != http.StatusContinue {
			return res
		}
	}
}

// stall sends a request over HTTP/2 whose body does not come.
func (w *world) stall() *http.Response {
	w.Helper()
	body, sender := io.Pipe()
	w.Cleanup(func() { sender.Close() })
	res, err := w.h2.Post(w.url, "text/plain", body)
	if err != nil {
		w.Fatal(err)
	}
	res.Body.Close()
	return res
}

func reader(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) } // whatever comes

// The deadline ends a request whose body does not come, however long its client may be waited
// for: 504, and a slot that is free. Without that it would be held for longer than a test waits.
func TestDeadlineEndsAnUploadThatStalls(t *testing.T) {
	addr := backend(t, http.HandlerFunc(reader))
	for name, change := range map[string]func(*Config){
		"for ever":           func(c *Config) { c.SlowClient = goodputhttp.PatientClient },
		"for long":           func(c *Config) { c.SlowClient = 10 * patience },
		"of a stream":        func(c *Config) { c.Mode, c.Idle, c.Total = config.Stream, 0, 0 },
		"finished elsewhere": func(c *Config) { c.SlowClient, c.Finish = goodputhttp.PatientClient, time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, addr, func(c *Config, lc *goodput.Config) {
				if c.Deadline = 100 * time.Millisecond; name == "of a stream" {
					lc.Depth = goodput.NoQueue
				}
				change(c)
			})
			n := uint64(0)
			for kind, head := range stalled {
				if res := w.last(w.raw("POST / HTTP/1.1\r\nHost: h\r\n" + head + "\r\n\r\n")); res.StatusCode != http.StatusGatewayTimeout {
					t.Errorf("%s: %s", kind, res.Status)
				}
				n++
			}
			if res := w.stall(); res.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("HTTP/2: %s", res.Status)
			}
			n++
			s := w.settle("no slot is held", func(s goodput.Stats) bool { return s.Arrivals == n && idle(s) })
			if late := s.Outcomes[goodput.Late]; late != n {
				t.Errorf("%d of %d late: %v", late, n, s.Outcomes)
			}
			if slow := w.proxy.Door().SlowClients; slow != 0 {
				t.Errorf("%d clients were too slow", slow)
			}
		})
	}
}

// A client that is cut off for the body that it does not send is told so.
func TestUploadThatStallsIs408(t *testing.T) {
	w := start(t, backend(t, http.HandlerFunc(reader)), func(c *Config, _ *goodput.Config) { c.SlowClient = 100 * time.Millisecond })
	n := uint64(0)
	for kind, head := range stalled {
		res := w.last(w.raw("POST / HTTP/1.1\r\nHost: h\r\n" + head + "\r\n\r\n"))
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusRequestTimeout || !res.Close || !strings.Contains(string(body), "did not arrive in time") {
			t.Errorf("%s: %s, close %v: %s", kind, res.Status, res.Close, body)
		}
		n++
	}
	if res := w.stall(); res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("HTTP/2: %s", res.Status)
	}
	n++
	w.settle("no slot is held", func(s goodput.Stats) bool { return s.Arrivals == n && idle(s) })
	if slow := w.proxy.Door().SlowClients; slow != n {
		t.Errorf("%d of %d clients were too slow", slow, n)
	}
	for kind, n := range w.proxy.Failures() {
		if n != 0 {
			t.Errorf("%d failures of the service: %s", n, kind)
		}
	}
}
