//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// The service has 20 connections and a query takes 50 ms: 400 requests a second,
// and three times as many arrive.
const (
	slots    = rig.DatabaseConnections
	service  = 50 * time.Millisecond
	capacity = float64(slots) * float64(time.Second) / float64(service) // 400/s
	overload = 3 * capacity

	objective = 400 * time.Millisecond
	deadline  = 2 * time.Second
)

func TestMain(m *testing.M) {
	code := m.Run()
	figures.print()
	if shared.db != nil {
		shared.db.Stop()
	}
	rig.Clean()
	os.Exit(code)
}

var shared struct {
	once sync.Once
	db   *rig.Database
	err  error
}

// database returns the cluster that all tests share.
func database(t *testing.T) *rig.Database {
	t.Helper()
	rig.Need(t, "initdb")
	shared.once.Do(func() { shared.db, shared.err = rig.StartDatabase() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.db
}

// protect starts goodput with the limit and the objective of these tests.
func protect(t *testing.T, upstream string, args ...string) *rig.Proxy {
	t.Helper()
	return rig.Protect(t, upstream, append([]string{
		"--limit", strconv.Itoa(slots), "--objective", objective.String(),
	}, args...)...)
}

// offer runs an open loop at a multiple of the capacity against url.
func offer(url string, length time.Duration, http2 bool) openloop.Result {
	return openloop.Run(context.Background(), openloop.Plan{
		URL: url + "/work", Rate: overload, Duration: length, Deadline: deadline, HTTP2: http2, Seed: 1,
	})
}

// warm sends the first requests, which are not part of what a test judges, and
// returns what goodput held before them.
func warm(t *testing.T, p *rig.Proxy) rig.Baseline {
	t.Helper()
	base := p.Baseline(t)
	for _, http2 := range []bool{false, true} {
		r := openloop.Run(context.Background(), openloop.Plan{
			URL: p.URL() + "/work?ms=1", Rate: 50, Duration: 200 * time.Millisecond, Deadline: deadline, HTTP2: http2, Seed: 1,
		})
		if failed := r.Count(func(a openloop.Answer) bool { return !openloop.OK(a) }); failed > 0 {
			t.Fatalf("goodput does not work at all: %v", r)
		}
	}
	p.Rest(t, 5*time.Second)
	return base
}

// noRetry are the refusals after which the same request cannot win.
var noRetry = map[string]int{
	"no_budget": http.StatusServiceUnavailable, "doomed": http.StatusServiceUnavailable,
	"deadline": http.StatusGatewayTimeout, "draining": http.StatusServiceUnavailable,
}

// retryLater are those after which it can.
var retryLater = map[string]bool{
	"queue_full": true, "bytes_full": true, "shed": true, "displaced": true, "wait_bound": true,
	"unavailable": true,
}

// explained checks that each answer is a success or a refusal that says what it
// must, and returns how many refusals there were of each reason.
func explained(t *testing.T, r openloop.Result) map[string]uint64 {
	t.Helper()
	reasons := map[string]uint64{}
	bad, late := 0, r.Count(outOfTime)
	if late > 0 && punctual(t, r) {
		t.Errorf("%d were admitted and then not served within their deadline, 40 service times", late)
	}
	for _, a := range r.Answers {
		if a.Reason != "" {
			reasons[a.Reason]++
		}
		if outOfTime(a) {
			continue
		}
		if problem := unexplained(a); problem != "" {
			if bad++; bad <= 5 {
				t.Errorf("due at %v, answered after %v: %s", a.Due, a.Latency, problem)
			}
		}
	}
	if bad > 5 {
		t.Errorf("and %d more", bad-5)
	}
	return reasons
}

// outOfTime matches what started and was cut off at its deadline: on a machine
// that stands still for so long.
func outOfTime(a openloop.Answer) bool {
	return a.Status == http.StatusGatewayTimeout && a.Reason == ""
}

func unexplained(a openloop.Answer) string {
	after := a.Header.Get("Retry-After")
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case a.Reason == "" && a.Status == http.StatusOK:
		return ""
	case a.Reason == "":
		return fmt.Sprintf("%d without Goodput-Rejected", a.Status)
	case retryLater[a.Reason]:
		seconds, err := strconv.Atoi(after)
		if a.Status != http.StatusServiceUnavailable || err != nil || seconds < 1 || seconds > 30 {
			return fmt.Sprintf("%s: %d, Retry-After %q", a.Reason, a.Status, after)
		}
	case noRetry[a.Reason] != 0:
		if a.Status != noRetry[a.Reason] || after != "" {
			return fmt.Sprintf("%s: %d, Retry-After %q", a.Reason, a.Status, after)
		}
	default:
		return fmt.Sprintf("%d %s is not in the table", a.Status, a.Reason)
	}
	return ""
}

// agree checks that goodput counted exactly what the callers got. Nobody left
// early, so there is no end that only one side knows of.
func agree(t *testing.T, r openloop.Result, before, after rig.Limiter) {
	t.Helper()
	reasons := explained(t, r)
	compare := func(what string, callers, counted uint64) {
		if callers != counted {
			t.Errorf("%s: callers got %d, goodput counted %d", what, callers, counted)
		}
	}
	compare("arrivals", uint64(len(r.Answers)), after.Counts.Arrivals-before.Counts.Arrivals)
	compare("started", uint64(r.Count(openloop.OK)+r.Count(outOfTime)), started(after)-started(before))
	for _, e := range after.Counts.Ends {
		if e.Reason != "" {
			compare(e.Reason, reasons[e.Reason], e.Count-before.Refused(e.Reason))
		}
	}
}

// started returns how many requests ended that had started, of clients that stay.
func started(l rig.Limiter) uint64 { return l.Ended("completed") + l.Ended("late") + l.Ended("failed") }

// figures are printed at the end: go test -v shows them.
var figures table

type table struct {
	mu   sync.Mutex
	rows []string
}

// figure keeps a measured value for the table.
func figure(t *testing.T, name, format string, args ...any) {
	t.Helper()
	value := fmt.Sprintf(format, args...)
	t.Logf("%s: %s", name, value)
	figures.mu.Lock()
	defer figures.mu.Unlock()
	figures.rows = append(figures.rows, fmt.Sprintf("%s\t%s\t%s", strings.TrimPrefix(t.Name(), "Test"), name, value))
}

func (f *table) print() {
	if len(f.rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFIGURES\n"+strings.Join(f.rows, "\n")+"\n")
	w.Flush() //nolint:errcheck // stdout
}

// millis is for figures.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + " ms" }
