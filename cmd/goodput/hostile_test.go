package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
)

// Must hold 7: whatever a client writes into its header is answered with a
// status, and the process goes on with nothing left behind.
func TestHostileHeaders(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, upstream, "--limit", "4", "--deadline-cap", "10s")
	huge := strings.Repeat("9", 400)
	for _, c := range []struct {
		lines string
		want  []int
	}{
		{"X-Envoy-Expected-Rq-Timeout-Ms: -1", []int{200}},
		{"X-Envoy-Expected-Rq-Timeout-Ms: " + huge, []int{200}},
		{"X-Envoy-Expected-Rq-Timeout-Ms: NaN", []int{200}},
		{"X-Envoy-Expected-Rq-Timeout-Ms: 0", []int{200}},
		{"X-Envoy-Expected-Rq-Timeout-Ms: 5000\r\nX-Envoy-Expected-Rq-Timeout-Ms: -7", []int{200}},
		{"Expect-Within: 0", []int{504}},
		{"Expect-Within: 1e300", []int{200}},
		{"Expect-Within: -1\r\nExpect-Within: Inf", []int{200}},
		{"Connect-Timeout-Ms: 99999999999999999999", []int{200}},
		{"Content-Type: application/grpc\r\nGrpc-Timeout: 99999999H", []int{200}},
		{"Content-Type: application/grpc\r\nGrpc-Timeout: -1S", []int{200}},
		{"Content-Type: application/grpc\r\nGrpc-Timeout: 1\xc2\xb5", []int{200, 400}},
		{"Content-Length: -1", []int{400}},
		{"Content-Length: 1\r\nContent-Length: 2", []int{400}},
		{"X-Forwarded-For: " + strings.Repeat("1.1.1.1, ", 5000), []int{200, 431}},
		{"X: " + strings.Repeat("a", 100_000), []int{431}},
		{strings.Repeat("X: a\r\n", 20_000) + "Y: b", []int{431}},
		{"Upgrade: \x01\x02\r\nConnection: upgrade", []int{400, 502}},
		{"Goodput-Rejected: queue_full", []int{200}},
		{"TE: " + strings.Repeat("trailers,", 100), []int{200}},
		{"Host: other", []int{400}},
	} {
		status := rawStatus(t, p, "GET /h HTTP/1.1\r\nHost: h\r\n"+c.lines+"\r\nConnection: close\r\n\r\n")
		found := false
		for _, want := range c.want {
			found = found || status == want
		}
		if !found {
			t.Errorf("%.80q: %d, want %v", c.lines, status, c.want)
		}
	}
	p.until("idle", func(l admin.LimiterState) bool { return l.Running+l.Waiting+l.InUse == 0 })
	if code, _ := p.get(p.url); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
}

func rawStatus(t *testing.T, p *process, request string) int {
	t.Helper()
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) // TCP
	go io.WriteString(c, request)           // it may be cut off
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Errorf("%.60q: no answer: %v", request, err)
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// While it sheds, the log has a beginning, at most a line a second, and an end;
// none of them per refusal.
func TestSheddingIsALineASecond(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond)
		hello(w, r)
	})
	p := serve(t, upstream, "--limit", "1", "--objective", "20ms", "--service", "5ms")
	begin := time.Now()
	statuses := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for time.Since(begin) < 2500*time.Millisecond {
				res, err := http.Get(p.url)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				if res.StatusCode == 503 && (res.Header.Get("Goodput-Rejected") == "" || res.Header.Get("Retry-After") == "" && res.Header.Get("Goodput-Rejected") == "queue_full") {
					t.Errorf("a refusal without a reason or a hint: %v", res.Header)
					return
				}
				mu.Lock()
				statuses[res.StatusCode]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	seconds := int(time.Since(begin)/time.Second) + 2 // the ticks of begin and end may both fall into it
	shed, began := p.said("shedding"), p.said("overload began")
	if statuses[200] == 0 || statuses[503] < 100 || len(statuses) != 2 {
		t.Fatalf("answers: %v", statuses)
	}
	if len(began) != 1 || len(shed) == 0 || len(shed) > seconds {
		t.Errorf("%d beginnings and %d lines in %d seconds, for %v", len(began), len(shed), seconds, statuses)
	}
	if reasons := fmt.Sprint(shed[0]["reason"]); shed[0]["refused"].(float64) == 0 || !strings.HasPrefix(reasons, "map[") {
		t.Errorf("%v", shed[0])
	}
}
