package sim

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// What the tables of others did under attack, and ours does not. These drive the core
// itself, without the rest of a scenario.

// shop is a core with tenants in which nothing ends by itself.
func shop(t *testing.T, slots int, tenants *admission.Tenants, change func(*admission.Config)) *admission.Core {
	t.Helper()
	c := admission.Config{Limit: limit.Fixed(slots), Objective: time.Second, Depth: 5000, MaxWait: 24 * time.Hour, Tenants: tenants}
	if change != nil {
		change(&c)
	}
	core, err := admission.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

func ask(core *admission.Core, now time.Duration, tenant string) admission.Decision {
	return core.Offer(now, admission.Request{Tenant: tenant, Arrival: now, Deadline: never})
}

// C099: A queues 1,000 before four slots of 10 ms, then B one: it starts within a round,
// and not after all of A.
func TestBurstOfOneDelaysNobody(t *testing.T) {
	s := Scenario{
		Length: time.Minute,
		Tiers: []Tier{{
			Service: Dist{Kind: Fixed, Mean: 10 * ms},
			Policy: Policy{Name: "core", Core: &admission.Config{
				Limit: limit.Fixed(4), Depth: 2000, Objective: 10 * time.Second,
				Tenants: &admission.Tenants{Rows: []admission.Tenant{{ID: "a"}, {ID: "b"}}},
			}},
		}},
		Classes: []Class{{Tenant: "a"}, {Tenant: "b"}},
	}
	n := 0
	s.Trace = func(j *Job) bool {
		if n++; n == 1001 {
			*j = Job{At: ms, Class: 1}
		}
		return n <= 1001
	}
	r := play(t, s, 1)
	if wait := r.Tenants[1].Wait.Sum; r.Tenants[1].Served != 1 || wait > 0.01 {
		t.Errorf("b waited %v s behind 1,000 of a", wait)
	}
	if r.Tenants[0].Served != 1000 {
		t.Errorf("a has %d served", r.Tenants[0].Served)
	}
}

// C101: a weight that nobody can mean is clamped and counted, and does not come first.
func TestSenselessWeights(t *testing.T) {
	core := shop(t, 1, &admission.Tenants{Rows: []admission.Tenant{{ID: "a"}, {ID: "b"}}}, nil)
	for i, w := range []float64{0, math.NaN(), -1, math.Inf(1), math.Inf(-1), 1e300} {
		core.SetWeight(0, "a", w)
		if got := core.Stats(0).Tenants.Clamped; got != uint64(i+1) {
			t.Errorf("after weight %v %d are counted, want %d", w, got, i+1)
		}
	}
	core.SetWeight(0, "a", 0)
	share := ask(core, 0, "b").Share
	for range 100 {
		for _, id := range []string{"a", "b"} {
			ask(core, 0, id).Waiter.Ref = id
		}
	}
	for i := range 100 {
		core.Release(time.Duration(i+1)*ms, admission.End{Outcome: admission.Completed, Share: share})
		w := core.Next()
		if share = w.Share(); i > 0 && w.Ref != "b" { // the first may be anybody's: a has had nothing
			t.Fatalf("grant %d is a's, whose weight is the least there is", i+1)
		}
	}
}

// C105: a tenant counts as waiting for as long as it has work queued, however long ago it
// asked. Two with 50 requests each, one slot of a second, and meters that forget within
// a few: they take turns to the end.
func TestWaitingIsNotForgotten(t *testing.T) {
	s := Scenario{
		Length: 200 * time.Second,
		Tiers: []Tier{{
			Service: Dist{Kind: Fixed, Mean: time.Second},
			Policy: Policy{Name: "core", Core: &admission.Config{
				Limit: limit.Fixed(1), Depth: 200, Objective: time.Second, MaxWait: 10 * time.Minute, Order: admission.FIFO,
				Tenants: &admission.Tenants{Rows: []admission.Tenant{{ID: "a"}, {ID: "b"}}},
			}},
		}},
		Classes: []Class{{Tenant: "a"}, {Tenant: "b"}},
	}
	n := 0
	s.Trace = func(j *Job) bool {
		if n++; n > 50 { // all of a, then all of b
			j.Class = 1
		}
		return n <= 100
	}
	r := play(t, s, 1)
	// Turns: the waits of both are on average half of all, 49.5 s; first come first served
	// they were 24.5 and 74.5 s.
	for i := range 2 {
		if wait, _ := r.Tenants[i].Wait.Mean(); wait < 48*time.Second || wait > 51*time.Second || r.Tenants[i].Served != 50 {
			t.Errorf("tenant %d: %d served after a mean wait of %v", i, r.Tenants[i].Served, wait)
		}
	}
}

// C106: 10,000 ids a second that nobody has had, for a minute, take no memory beside
// what one known tenant takes: the buckets are there from the beginning, and what waits is
// bounded.
func TestRandomIdsTakeNoMemory(t *testing.T) {
	core := shop(t, 60, &admission.Tenants{Rows: []admission.Tenant{{ID: "a"}}}, func(c *admission.Config) { c.Depth = 0 })
	ids := newNamer(Ids{Fresh: true}, "", nameStream(1, nameTenants, 0))
	var ring [60]admission.Share // of those that run
	run, next := 0, 0
	grant := func(s admission.Share) {
		ring[(next+run)%len(ring)] = s
		run++
	}
	play := func(from, to int, fresh bool) {
		for i := from; i < to; i++ {
			now := time.Duration(i) * time.Second / 10_000
			name := "a"
			if fresh {
				name, _ = ids.draw()
			}
			if d := ask(core, now, name); d.Verdict == admission.Admitted {
				grant(d.Share)
			}
			if i%8 == 0 && run > 0 { // 1,250/s end
				core.Release(now, admission.End{Outcome: admission.Completed, Share: ring[next]})
				next, run = (next+1)%len(ring), run-1
			}
			for w := core.Next(); w != nil; w = core.Next() {
				if w.Verdict() == admission.Admitted {
					grant(w.Share())
				}
				core.Recycle(w)
			}
		}
	}
	play(0, 20_000, false) // the queue has had its length
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	play(20_000, 620_000, true)
	if after := held(); after > before+1<<20 {
		t.Errorf("%d bytes more after 600,000 ids", after-before)
	} else {
		t.Logf("%d bytes more after 600,000 ids", int64(after)-int64(before))
	}
	runtime.KeepAlive(core)
}

// C108: who has had its quota does not have it again by making a crowd of names that
// would push it out of a table.
func TestQuotaIsNotRegained(t *testing.T) {
	core := shop(t, 100_000, &admission.Tenants{
		Rows:   []admission.Tenant{{ID: "a", Quota: admission.Quota{Rate: 1, Burst: 10}}},
		Others: admission.Tenant{Quota: admission.Quota{Rate: 1, Burst: 20}},
	}, nil)
	admitted := func(now time.Duration, id string, n int) (got int) {
		for range n {
			if d := ask(core, now, id); d.Verdict == admission.Admitted {
				got++
			} else if d.Reason != admission.OverQuota || d.RetryAfter <= 0 || d.RetryAfter > time.Second+time.Microsecond {
				t.Fatalf("%s is refused as %v, to try again after %v", id, d.Reason, d.RetryAfter)
			}
		}
		return got
	}
	if got := admitted(0, "a", 50); got != 10 {
		t.Errorf("a has %d of a burst of 10", got)
	}
	crowd := 0
	for i := range 10_000 {
		crowd += admitted(0, fmt.Sprint("x", i), 1)
	}
	if crowd != 20 {
		t.Errorf("10,000 names have %d of a burst of 20", crowd)
	}
	if got := admitted(0, "a", 50); got != 0 {
		t.Errorf("a has %d more", got)
	}
	if got := admitted(3*time.Second, "a", 50); got != 3 {
		t.Errorf("a has %d after 3 s of 1/s", got)
	}
}

// C109: ids without a row obey one ceiling, as many as they are.
func TestUnknownIdsShareOneCeiling(t *testing.T) {
	core := shop(t, 1000, &admission.Tenants{Rows: []admission.Tenant{{ID: "a"}}, Others: admission.Tenant{MaxInUse: 5}}, nil)
	for i := range 1000 {
		ask(core, 0, fmt.Sprint("x", i%7))
	}
	if s := core.Stats(0); s.InUse != 5 || s.Waiting != 995 {
		t.Errorf("%d run and %d wait, want 5 and 995", s.InUse, s.Waiting)
	}
	// They hold up nobody else.
	if d := ask(core, 0, "a"); d.Verdict != admission.Admitted {
		t.Errorf("a is %v, %v", d.Verdict, d.Reason)
	}
}

// A retry is given up before a first attempt, whoever of them came first.
func TestRetriesGiveWay(t *testing.T) {
	core := shop(t, 1, nil, func(c *admission.Config) { c.Depth = 10 })
	offer := func(attempt int) admission.Decision {
		return core.Offer(0, admission.Request{Attempt: attempt, Deadline: never})
	}
	offer(1) // runs
	for range 10 {
		offer(2)
	}
	for range 10 {
		if d := offer(1); d.Verdict != admission.Queued {
			t.Fatalf("a first attempt is refused as %v while retries wait", d.Reason)
		}
	}
	gone := 0
	for w := core.Next(); w != nil; w = core.Next() {
		if w.Reason() == admission.Displaced {
			gone++
		}
	}
	if d := offer(2); gone != 10 || d.Verdict != admission.Refused {
		t.Errorf("%d retries gave way, and the next has verdict %v", gone, d.Verdict)
	}
}
