//go:build linux

package rig

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Proxy is a running goodput serve.
type Proxy struct {
	*Process
	Addr  string // of the data path
	Admin string
}

// Protect starts goodput in front of upstream.
func Protect(t testing.TB, upstream string, args ...string) *Proxy {
	t.Helper()
	return Serve(t, append([]string{
		"serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json",
	}, args...)...)
}

// ProtectBy starts goodput with a policy, the text of a file. Its listener is 127.0.0.1:0.
func ProtectBy(t testing.TB, policy string, args ...string) *Proxy {
	t.Helper()
	return Serve(t, append([]string{
		"serve", "--config", File(t, "goodput.yaml", policy), "--admin", "127.0.0.1:0", "--log-format", "json",
	}, args...)...)
}

// Serve starts goodput with these arguments, in which its log is JSON.
func Serve(t testing.TB, args ...string) *Proxy {
	t.Helper()
	p := &Proxy{Process: run(t, "goodput", exec.Command(Program(t), args...), syscall.SIGKILL)}
	err := p.line(10*time.Second, func(l string) bool {
		var e struct{ Msg, Addr, Admin string }
		if json.Unmarshal([]byte(l), &e) != nil || e.Msg != "serving" {
			return false
		}
		p.Addr, p.Admin = e.Addr, e.Admin
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Program returns the path of goodput.
func Program(t testing.TB) string {
	t.Helper()
	_, self, _, _ := runtime.Caller(0)
	return build(t, "E2E_PROGRAM", filepath.Join(filepath.Dir(self), "../../../cmd/goodput"))
}

// File writes a file for the length of a test and returns its path.
func File(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// URL returns where the data path is.
func (p *Proxy) URL() string { return "http://" + p.Addr }

// A Limiter is the part of a limiter in /api/v1/state that the tests judge.
type Limiter struct {
	InUse             int   `json:"in_use"`
	Running           int   `json:"running"`
	Waiting           int   `json:"waiting"`
	WaitingBytes      int64 `json:"waiting_bytes"`
	WaitingBytesLimit int64 `json:"waiting_bytes_limit"`
	Counts            struct {
		Arrivals uint64 `json:"arrivals"`
		Exempt   uint64 `json:"exempt_admissions"`
		Ends     []struct {
			Outcome string `json:"outcome"`
			Reason  string `json:"reason"`
			Count   uint64 `json:"count"`
		} `json:"ends"`
	} `json:"counts"`
}

// Limiter asks for the state of the only limiter.
func (p *Proxy) Limiter(t testing.TB) Limiter {
	t.Helper()
	var s struct {
		Limiters []Limiter `json:"limiters"`
	}
	getJSON(t, "http://"+p.Admin+"/api/v1/state", &s)
	if len(s.Limiters) != 1 {
		t.Fatalf("%d limiters in the state, want 1", len(s.Limiters))
	}
	return s.Limiters[0]
}

// Ended returns how many requests ended with outcome, for whatever reason.
func (l Limiter) Ended(outcome string) (n uint64) {
	for _, e := range l.Counts.Ends {
		if e.Outcome == outcome {
			n += e.Count
		}
	}
	return n
}

// Refused returns how many requests ended for reason.
func (l Limiter) Refused(reason string) (n uint64) {
	for _, e := range l.Counts.Ends {
		if e.Reason == reason {
			n += e.Count
		}
	}
	return n
}

// String lists the ends that occurred.
func (l Limiter) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d arrivals, %d in use, %d waiting, %d bytes:", l.Counts.Arrivals, l.InUse, l.Waiting, l.WaitingBytes)
	for _, e := range l.Counts.Ends {
		if e.Count > 0 {
			fmt.Fprintf(&b, " %s", e.Outcome)
			if e.Reason != "" {
				fmt.Fprintf(&b, "/%s", e.Reason)
			}
			fmt.Fprintf(&b, " %d", e.Count)
		}
	}
	return b.String()
}

// Rest waits until nothing runs or waits, and checks that then no slot is in
// use, no byte is held, and the outcomes add up to the arrivals, in the state
// and in the metrics.
func (p *Proxy) Rest(t testing.TB, within time.Duration) Limiter {
	t.Helper()
	deadline := time.Now().Add(within)
	var l Limiter
	var m Metrics
	for again := true; again; {
		if time.Now().After(deadline) {
			t.Fatalf("not at rest after %v: %v", within, l)
		}
		time.Sleep(50 * time.Millisecond)
		l, m = p.Limiter(t), p.Metrics(t)
		// A client that left is counted when that is noticed.
		again = l.Running > 0 || l.Waiting > 0 || p.Limiter(t).Counts.Arrivals != l.Counts.Arrivals
	}
	if l.InUse != 0 || l.WaitingBytes != 0 {
		t.Errorf("nothing runs or waits, but not everything was given back: %v", l)
	}
	var sum uint64
	for _, e := range l.Counts.Ends {
		sum += e.Count
	}
	if sum != l.Counts.Arrivals {
		t.Errorf("the outcomes add up to %d, not to the arrivals: %v", sum, l)
	}
	if arrivals, ended := m.Sum("goodput_arrivals_total"), m.Sum("goodput_requests_total"); arrivals != ended || arrivals != float64(l.Counts.Arrivals) {
		t.Errorf("metrics: %v arrivals and %v ends; the state had %d arrivals", arrivals, ended, l.Counts.Arrivals)
	}
	for _, gauge := range []string{"goodput_concurrency_usage", "goodput_requests_waiting", "goodput_requests_running", "goodput_queue_size_bytes"} {
		if v := m.Sum(gauge); v != 0 {
			t.Errorf("metrics: %s is %v at rest", gauge, v)
		}
	}
	return l
}

// Ask returns what the admin listener answers to a GET of path.
func (p *Proxy) Ask(path string) (status int, text string, err error) {
	res, err := client.Get("http://" + p.Admin + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// Metrics are the samples of one scrape, by series as it was printed.
type Metrics map[string]float64

// Metrics scrapes goodput.
func (p *Proxy) Metrics(t testing.TB) Metrics {
	t.Helper()
	m, err := p.scrape()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (p *Proxy) scrape() (Metrics, error) {
	res, err := client.Get("http://" + p.Admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics: %s", res.Status)
	}
	return parse(res.Body)
}

func parse(r io.Reader) (Metrics, error) {
	m := Metrics{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if at < 0 || err != nil {
			return nil, fmt.Errorf("/metrics: %q has no value", line)
		}
		m[line[:at]] = v
	}
	return m, lines.Err()
}

// Sum adds up the series of name; -1 if there are none.
func (m Metrics) Sum(name string) float64 {
	sum, found := 0.0, false
	for series, v := range m {
		if series == name || strings.HasPrefix(series, name+"{") {
			sum, found = sum+v, true
		}
	}
	if !found {
		return -1 // no metric of ours is negative
	}
	return sum
}

// A Baseline is what goodput holds while it is idle.
type Baseline struct {
	Vitals
	Goroutines int
}

// Baseline is the most of each in ten looks: a question that ends, and one that
// begins, are a goroutine or two more or less.
func (p *Proxy) Baseline(t testing.TB) Baseline {
	t.Helper()
	most := p.look(t)
	for range 9 {
		time.Sleep(20 * time.Millisecond)
		now := p.look(t)
		most.Files = max(most.Files, now.Files)
		most.Threads = max(most.Threads, now.Threads)
		most.Goroutines = max(most.Goroutines, now.Goroutines)
	}
	return most
}

func (p *Proxy) look(t testing.TB) Baseline {
	t.Helper()
	return Baseline{Vitals: p.Vitals(t), Goroutines: int(p.Metrics(t).Sum("go_goroutines"))}
}

// threadsKept is how many threads more than before may be left. Go keeps a
// thread once it has made one, and makes one more whenever all of them are in
// system calls that take longer than 20 µs; two processors need few of them.
const threadsKept = 16

// Leaks waits until goodput holds no more files and goroutines than it did
// before. Idle connections to the service are closed after 4 s, so that long it
// may take; the clients' connections must have been closed.
func (p *Proxy) Leaks(t testing.TB, before Baseline) Baseline {
	t.Helper()
	const within = 10 * time.Second
	deadline := time.Now().Add(within)
	for {
		now := p.look(t)
		if now.Files <= before.Files && now.Goroutines <= before.Goroutines {
			if now.Threads > before.Threads+threadsKept {
				t.Errorf("%d threads, %d before", now.Threads, before.Threads)
			}
			return now
		}
		if time.Now().After(deadline) {
			t.Errorf("after %v goodput still holds %d files (%d before) and %d goroutines (%d before)\n%s",
				within, now.Files, before.Files, now.Goroutines, before.Goroutines, p.sockets())
			return now
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// MostWaitingBytes scrapes goodput_queue_size_bytes every 10 ms until stop is
// closed and returns the most that it saw and how often it looked.
func (p *Proxy) MostWaitingBytes(stop <-chan struct{}) (most int64, scrapes int, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return most, scrapes, nil
		case <-tick.C:
		}
		m, err := p.scrape()
		if err != nil {
			return most, scrapes, err
		}
		most = max(most, int64(m.Sum("goodput_queue_size_bytes")))
		scrapes++
	}
}
