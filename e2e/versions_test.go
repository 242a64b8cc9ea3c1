//go:build linux

package e2e

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// The same arrivals over HTTP/1.1 and over HTTP/2, at three times the capacity, are
// decided in the same way: as many are admitted, the others are refused for the same
// reasons, and who is admitted is as fast. The first are thousands of connections with
// a request each, the others one connection with thousands of streams.
func TestBothVersionsDecideAlike(t *testing.T) {
	const (
		slots     = 10
		work      = 20 * time.Millisecond // 10 slots / 20 ms = 500/s
		rate      = 3 * 500.0
		length    = 2500 * time.Millisecond
		objective = 200 * time.Millisecond
		deadline  = time.Second
	)
	type played struct {
		share, p99 float64
		reasons    map[string]float64 // of what was refused, the share
		punctual   bool
	}
	var got [2]played
	for i, name := range []string{"HTTP/1.1", "h2c"} {
		s := &counted{work: work}
		p := rig.Protect(t, "http://"+rig.Handle(t, s), "--limit", strconv.Itoa(slots), "--objective", objective.String())
		before := p.Limiter(t)
		r := openloop.Run(context.Background(), openloop.Plan{
			URL: p.URL() + "/", Rate: rate, Duration: length, Deadline: deadline, HTTP2: i == 1, Seed: 7,
		})
		agree(t, r, before, p.Rest(t, 5*time.Second))
		one := played{reasons: map[string]float64{}, punctual: punctual(t, r)}
		one.share = float64(r.Count(openloop.OK)) / float64(len(r.Answers))
		one.p99 = r.Quantile(0.99, openloop.Latency, openloop.OK).Seconds()
		refused := float64(r.Count(openloop.Refused))
		for _, a := range r.Answers {
			if a.Reason != "" {
				one.reasons[a.Reason] += 1 / refused
			}
		}
		got[i] = one
		figure(t, name, "%.3f of %d admitted, p99 %.0f ms; refused: %s", one.share, len(r.Answers), one.p99*1e3, shares(one.reasons))
	}
	if !got[0].punctual || !got[1].punctual {
		return
	}
	// A third of 3,750 is admitted, and each slot gives what the sleep of the service
	// takes: a busy machine makes 20 ms 21, which is 5 % of a third. Poisson arrivals
	// are the same in both.
	if d := math.Abs(got[0].share - got[1].share); d > 0.05/3+0.01 {
		t.Errorf("admitted: %.3f and %.3f", got[0].share, got[1].share)
	}
	if d := math.Abs(got[0].p99 - got[1].p99); d > objective.Seconds()/4 || max(got[0].p99, got[1].p99) > objective.Seconds()*1.25 {
		t.Errorf("p99 %.0f ms and %.0f ms", got[0].p99*1e3, got[1].p99*1e3)
	}
	for reason := range retryLater {
		if d := math.Abs(got[0].reasons[reason] - got[1].reasons[reason]); d > 0.15 {
			t.Errorf("%s: %.3f of the refusals and %.3f", reason, got[0].reasons[reason], got[1].reasons[reason])
		}
	}
}

func shares(of map[string]float64) string {
	var all []string
	for _, reason := range []string{"queue_full", "displaced", "shed", "wait_bound", "no_budget", "doomed", "deadline"} {
		if of[reason] > 0 {
			all = append(all, fmt.Sprintf("%s %.3f", reason, of[reason]))
		}
	}
	return strings.Join(all, ", ")
}

// h2load is a closed loop in both versions: every request is answered, by the service or
// with a refusal, and none fails on the way.
func TestH2load(t *testing.T) {
	h2load := rig.Need(t, "h2load")
	const slots, requests, clients = 10, 6000, 60
	for name, args := range map[string][]string{
		"HTTP/1.1": {"--h1", "-c", strconv.Itoa(clients)},
		"h2c":      {"-c", "4", "-m", strconv.Itoa(clients / 4)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &counted{work: 5 * time.Millisecond}
			p := rig.Protect(t, "http://"+rig.Handle(t, s), "--limit", strconv.Itoa(slots), "--objective", "25ms")
			args := append([]string{"-n", strconv.Itoa(requests), "-T", "10", "-N", "20"}, args...)
			out, err := exec.Command(h2load, append(args, p.URL()+"/")...).CombinedOutput()
			if err != nil {
				t.Fatalf("h2load: %v\n%s", err, out)
			}
			done := numbers(t, string(out), `requests: (\d+) total, \d+ started, (\d+) done, \d+ succeeded, \d+ failed, (\d+) errored, (\d+) timeout`)
			codes := numbers(t, string(out), `status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
			l := p.Rest(t, 5*time.Second)
			ok, refused := codes[0], codes[3]
			if done[1] != requests || done[2]+done[3] > 0 || ok+refused != requests || ok == 0 || refused == 0 {
				t.Errorf("h2load says:\n%s", out)
			}
			if started(l) != uint64(ok) || s.served.Load() != int64(ok) || l.Counts.Arrivals != requests {
				t.Errorf("%d were served by its count, %d by the service's: %v", ok, s.served.Load(), l)
			}
			figure(t, "h2load", "%d requests: %d served, %d refused, %s", requests, ok, refused,
				regexp.MustCompile(`finished in [^,]*`).FindString(string(out)))
		})
	}
}

// numbers reads the groups of an expression in what a program said.
func numbers(t *testing.T, text, expression string) (all []int) {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s is not in what it said:\n%s", expression, text)
	}
	for _, digits := range found[1:] {
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// What the service answers itself is passed on over both, whatever it is.
func TestForeignStatusPasses(t *testing.T) {
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil {
			panic(err)
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
	})
	p := rig.Protect(t, "http://"+rig.Handle(t, upstream), "--limit", "2")
	for _, http2 := range []bool{false, true} {
		tr := replayless(http2)
		defer tr.CloseIdleConnections()
		for _, status := range []int{200, 204, 304, 404, 429, 500, 503, 504} {
			req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/%d", p.URL(), status), nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close() //nolint:errcheck // there is none
			if res.StatusCode != status || res.Header.Get("Retry-After") != "7" || res.Header.Get("Goodput-Rejected") != "" {
				t.Errorf("%d came as %s, %v", status, res.Status, res.Header)
			}
		}
	}
	p.Rest(t, 5*time.Second)
}
