package verify

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// No load of a search is above --max-rate, neither of those that double nor of those that
// climb, and the first is far below it, however quick the service is.
func TestSearchStaysBelowTheRate(t *testing.T) {
	var mu sync.Mutex
	var next time.Time
	limited := func(context.Context) load.Answer { // 199.2/s of evenly spaced ones, or every other one
		time.Sleep(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Before(next) {
			return refusal
		}
		next = now.Add(5020 * time.Microsecond)
		return load.Answer{Status: 200}
	}
	for name, tc := range map[string]struct {
		send load.Send
		rate float64
	}{
		"doubles": {slotted(20, 100, 20*time.Millisecond).send, 180}, // 1000/s; 11.25, 22.5, 45, 90, 180
		"half":    {slotted(20, 100, 50*time.Millisecond).send, 190}, // 10, 20, 40, 80, 160, and not 320
		"climbs":  {limited, 200},                                    // 12.5 to 200, then from 110 on to 195, and not 214
	} {
		r := searched(t, tc.send, func(s *Settings) { s.MaxRate = tc.rate })
		if n := len(r.Capacity.Probes); n < 4 || r.Capacity.Probes[0].Rate > tc.rate/16 {
			t.Errorf("%s: %d loads, void %q", name, n, r.Void)
		}
		top := 0.0
		for _, p := range r.Capacity.Probes {
			top = max(top, p.Rate)
		}
		if top > tc.rate || top < 0.9*tc.rate {
			t.Errorf("%s: up to %v/s, with --max-rate %v", name, top, tc.rate)
		}
	}
}

// Callers of a search ask once, and how late its generator may be depends on when they leave.
func TestLoadsOfASearch(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{2 * time.Second: 50 * time.Millisecond, 400 * time.Millisecond: 40 * time.Millisecond} {
		r := searched(t, slotted(4, 2, 20*time.Millisecond).send, func(s *Settings) { s.Attempts, s.Deadline, s.Objective = 3, deadline, deadline })
		refused := int64(0)
		for _, p := range r.Capacity.Probes {
			if p.Result.Plan.Tolerance != want || p.Result.Plan.Follow != 0 || p.Result.Attempts != p.Result.Sent {
				t.Errorf("%v: at %v/s tolerance %v, want %v; %d attempts of %d", deadline, p.Rate, p.Result.Plan.Tolerance, want, p.Result.Attempts, p.Result.Sent)
			}
			refused += p.Result.Refused
		}
		if refused == 0 {
			t.Error("nobody was refused: nothing is shown")
		}
	}
}

// A search whose loads could not be offered has no answer: it asks three times, and says why.
func TestSearchThatCouldNotBeOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Settings: settings(), Target: &Target{URL: &url.URL{Scheme: "http", Host: "service"}}}
		r := &run{cfg: cfg, send: slotted(4, 8, 20*time.Millisecond).send, report: newReport(cfg), inFlight: 1}
		r.measure(t.Context())
		if !strings.Contains(r.report.Void, "the capacity was not found: at ") || !strings.Contains(r.report.Void, "dropped, since 1 were in flight") {
			t.Errorf("void %q", r.report.Void)
		}
	})
}

// What was asked for and does not fit is known before anybody is connected to; who was
// interrupted hears that; and nobody goes on asking a target that is gone.
func TestRunEndsEarly(t *testing.T) {
	gone := &Target{URL: &url.URL{Scheme: "http", Host: "service"}}
	cfg := given(func(c *Config) { c.Target, c.MaxRate = gone, 599 })
	if r := Run(t.Context(), cfg); !strings.Contains(r.Void, "more than --max-rate 599/s allows") {
		t.Errorf("void %q", r.Void)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Run(over, given(func(c *Config) { c.Target = gone })); r.Void != "interrupted before its end" {
		t.Errorf("interrupted: void %q", r.Void)
	}
	s := slotted(4, 8, 20*time.Millisecond)
	r := measured(t, given(nil), func(ctx context.Context) load.Answer {
		s.mu.Lock()
		seen := s.seen
		s.mu.Unlock()
		if seen >= 50+3+200+3 { // idle, calm, 0.5x, calm
			return load.Answer{Err: context.DeadlineExceeded}
		}
		return s.send(ctx)
	})
	if len(r.Steps) != 2 {
		t.Errorf("%d steps, want 2: the target was gone in the second; void %q", len(r.Steps), r.Void)
	}
}

// What comes before the loads is within the caps too: requests one after another, and their number.
func TestIdleIsWithinTheCaps(t *testing.T) {
	cfg := given(func(c *Config) { c.MaxRequests, c.Capacity = 10, 0 })
	if r := measured(t, cfg, slotted(4, 8, 20*time.Millisecond).send); r.Void != "--max-requests has no room for the 50 requests to the idle service, with which a run begins: raise it" {
		t.Errorf("void %q", r.Void)
	}
	var sent []time.Time
	s := slotted(4, 8, 20*time.Millisecond)
	cfg = given(func(c *Config) { c.MaxRate, c.Capacity, c.Loads = 2, 1, []float64{0.5, 2} })
	measured(t, cfg, func(ctx context.Context) load.Answer {
		sent = append(sent, time.Now()) // one after another: none runs beside another
		return s.send(ctx)
	})
	// 10 s of 2/s, and three before the first load.
	for i := 1; i < 23; i++ {
		if gap := sent[i].Sub(sent[i-1]); gap < time.Second/2 {
			t.Errorf("request %d came %v after the one before, with --max-rate 2", i, gap)
		}
	}
}
