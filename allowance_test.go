package goodput

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// An allowance is granted at the very instant at which it is there, so under the fake
// clock these tests know every one of them. It is rounded up to a nanosecond.

// allowed is a limiter in front of somebody else's API: many slots, an allowance.
func allowed(q Quota) *Limiter {
	return New(Config{Name: "api", Limit: limit.Fixed(100), Depth: 1000, Order: FIFO, MaxWait: time.Hour, Allowance: q})
}

// granted has n requests come at once, which end at once, and returns after how long each
// was admitted.
func granted(t *testing.T, l *Limiter, n int) []time.Duration {
	t.Helper()
	begun := time.Now()
	after := make([]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			slot := mustAcquire(t, l)
			after[i] = time.Since(begun)
			slot.Release()
		})
		synctest.Wait() // one after the other, so they are served in this order
	}
	all.Wait()
	return after
}

// checkSpaced asserts that burst of them came at once and the rest one for each tick.
func checkSpaced(t *testing.T, after []time.Duration, burst int, tick time.Duration) {
	t.Helper()
	for i, got := range after {
		if want := time.Duration(max(i+1-burst, 0)) * tick; got < want || got > want+time.Nanosecond {
			t.Errorf("request %d is admitted after %v, want %v", i, got, want)
		}
	}
}

func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := allowed(Quota{Rate: 100, Burst: 20})
		checkSpaced(t, granted(t, l, 50), 20, 10*time.Millisecond)
		// After a second of nothing the burst is there again, and no more than that.
		time.Sleep(time.Second)
		checkSpaced(t, granted(t, l, 30), 20, 10*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		checkSpaced(t, granted(t, l, 8), 5, 10*time.Millisecond)
		s := l.Stats()
		if s.Allowance != (Quota{Rate: 100, Burst: 20}) || math.Abs(s.AllowanceLeft) > 1e-6 || s.Capacity != 100 {
			t.Errorf("%+v, %v left, capacity %v", s.Allowance, s.AllowanceLeft, s.Capacity)
		}
		checkEmpty(t, l)
	})
}

// Both its fields change what happens, and none is nobody's business.
func TestAllowanceKnobs(t *testing.T) {
	for _, c := range []struct {
		q    Quota
		last time.Duration // of six requests
	}{
		{Quota{}, 0},
		{Quota{Rate: 10, Burst: 1}, 500 * time.Millisecond},
		{Quota{Rate: 20, Burst: 1}, 250 * time.Millisecond},
		{Quota{Rate: 10, Burst: 4}, 200 * time.Millisecond},
		{Quota{Rate: 5}, 200 * time.Millisecond}, // a burst of one second
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := granted(t, allowed(c.q), 6)[5]; got < c.last || got > c.last+time.Nanosecond {
				t.Errorf("%+v: the last is admitted after %v, want %v", c.q, got, c.last)
			}
		})
	}
}

// Nobody sleeps while the allowance is there: eight workers without a pause between two
// requests have all of it, to the nanosecond, whatever they meet. A wake-up that is lost
// would be a second of MaxWait, or none at all.
func TestAllowanceLosesNoWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, each = 8, 500
		l := allowed(Quota{Rate: 1000, Burst: 10})
		begun := time.Now()
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				for i := range each {
					slot := mustAcquire(t, l)
					if (i+w)%7 == 0 {
						time.Sleep(300 * time.Microsecond) // while others wait
					}
					if (i+w)%11 == 0 { // one that leaves has had nothing
						ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
						if late, err := l.Acquire(ctx); err == nil {
							t.Error("admitted in a tenth of what comes")
							late.Release()
						}
						cancel()
					}
					slot.Release()
				}
			})
		}
		all.Wait()
		// Each grant is rounded up to a nanosecond at the most, and whoever is last may still
		// work for 300 µs and see one leave after 100 µs.
		want := (workers*each - 10) * time.Millisecond
		if took := time.Since(begun); took < want || took > want+workers*each+400*time.Microsecond {
			t.Errorf("%d requests took %v, want %v", workers*each, took, want)
		}
		checkEmpty(t, l)
	})
}

// The timer is there while somebody waits for the allowance and for nothing else, and rings
// once for each grant.
func TestAllowanceTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 10, MaxWait: time.Hour, Allowance: Quota{Rate: 10, Burst: 2}})
		rings := 0
		now := l.enter()
		l.journal = func(c call) {
			if c.op == "dispatch" {
				rings++
			}
		}
		l.leave(now)
		set := func() bool {
			defer l.leave(l.enter())
			return l.refill.at != admission.Never
		}
		a, b := mustAcquire(t, l), mustAcquire(t, l)
		if set() {
			t.Error("it is set while nobody waits")
		}
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		wait := func() {
			all.Go(func() {
				if slot, err := l.Acquire(ctx); err == nil {
					slot.Release()
				}
			})
			synctest.Wait()
		}
		wait()
		time.Sleep(time.Second)
		if set() || rings != 0 {
			t.Errorf("it has rung %d times while the slots were taken, set %v", rings, set())
		}
		if a.Release(); set() {
			t.Error("it is set though the allowance was there")
		}
		b.Release()
		synctest.Wait()
		for range 4 { // one is left of the burst
			wait()
		}
		if !set() {
			t.Error("it is not set while three wait")
		}
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if cancel(); rings != 1 {
			t.Errorf("it has rung %d times for a grant", rings)
		}
		all.Wait()
		if set() {
			t.Error("it is set though all have left")
		}
		time.Sleep(time.Hour)
		if rings != 1 {
			t.Errorf("it has rung %d times", rings)
		}
		checkEmpty(t, l)
	})
}

// What is changed while somebody waits: a pause, another rate, none, and a drain.
func TestAllowanceChanges(t *testing.T) {
	queue := func(t *testing.T, l *Limiter, n int) (after func() []time.Duration) {
		begun := time.Now()
		var mu sync.Mutex
		var times []time.Duration
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				slot := mustAcquire(t, l)
				mu.Lock()
				times = append(times, time.Since(begun).Round(time.Millisecond)/time.Millisecond)
				mu.Unlock()
				slot.Release()
			})
		}
		synctest.Wait()
		return func() []time.Duration {
			all.Wait()
			return times
		}
	}
	reconfigure := func(t *testing.T, l *Limiter, q Quota) {
		cfg := l.settings.Load().cfg
		cfg.Allowance = q
		if err := l.Reconfigure(cfg); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, l *Limiter)
		want   []time.Duration // ms
	}{
		{"nothing", func(*testing.T, *Limiter) {}, []time.Duration{0, 100, 200, 300}},
		{"a pause", func(t *testing.T, l *Limiter) {
			if err := l.SetLimit(0); err != nil {
				t.Error(err)
			}
			time.Sleep(200 * time.Millisecond)
			if err := l.SetLimit(1); err != nil {
				t.Error(err)
			}
		}, []time.Duration{0, 250, 350, 450}},
		{"twice the rate", func(t *testing.T, l *Limiter) { reconfigure(t, l, Quota{Rate: 20, Burst: 1}) }, []time.Duration{0, 75, 125, 175}},
		{"half the rate", func(t *testing.T, l *Limiter) { reconfigure(t, l, Quota{Rate: 5, Burst: 1}) }, []time.Duration{0, 150, 350, 550}},
		{"none", func(t *testing.T, l *Limiter) { reconfigure(t, l, Quota{}) }, []time.Duration{0, 50, 50, 50}},
		{"a drain", func(t *testing.T, l *Limiter) { _ = l.Drain(context.Background()) }, []time.Duration{0, 100, 200, 300}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := allowed(Quota{Rate: 10, Burst: 1})
				after := queue(t, l, 4)
				time.Sleep(50 * time.Millisecond)
				c.change(t, l)
				if got := after(); !slices.Equal(got, c.want) {
					t.Errorf("admitted after %v ms, want %v", got, c.want)
				}
				checkEmpty(t, l)
			})
		})
	}
}

// What is corrected once it is known is on the account of the allowance, with or without
// tenants: it is then there later, or sooner.
func TestAllowanceIsCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := allowed(Quota{Rate: 10, Burst: 5})
		slot := mustAcquire(t, l)
		slot.SetCost(8) // 3 more than there are
		slot.Release()
		checkSpaced(t, granted(t, l, 3), -3, 100*time.Millisecond)
		time.Sleep(time.Second)
		whole, err := l.AcquireWork(context.Background(), Work{Cost: 5})
		if err != nil {
			t.Fatal(err)
		}
		whole.SetCost(2)
		whole.Release()
		checkSpaced(t, granted(t, l, 5), 3, 100*time.Millisecond)
	})
}

// A refusal says that the rate is what binds, and a deadline that the allowance cannot
// meet is refused at the door.
func TestAllowanceIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "api", Limit: limit.Fixed(8), Objective: time.Second, Service: 50 * time.Millisecond, Allowance: Quota{Rate: 10, Burst: 2}})
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		granted(t, l, 2)
		_, err := l.Acquire(ctx)
		if reason(err) != NoBudget {
			t.Fatalf("%v, want no_budget", err)
		}
		for _, want := range []string{"(wait 100ms + service 230.4ms > 300ms left)", "8 slots / 50ms mean = 160/s, 10/s allowed, burst 2;", "7 deep"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if _, err := l.AcquireWork(context.Background(), Work{Cost: 3}); reason(err) != TooCostly || !strings.Contains(err.Error(), "the burst of its allowance") {
			t.Errorf("more than the burst: %v", err)
		}
		if _, ok := l.TryAcquire(); ok {
			t.Error("TryAcquire got what is not allowed")
		}
		if text := l.Explain(); !strings.Contains(flat(text), " allowed 10/s, burst 2: 0 left; it is what bounds the rate, the slots could serve 160/s ") {
			t.Errorf("Explain says\n%s", text)
		}
	})
}

// In observe mode the shadow has the allowance and nobody waits for it.
func TestAllowanceIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(8), Depth: 10, MaxWait: time.Hour, Observe: true, Allowance: Quota{Rate: 10, Burst: 2}})
		var slots []*Slot
		for range 6 {
			slots = append(slots, mustAcquire(t, l))
		}
		if s := l.Stats(); s.Running != 6 || s.Shadow.Running != 2 || s.Shadow.Waiting != 4 {
			t.Errorf("%d run, in the shadow %d, with %d waiting", s.Running, s.Shadow.Running, s.Shadow.Waiting)
		}
		time.Sleep(350 * time.Millisecond)
		synctest.Wait()
		if s := l.Stats(); s.Shadow.Running != 5 || s.Shadow.Waiting != 1 {
			t.Errorf("in the shadow %d run, %d wait", s.Shadow.Running, s.Shadow.Waiting)
		}
		for _, slot := range slots {
			slot.Release()
		}
		checkEmpty(t, l)
	})
}

// Real goroutines and the real clock, for -race: never more than is allowed, and nothing
// left behind.
func TestAllowanceStress(t *testing.T) {
	cfg := stressConfig()
	cfg.Allowance = Quota{Rate: 200_000, Burst: 20}
	l := New(cfg)
	begun := time.Now()
	s := &load{l: l, workers: 64, ops: 200, until: time.Now().Add(stress(t)), pause: spin, seed: stressSeed(t)}
	s.run()
	if err := l.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	most := 20 + 200_000*time.Since(begun).Seconds()
	st := l.Stats()
	if n := float64(st.Immediate + st.Dequeued); n > most {
		t.Errorf("%v admitted in %v, at most %v are allowed", n, time.Since(begun), most)
	}
	checkEmpty(t, l)
	t.Logf("%d arrivals, %d admitted of %.0f allowed, outcomes %v, refusals %v", st.Arrivals, st.Immediate+st.Dequeued, most, st.Outcomes, st.Refusals)
}

// In a group what waits for the allowance of its limiter wants no units: the others have
// them meanwhile.
func TestAllowanceLeavesUnitsToTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(GroupConfig{Units: 10, Members: []Member{
			{Config: Config{Name: "api", Depth: 100, MaxWait: time.Hour, Allowance: Quota{Rate: 10, Burst: 1}}},
			{Config: Config{Name: "other", Depth: 100, MaxWait: time.Hour}},
		}})
		api, other := g.Limiter("api"), g.Limiter("other")
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		queue := func(l *Limiter, n int) {
			for range n {
				all.Go(func() {
					if slot, err := l.Acquire(ctx); err == nil {
						<-ctx.Done()
						slot.Release()
					}
				})
			}
			synctest.Wait()
		}
		queue(api, 30)
		queue(other, 30)
		// One of the api runs, and one is next.
		if a, o := api.Stats().InUse, other.Stats().InUse; a != 1 || o != 8 {
			t.Errorf("%d and %d of 10 units in use, want 1 and 8", a, o)
		}
		// It has its share as soon as it is allowed, and the other gives it back.
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if a := api.Stats().InUse; a != 2 {
			t.Errorf("%d units in use by the api, want 2", a)
		}
		cancel()
		all.Wait()
		checkEmpty(t, api)
		checkEmpty(t, other)
	})
}
