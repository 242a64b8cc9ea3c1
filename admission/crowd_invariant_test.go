package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// I14: whatever comes and goes, no tenant runs more than its MaxInUse, nor all ids
// without a row together theirs, and what a ceiling holds back holds up nobody else.
func TestCeilings(t *testing.T) {
	const seed = 14
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ceilings := map[string]int{"a": 3, "b": 1, "c": 0}
	const strangers = 4
	c := benchCore(t, Config{Limit: limit.Fixed(12), Depth: 100, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "a", MaxInUse: 3}, {ID: "b", MaxInUse: 1}, {ID: "c"}}, Others: Tenant{MaxInUse: strangers},
	}})
	type run struct {
		row string
		end End
	}
	var running []run
	inUse, peak := map[string]int{}, map[string]int{}
	row := func(id string) string {
		if _, ok := ceilings[id]; ok {
			return id
		}
		return ""
	}
	started := func(id string, cost int, s Share) {
		id = row(id)
		running = append(running, run{id, End{Cost: cost, Share: s, Outcome: Completed}})
		inUse[id] += cost
		peak[id] = max(peak[id], inUse[id])
		most := ceilings[id]
		if id == "" {
			most = strangers
		}
		if most > 0 && inUse[id] > most {
			t.Fatalf("%q runs %d, at most %d", id, inUse[id], most)
		}
	}
	for i := range 50_000 {
		now := time.Duration(i) * ms
		if rng.IntN(2) == 0 {
			id := []string{"a", "b", "c", fmt.Sprint(rng.IntN(1000))}[rng.IntN(4)]
			r := Request{Cost: 1 + rng.IntN(3), Deadline: Never, Tenant: id, Priority: Priority(1 + rng.IntN(4)), Arrival: now}
			switch d := c.Offer(now, r); d.Verdict {
			case Admitted:
				started(id, r.Cost, d.Share)
			case Queued:
				d.Waiter.Ref = id
			}
		} else if len(running) > 0 {
			j := rng.IntN(len(running))
			e := running[j]
			running[j] = running[len(running)-1]
			running = running[:len(running)-1]
			inUse[e.row] -= e.end.Cost
			c.Release(now, e.end)
		}
		for w := c.Next(); w != nil; w = c.Next() {
			if w.Verdict() == Admitted {
				started(w.Ref.(string), w.Cost(), w.Share())
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if peak["a"] != 3 || peak["b"] != 1 || peak[""] != strangers || peak["c"] < 6 {
		t.Errorf("at most %v in use", peak)
	}
}

// I15: of what a tenant has accepted in any span at most burst + rate x span is granted,
// beside what waited at its start; all pairs of grants are looked at. The rounding is that
// of a few thousand sums of at most a thousand units.
func TestQuotaInAnySpan(t *testing.T) {
	for seed, q := range []Quota{{Rate: 50, Burst: 7}, {Rate: 1000}, {Rate: 0.5, Burst: 3}, {Rate: 333.3, Burst: 1}} {
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(uint64(seed), 15))
		c := benchCore(t, Config{Limit: limit.Fixed(1000), Tenants: &Tenants{Others: Tenant{Quota: q}}})
		type grant struct {
			at   time.Duration
			cost int
		}
		var grants []grant
		now := time.Duration(0)
		for range 3000 {
			now += time.Duration(rng.ExpFloat64() * 2 / q.Rate * float64(time.Second) * float64(rng.IntN(2)))
			r := Request{Cost: 1 + rng.IntN(2), Deadline: Never, Tenant: fmt.Sprint(rng.IntN(100))}
			if d := c.Offer(now, r); d.Verdict == Admitted {
				grants = append(grants, grant{now, r.Cost})
				c.Release(now, End{Cost: r.Cost, Share: d.Share, Outcome: Completed})
			}
		}
		for i := range grants {
			sum := 0
			for _, g := range grants[i:] {
				sum += g.cost
				if most := q.burst() + q.Rate*(g.at-grants[i].at).Seconds(); float64(sum) > most+1e-6 {
					t.Fatalf("%+v: %d in %v, at most %v", q, sum, g.at-grants[i].at, most)
				}
			}
		}
		if len(grants) < 500 {
			t.Errorf("%+v: only %d were granted", q, len(grants))
		}
	}
}

// Who is over its quota is told when it has enough: admitted then, and refused 2 ns
// before. Those two are the rounding up of two nanoseconds, and for slow quotas what a
// billionth of a request takes.
func TestQuotaTellsWhen(t *testing.T) {
	for _, rate := range []float64{1e-6, 0.7, 3, 7, 17.31, 1000, 1e5} {
		c := benchCore(t, Config{Limit: limit.Fixed(400), Tenants: &Tenants{Rows: []Tenant{{ID: "a", Quota: Quota{Rate: rate, Burst: 5}}}}})
		now, told := time.Duration(0), 0
		for i := range 1000 {
			r := Request{Cost: 1 + i%3, Deadline: Never, Tenant: "a"}
			d := c.Offer(now, r)
			if d.Verdict == Refused && d.RetryAfter < 1<<61-now {
				if d.Reason != OverQuota || c.RetryAfter(OverQuota) <= 0 {
					t.Fatalf("refused for %v", d.Reason)
				}
				told++
				early := 2 + time.Duration(2e-9*float64(r.Cost)/rate*1e9)
				if before := c.Offer(now+d.RetryAfter-early, r); d.RetryAfter > early && (before.Verdict != Refused || before.RetryAfter > early) {
					t.Fatalf("%v per second: %v before the %v it is told %+v", rate, early, d.RetryAfter, before)
				}
				now += d.RetryAfter
				d = c.Offer(now, r)
				if d.Verdict != Admitted {
					t.Fatalf("%v per second: at the instant it was told, lacks for %v", rate, d.RetryAfter)
				}
			}
			if d.Verdict == Admitted {
				c.Release(now, End{Cost: r.Cost, Share: d.Share, Outcome: Completed})
			}
		}
		if told == 0 {
			t.Errorf("%v per second: never over it", rate)
		}
	}
}

// What a request costs beyond what was said is charged to its tenant afterwards: its quota
// waits, and so does its turn. What it cost less comes back.
func TestChargeIsCorrected(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 100, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "a"}, {ID: "b"}, {ID: "q", Quota: Quota{Rate: 1, Burst: 10}}},
	}})
	offer := func(id string, cost int) Decision {
		return c.Offer(0, Request{Cost: cost, Deadline: Never, Tenant: id})
	}
	running := offer("a", 1)
	for range 12 {
		offer("a", 1)
		offer("b", 1)
	}
	// Each of a turns out to have cost 3 and each of b 1: of any four grants b has three.
	share, charge := running.Share, 3
	got := map[string]int{}
	for range 12 {
		c.Release(0, End{Share: share, Charge: charge, Outcome: Completed})
		w := c.Next()
		share, charge = w.Share(), 1
		if w.flow.row.ID == "a" {
			charge = 3
		}
		got[w.flow.row.ID]++
	}
	if got["a"] != 3 || got["b"] != 9 {
		t.Errorf("granted %v", got)
	}
	for _, want := range []struct {
		charge int
		left   float64
	}{{4, 6}, {1, 9}, {25, -15}} {
		c := benchCore(t, Config{Limit: limit.Fixed(10), Tenants: &Tenants{Rows: []Tenant{{ID: "q", Quota: Quota{Rate: 1, Burst: 10}}}}})
		d := c.Offer(0, Request{Cost: 4, Deadline: Never, Tenant: "q"})
		c.Release(0, End{Cost: 4, Charge: want.charge, Share: d.Share, Outcome: Completed})
		for _, s := range c.TopTenants(0, 9) {
			if s.ID == "q" && (s.Left != want.left || s.Granted != uint64(want.charge)) {
				t.Errorf("charged %d: %v left, %d granted", want.charge, s.Left, s.Granted)
			}
		}
	}
}

// What had nothing for its share of the quota pays nothing: it is paid back when it is
// dropped from the queue, and never beyond the burst.
func TestQuotaIsPaidBack(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 100, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "q", Quota: Quota{Rate: 1, Burst: 5}}},
	}})
	left := func(now time.Duration) float64 {
		for _, s := range c.TopTenants(now, 9) {
			if s.ID == "q" {
				return s.Left
			}
		}
		return math.NaN()
	}
	c.Offer(0, Request{Deadline: Never, Tenant: "somebody"})
	var waiters []*Waiter
	for range 3 {
		waiters = append(waiters, c.Offer(0, Request{Deadline: Never, Tenant: "q"}).Waiter)
	}
	if got := left(0); got != 2 {
		t.Fatalf("%v left of 5 with 3 waiting", got)
	}
	c.Cancel(0, waiters[0], Client)
	if got := left(0); got != 3 {
		t.Errorf("%v left of 5 with 2 waiting", got)
	}
	c.Cancel(3*time.Second, waiters[1], Client)
	c.Cancel(3*time.Second, waiters[2], Client)
	if got := left(3 * time.Second); got != 5 {
		t.Errorf("%v left of 5 with nobody waiting", got)
	}
}
