package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the parts of a running service count is under the name that says it: each number here is
// another one.

// number returns the value of a series, -1 without it.
func (p *process) number(series string) float64 {
	p.Helper()
	v, err := strconv.ParseFloat(p.metric(series), 64)
	if err != nil {
		return -1
	}
	return v
}

// listener is the label of the one that there is.
func (p *process) listener() string {
	return fmt.Sprintf(`{listener="%s"}`, strings.TrimPrefix(p.url, "http://"))
}

const wired = `version: 1
listen: {address: "127.0.0.1:0", protocols: [http1], max_connections: 2}
upstreams:
  app: {servers: [{url: "%[1]s", limit: 3}, {url: "%[2]s", limit: 7}], failures: 3, health: {path: /healthz, interval: 1s, fall: 100, rise: 1}}
classes:
  - {name: events, match: {path: /events}, upstream: app, mode: stream, limit: 4, idle: 50ms}
  - {name: long, match: {path: /long}, upstream: app, mode: stream, limit: 4, total: 50ms}
  - {name: rest, upstream: app, limit: 2}
`

func TestNumbersAreUnderTheirNames(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasPrefix(r.URL.Path, "/events"), strings.HasPrefix(r.URL.Path, "/long"):
			http.NewResponseController(w).Flush() // of HTTP/1.1 it cannot fail before its client leaves
			<-r.Context().Done()
		}
	})
	gone, srv := backend(t, hello)
	srv.Close()
	p := serveFile(t, policyFile(t, fmt.Sprintf(wired, upstream, gone)))
	for _, path := range []string{"/events", "/long", "/long/2"} {
		if res, err := http.Get(p.url + path); err == nil { // it is cut
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	of := func(server string) string { return fmt.Sprintf(`{server="%s",upstream="app"}`, server) }
	p.eventually("one of two servers is out, and the other is asked", func() bool {
		p.get(p.url + "/")
		return p.number("goodput_upstream_server_well"+of(gone)) == 0 && p.number("goodput_upstream_server_checks_failed_total"+of(upstream)) >= 1
	})
	for series, want := range map[string]float64{
		`goodput_lasting_cut_total{class="events",limit="idle"}`:  1,
		`goodput_lasting_cut_total{class="events",limit="total"}`: 0,
		`goodput_lasting_cut_total{class="long",limit="idle"}`:    0,
		`goodput_lasting_cut_total{class="long",limit="total"}`:   2,
		"goodput_upstream_server_limit" + of(upstream):            3,
		"goodput_upstream_server_limit" + of(gone):                7,
		"goodput_upstream_server_ejections_total" + of(gone):      1,
		"goodput_upstream_server_failures_total" + of(gone):       3,
		"goodput_upstream_server_share" + of(gone):                0,
		"goodput_upstream_server_failures_total" + of(upstream):   0,
		"goodput_upstream_server_ejections_total" + of(upstream):  0,
		"goodput_upstream_server_share" + of(upstream):            1,
	} {
		if got := p.number(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if all, bad := p.number("goodput_upstream_server_requests_total"+of(upstream)), p.number("goodput_upstream_server_checks_failed_total"+of(upstream)); all < bad+3 {
		t.Errorf("%v requests at the server that is well, and %v checks", all, bad)
	}
	p.fill()
	if _, err := os.Stat("/proc/self/net/netstat"); err == nil && p.number("goodput_accept_queue_overflows_total") < 0 {
		t.Error("what the kernel counts is not there")
	}
}

// fill opens three connections where there may be two, and waits until that is counted.
func (p *process) fill() {
	p.Helper()
	http.DefaultClient.CloseIdleConnections()
	for range 3 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), patience)
		if err != nil {
			p.Fatal(err)
		}
		defer c.Close()
	}
	p.eventually("the listener is full", func() bool {
		return p.number("goodput_listener_full_total"+p.listener()) >= 1 && p.number("goodput_listener_full_seconds_total"+p.listener()) > 0
	})
	if n := p.number("goodput_listener_paused_seconds_total" + p.listener()); n != 0 {
		p.Errorf("accepts were held back for %v s, and nothing is overloaded", n)
	}
}

// pause_accepts of a file: under a standing overload connections are held back.
func TestFileHoldsBackAccepts(t *testing.T) {
	upstream, _ := backend(t, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }) // wall clock: the work
	p := serveFile(t, policyFile(t, fmt.Sprintf(`version: 1
listen: {address: "127.0.0.1:0", pause_accepts: 5ms}
upstream: %s
limit: 1
objective: 200ms
service: 20ms
`, upstream)))
	var all sync.WaitGroup
	defer all.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for range 40 {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), patience)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for {
				select {
				case <-stop:
					return
				default:
				}
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n") // the read fails then
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
			}
		})
	}
	p.eventually("accepts are held back", func() bool {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), patience)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		return p.number("goodput_listener_paused_seconds_total"+p.listener()) > 0
	})
}
