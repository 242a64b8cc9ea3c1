package verify

import (
	"context"
	"errors"
	"hash/crc64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/cmd/goodput/internal/verify/servers"
)

// The whole run against services that are good and services that are broken, in virtual time
// and without a network: exact, and in a second what takes ten minutes. Over the wire it is in
// verify_broken_test.go of the program.

// in offers the load to a handler in this process.
func in(h http.Handler, deadline time.Duration) load.Send {
	table := crc64.MakeTable(crc64.ISO)
	return func(ctx context.Context) (a load.Answer) {
		defer func() {
			if recover() == http.ErrAbortHandler {
				a = load.Answer{Err: errors.New("connection reset")}
			}
		}()
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", strconv.FormatInt((deadline-load.Spent(ctx)).Milliseconds(), 10))
		h.ServeHTTP(w, r)
		if ctx.Err() != nil {
			return load.Answer{Err: ctx.Err()}
		}
		a = load.Answer{Status: w.Code, RetryAfter: w.Header().Get("Retry-After")}
		a.Reason, a.Marked = w.Header().Get("Goodput-Rejected"), w.Header().Get("Goodput-Rejected") != ""
		if !a.Marked && (w.Code == 503 || w.Code == 429) {
			a.Reason = "status"
		}
		kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
		a.Content = load.Content{Type: kind, Size: int64(w.Body.Len()), Sum: crc64.Checksum(w.Body.Bytes(), table)}
		return a
	}
}

// verified runs all of it but the connections.
func verified(t *testing.T, h func() http.Handler, edit func(*Config)) (out *Report) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{ // the virtual clock begins anew each time, and so must the service
			Settings: Settings{
				Method: "GET", Deadline: servers.Deadline, Objective: servers.Objective, Loads: []float64{0.5, 1, 1.5, 3},
				Length: 2 * time.Second, Calm: 3 * time.Second, Attempts: 1, Seed: 1, MaxRate: 20_000, MaxRequests: 1_000_000,
			},
			Target: &Target{URL: &url.URL{Scheme: "http", Host: "in.process"}},
		}
		edit(&cfg)
		r := &run{cfg: cfg, report: newReport(cfg), send: in(h(), cfg.Deadline)}
		r.measure(t.Context())
		Judge(r.report)
		out = r.report
	})
	return out
}

func failedNames(r *Report) (all []string) {
	for _, c := range r.failed() {
		all = append(all, c.Name)
	}
	return all
}

func shown(r *Report) string {
	var b strings.Builder
	_ = r.Text(&b, 120, false)
	return b.String()
}

// capacities is the one of all of them: given, which is exact, or found.
var capacities = map[string]float64{"given": 400, "found": 0}

// TestBrokenServersFailTheCriterionNamedForThem, and those broken in one thing only no other.
func TestBrokenServersFailTheCriterionNamedForThem(t *testing.T) {
	for _, s := range servers.AllBroken() {
		for how, capacity := range capacities {
			if s.Only && how == "found" {
				continue // they serve as the good ones do, and nothing of the search is about the rest
			}
			t.Run(s.Name+", capacity "+how, func(t *testing.T) {
				r := verified(t, s.New, func(c *Config) { c.Capacity = capacity })
				got := failedNames(r)
				for _, name := range s.Fails {
					if !slices.Contains(got, name) {
						t.Errorf("%s is not among %q (void: %q)\n%s", name, got, r.Void, shown(r))
					}
				}
				if s.Only && !slices.Equal(got, s.Fails) {
					t.Errorf("it fails %q, and should %q only\n%s", got, s.Fails, shown(r))
				}
			})
		}
	}
}

func TestGoodServersPass(t *testing.T) {
	for _, s := range servers.AllGood() {
		for how, capacity := range capacities {
			t.Run(s.Name+", capacity "+how, func(t *testing.T) {
				r := verified(t, s.New, func(c *Config) { c.Capacity, c.Objective = capacity, s.Objective })
				if !r.Certified() {
					t.Errorf("void %q\n%s", r.Void, shown(r))
				}
			})
		}
	}
}
