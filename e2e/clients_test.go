//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// eventually waits until the limiter is as the test wants it, and returns how
// long that took.
func eventually(t *testing.T, p *rig.Proxy, within time.Duration, what string, is func(rig.Limiter) bool) time.Duration {
	t.Helper()
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		l := p.Limiter(t)
		if is(l) {
			return time.Since(start)
		}
		if time.Since(start) > within {
			t.Fatalf("after %v it is not so that %s: %v", within, what, l)
		}
	}
}

// connect opens a connection and sends text over it.
func connect(t *testing.T, p *rig.Proxy, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test may have closed it
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// get is a request without a body, in HTTP/1.1.
func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: e2e\r\n\r\n" }

// post is the head of a request with a body of so many bytes, and its beginning.
func post(path string, length int, body string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: e2e\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n" + body
}

// leave closes connections, every other one with a reset.
func leave(conns []net.Conn) {
	for i, c := range conns {
		if i%2 == 1 {
			c.(*net.TCPConn).SetLinger(0) //nolint:errcheck // the close does it
		}
		c.Close() //nolint:errcheck // leaving is the point
	}
}

// Clients leave while they wait, while they run and in the middle of the answer.
// Each is counted as what it was, none as a failure of the service, and who left
// the queue was never executed.
func TestClientsLeave_C006_C074_C085(t *testing.T) {
	s := database(t).Serve(t, slots)
	// Long enough that nothing here is refused for waiting too long.
	p := protect(t, s.URL(), "--objective", "20s")
	base := p.Baseline(t)

	var running, waiting, reading []net.Conn
	for range slots {
		running = append(running, connect(t, p, get("/work?ms=3000")))
	}
	eventually(t, p, 5*time.Second, "every slot is taken", func(l rig.Limiter) bool { return l.InUse == slots })
	const kinds, each = 4, 5
	for range each {
		waiting = append(waiting,
			connect(t, p, get("/work")),
			connect(t, p, post("/work", 5, "hello")),
			connect(t, p, post("/work", 100_000, strings.Repeat("x", 100_000))),
			// More than is read in advance, and it does not come.
			connect(t, p, post("/work", 8<<20, "hello")))
	}
	eventually(t, p, 2*time.Second, "all of them wait", func(l rig.Limiter) bool { return l.Waiting == kinds*each })

	leave(waiting)
	took := eventually(t, p, 2*time.Second, "nobody waits", func(l rig.Limiter) bool { return l.Waiting == 0 })
	if l := p.Limiter(t); l.Ended("cancelled") != kinds*each || l.WaitingBytes != 0 || l.InUse != slots {
		t.Errorf("%d clients left the queue: %v", kinds*each, l)
	}
	figure(t, "left the queue", "%d clients noticed within %s, a quarter of them with 8 MiB unsent", kinds*each, millis(took))

	leave(running)
	took = eventually(t, p, 2*time.Second, "nobody runs", func(l rig.Limiter) bool { return l.Running == 0 })
	if l := p.Limiter(t); l.Ended("abandoned") != slots {
		t.Errorf("%d clients left before the answer: %v", slots, l)
	}
	figure(t, "left before the answer", "%d slots back within %s", slots, millis(took))

	first := make([]byte, 1)
	for range slots {
		c := connect(t, p, get("/stream?chunks=1000&ms=10"))
		if _, err := io.ReadFull(c, first); err != nil {
			t.Fatal(err)
		}
		reading = append(reading, c)
	}
	leave(reading)
	took = eventually(t, p, 2*time.Second, "nobody runs", func(l rig.Limiter) bool { return l.Running == 0 })
	figure(t, "left in the middle of it", "%d slots back within %s", slots, millis(took))

	l := p.Rest(t, 5*time.Second)
	if l.Ended("abandoned") != 2*slots || l.Ended("failed") != 0 || l.Counts.Arrivals != 2*slots+kinds*each {
		t.Errorf("in the end: %v", l)
	}
	if n := p.Metrics(t).Sum("goodput_upstream_failures_total"); n != 0 {
		t.Errorf("%v failures of the service were counted, it had none", n)
	}
	for deadline := time.Now().Add(5 * time.Second); s.Counts(t).Running > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if c := s.Counts(t); c.Served != slots {
		t.Errorf("the service executed %d requests; %d ran, the others left before", c.Served, slots)
	}
	p.Leaks(t, base)
}

// The same under three times the capacity: 200 more a second leave whenever they
// like, over HTTP/1.1 and HTTP/2, and the rest are served as if nothing were.
func TestClientsLeaveUnderOverload_C006_C085(t *testing.T) {
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL())
	base := warm(t, p)
	before := p.Limiter(t)
	const length = 6 * time.Second
	var leavers sync.WaitGroup
	left := 0
	leavers.Go(func() { left = leaveAtRandom(t, p, length) })
	r := offer(p.URL(), length, false)
	leavers.Wait()

	after := p.Rest(t, 5*time.Second)
	for reason, n := range explained(t, r) {
		if counted := after.Refused(reason) - before.Refused(reason); counted < n {
			t.Errorf("%s: callers got %d, goodput counted %d", reason, n, counted)
		}
	}
	// Who leaves before its request was read never arrived.
	arrived := after.Counts.Arrivals - before.Counts.Arrivals
	if sent := uint64(len(r.Answers)); arrived < sent || arrived > sent+uint64(left) {
		t.Errorf("%d arrivals, but %d were sent by clients that stay and %d by those that leave", arrived, sent, left)
	}
	if after.Ended("failed") > 0 {
		t.Errorf("clients that leave are no failures: %v", after)
	}
	if after.Ended("abandoned") == 0 {
		t.Errorf("of %d none left while it ran, so this test shows nothing: %v", left, after)
	}
	figure(t, "ends", "%d stay, %d leave: abandoned %d, cancelled %d; the service, which goes on with what is abandoned, had %d at once",
		len(r.Answers), left, after.Ended("abandoned"), after.Ended("cancelled"), s.Counts(t).Peak)
	s.Kill()
	p.Leaks(t, base)
}

// leaveAtRandom sends 200 requests a second that leave after 0 to 120 ms, two
// service times, and returns how many there were.
func leaveAtRandom(t *testing.T, p *rig.Proxy, length time.Duration) int {
	rng := rand.New(rand.NewPCG(2, 2))
	clients := map[bool]*http.Client{}
	for _, http2 := range []bool{false, true} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!http2)
		protocols.SetUnencryptedHTTP2(http2)
		tr := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Second}
		defer tr.CloseIdleConnections()
		clients[http2] = &http.Client{Transport: tr}
	}
	var all sync.WaitGroup
	sent := 0
	for end := time.Now().Add(length); time.Now().Before(end); sent++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Float64()*float64(120*time.Millisecond)))
		path, body := "/work", ""
		switch rng.IntN(3) {
		case 0:
			path = "/stream?chunks=100&ms=5"
		case 1:
			body = strings.Repeat("x", 10_000)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL()+path, strings.NewReader(body))
		if body == "" {
			req, err = http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+path, nil)
		}
		if err != nil {
			t.Error(err)
			cancel()
			break
		}
		client := clients[rng.IntN(2) == 1]
		all.Go(func() {
			defer cancel()
			if res, err := client.Do(req); err == nil {
				io.Copy(io.Discard, res.Body) //nolint:errcheck // it leaves in the middle
				res.Body.Close()              //nolint:errcheck // it has left
			}
		})
		time.Sleep(5 * time.Millisecond)
	}
	all.Wait()
	return sent
}

// Bodies that trickle in hold a connection, not a slot, if they may be read in
// advance: with three times as many of them as slots the others are served at the
// rate that the service has.
func TestSlowBodiesHoldNoSlot_C095(t *testing.T) {
	for _, c := range []struct {
		name string
		head string
	}{
		{"length", post("/work", 1000, "")},
		{"chunked", "POST /work HTTP/1.1\r\nHost: e2e\r\nTransfer-Encoding: chunked\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := database(t).Serve(t, slots)
			p := protect(t, s.URL())
			base := warm(t, p)
			before := s.Counts(t)
			stop, trickling := make(chan struct{}), sync.WaitGroup{}
			for range 3 * slots {
				conn := connect(t, p, c.head)
				trickling.Go(func() { trickle(conn, c.name == "chunked", stop) })
			}
			time.Sleep(300 * time.Millisecond) // they have what they can get
			r := offer(p.URL(), 4*time.Second, false)
			explained(t, r)
			after := s.Counts(t)
			after.BusySeconds -= before.BusySeconds
			after.Served -= before.Served
			report(t, r, after)
			close(stop)
			trickling.Wait()
			p.Rest(t, 5*time.Second)
			s.Kill()
			p.Leaks(t, base)
		})
	}
}

// trickle sends a byte of a body every 100 ms, and then leaves.
func trickle(c net.Conn, chunked bool, stop <-chan struct{}) {
	piece := "x"
	if chunked {
		piece = "1\r\nx\r\n"
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	defer c.Close() //nolint:errcheck // leaving is the point
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if _, err := io.WriteString(c, piece); err != nil {
				return // it was answered
			}
		}
	}
}

// A slow body that ends is a request like any other.
func TestSlowBodyIsServed(t *testing.T) {
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL())
	c := connect(t, p, post("/work", 10, ""))
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		fmt.Fprint(c, "x")
	}
	answer := make([]byte, 12)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 200" {
		t.Errorf("a body that took a second was answered %q, %v", answer, err)
	}
	c.Close() //nolint:errcheck // it has been answered
	if l := p.Rest(t, 5*time.Second); l.Ended("completed") != 1 {
		t.Errorf("%v", l)
	}
}
