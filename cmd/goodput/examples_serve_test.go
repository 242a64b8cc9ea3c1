package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// serveExample serves an example as it is, but for its addresses, and for what a test
// changes: it listens on a free port, what is behind it is at upstream, and who is believed
// is this machine.
func serveExample(t *testing.T, name, upstream string, change ...string) *process {
	t.Helper()
	text, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	src := string(text)
	for from, to := range map[string]string{
		`"127.0.0.1:8080"`: `"127.0.0.1:0"`, `":8080"`: `"127.0.0.1:0"`, `":8443"`: `"127.0.0.1:0"`,
		"127.0.0.1:9000": upstream, "127.0.0.1:9001": upstream, "127.0.0.1:9002": strings.Replace(upstream, "127.0.0.1", "localhost", 1), "127.0.0.1:8000": upstream,
		"[10.0.0.0/8]": "[127.0.0.1]",
	} {
		src = strings.ReplaceAll(src, from, to)
	}
	return serveFile(t, policyFile(t, strings.NewReplacer(change...).Replace(src)))
}

// arrived fails unless so many requests have come to a class.
func (p *process) arrived(class string, n int) {
	p.Helper()
	if got := p.metric(fmt.Sprintf(`goodput_arrivals_total{limiter=%q}`, class)); got != fmt.Sprint(n) {
		p.Errorf("%s had %s requests, want %d", class, got, n)
	}
}

// request sends a request and returns the answer, whose body is read.
func (p *process) request(client *http.Client, method, path string, header ...string) (*http.Response, string) {
	p.Helper()
	req, err := http.NewRequest(method, p.url+path, http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res, string(body)
}

// echoHeaders answers with what it was asked.
func echoHeaders(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"))
}

func TestExampleServesOneService(t *testing.T) {
	upstream, _ := backend(t, echoHeaders)
	p := serveExample(t, "one-service.yaml", strings.TrimPrefix(upstream, "http://"))
	res, body := p.request(http.DefaultClient, "GET", "/a")
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(body, "/a 19") { // of the 2 s that the file gives
		t.Errorf("%d %q", res.StatusCode, body)
	}
	p.arrived("default", 1)
}

// Look-ups and reports meet limits of their own, and a WebSocket one of its own.
func TestExampleServesTwoClasses(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			echoHeaders(w, r)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		io.WriteString(conn, line)
	})
	p := serveExample(t, "two-classes.yaml", strings.TrimPrefix(upstream, "http://"))
	for _, path := range []string{"/reports", "/export/x", "/reports-old", "/"} {
		if res, body := p.request(http.DefaultClient, "GET", path); res.StatusCode != http.StatusOK || !strings.HasPrefix(body, path) {
			t.Errorf("%s: %d %q", path, res.StatusCode, body)
		}
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
	var last string
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		last = lines.Text()
	}
	if last != "hello" {
		t.Errorf("the WebSocket says %q", last)
	}
	p.arrived("reports", 2)
	p.arrived("lookups", 2)
	p.arrived("live", 1)
}

// A call and a stream meet limits of their own; what is no gRPC has the last one.
func TestExampleServesGRPC(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the service is spoken to in %s", r.Proto)
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		io.WriteString(w, r.Header.Get("Grpc-Timeout"))
	})
	p := serveExample(t, "grpc.yaml", strings.TrimPrefix(upstream, "http://"))
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: h2}}
	defer client.CloseIdleConnections()
	res, body := p.request(client, "POST", "/shop.v1.Catalog/Get", "Content-Type", "application/grpc+proto", "Te", "trailers", "Grpc-Timeout", "1S")
	if res.StatusCode != http.StatusOK || res.Trailer.Get("Grpc-Status") != "0" || !strings.HasSuffix(body, "u") && !strings.HasSuffix(body, "m") {
		t.Errorf("%d %v %q", res.StatusCode, res.Trailer, body) // what is left of a second, less 5 ms
	}
	p.request(client, "POST", "/shop.v1.Catalog/Watch", "Content-Type", "application/grpc", "Te", "trailers")
	p.request(client, "GET", "/robots.txt")
	p.arrived("calls", 1)
	p.arrived("feeds", 1)
	p.arrived("rest", 1)
	if _, err := http.Get(p.url); err == nil {
		t.Error("HTTP/1.1 is spoken, and the file says h2")
	}
}

// What the edge says of a request counts: here, that acme may have no more than its part,
// while there is room for others.
func TestExampleServesLLM(t *testing.T) {
	finish := make(chan struct{})
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") == "acme" {
			<-finish
		}
	})
	p := serveExample(t, "llm.yaml", strings.TrimPrefix(upstream, "http://"), "weight: 3, max_in_use: 24", "weight: 3, max_in_use: 1")
	answers := make(chan int, 2)
	for range 2 {
		go func() {
			req, _ := http.NewRequest("POST", p.url+"/v1/completions", http.NoBody)
			req.Header = http.Header{"X-Tenant": {"acme"}, "X-Tokens": {"1200"}}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				answers <- 0
				return
			}
			res.Body.Close()
			answers <- res.StatusCode
		}()
	}
	p.eventually("one of acme runs and one waits", func() bool {
		return p.metric(`goodput_requests_waiting{limiter="default"}`) == "1"
	})
	if res, body := p.request(http.DefaultClient, "POST", "/v1/completions", "X-Tenant", "umbrella"); res.StatusCode != http.StatusOK {
		t.Errorf("another tenant: %d %q", res.StatusCode, body)
	}
	close(finish)
	for range 2 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("acme: %d", code)
		}
	}
	p.arrived("default", 3)
}
