package live

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A standing overload with a tenant over its quota makes a value in each window: what is shown is one line
// for each setting that decided, with all that it has refused, what the policy file calls it, and
// what the clients are told in whole seconds. A few had waited for too long before.
func TestRefusalsAreGroupedByWhatDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{
			Name: "a", Limit: limit.Fixed(4), Objective: 300 * time.Millisecond, Service: 20 * time.Millisecond, Overflow: goodput.RefuseNewest,
			Tenants: &goodput.Tenants{Rows: []goodput.Tenant{{ID: "greedy", Quota: goodput.Quota{Rate: 2000, Burst: 1}}, {ID: "slow", Quota: goodput.Quota{Rate: 3, Burst: 1}}}},
		})
		ask := func(work goodput.Work) {
			go func() {
				if slot, err := lim.AcquireWork(context.Background(), work); err == nil {
					time.Sleep(20 * time.Millisecond)
					slot.Release()
				}
			}()
		}
		for range 2000 {
			ask(goodput.Work{})
			time.Sleep(time.Millisecond)
		}
		all := lim.Refused()
		var queue uint64
		for _, r := range all {
			queue += r.Count
		}
		for range 2 {
			ask(goodput.Work{Tenant: "greedy"}) // at once: the second has half a millisecond to wait
			synctest.Wait()
			ask(goodput.Work{Tenant: "slow"}) // another setting
			synctest.Wait()
		}
		e := lim.Explanation()
		got := groups(e.Refused, knobs(e.Refused))
		if len(all) < 10 || len(e.Refused) < len(all) || len(got) != 4 {
			t.Errorf("%d values in %d groups: %+v", len(e.Refused), len(got), got)
		}
		q := got[0]
		if q.Reason != "queue_full" || q.Count < queue*11/16 || !strings.HasPrefix(q.Knob, "objective 300ms at a limit of 4") || q.SinceSeconds <= q.AgoSeconds || q.SinceSeconds > 2 {
			t.Errorf("the most: %+v, want about %d", q, queue)
		}
		told := map[string]string{}
		for _, g := range got {
			told[g.Knob] = fmt.Sprint(g.Count, " ", g.Reason, ", ", g.Told)
			if strings.Contains(g.Text, "retry after") {
				t.Errorf("said twice: %+v", g)
			}
		}
		for knob, want := range map[string]string{
			"tenants.quota 2000/s, burst 1": "1 quota, told to come back in 1 s",
			"tenants.quota 3/s, burst 1":    "1 quota, told to come back in 1 s",
		} {
			if told[knob] != want {
				t.Errorf("%s: %q, want %q", knob, told[knob], want)
			}
		}
		text := Text(e, nil)
		_, last, _ := strings.Cut(text, "\n  last ")
		if strings.Count(last, "decided by") != len(got) || strings.Contains(text, "500µs") || strings.Contains(text, "Objective") || !strings.Contains(strings.Join(strings.Fields(last), " "), q.words()) {
			t.Errorf("the text: %s", text)
		}
		lim.Drain(context.Background()) //nolint:errcheck // there is no deadline
	})
}

func TestAGroupInWords(t *testing.T) {
	for want, g := range map[string]RefusalGroup{
		"2,767 queue_full in the last 1.6 s, decided by depth 9; told x":         {Count: 2767, AgoSeconds: 0.01, SinceSeconds: 1.6},
		"1 queue_full 20ms ago, decided by depth 9; told x":                      {Count: 1, AgoSeconds: 0.02, SinceSeconds: 0.02},
		"1,000,000 queue_full from 1m15s to 12s ago, decided by depth 9; told x": {Count: 1e6, AgoSeconds: 12, SinceSeconds: 75},
	} {
		g.Reason, g.Knob, g.Told = "queue_full", "depth 9", "told x"
		if got := g.words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, c := range []struct {
		r    goodput.Rejection
		want string
	}{
		{goodput.Rejection{Reason: goodput.QueueFull, RetryAfter: time.Second}, "told to come back in 1 to 2 s"},
		{goodput.Rejection{Reason: goodput.QueueFull, RetryAfter: 20 * time.Second}, "told to come back in 20 to 30 s"},
		{goodput.Rejection{Reason: goodput.OverQuota, RetryAfter: 500 * time.Microsecond}, "told to come back in 1 s"},
		{goodput.Rejection{Reason: goodput.TooCostly}, "not told to come back: that would not help"},
	} {
		if got := comeBack(&c.r); got != c.want {
			t.Errorf("%v %v: %q, want %q", c.r.Reason, c.r.RetryAfter, got, c.want)
		}
		// What is said is what Jittered gives: all of it, and nothing else.
		low, high := time.Duration(1<<62), time.Duration(0)
		for range 1000 {
			low, high = min(low, c.r.Jittered()), max(high, c.r.Jittered())
		}
		if in := strings.TrimSuffix(strings.TrimPrefix(c.want, "told to come back in "), " s"); c.r.RetryAfter > 0 && !strings.HasPrefix(in, strings.TrimSuffix(low.String(), "s")) || c.r.RetryAfter > 0 && !strings.HasSuffix(in, strings.TrimSuffix(high.String(), "s")) {
			t.Errorf("%v: said %q, and it is %v to %v", c.r.Reason, in, low, high)
		}
	}
}

func TestFiguresDoNotSayAll(t *testing.T) {
	for v, want := range map[float64]string{0: "0 %", 0.001: "< 1 %", 0.4: "40 %", 0.996: "> 99 %", 1: "100 %"} {
		if got := percent(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for s, want := range map[float64]string{0.0002364: "236µs", 0.2364: "236ms", 1.2364: "1.24s", 0: "0s"} {
		if got := brief(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}

// The objective is held against its own percentile.
func TestTheTargetIsThePercentileOfTheObjective(t *testing.T) {
	l := lengths{now: epoch}
	l.s.Derivation.Percentile = 0.5
	l.tick(0)
	_, q := l.tick(time.Second, time.Second, time.Second, time.Second, time.Minute)
	if q.Target != q.P50 || q.Target > 1.1 || q.P99 < 50 || q.TargetOver {
		t.Errorf("%+v", q)
	}
}
