package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An admin stands for goodput as its admin listener shows it: what it has in /metrics and in the
// state is what a test says.
type admin struct {
	mu       sync.Mutex
	series   map[string]float64
	limiters []map[string]any
	policy   map[string]string
	reload   func()    // POST /-/reload
	looked   func(int) // before the n-th answer of the state
	looks    int       // of the state
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /metrics":
		fmt.Fprint(w, a.metrics())
	case "GET /api/v1/state":
		if a.looks++; a.looked != nil {
			a.looked(a.looks)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"limiters": a.limiters, "policy": a.policy})
	case "POST /-/reload":
		a.reload()
	default:
		http.NotFound(w, r)
	}
}

// RoundTrip answers without a connection, so that time may be that of a bubble.
func (a *admin) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result(), nil
}

func (a *admin) metrics() string {
	var b strings.Builder
	typed := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(a.series)) {
		name, _, _ := strings.Cut(key, "{")
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		} else if base, is := strings.CutSuffix(name, "_seconds_count"); is {
			name, kind = base+"_seconds", "histogram"
		}
		if !typed[name] {
			typed[name] = true
			fmt.Fprintf(&b, "# TYPE %s %s\n", name, kind)
		}
		fmt.Fprintf(&b, "%s %g\n", key, a.series[key])
	}
	return b.String()
}

// drop takes away the series of a name.
func (a *admin) drop(name string) {
	maps.DeleteFunc(a.series, func(key string, _ float64) bool {
		n, _, _ := strings.Cut(key, "{")
		return n == name
	})
}

// atRestSeries are what must be 0 at rest: the whole list, as a second one beside gauges.
var atRestSeries = []string{
	`goodput_requests_running{limiter="plain"}`, `goodput_requests_waiting{limiter="plain"}`,
	`goodput_concurrency_usage{limiter="plain"}`, `goodput_queue_depth{limiter="plain"}`,
	`goodput_queue_size_bytes{limiter="plain"}`, `goodput_queue_age_seconds{limiter="plain"}`,
	`goodput_exempt_running{limiter="plain"}`, `goodput_bodies_buffered_bytes`, `goodput_finishing_requests`,
	`goodput_lasting_requests{class="lasting"}`, `goodput_tunnels{class="lasting"}`,
	`goodput_upstream_server_in_flight{server="http://127.0.0.1:1",upstream="plain"}`,
	`goodput_upstream_server_in_flight{server="http://127.0.0.1:1",upstream="auto"}`,
}

// quiet is goodput at rest after twelve requests.
func quiet() *admin {
	a := &admin{series: map[string]float64{
		"go_goroutines": 92, "go_memstats_heap_inuse_bytes": 1 << 20,
		`goodput_request_log_lines_total{log="access"}`: 12, `goodput_request_log_lines_total{log="record"}`: 12,
		`goodput_request_log_dropped_total{log="access"}`: 0, `goodput_request_log_dropped_total{log="record"}`: 0,
		`goodput_arrivals_total{limiter="plain"}`: 7, `goodput_arrivals_total{limiter="auto"}`: 5, `goodput_arrivals_total{limiter="lasting"}`: 0,
		`goodput_requests_total{limiter="plain",outcome="completed",reason=""}`:          6,
		`goodput_requests_total{limiter="plain",outcome="rejected",reason="queue_full"}`: 1,
		`goodput_requests_total{limiter="auto",outcome="completed",reason=""}`:           5,
		`goodput_requests_total{limiter="lasting",outcome="completed",reason=""}`:        0,
	}, policy: map[string]string{"sha256": "the first"}}
	for _, class := range []string{"plain", "auto", "lasting"} {
		a.series[fmt.Sprintf("goodput_request_duration_seconds_count{limiter=%q}", class)] = 6
		for _, key := range atRestSeries {
			a.series[strings.ReplaceAll(key, `limiter="plain"`, fmt.Sprintf("limiter=%q", class))] = 0
		}
		a.limiters = append(a.limiters, map[string]any{"name": class, "in_use": 0, "running": 0, "waiting": 0, "waiting_cost": 0, "waiting_bytes": 0})
	}
	return a
}

// played is a run in which quiet was before the clients, whose access log has their twelve requests.
func played(t *testing.T) (*stage, *admin) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid()) // which has memory and open files
	if err != nil {
		t.Fatal(err)
	}
	a := quiet()
	s := &stage{Run: Run{Dir: t.TempDir(), Length: time.Minute, Every: time.Minute, Say: t.Logf}, operator: newOperator("goodput"), serve: &process{cmd: &exec.Cmd{Process: self}, ended: make(chan struct{})}}
	s.operator.client.Transport = a
	s.r, s.tally = newReport(s.Run), newTally(s.Length)
	s.rng = slowly(0)
	s.policy = filepath.Join(s.Dir, "policy.yaml")
	access := filepath.Join(s.Dir, "access.log")
	text := strings.Repeat(`{"limiter":"plain","outcome":"completed"}`+"\n", 6) + `{"limiter":"plain","outcome":"rejected"}` + "\n" + strings.Repeat(`{"limiter":"auto","outcome":"completed"}`+"\n", 5)
	if err := os.WriteFile(access, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ledger = newLedger(access)
	s.tally.told = Told{Sent: 12, OK: 11, Refused: 1}
	s.clock()
	s.crowd = newCrowd("", s.begin, s.tally)
	if s.last, err = s.operator.scrape(); err != nil {
		t.Fatal(err)
	}
	return s, a
}

// said is what Judge says of a criterion.
func said(t *testing.T, r *Report, name string) Criterion {
	t.Helper()
	for _, c := range Judge(r) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no criterion %s", name)
	return Criterion{}
}
