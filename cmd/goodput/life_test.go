package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
)

// The derivation of the first log line is the one of the state and the page.
func TestServeSaysWhatItDerived(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, upstream, "--limit", "60", "--objective", "400ms", "--service", "50ms")
	if code, body := p.get(p.admin + "/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("%d %q", code, body)
	}
	// The log is written beside the listeners, and may come a moment later.
	l := p.until("the depth is in the log", func(admin.LimiterState) bool { return len(p.said("derived depth")) > 0 })
	derived := p.said("derived depth")
	if len(derived) != 1 || derived[0]["derivation"] != l.Derivation.Text || !strings.Contains(l.Derivation.Text, "60 slots / 50ms") {
		t.Errorf("the log has %v, the state %q", derived, l.Derivation.Text)
	}
	// The page has it in lines of 80 columns.
	if _, page := p.get(p.admin + "/"); !strings.Contains(oneLine(page), oneLine(l.Derivation.Text)) {
		t.Errorf("%s", page)
	}
	if code, body := p.get(p.url + "/x"); code != 200 || body != "hello in HTTP/1.1\n" {
		t.Errorf("%d %q", code, body)
	}
	p.until("completed", func(l admin.LimiterState) bool { return count(l, "completed", "") == 1 })
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if len(p.said("stopped")) != 1 {
		t.Error("the last word is missing")
	}
}

// oneLine is a text without its line breaks and indents.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestBothProtocolsFromOutside(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, strings.Replace(upstream, "http://", "h2c://", 1), "--limit", "3", "--admin", "off")
	if p.admin != "" {
		t.Errorf("admin is off, and at %s", p.admin)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	for _, c := range []*http.Client{http.DefaultClient, {Transport: &http.Transport{Protocols: protocols}}} {
		res, err := c.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "hello in HTTP/2.0\n" {
			t.Errorf("%s: %s", res.Proto, body)
		}
		c.CloseIdleConnections()
	}
}

// C090: SIGTERM under load. The balancer hears of it by /readyz alone, some
// time later; until then it sends, over connections that it keeps. No request
// fails.
func TestSIGTERMUnderLoadLosesNothing_C090(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, upstream, "--limit", "8", "--drain-delay", "1s")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience}
	var noticed atomic.Bool // by the balancer
	var sent, closed, after atomic.Int64
	var wg sync.WaitGroup
	termed := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for !noticed.Load() {
				res, err := client.Get(p.url)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 {
					t.Errorf("%s, %v", res.Status, err)
				}
				sent.Add(1)
				if res.Close {
					closed.Add(1)
				}
				select {
				case <-termed:
					after.Add(1)
				default:
				}
			}
		})
	}
	for sent.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	p.signal(syscall.SIGTERM)
	close(termed)
	for {
		if code, _ := p.get(p.admin + "/readyz"); code == http.StatusServiceUnavailable {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for seen := after.Load(); after.Load() < seen+200; { // the balancer is slow to react
		time.Sleep(time.Millisecond)
	}
	noticed.Store(true)
	wg.Wait()
	l := p.state()
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if closed.Load() == 0 || count(l, "rejected", "draining") != 0 || int64(count(l, "completed", "")) != sent.Load() {
		t.Errorf("%d sent, %d after the signal, %d answers closed their connection; %+v", sent.Load(), after.Load(), closed.Load(), l.Counts)
	}
}

// SIGTERM with a queue: who waits is served or told, and the second signal ends
// it at once.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	upstream, _ := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	p := serve(t, upstream, "--limit", "1", "--objective", "1m", "--service", "1s")
	for range 2 {
		go http.Get(p.url) // it is cut
	}
	p.until("one runs, one waits", func(l admin.LimiterState) bool { return l.Running == 1 && l.Waiting == 1 })
	p.signal(syscall.SIGTERM)
	p.until("draining", func(l admin.LimiterState) bool { return l.Draining })
	if code, _ := p.get(p.admin + "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("readyz is %d", code)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitRun {
		t.Errorf("exit code %d", code)
	}
}

func TestDrainTimeoutIsTold(t *testing.T) {
	upstream, _ := backend(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := serve(t, upstream, "--limit", "1", "--objective", "1m", "--service", "1s", "--drain-timeout", "300ms")
	statuses := make(chan int, 2)
	for range 2 {
		go func() {
			res, err := http.Get(p.url)
			if err != nil {
				statuses <- 0
				return
			}
			res.Body.Close()
			statuses <- res.StatusCode
		}()
	}
	p.until("one runs, one waits", func(l admin.LimiterState) bool { return l.Running == 1 && l.Waiting == 1 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitRun {
		t.Errorf("exit code %d", code)
	}
	if a, b := <-statuses, <-statuses; a+b != http.StatusServiceUnavailable { // the other was cut
		t.Errorf("answers %d and %d", a, b)
	}
	if len(p.said("the drain timeout of 300ms has passed: 1 running requests and 0 upgraded connections were cut")) != 1 {
		t.Errorf("%v", p.log)
	}
}

// The service dies under load: who was at it gets a 502, the others are refused as
// unavailable, nothing hangs, and every arrival is accounted for.
func TestUpstreamKilledUnderLoad(t *testing.T) {
	upstream, srv := backend(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(2 * time.Millisecond)
		hello(w, r)
	})
	p := serve(t, upstream, "--limit", "4", "--objective", "400ms")
	var wg sync.WaitGroup
	var sent, good, bad, other atomic.Int64
	for range 8 {
		wg.Go(func() {
			for bad.Load() < 100 {
				sent.Add(1)
				res, err := http.Get(p.url)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				switch res.StatusCode {
				case 200:
					if good.Add(1) == 100 {
						srv.Close()
					}
				case http.StatusBadGateway, http.StatusServiceUnavailable:
					if why := res.Header.Get("Goodput-Rejected"); (why == "unavailable") == (res.StatusCode == http.StatusServiceUnavailable) {
						bad.Add(1)
					} else {
						other.Add(1) // a queue that was full
					}
				default:
					other.Add(1)
				}
			}
		})
	}
	wg.Wait()
	l := p.until("idle", func(l admin.LimiterState) bool { return l.Running+l.Waiting+l.InUse == 0 })
	if l.Counts.Arrivals != uint64(sent.Load()) || count(l, "failed", "")+count(l, "rejected", "unavailable") < uint64(bad.Load()) {
		t.Errorf("%d sent: %d good, %d bad, %d other; %+v", sent.Load(), good.Load(), bad.Load(), other.Load(), l.Counts)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if lines := len(p.said("upstream failed")); lines == 0 || lines > 3 {
		t.Errorf("%d log lines about the upstream", lines)
	}
}

// In observe mode everybody runs, and what would have been refused is told.
func TestObserveRefusesNobody(t *testing.T) {
	const clients = 40 // more than the few that may wait where the objective is out of reach
	entered, release := make(chan struct{}, clients), make(chan struct{})
	upstream, _ := backend(t, func(_ http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
	})
	p := serve(t, upstream, "--limit", "1", "--objective", "100ms", "--service", "90ms", "--observe")
	statuses := make(chan int, clients)
	for range clients {
		go func() {
			code, _ := p.get(p.url)
			statuses <- code
		}()
	}
	for range clients {
		<-entered // all at once
	}
	close(release)
	for range clients {
		if code := <-statuses; code != 200 {
			t.Errorf("answer %d", code)
		}
	}
	l := p.until("idle", func(l admin.LimiterState) bool { return l.Running == 0 })
	var shadow uint64
	for _, e := range l.Shadow {
		if e.Outcome == "rejected" {
			shadow += e.Count
		}
	}
	if !l.Observe || shadow == 0 || l.Counts.Arrivals != clients {
		t.Errorf("%d would have been refused: %+v", shadow, l)
	}
}
