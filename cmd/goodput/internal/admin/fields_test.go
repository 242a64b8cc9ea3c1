package admin

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// stateOf is the limiter of /api/v1/state as it must be for s. Numbers are
// float64, as JSON has them.
func stateOf(s *goodput.Stats) (top, derived, counts map[string]any) {
	top = map[string]any{
		"name": s.Name, "observe": s.Observe, "observe_switched": false, "order": s.Order.String(), "overload": s.Overload, "absent": s.Stats.Absent, "absent_seconds": s.Stats.AbsentFor.Seconds(), "draining": s.Draining,
		"excess": float64(s.Excess), "unlimited": s.Unlimited, "tenants_shadow": s.Shadow.Arrivals > 0,
		"limit": float64(s.Limit), "in_use": float64(s.InUse), "running": float64(s.Running),
		"waiting": float64(s.Waiting), "waiting_cost": float64(s.WaitingCost),
		"waiting_bytes": float64(s.WaitingBytes), "waiting_bytes_limit": float64(s.MaxBytes),
		"age_seconds": s.Age.Seconds(), "depth": float64(s.Depth),
		"demand_ratio": s.Load, "retry_after_seconds": s.RetryAfter.Seconds(), "state": s.State(), "condition": s.Condition().String(),
		"refusing": s.Refusing, "stood_seconds": s.Stood.Seconds(),
		"limit_why": s.LimitWhy, "limit_from": float64(s.LimitFrom), "limit_moved_seconds": s.LimitMoved.Seconds(),
		"limit_asked_seconds": s.LimitAsked.Seconds(), "limit_search": s.LimitSearch,
		"limit_min": float64(s.LimitMin), "limit_max": float64(s.LimitMax), "limit_floored_seconds": s.LimitFloored.Seconds(),
		"baseline_seconds": s.Baseline.Seconds(), "slowed": s.Slowed, "slowed_by": s.SlowedBy,
	}
	d := s.Derivation
	derived = map[string]any{
		"text": d.String(), "limit": float64(d.Limit), "mean_seconds": d.Mean.Seconds(), "capacity_per_second": d.Rate,
		"objective_seconds": d.Objective.Seconds(), "percentile": d.Percentile, "service_seconds": d.Service.Seconds(),
		"depth": float64(d.Depth), "rule_depth": float64(d.Rule), "rule_latency_seconds": d.RuleLatency.Seconds(),
		"reachable": d.Reachable, "fixed": d.Fixed, "tight": d.Tight, "samples": float64(d.Samples),
		"declared_seconds": d.Declared.Seconds(), "drifted": d.Drifted,
	}
	counts = map[string]any{
		"arrivals": float64(s.Arrivals), "admitted_immediately": float64(s.Immediate), "admitted_after_waiting": float64(s.Dequeued),
		"exempt_admissions": float64(s.ExemptAdmitted), "limit_changes": float64(s.LimitChanges),
		"limit_raised": float64(s.LimitRaised),
		"limit_called": float64(s.LimitCalled), "limit_called_up": float64(s.LimitCalledUp), "dropped": float64(s.Dropped),
	}
	return top, derived, counts
}

// A climber is a law that adds one in each window.
type climber struct{}

func (climber) Start() (int, error)      { return 7, nil }
func (climber) Begin(uint64) limit.State { return climber{} }
func (climber) Why() string              { return "one more in each window" }
func (climber) Next(current int, _ *limit.Window) limit.Move {
	return limit.Move{Limit: current + 1, Search: true}
}

// A comparer compares what is shown with the statistics, and remembers which
// numbers were ever something else than 0: the others show nothing.
type comparer map[string]bool

func (c comparer) values(t *testing.T, where string, got, want map[string]any) {
	t.Helper()
	for field, v := range got {
		switch v.(type) {
		case map[string]any, []any:
			continue // compared on its own
		}
		w, known := want[field]
		if !known || v != w {
			t.Errorf("%s: %s is %v, want %v", where, field, v, w)
		}
		c[where+" "+field] = c[where+" "+field] || v != 0.0 && v != false && v != ""
	}
	for field := range want {
		if _, there := got[field]; !there {
			t.Errorf("%s: no %s", where, field)
		}
	}
}

// compare takes the view and the statistics, both of one instant. What the metrics show of
// them, each field of the statistics, package goodputprom tests.
func (c comparer) compare(t *testing.T, lim *goodput.Limiter, a *Admin) goodput.Stats {
	t.Helper()
	s := lim.Stats()
	_, body := get(t, a, "GET", "/api/v1/state")
	var shown struct{ Limiters []map[string]any }
	if err := json.Unmarshal([]byte(body), &shown); err != nil {
		t.Fatal(err)
	}
	l := shown.Limiters[0]
	top, derived, counts := stateOf(&s)
	c.values(t, "state", l, top)
	c.values(t, "derivation", l["derivation"].(map[string]any), derived)
	c.values(t, "counts", l["counts"].(map[string]any), counts)
	for i, e := range s.Ends() {
		shown := l["counts"].(map[string]any)["ends"].([]any)[i].(map[string]any)
		if shown["outcome"] != e.Outcome.String() || shown["count"] != float64(e.Count) || e.Reason != goodput.None && shown["reason"] != e.Reason.String() {
			t.Errorf("state: end %d is %v, want %v", i, shown, e)
		}
	}
	return s
}

// Every number that is shown is the limiter's, for a limiter that has something
// of everything: 1 request of 3 units running, 2 of 2 and 4 units waiting with
// 700 bytes, 5 probes; a drifted estimate; then a standing overload; then a
// drain. The bubble's clock stands still, so the view and the statistics are
// of one instant.
func TestEveryFieldIsTheLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := comparer{}
		lim, a := newAdmin(goodput.Config{
			Limit: limit.Fixed(5), Objective: 2 * time.Second, Service: 20 * time.Millisecond,
			MaxBytes: 700, MaxWait: time.Hour,
		})
		for range 200 { // samples of five times the declared service time
			lim.Do(t.Context(), func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
		}
		slot, err := lim.AcquireWork(t.Context(), goodput.Work{Cost: 5})
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan struct{})
		go func() { // admitted after waiting
			defer close(next)
			lim.Do(t.Context(), func(context.Context) error { return nil })
		}()
		synctest.Wait()
		slot.Release()
		<-next
		lim.SetLimit(4) // in range
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer leave()
		hold := func(w goodput.Work) {
			all.Go(func() {
				if slot, err := lim.AcquireWork(ctx, w); err == nil {
					<-ctx.Done()
					slot.Release()
				}
			})
			synctest.Wait()
		}
		hold(goodput.Work{Cost: 3})
		hold(goodput.Work{Cost: 2, Bytes: 300})
		time.Sleep(10 * time.Millisecond)
		hold(goodput.Work{Cost: 4, Bytes: 400})
		for range 5 {
			hold(goodput.Work{Exempt: true})
		}
		time.Sleep(60 * time.Millisecond)
		s := seen.compare(t, lim, a)
		if s.Running != 1 || s.Waiting != 2 || s.WaitingCost != 6 || s.WaitingBytes != 700 || s.Exempt != 5 ||
			s.Age != 70*time.Millisecond || !s.Derivation.Drifted || s.Overload {
			t.Fatalf("not the scene: %+v", s.Stats)
		}

		for range 5000 { // 200/s are offered, and 40/s can be served
			if lim.Stats().Overload {
				break
			}
			lim.AcquireWork(ctx, goodput.Work{Bytes: 1, Priority: goodput.Background}) // refused: 700 bytes wait
			time.Sleep(5 * time.Millisecond)
		}
		if s = seen.compare(t, lim, a); !s.Overload || s.Waiting != 2 || s.Depth >= s.Derivation.Depth {
			t.Fatalf("no standing overload: %+v", s.Stats)
		}
		all.Go(func() { lim.Drain(ctx) }) // cut short
		synctest.Wait()
		if s = seen.compare(t, lim, a); !s.Draining {
			t.Fatalf("not draining: %+v", s.Stats)
		}
		leave()
		all.Wait()
		seen.compare(t, lim, a)

		lim, a = newAdmin(goodput.Config{Limit: limit.Fixed(1), Depth: 1, Observe: true})
		for range 4 {
			if _, err := lim.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		seen.compare(t, lim, a)
		lim, a = newAdmin(goodput.Config{Limit: limit.Fixed(1), Objective: 400 * time.Millisecond, Service: 50 * time.Millisecond})
		seen.compare(t, lim, a) // tight: its depth of 1 does not keep a slot busy

		lim, a = newAdmin(goodput.Config{Limit: limit.Fixed(1)})
		lim.SetPresent(false)
		time.Sleep(time.Second)
		seen.compare(t, lim, a)

		lim, a = newAdmin(goodput.Config{Limit: climber{}}) // and one that moves by itself
		slot, err = lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slot.Dropped()
		time.Sleep(110 * time.Millisecond) // a window is 100 ms
		lim.Stats()
		time.Sleep(10 * time.Millisecond)
		seen.compare(t, lim, a)
		beyond(t, seen)
		delete(seen, "state observe_switched") // nobody can switch this one: TestObserveIsSwitched
		for what, other := range seen {
			if !other {
				t.Errorf("%s was 0 all the time: nothing is shown by it", what)
			}
		}
	})
}
