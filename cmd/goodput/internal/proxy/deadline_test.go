package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// told reads what a header says is left.
func told(header, value string) (time.Duration, error) {
	switch header {
	case "Expect-Within":
		return time.ParseDuration(value + "s")
	case "Grpc-Timeout":
		// 4994123u: a Go duration but for the sign of micro.
		return time.ParseDuration(strings.NewReplacer("u", "us", "m", "ms", "n", "ns", "S", "s").Replace(value))
	}
	ms, err := strconv.ParseInt(value, 10, 64)
	return time.Duration(ms) * time.Millisecond, err
}

// What the client says is left reaches the service in the same header and alone,
// reduced, and C051: which header decided is counted.
func TestDeadlinesAreForwarded_C051(t *testing.T) {
	const most = 5 * time.Second
	capped := func(c *Config, _ *goodput.Config) { c.DeadlineCap = most }
	byDefault := func(c *Config, _ *goodput.Config) { c.Deadline = most }
	addr := backend(t, echo)
	for _, c := range []struct {
		sent    string
		change  func(*Config, *goodput.Config)
		arrives string // the headers that have a deadline
		source  string
	}{
		{"X-Envoy-Expected-Rq-Timeout-Ms: 5000", nil, "X-Envoy-Expected-Rq-Timeout-Ms", "X-Envoy-Expected-Rq-Timeout-Ms"},
		{"Connect-Timeout-Ms: 5000", nil, "Connect-Timeout-Ms", "Connect-Timeout-Ms"},
		{"Expect-Within: 5", nil, "Expect-Within", "Expect-Within"},
		{"Content-Type: application/grpc\r\nGrpc-Timeout: 5S", nil, "Grpc-Timeout", "Grpc-Timeout"},
		{"Expect-Within: 5\r\nConnect-Timeout-Ms: 9000", nil, "Connect-Timeout-Ms Expect-Within", "Expect-Within"},
		{"X-Envoy-Expected-Rq-Timeout-Ms: -1\r\nConnect-Timeout-Ms: 5000", nil, "Connect-Timeout-Ms", "Connect-Timeout-Ms"},
		{"Connect-Timeout-Ms: 9000", capped, "Connect-Timeout-Ms", "cap"},
		{"X: y", byDefault, "X-Envoy-Expected-Rq-Timeout-Ms", "default"},
		{"X: y", nil, "", "none"},
	} {
		w := start(t, addr, c.change)
		_, body := w.answer(w.raw("GET / HTTP/1.1\r\nHost: h\r\n" + c.sent + "\r\nConnection: close\r\n\r\n"))
		for _, header := range deadlineSources[:4] {
			value := line(body, header)
			if !strings.Contains(c.arrives, header) {
				if value != "" {
					t.Errorf("%q: the service got %s: %s", c.sent, header, value)
				}
				continue
			}
			if left, err := told(header, value); err != nil || left <= 0 || left >= most {
				t.Errorf("%q: the service got %s: %q, %v; want less than %v", c.sent, header, value, err, most)
			}
		}
		for header := range w.proxy.Door().DeadlineErrors { // every one that is read
			if _, known := w.proxy.Deadlines()[header]; !known {
				t.Errorf("a deadline of %s is not counted", header)
			}
		}
		for source, n := range w.proxy.Deadlines() {
			if (n == 1) != (source == c.source) || n > 1 {
				t.Errorf("%q: %d deadlines by %s", c.sent, n, source)
			}
		}
	}
}

// C053: two proxies in a row. The second has a longer deadline of its own and
// uses what is left of the client's, so nobody works for a client that left. The
// numbers are ten times those of the case, since a busy machine can lose 200 ms
// on two hops.
func TestTwoHopsShareOneBudget_C053(t *testing.T) {
	const client = 2000 // ms
	for name, c := range map[string]struct {
		header string
		first  time.Duration // deadline that the first hop gives
	}{
		"the client's header":      {header: fmt.Sprint(client)},
		"the first hop's deadline": {first: client * time.Millisecond},
	} {
		second := start(t, backend(t, echo), func(c *Config, _ *goodput.Config) { c.Deadline = 50 * time.Second })
		first := start(t, second.addr, func(cfg *Config, _ *goodput.Config) { cfg.Deadline = c.first })
		req, _ := http.NewRequest("GET", first.url, nil) // the URL is one
		if c.header != "" {
			req.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", c.header)
		}
		res, err := first.h1.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		// Each hop takes off its margin of 5 ms for the way.
		left, err := strconv.Atoi(line(string(body), "X-Envoy-Expected-Rq-Timeout-Ms"))
		if err != nil || left <= 0 || left > client-2*5 {
			t.Errorf("%s: the service is told that %d ms are left of %d, %v", name, left, client, err)
		}
	}
}
