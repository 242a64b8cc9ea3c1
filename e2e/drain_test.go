//go:build linux

package e2e

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// SIGTERM under three times the capacity: who was accepted gets an answer, newcomers
// are served during the delay and refused after it, and the exit code is 0
// within the time that was allowed.
func TestTermUnderOverload_C090(t *testing.T) {
	const (
		term    = 3 * time.Second
		delay   = time.Second
		timeout = 5 * time.Second
	)
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL(), "--drain-delay", delay.String(), "--drain-timeout", timeout.String())
	done := make(chan openloop.Result, 1)
	start := time.Now()
	go func() { done <- offer(p.URL(), term+delay+time.Second, false) }()
	time.Sleep(time.Until(start.Add(term)))
	p.Signal(t, syscall.SIGTERM)
	time.Sleep(delay / 2)
	if status, text := ask(t, p, "/readyz"); status != http.StatusServiceUnavailable || text != "draining" {
		t.Errorf("/readyz during the delay: %d %s", status, text)
	}
	code := p.Exit(t, delay+timeout+time.Second)
	took := time.Since(start) - term
	r := <-done
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
	during, draining, closed := 0, 0, 0
	for _, a := range r.Answers {
		switch {
		case openloop.OK(a) && a.Due >= term && a.Due < term+delay:
			during++
		case openloop.OK(a), outOfTime(a) && !punctual(t, r):
		case a.Reason == "draining":
			draining++
		case a.Reason != "":
		case a.Due >= term+delay && a.Status == 0 && hungUp(a.Err):
			closed++
		default:
			t.Errorf("due at %v, answered after %v: %d, %v", a.Due, a.Latency, a.Status, a.Err)
		}
	}
	if during == 0 {
		t.Error("nothing was served during the delay")
	}
	c := s.Counts(t)
	if c.Peak > slots || c.Errors > 0 {
		t.Errorf("the service had %d requests at once and %d errors", c.Peak, c.Errors)
	}
	if ok := r.Count(openloop.OK) + r.Count(outOfTime); c.Served != int64(ok) {
		t.Errorf("the service executed %d requests, %d callers heard of it", c.Served, ok)
	}
	figure(t, "SIGTERM", "exit 0 after %s, %s of it the delay; served during the delay %d, refused as draining %d, no connection afterwards %d; %d executed, as many answered",
		millis(took), millis(delay), during, draining, closed, c.Served)
}

// hungUp reports whether err is what a client sees of a listener that closes: it
// is refused; reset, if it had connected and not been accepted; or hung up on, if
// its request was read after that (net/http drops it then). None was executed.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
}

// busy starts goodput with every slot taken for so long, and as many requests
// waiting as it has slots. The answers come through the returned channel.
func busy(t *testing.T, ms string, args ...string) (*rig.Proxy, <-chan answer) {
	t.Helper()
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL(), append([]string{"--objective", "20s"}, args...)...)
	answers := make(chan answer, 2*slots)
	for range slots {
		c := connect(t, p, get("/work?ms="+ms))
		go func() { answers <- read(c) }()
	}
	eventually(t, p, 5*time.Second, "every slot is taken", func(l rig.Limiter) bool { return l.InUse == slots })
	for range slots {
		c := connect(t, p, get("/work?ms=10"))
		go func() { answers <- read(c) }()
	}
	eventually(t, p, 5*time.Second, "as many wait", func(l rig.Limiter) bool { return l.Waiting == slots })
	return p, answers
}

// An answer is what came over one connection.
type answer struct {
	status int
	reason string
	close  bool
	err    error
}

func read(c net.Conn) answer {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return answer{err: err}
	}
	_, err = io.Copy(io.Discard, res.Body)
	return answer{res.StatusCode, res.Header.Get("Goodput-Rejected"), res.Close, err}
}

// tally counts answers by kind.
func tally(t *testing.T, answers <-chan answer) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	for range 2 * slots {
		a := <-answers
		switch {
		case a.err != nil:
			kinds["cut"]++
		case a.reason != "":
			kinds[a.reason]++
			if !a.close {
				t.Errorf("%+v does not close its connection", a)
			}
		case a.status == http.StatusOK:
			kinds["served"]++
		default:
			kinds[http.StatusText(a.status)]++
		}
	}
	return kinds
}

// Who runs and who waits is served; a newcomer on a kept connection is told.
func TestTermServesWhoWaits(t *testing.T) {
	p, answers := busy(t, "1500", "--drain-timeout", "10s")
	kept := connect(t, p, "")
	p.Signal(t, syscall.SIGTERM)
	eventually(t, p, 2*time.Second, "it drains", func(rig.Limiter) bool { return strings.Contains(p.Log(), "draining") })
	time.Sleep(100 * time.Millisecond)
	if _, err := io.WriteString(kept, get("/work")); err != nil {
		t.Fatal(err)
	}
	if a := read(kept); a.status != http.StatusServiceUnavailable || a.reason != "draining" || !a.close {
		t.Errorf("a newcomer was answered %+v", a)
	}
	if kinds := tally(t, answers); kinds["served"] != 2*slots {
		t.Errorf("%d ran or waited: %v", 2*slots, kinds)
	}
	if code := p.Exit(t, 5*time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
}

// What does not end within the timeout: who waits is refused, who runs is cut,
// the exit code is 1 and the log says so.
func TestTermTimeout(t *testing.T) {
	p, answers := busy(t, "5000", "--drain-timeout", "1s")
	start := time.Now()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Exit(t, 2*time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	took := time.Since(start)
	if kinds := tally(t, answers); kinds["draining"] != slots || kinds["cut"] != slots {
		t.Errorf("%d ran, as many waited: %v", slots, kinds)
	}
	if !strings.Contains(p.Log(), "20 running requests and 0 upgraded connections were cut") {
		t.Errorf("the log does not say what happened:\n%s", p.Log())
	}
	figure(t, "drain timeout 1 s", "exit 1 after %s", millis(took))
}

// The second signal ends it at once.
func TestSecondTermEndsAtOnce(t *testing.T) {
	p, answers := busy(t, "5000", "--drain-timeout", "20s")
	p.Signal(t, syscall.SIGTERM)
	eventually(t, p, 2*time.Second, "it drains", func(rig.Limiter) bool { return strings.Contains(p.Log(), "draining") })
	start := time.Now()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Exit(t, time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	figure(t, "second SIGTERM", "exit 1 after %s", millis(time.Since(start)))
	tally(t, answers)
}
