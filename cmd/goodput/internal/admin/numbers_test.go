package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/watch"
	"github.com/goodput/goodput/limit"
)

// series parses the text format: name{labels} -> value.
func series(t *testing.T, a *Admin) map[string]float64 {
	t.Helper()
	_, body := get(t, a, "GET", "/metrics")
	out := map[string]float64{}
	for l := range strings.Lines(body) {
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(l, ' ')
		v, err := strconv.ParseFloat(l[i+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		out[l[:i]] = v
	}
	return out
}

// Every series is there at 0 before anything happened, with the units in its
// name.
func TestSeriesExistFromTheStart(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond})
	got := series(t, a)
	zero := []string{
		`goodput_arrivals_total{limiter="default"}`,
		`goodput_limit_changes_total{cause="law",direction="up",limiter="default"}`, `goodput_limit_changes_total{cause="law",direction="down",limiter="default"}`,
		`goodput_limit_changes_total{cause="call",direction="up",limiter="default"}`, `goodput_limit_changes_total{cause="call",direction="down",limiter="default"}`,
		`goodput_observe{limiter="default"}`, `goodput_shadow_requests_total{limiter="default",outcome="completed",reason=""}`,
		`goodput_dropped_total{limiter="default"}`, `goodput_limit_search{limiter="default"}`,
		`goodput_requests_total{limiter="default",outcome="completed",reason=""}`,
		`goodput_requests_total{limiter="default",outcome="late",reason=""}`,
		`goodput_requests_total{limiter="default",outcome="failed",reason=""}`,
		`goodput_requests_total{limiter="default",outcome="abandoned",reason=""}`,
		`goodput_requests_total{limiter="default",outcome="cancelled",reason="client"}`,
		`goodput_requests_total{limiter="default",outcome="expired",reason="deadline"}`,
		`goodput_requests_total{limiter="default",outcome="expired",reason="doomed"}`,
		`goodput_admissions_total{limiter="default",path="immediate"}`, `goodput_admissions_total{limiter="default",path="queued"}`,
		`goodput_queue_depth{limiter="default"}`, `goodput_queue_size_bytes{limiter="default"}`, `goodput_queue_age_seconds{limiter="default"}`,
		`goodput_concurrency_usage{limiter="default"}`, `goodput_requests_waiting{limiter="default"}`, `goodput_requests_running{limiter="default"}`,
		`goodput_upstream_failures_total{kind="unreachable"}`, `goodput_demand_ratio{limiter="default"}`,
	}
	for _, reason := range []string{"queue_full", "bytes_full", "too_costly", "too_large", "no_budget", "shed", "displaced", "wait_bound", "unavailable", "draining"} {
		zero = append(zero, fmt.Sprintf(`goodput_requests_total{limiter="default",outcome="rejected",reason="%s"}`, reason))
	}
	for _, outcome := range []string{"admitted", "refused", "cancelled"} {
		zero = append(zero, fmt.Sprintf(`goodput_queue_duration_seconds_count{limiter="default",outcome="%s"}`, outcome),
			fmt.Sprintf(`goodput_queue_duration_seconds_bucket{limiter="default",outcome="%s",le="0.005"}`, outcome))
	}
	for _, outcome := range []string{"completed", "late", "failed", "abandoned"} {
		zero = append(zero, fmt.Sprintf(`goodput_service_duration_seconds_count{limiter="default",outcome="%s"}`, outcome))
	}
	for _, name := range zero {
		if v, ok := got[name]; !ok || v != 0 {
			t.Errorf("%s is %v, there: %v", name, v, ok)
		}
	}
	for name, want := range map[string]float64{
		`goodput_concurrency_limit{limiter="default"}`: 60, `goodput_objective_seconds{limiter="default"}`: 0.4,
		`goodput_queue_size_limit_bytes{limiter="default"}`: 64 << 20,
		`goodput_connections_usage{kind="open"}`:            3, `goodput_connections_usage{kind="upgraded"}`: 1,
		`goodput_connections_limit{kind="upgraded"}`:     9,
		`goodput_upstream_failures_total{kind="broken"}`: 2, `goodput_upstream_refusals_total`: 11,
		`goodput_deadline_errors_total{header="Expect-Within"}`: 4,
		`goodput_deadlines_total{source="cap"}`:                 7, `goodput_deadlines_total{source="none"}`: 8,
		`goodput_bodies_refused_total{kind="slow"}`: 5, `goodput_bodies_refused_total{kind="malformed"}`: 10,
		`goodput_slow_clients_total`: 6, `goodput_bodies_buffered_bytes`: 12,
		`goodput_upgrades_total{result="upgraded"}`: 13, `goodput_upgrades_total{result="refused"}`: 14,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// The derivation is one value. Log, state, page and refusal show the same
// string, and the metrics have the same numbers.
func TestDerivationIsTheSameEverywhere(t *testing.T) {
	lim, a := newAdmin(goodput.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Service: 50 * time.Millisecond})
	a.Enter(Ready)
	want := lim.Stats().Derivation

	var log bytes.Buffer
	watch.New(slog.New(slog.NewJSONHandler(&log, nil))).Step(time.Now(), lim.Stats())
	var entry struct{ Derivation string }
	if err := json.Unmarshal(log.Bytes(), &entry); err != nil || entry.Derivation != want.String() {
		t.Errorf("the log has %q, %v; want %q", entry.Derivation, err, want)
	}

	_, body := get(t, a, "GET", "/api/v1/state")
	var state State
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&state); err != nil {
		t.Fatal(err)
	}
	got := state.Limiters[0].Derivation
	if got.Text != want.String() {
		t.Errorf("the state has %q, want %q", got.Text, want)
	}
	if _, page := get(t, a, "GET", "/"); !strings.Contains(strings.Join(strings.Fields(page), " "), want.String()) {
		t.Errorf("the page has no %q:\n%s", want, page)
	}
	if _, err := lim.AcquireWork(context.Background(), goodput.Work{Cost: 1000}); err == nil {
		t.Error("a cost above the limit was admitted")
	} else if rej := (*goodput.Rejection)(nil); !errors.As(err, &rej) || rej.Derivation.String() != want.String() || !strings.Contains(err.Error(), want.String()) {
		t.Errorf("the refusal has %q, want %q", err, want)
	}

	m := series(t, a)
	for name, pair := range map[string][2]float64{
		"concurrency_limit":        {float64(want.Limit), float64(got.Limit)},
		"queue_derived_limit":      {float64(want.Depth), float64(got.Depth)},
		"service_expected_seconds": {want.Mean.Seconds(), got.MeanSeconds},
		"service_quantile_seconds": {want.Service.Seconds(), got.ServiceSeconds},
		"objective_seconds":        {want.Objective.Seconds(), got.ObjectiveSeconds},
		"capacity_per_second":      {want.Rate, got.CapacityPerSecond},
	} {
		if v := m[fmt.Sprintf("goodput_%s{limiter=%q}", name, "default")]; v != pair[0] || v != pair[1] || v == 0 {
			t.Errorf("goodput_%s is %v, the derivation has %v, the state %v", name, v, pair[0], pair[1])
		}
	}
}

// C126: numbers that nobody has measured yet are numbers all the same: the
// state is JSON before the first request, and in observe mode.
func TestStateIsJSONFromTheStart_C126(t *testing.T) {
	for _, observe := range []bool{false, true} {
		_, a := newAdmin(goodput.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Observe: observe})
		_, body := get(t, a, "GET", "/api/v1/state")
		var state State
		if err := json.Unmarshal([]byte(body), &state); err != nil || state.Version != 1 || len(state.Limiters) != 1 {
			t.Fatalf("%v\n%s", err, body)
		}
		if (state.Limiters[0].Shadow != nil) != observe {
			t.Errorf("observe %v: shadow %v", observe, state.Limiters[0].Shadow)
		}
		if _, err := io.WriteString(io.Discard, body); err != nil || strings.Contains(body, "NaN") {
			t.Errorf("%s", body)
		}
	}
}
