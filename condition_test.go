package goodput

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// Each condition, what holds then, and the sentence.
func TestConditions(t *testing.T) {
	d := Derivation{Limit: 4, Mean: 50 * time.Millisecond, Objective: 400 * time.Millisecond, Percentile: 0.99, Reachable: true, Depth: 9}
	metered := d
	metered.Allowance = Quota{Rate: 10, Burst: 1}
	out := d
	out.Reachable, out.Service = false, 430*time.Millisecond
	a := func(s admission.Stats) Stats {
		if s.Derivation.Limit == 0 {
			s.Derivation = d
		}
		return Stats{Stats: s}
	}
	full := admission.Stats{Limit: 4, InUse: 4, Running: 4, Depth: 9}
	with := func(change func(*Stats)) Stats {
		s := a(full)
		change(&s)
		return s
	}
	slow := func(s *Stats) {
		s.Slowed, s.SlowedBy, s.Baseline, s.Overload, s.Waiting, s.WaitingCost = true, 3.1, 50*time.Millisecond, true, 7, 7
		s.OfferedBefore, s.CompletedBefore, s.CompletedNow = 60, 58, 26
	}
	for _, c := range []struct {
		s    Stats
		want Condition
		says string
	}{
		{a(admission.Stats{Limit: 4}), ConditionIdle, "idle"},
		{a(admission.Stats{Limit: 4, InUse: 3, Running: 1}), ConditionBusy, "busy: 1 of 4 slots is free, nobody waits"},
		{with(func(s *Stats) { s.Limit, s.InUse = 1, 1 }), ConditionBoundary, "at the admission boundary: the one slot is busy, nobody waits"},
		{with(func(*Stats) {}), ConditionBoundary, "at the admission boundary: all of 4 slots are busy, nobody waits"},
		{with(func(s *Stats) { s.Waiting, s.WaitingCost = 2, 3 }), ConditionBurst, "burst: the queue absorbs it; 3 wait where 9 may"},
		{with(func(s *Stats) { s.Waiting, s.WaitingCost, s.Refusing, s.Load = 9, 9, true, 0.7 }), ConditionBurst, "burst: more came at once than may wait; 9 wait where 9 may, the rest is refused"},
		{with(func(s *Stats) { s.Waiting, s.WaitingCost, s.Refusing, s.Load = 9, 9, true, 3 }), ConditionSaturated, "saturated: 3 times what can be served is offered; the slots are busy, 9 wait where 9 may, the rest is refused at once"},
		{with(func(s *Stats) { s.Waiting, s.WaitingCost, s.Depth, s.Overload, s.Load = 1, 1, 2, true, 3 }), ConditionSaturated, "saturated and doing its job: 3 times what can be served is offered; the slots are busy, 1 wait where 2 may, the rest is refused at once"},
		{with(func(s *Stats) { s.Derivation, s.Overload, s.Load = metered, true, 3 }), ConditionSaturated, "saturated and doing its job: 3 times what can be served is offered; the allowance is used up as it comes, 0 wait where 9 may, the rest is refused at once"},
		{with(func(s *Stats) { s.Derivation, s.InUse, s.Running, s.Load = metered, 1, 1, 3 }), ConditionAllowance, "the allowance is used up as it comes, 10/s: 3 of 4 slots are free, and what comes beyond it is refused at once"},
		{with(func(s *Stats) { s.LimitSearch = true }), ConditionSearching, "searching for the capacity: all of 4 slots are busy, and there may be more"},
		{with(func(s *Stats) { s.Derivation, s.Waiting = out, 1 }), ConditionUnreachable, "unreachable: the service alone takes 430ms at the p99, longer than the objective of 400ms; the queue only keeps the slots busy"},
		{with(func(s *Stats) { s.Slowed, s.SlowedBy, s.Baseline = true, 3.1, 50*time.Millisecond }), ConditionSlowed, "slowed: a unit is held 3.1x as long (155ms) as over the last minutes (50ms): what it depends on has slowed, or the requests are others than they were, which sizes would tell apart"},
		{with(func(s *Stats) { s.Slowed = true }), ConditionSlowed, "slowed: units are held for longer than over the last minutes: what it depends on has slowed, or the requests are others than they were, which sizes would tell apart"},
		{
			with(func(s *Stats) { slow(s); s.Demand = 62 }), ConditionSlowed,
			"slowed: a unit is held 3.1x as long (155ms) as over the last minutes (50ms): what it depends on has slowed, or the requests are others than they were, which sizes would tell apart; 26/s complete where 58/s did, 7 wait, and no more is offered: 62/s come where 60/s did",
		},
		{
			with(func(s *Stats) { slow(s); s.Demand = 110 }), ConditionSlowed,
			"slowed: a unit is held 3.1x as long (155ms) as over the last minutes (50ms): what it depends on has slowed, or the requests are others than they were, which sizes would tell apart; 26/s complete where 58/s did, 7 wait, and more is offered as well: 110/s come where 60/s did",
		},
		{ // what it was is not known: no rate is made up
			with(func(s *Stats) { slow(s); s.OfferedBefore, s.CompletedBefore = 0, 0 }), ConditionSlowed,
			"slowed: a unit is held 3.1x as long (155ms) as over the last minutes (50ms): what it depends on has slowed, or the requests are others than they were, which sizes would tell apart",
		},
		{with(func(s *Stats) { s.Observe, s.InUse, s.Slowed = true, 9, true }), ConditionObserving, "observing: 9 in use where 4 may be, nothing is refused"},
		{with(func(s *Stats) { s.Limit, s.Waiting = 0, 2 }), ConditionPaused, "paused: the limit is 0; 4 run and 2 wait"},
		{with(func(s *Stats) { s.Stats.Absent, s.Stats.AbsentFor = true, time.Second }), ConditionAbsent, "absent: there is nothing to run work on, for 1s; 0 wait for it"},
		{with(func(s *Stats) { s.Draining, s.Waiting, s.Stats.Absent = true, 1, true }), ConditionDraining, "draining: 4 run and 1 wait, newcomers are refused"},
		{a(admission.Stats{Draining: true}), ConditionDrained, "drained"},
	} {
		if got := c.s.Condition(); got != c.want || c.s.State() != c.says {
			t.Errorf("%v, want %v: %q, want %q", got, c.want, c.s.State(), c.says)
		}
	}
	words := map[string]bool{}
	for i, c := range Conditions() {
		if w := c.String(); w == "" || words[w] || strings.ContainsAny(w, " (") || int(c) != i {
			t.Errorf("condition %d is called %q", i, w)
		}
		words[c.String()] = true
	}
	if c := Condition(99); c.String() != "condition(99)" {
		t.Error(c)
	}
}

// An overload of a moment ago refuses, and is no burst that the queue absorbs; one second later
// a queue that is not full is one again.
func TestYoungOverloadIsNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 3, Objective: time.Second, Service: 100 * time.Millisecond, MaxWait: time.Hour})
		is := func(want Condition) {
			t.Helper()
			if s := l.Stats(); s.Condition() != want {
				t.Errorf("%q at load %.2f, refusing %v, want %v", s.State(), s.Load, s.Refusing, want)
			}
		}
		var slots []*Slot
		for range 2 {
			slots = append(slots, mustAcquire(t, l))
		}
		is(ConditionBoundary)
		c := &crowd{t, l, t.Context()}
		c.wait(3, Work{})
		is(ConditionBurst)
		c.wait(40, Work{})
		time.Sleep(300 * time.Millisecond) // the load of that is known when its bin is over
		is(ConditionSaturated)
		if s := l.Stats(); s.Overload || strings.Contains(s.State(), "doing its job") {
			t.Errorf("young, and called %q", s.State())
		}
		time.Sleep(time.Minute)
		is(ConditionBurst) // those three still wait, and nobody has come since
		for _, s := range slots {
			s.Release()
		}
		synctest.Wait()
		is(ConditionIdle)
	})
}

// However many tenants are over their quotas at the same time, that others are refused for want of
// capacity is not forgotten: each of those tenants has a value of its own among the last ones.
func TestRefusingBesideQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Limit: limit.Fixed(1), Depth: NoQueue, Tenants: &Tenants{}}
		for i := range 2 * keptRefusals {
			cfg.Tenants.Rows = append(cfg.Tenants.Rows, Tenant{ID: fmt.Sprint(i), Quota: Quota{Rate: 0.001, Burst: 1}})
		}
		l := New(cfg)
		held := mustAcquire(t, l)
		if _, err := l.Acquire(t.Context()); err == nil {
			t.Fatal("a second one runs")
		}
		held.Release()
		for range 2 {
			for _, row := range cfg.Tenants.Rows {
				if s, err := l.AcquireWork(t.Context(), Work{Tenant: row.ID}); err == nil {
					s.Release()
				}
			}
		}
		if s := l.Stats(); !s.Refusing || s.Refusals[OverQuota] != 2*keptRefusals || s.Refusals[QueueFull] != 1 {
			t.Errorf("refusing %v after %v", s.Refusing, s.Ends())
		}
		// Nor is what they were told: it is the oldest of what is remembered, and there once.
		all := l.Refused()
		if last := all[len(all)-1]; len(all) != keptRefusals+1 || last.Reason != QueueFull || last.Count != 1 || all[keptRefusals-1].Reason != OverQuota {
			t.Errorf("%d values, the last %+v", len(all), last)
		}
		time.Sleep(2 * time.Second)
		if s := l.Stats(); s.Refusing {
			t.Error("refusing long after the last one")
		}
	})
}
