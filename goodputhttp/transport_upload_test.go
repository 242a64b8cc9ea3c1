package goodputhttp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// C071 (anthropic-experimental/sandbox-runtime#538): an upload of 10 MB is refused at
// once, while the client is still sending. It reads status and hint, and does not send
// it again before the hint: here that is later than the policy waits, so never.
func TestC071RefusalDuringAnUpload(t *testing.T) {
	for _, expect := range []string{"", "100-continue"} {
		for proto, b := range bases(t) {
			t.Run(proto+" "+expect, func(t *testing.T) {
				lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
				hold(t, lim, 1)
				var came atomic.Int32
				h := Handler(lim, nothing)
				srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					came.Add(1)
					h.ServeHTTP(w, r)
				}))
				b.ExpectContinueTimeout = patience
				dep := &Dependency{Limiter: limiter(1, goodput.Config{}), Retry: &retry.Policy{MaxAfter: 1}}
				res, err := to(dep, b).RoundTrip(upload(srv.URL, expect))
				if err != nil {
					t.Fatal(err)
				}
				text(t, res)
				if h := res.Header; res.StatusCode != 503 || h.Get("Goodput-Rejected") != "queue_full" || h.Get("Retry-After") == "" {
					t.Errorf("%d %v", res.StatusCode, h)
				}
				if came.Load() != 1 {
					t.Errorf("sent %d times", came.Load())
				}
				outcomes(t, dep.Limiter, map[goodput.Outcome]uint64{goodput.Failed: 1})
			})
		}
	}
}

// upload is idempotent and can be sent again: only the hint speaks against it.
func upload(url, expect string) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(make([]byte, 10<<20)))
	r.Header.Set("Idempotency-Key", "k")
	if expect != "" {
		r.Header.Set("Expect", expect)
	}
	return r
}

// A server that answers and closes without reading resets the connection, so that the
// answer may be lost on the way. With Expect: 100-continue nothing is on the way.
func TestC071ServerThatDoesNotLinger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var came atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				came.Add(1)
				fmt.Fprint(c, "HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy")
			}
			c.Close()
		}
	}()
	b := bases(t)["HTTP/1.1"]
	b.ExpectContinueTimeout = patience
	dep := &Dependency{Retry: &retry.Policy{MaxAfter: 1}}
	res, err := to(dep, b).RoundTrip(upload("http://"+l.Addr().String(), "100-continue"))
	if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "9" || text(t, res) != "busy" || came.Load() != 1 {
		t.Errorf("%v %v, sent %d times", res, err, came.Load())
	}

	// Without it, and not idempotent: whatever is seen of the answer, it is sent once.
	came.Store(0)
	r := upload("http://"+l.Addr().String(), "")
	r.Header.Del("Idempotency-Key")
	if res, err := to(dep, b).RoundTrip(r); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if came.Load() != 1 {
		t.Errorf("sent %d times", came.Load())
	}
}
