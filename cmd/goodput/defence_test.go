package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// adminAsks sends a request to the admin listener as a browser or a script would.
func (p *process) adminAsks(method, path, host string, headers ...string) int {
	p.Helper()
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.admin, "http://"), patience)
	if err != nil {
		p.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) // TCP
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method, path, host, strings.Join(headers, ""))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// Whoever has a page open in the operator's browser can neither read the admin listener nor
// make it do something, and whoever sends requests to the service cannot reach it at all.
func TestAdminIsForTheOperator(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serveFile(t, policyFile(t, fmt.Sprintf(twoClasses, upstream, 2)))
	at := strings.TrimPrefix(p.admin, "http://")
	for _, c := range []struct {
		method, path, host string
		headers            []string
		want               int
	}{
		{"POST", "/-/reload", at, nil, 200},
		{"POST", "/-/reload", "localhost", nil, 200},
		{"POST", "/-/reload", at, []string{"Origin: http://" + at + "\r\n"}, 200},
		{"POST", "/-/reload", at, []string{"Sec-Fetch-Site: same-origin\r\n"}, 200},
		{"POST", "/-/reload", at, []string{"Origin: http://evil.example\r\n"}, 403},
		{"POST", "/-/reload", at, []string{"Origin: null\r\n"}, 403},
		{"POST", "/-/reload", at, []string{"Origin: http://localhost:1\r\n"}, 403},
		{"POST", "/-/reload", at, []string{"Sec-Fetch-Site: cross-site\r\n"}, 403},
		{"POST", "/-/reload", at, []string{"Sec-Fetch-Site: same-site\r\n"}, 403},
		{"POST", "/-/reload", "evil.example", nil, 403},
		{"POST", "/-/reload", "evil.example", []string{"Origin: http://evil.example\r\n", "Sec-Fetch-Site: same-origin\r\n"}, 403},
		{"GET", "/-/reload", at, nil, 405},
		{"HEAD", "/-/reload", at, nil, 405},
		{"PUT", "/-/reload", at, nil, 405},
		{"DELETE", "/-/reload", at, nil, 405},
		{"OPTIONS", "/-/reload", at, []string{"Origin: http://evil.example\r\n", "Access-Control-Request-Method: POST\r\n"}, 405},
		{"GET", "/metrics", "evil.example", nil, 403},
		{"GET", "/api/v1/state", "evil.example:80", nil, 403},
		{"POST", "/metrics", at, nil, 405},
		{"POST", "/-/quit", at, nil, 404},
		{"GET", "/debug/pprof/", at, nil, 404},
	} {
		if got := p.adminAsks(c.method, c.path, c.host, c.headers...); got != c.want {
			t.Errorf("%s %s at %s %q: %d, want %d", c.method, c.path, c.host, c.headers, got, c.want)
		}
	}
	if got := p.metric(`goodput_config_reloads_total{result="done"}`); got != "4" {
		t.Errorf("%s reloads were done", got)
	}
	if got := p.metric(`goodput_config_reloads_total{result="failed"}`); got != "0" {
		t.Errorf("%s reloads have failed", got)
	}
	for _, path := range []string{"/metrics", "/-/reload", "/api/v1/state", "/readyz", "/version"} {
		res, err := http.Post(p.url+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || !strings.HasPrefix(string(body), "hello") {
			t.Errorf("%s where clients connect is not the service's: %d %s", path, res.StatusCode, body)
		}
	}
	if got := p.metric(`goodput_config_reloads_total{result="done"}`); got != "4" {
		t.Errorf("%s reloads were done", got)
	}
}

const hostilePolicy = `version: 1
listen: 127.0.0.1:0
upstream: %s
trusted_proxies: [127.0.0.0/8]
limit: 50
objective: 1s
tenant: {header: X-Tenant}
user: {header: X-User}
priority: {header: X-Priority}
cost: {header: X-Cost, max: 8}
size: {header: X-Size}
deadline_headers: [{name: X-Server-Timeout, format: s}]
`

// C131: whatever clients invent, tenants, hosts, methods, paths, header names and what they say in
// them, neither the metrics nor the state have more to show for it, nor has the log.
func TestLabelsAreBounded_C131(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serveFile(t, policyFile(t, fmt.Sprintf(hostilePolicy, upstream)))
	p.invent(200) // whatever there is has been seen
	series, state, lines := p.sizes()
	p.invent(inventions())
	seriesThen, stateThen, linesThen := p.sizes()
	t.Logf("%d series, %d bytes of state, %d lines of log", seriesThen, stateThen, linesThen)
	if seriesThen != series {
		t.Errorf("%d series have become %d", series, seriesThen)
	}
	if stateThen > state+state/10 { // numbers get longer
		t.Errorf("%d bytes of state have become %d", state, stateThen)
	}
	if linesThen > lines+10 { // an overload may have begun
		t.Errorf("%d lines of log have become %d", lines, linesThen)
	}
}

// inventions is how many requests there are of which nothing was there before: ten thousand, or
// the hundred thousand of the case in the long runs.
func inventions() int {
	if os.Getenv("GOODPUT_MILLION") != "" {
		return 100_000
	}
	return 10_000
}

// invent sends requests of which nothing was there before.
func (p *process) invent(n int) {
	p.Helper()
	seed := rand.Uint64()
	p.Logf("seed %d", seed)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(worker)))
			c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), patience)
			if err != nil {
				p.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(3 * patience)) // TCP
			in := bufio.NewReader(c)
			word := func() string { return fmt.Sprintf("w%x", rng.Uint64()) }
			for range n / 8 {
				fmt.Fprintf(c, "%s /%s HTTP/1.1\r\nHost: %s.example\r\nX-Tenant: %s\r\nX-User: %s\r\nX-Priority: %s\r\nX-Cost: %d\r\nX-Size: %s\r\n"+
					"X-Server-Timeout: %s\r\nX-%s: %s\r\nGrpc-Timeout: %s\r\nUser-Agent: %s\r\n\r\n",
					strings.ToUpper(word()), word(), word(), word(), word(), word(), rng.IntN(10), word(), word(), word(), word(), word(), word())
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					p.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body) // only that there is one
				if res.StatusCode != 200 && res.StatusCode != 503 {
					p.Errorf("%s", res.Status)
				}
			}
		})
	}
	all.Wait()
}

// sizes returns how much there is of what an operator's tools keep.
func (p *process) sizes() (series, state, lines int) {
	p.Helper()
	_, metrics := p.get(p.admin + "/metrics")
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	_, body := p.get(p.admin + "/api/v1/state")
	p.mu.Lock()
	defer p.mu.Unlock()
	return series, len(body), len(p.log)
}

// A service that sends more than its answers cannot write into the log: net/http says so for
// each of them, with what was sent, to the log of the standard library.
func TestUpstreamCannotFillTheLog(t *testing.T) {
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
				in := bufio.NewReader(c)
				for {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n") // the read fails then
				}
			}()
		}
	}()
	p := serve(t, "http://"+l.Addr().String(), "--limit", "3")
	for range 50 {
		p.get(p.url)
	}
	_, _, lines := p.sizes()
	for _, e := range p.log[:lines] {
		if text := fmt.Sprint(e["msg"]); e["level"] == nil || strings.Contains(text, "Evil") {
			t.Errorf("the log has %v", e)
		}
	}
	if lines > 10 {
		t.Errorf("%d lines of log", lines)
	}
}
