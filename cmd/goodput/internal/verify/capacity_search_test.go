package verify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// What a search asks is written here in figures and not in the names that the code has for them:
// a bound that is loosened there is not to be loosened here with it.

// rates are those of the loads of a search, in order.
func rates(r *Report) (all []float64) {
	for _, p := range r.Capacity.Probes {
		all = append(all, p.Rate)
	}
	return all
}

// last is how many loads at the end of a search were the same.
func last(all []float64) (n int) {
	for n < len(all) && all[len(all)-1-n] == all[len(all)-1] {
		n++
	}
	return n
}

// Services of all sizes, with a queue that has a bound or none, are found within 5 %: half of
// what is asked of a goodput that fails by a tenth, and twice the error of 1,500 answers.
func TestCapacityOfAnyService(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n, took := 1+rng.IntN(4), time.Duration(10+rng.IntN(40))*time.Millisecond
		places := []int{-1, 2 * n}[rng.IntN(2)]
		want := float64(n) / took.Seconds()
		r := searched(t, slotted(n, places, took).send, nil)
		if c := r.Capacity; r.Void != "" || math.Abs(c.PerSecond-want) > 0.05*want {
			t.Errorf("seed %d: %d slots of %v, %d places: %.1f/s, want %.1f within 5 %%; void %q: %s", seed, n, took, places, c.PerSecond, want, r.Void, c.Why)
		}
		if all := rates(r); last(all) < 3 {
			t.Errorf("seed %d: the capacity is of %d loads, want three or more: %.0f", seed, last(all), all)
		}
	}
}

// A load lasts until 200 answers have come: a second at least, and four for a slow service.
func TestLoadsOfASearchHaveEnoughAnswers(t *testing.T) {
	r := searched(t, slotted(8, 16, 20*time.Millisecond).send, nil) // 400/s
	want := map[float64]time.Duration{25: 4 * time.Second, 50: 4 * time.Second, 100: 2 * time.Second, 200: time.Second, 400: time.Second}
	for _, p := range r.Capacity.Probes {
		if d, ok := want[p.Rate]; ok {
			delete(want, p.Rate)
			if got := p.Result.Plan.Duration - 500*time.Millisecond; got != d { // less the warm-up
				t.Errorf("%v/s lasts %v, want %v", p.Rate, got, d)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no load of %v among %.0f", want, rates(r))
	}
}

// It climbs by tenths until less than 97 % of a load are in time, and no further: that is at most
// 1 / 0.97 x 1.1 = 1.134 times the capacity, where a queue is far from as long as callers wait.
func TestSearchEndsJustAboveTheCapacity(t *testing.T) {
	r := searched(t, slotted(15, -1, 20*time.Millisecond).send, nil) // 750/s; 800 are carried, and 1,600 are not
	all := rates(r)
	if at := all[len(all)-1]; at < 750 || at > 1.135*750 || last(all) < 3 {
		t.Errorf("confirmed at %.0f/s, want 750 to 851, three times: %.0f", at, all)
	}
}

// One that breaks down as soon as more come than it can do shows nothing when twice the load that
// it carries is offered. It is 1.97 of that: 1.1^7 = 1.95 are carried, and 1.1^8 are not.
func TestSearchClimbsAsFarAsDoublingLeft(t *testing.T) {
	in := slotted(63, -1, 100*time.Millisecond) // 630/s; it carries 320 and not 640
	var shut time.Time
	r := searched(t, func(ctx context.Context) load.Answer {
		in.mu.Lock()
		if in.waiting > 63+3 || time.Now().Before(shut) {
			shut = time.Now().Add(15 * time.Millisecond) // after the last that came: less than a pause of settle
		}
		over := time.Now().Before(shut)
		in.mu.Unlock()
		if over {
			return refusal
		}
		return in.send(ctx)
	}, nil)
	if c := r.Capacity; r.Void != "" || c.PerSecond < 0.97*624 || c.PerSecond > 630 {
		t.Errorf("%.1f/s, want 605 to 630; void %q; loads of %.0f", c.PerSecond, r.Void, rates(r))
	}
}

// What the search cannot come to an end of within --max-rate it does not go on with: ten times
// 2,000/s is more than 20,000/s x 0.9.
func TestSearchEndsWhereNoLoadFits(t *testing.T) {
	r := searched(t, func(context.Context) load.Answer { time.Sleep(time.Millisecond); return load.Answer{Status: 200} },
		func(s *Settings) { s.Loads = []float64{0.5, 10} })
	if all := rates(r); len(all) != 3 || all[2] != 2000 || r.Void == "" {
		t.Errorf("loads of %.0f/s, want 500, 1,000 and 2,000; void %q", all, r.Void)
	}
}

// Nor does it begin a load that --max-requests has no room for.
func TestSearchBeginsNoLoadThatHasNoRoom(t *testing.T) {
	s := slotted(8, 16, 20*time.Millisecond)
	r := searched(t, s.send, func(s *Settings) { s.MaxRequests = 1000 })
	sent := int64(idleRequests)
	for _, p := range r.Capacity.Probes {
		sent += p.Result.Offered
	}
	// 50, then 4.5 s of 25/s and of 50/s, 2.5 s of 100/s and 1.5 s of 200/s: 938.
	want := fmt.Sprintf("the capacity was not found within --max-requests 1,000: %d were sent, and 600 more are needed for the next load, 400/s", sent)
	if !strings.HasPrefix(r.Void, want) || int64(s.seen) != sent || sent >= 1000 {
		t.Errorf("void %q, want %q; %d came", r.Void, want, s.seen)
	}
}

// A load that could not be offered is offered three times.
func TestALoadOfASearchIsTriedThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Settings: settings(), Target: &Target{URL: &url.URL{Scheme: "http", Host: "service"}}}
		r := &run{cfg: cfg, send: slotted(4, 8, 20*time.Millisecond).send, report: newReport(cfg), inFlight: 1}
		r.measure(t.Context())
		if all := rates(r.report); last(all) != 3 || r.report.Void == "" {
			t.Errorf("loads of %.0f/s, want the last three times; void %q", all, r.report.Void)
		}
	})
}

// Who answers everybody, but slowly, is not calm.
func TestSettleWaitsForASlowService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &run{cfg: Config{Settings: settings()}, report: &Report{Idle: Idle{P50: 20 * time.Millisecond, Max: 30 * time.Millisecond}}}
		r.send = func(context.Context) load.Answer {
			took := 20 * time.Millisecond
			if time.Since(began) < 3*time.Second {
				took = 46 * time.Millisecond // twice the median and 5 ms are 45
			}
			time.Sleep(took)
			return load.Answer{Status: 200}
		}
		r.settle(t.Context(), 100)
		if got := time.Since(began); got < 3*time.Second || got > 3200*time.Millisecond || len(r.report.Notes) > 0 {
			t.Errorf("calm after %v, want 3 s and three requests; notes %q", got, r.report.Notes)
		}
	})
}
