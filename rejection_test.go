package goodput

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestRejectionSaysWhatItIs(t *testing.T) {
	for _, c := range []struct {
		reason              Reason
		cancelled, deadline bool
	}{
		{QueueFull, false, false},
		{Doomed, false, false},
		{Deadline, false, true},
		{Client, true, false},
		{Parent, true, false},
	} {
		var err error = &Rejection{Reason: c.reason, Outcome: c.reason.Outcome()}
		if !errors.Is(err, ErrRejected) {
			t.Errorf("%v is not ErrRejected", c.reason)
		}
		if errors.Is(err, context.Canceled) != c.cancelled || errors.Is(err, context.DeadlineExceeded) != c.deadline {
			t.Errorf("%v: canceled %v, deadline %v", c.reason, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded))
		}
	}
	for r := Reason(1); r < Reason(len(sentences)); r++ {
		if sentences[r] == "" {
			t.Errorf("%v has no words", r)
		}
	}
}

func TestRejectionShowsTheNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "search", Limit: limit.Fixed(1), Depth: NoQueue})
		slot := mustAcquire(t, l)
		_, err := l.Acquire(context.Background())
		var r *Rejection
		if !errors.As(err, &r) {
			t.Fatalf("got %v, want a *Rejection", err)
		}
		if r.Limiter != "search" || r.Limit != 1 || r.InUse != 1 || r.Waiting != 0 || r.Depth != 0 || r.RetryAfter < time.Second {
			t.Errorf("got %+v", r)
		}
		for _, want := range []string{
			"goodput: search did not admit", "the queue is full", "1 of 1 in use", l.Stats().Derivation.String(), "retry after 1s",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		// Everybody in the window shares it; the next window has its own.
		if _, again := l.Acquire(context.Background()); again != err {
			t.Error("two refusals in one window are two values")
		}
		time.Sleep(100 * time.Millisecond)
		if _, later := l.Acquire(context.Background()); later == err {
			t.Error("a refusal is shared beyond its window")
		}
		// A change is told at once.
		if err := l.SetLimit(3); err != nil {
			t.Fatal(err)
		}
		if _, err := l.AcquireWork(context.Background(), Work{Cost: 3}); err.(*Rejection).Limit != 3 {
			t.Errorf("after SetLimit(3): %v", err)
		}
		slot.Release()
	})
}

// What a refusal says is true of whoever gets it: of a queue that tenants share only a part
// may be full, and a ceiling is of one tenant. The time of a quota is said to the
// millisecond, and never too short.
func TestRejectionSaysWhatIsTrue(t *testing.T) {
	own := Tenants{Rows: []Tenant{{ID: "a", MaxInUse: 2, Quota: Quota{Rate: 3, Burst: 3}}}}
	for _, c := range []struct {
		name     string
		tenants  *Tenants
		cost     int
		want     string
		wantNot  string
		occupied int
	}{
		{"full", nil, 1, ": the queue is full; ", "tenant", 4},
		{"full, with tenants", &own, 1, ": the queue, or its tenant's part of it, is full; ", "queue is full", 4},
		{"above a ceiling", &own, 3, ": it costs 3, more than its tenant or group may ever have; 0 of 4 in use", "retry", 0},
		{"above the limit", nil, 5, ": it costs 5, and the limit is 4; 0 of 4 in use", "retry", 0},
	} {
		l := New(Config{Limit: limit.Fixed(4), Depth: NoQueue, Tenants: c.tenants})
		for range c.occupied {
			defer mustAcquire(t, l).Release()
		}
		_, err := l.AcquireWork(context.Background(), Work{Tenant: "a", Cost: c.cost})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.wantNot) {
			t.Errorf("%s: %q says no %q, or %q", c.name, err, c.want, c.wantNot)
		}
	}
	l := New(Config{Limit: limit.Fixed(9), Allowance: Quota{Rate: 1, Burst: 2}})
	const burst = ": it costs 3, and the burst of its allowance is 2;"
	if _, err := l.AcquireWork(context.Background(), Work{Cost: 3}); err == nil || !strings.Contains(err.Error(), burst) {
		t.Errorf("%v, want %q", err, burst)
	}
	r := Rejection{Reason: OverQuota, RetryAfter: 333333333}
	for wait, want := range map[time.Duration]string{333333333: "; retry after 334ms", 2: "; retry after 1ms", 3e9: "; retry after 3s"} {
		if r.RetryAfter = wait; !strings.HasSuffix(r.Error(), want) {
			t.Errorf("%q does not end with %q", r.Error(), want)
		}
	}
}

// A budget that cannot hold the wait and the service is refused at the door, and
// told that a retry cannot win.
func TestNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Objective: 2 * time.Second, Service: 100 * time.Millisecond})
		slot := mustAcquire(t, l)
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
		defer cancel()
		begun := time.Now()
		_, err := l.Acquire(ctx)
		r, ok := err.(*Rejection)
		if !ok || r.Reason != NoBudget || time.Since(begun) != 0 {
			t.Fatalf("%v after %v, want no_budget at once", err, time.Since(begun))
		}
		if r.Remaining != 60*time.Millisecond || r.PredictedWait+r.Service <= r.Remaining {
			t.Errorf("wait %v + service %v does fit %v", r.PredictedWait, r.Service, r.Remaining)
		}
		if !strings.Contains(err.Error(), "> 60ms left)") {
			t.Errorf("%q does not say what was left", err)
		}
		if r.RetryAfter != 0 || r.Jittered() != 0 {
			t.Errorf("retry after %v: it cannot win", r.RetryAfter)
		}
		slot.Release()
		// With a free slot and nobody waiting the same budget is admitted.
		again, err := l.Acquire(ctx)
		if err != nil {
			t.Errorf("idle: %v", err)
		}
		again.Release()
	})
}

// The core says 1 to 20 s, so anybody is told 1 to 30 s, and those that the
// longest overload refuses are spread over 11 of them.
func TestJitterStaysInItsBounds(t *testing.T) {
	for seconds := range 21 {
		r := &Rejection{RetryAfter: time.Duration(seconds) * time.Second}
		seen := map[time.Duration]bool{}
		for range 1000 {
			seen[r.Jittered()] = true
		}
		low, high := seconds, seconds+(seconds+1)/2
		for d := range seen {
			if d < time.Duration(low)*time.Second || d > time.Duration(high)*time.Second || d%time.Second != 0 || d > 30*time.Second {
				t.Errorf("%v became %v", r.RetryAfter, d)
			}
		}
		// Each of at most 11 values is missed by 1000 draws once in 1e40.
		if want := high - low + 1; len(seen) != want {
			t.Errorf("%v has %d answers, want %d", r.RetryAfter, len(seen), want)
		}
	}
}

func TestValidateSaysWhatIsWrong(t *testing.T) {
	for want, cfg := range map[string]Config{
		"from 7 of the auto ": {Limit: limit.Auto{From: 7, Max: 5}},
		"too long":            {Name: strings.Repeat("x", 200), Limit: limit.Fixed(1)},
		"cannot be printed":   {Name: "a\nb", Limit: limit.Fixed(1)},
		"objective -1s":       {Limit: limit.Fixed(1), Objective: -time.Second},
		"limit -1":            {Limit: limit.Fixed(-1)},
		"is longer than obje": {Limit: limit.Fixed(1), Objective: time.Second, Service: 2 * time.Second},
	} {
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
			continue
		}
		func() {
			defer func() {
				if got := recover(); got != "goodput: "+err.Error() {
					t.Errorf("New panics with %v, want %q", got, err)
				}
			}()
			New(cfg)
		}()
	}
}

func TestUnknownPriorityPanics(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(1)})
	for _, misuse := range []func(){
		func() { WithPriority(context.Background(), Background+1) },
		func() { _, _ = l.AcquireWork(context.Background(), Work{Priority: 99}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse()
		}()
	}
}
