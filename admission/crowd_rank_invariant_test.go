package admission

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// Who gives way to whom where there are cohorts, keys and tenants, and what a reload
// keeps.

// crowded returns a core of one slot, whose it is, and a queue.
func crowded(t *testing.T, depth int, change func(*Config)) (*Core, Share) {
	t.Helper()
	cfg := Config{Limit: limit.Fixed(1), Depth: depth, MaxWait: time.Hour}
	if change != nil {
		change(&cfg)
	}
	c := benchCore(t, cfg)
	d := c.Offer(0, Request{Deadline: Never, Priority: Critical})
	if d.Verdict != Admitted {
		t.Fatal(d.Reason)
	}
	return c, d.Share
}

// Within a priority the latest cohort gives way first, and those without one before
// all; retries before first attempts of any cohort.
func TestCohortsGiveWay(t *testing.T) {
	c, _ := crowded(t, 4, nil)
	wait := func(cohort, attempt int) *Waiter {
		return c.Offer(0, Request{Deadline: Never, Cohort: cohort, Attempt: attempt}).Waiter
	}
	none, late, early, retry := wait(0, 1), wait(100, 1), wait(3, 1), wait(1, 2)
	for _, w := range []*Waiter{retry, none, late} { // in this order
		if got := wait(50, 1); got == nil || w.Verdict() != Refused || w.Reason() != Displaced {
			t.Fatalf("%+v is still there", w)
		}
	}
	if retry.Ground() != ByRetry || none.Ground() != ByCohort || late.Ground() != ByCohort || early.Ground() != NoGround {
		t.Errorf("by %v, %v, %v, %v", retry.Ground(), none.Ground(), late.Ground(), early.Ground())
	}
	if wait(50, 1) != nil || wait(51, 1) != nil || wait(0, 1) != nil || wait(1, 2) != nil {
		t.Error("somebody who ranks no higher found a place")
	}
	if early.Verdict() != Queued {
		t.Error("the earliest cohort had to go")
	}
}

// I16: under LatestOnly a newer one has the place of the older one of the same key and
// tenant, and of nobody else.
func TestLatestOnly(t *testing.T) {
	c, share := crowded(t, 4, func(cfg *Config) {
		cfg.Overflow, cfg.Tenants = LatestOnly, &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}
	})
	offer := func(id, key string, at time.Duration) Decision {
		return c.Offer(at, Request{Deadline: Never, Tenant: id, Key: key, Arrival: at})
	}
	first := offer("a", "k", 0).Waiter
	other := offer("a", "l", 1).Waiter
	theirs := offer("b", "k", 2).Waiter
	plain := offer("a", "", 3).Waiter
	again := offer("a", "k", 4).Waiter // the queue is full, but for it
	if again == nil || first.Reason() != Replaced || Replaced.RetryCanWin() {
		t.Fatalf("replaced: %v %v", first.Verdict(), first.Reason())
	}
	for _, w := range []*Waiter{other, theirs, plain} {
		if w.Verdict() != Queued {
			t.Errorf("%+v had to go", w)
		}
	}
	if s := c.Stats(4); s.Waiting != 4 || s.Refusals[Replaced] != 1 {
		t.Errorf("%d wait, %d were replaced", s.Waiting, s.Refusals[Replaced])
	}
	c.Release(5, End{Outcome: Completed, Share: share})
	if again.Verdict() != Admitted {
		t.Error("it did not have the place of the one before")
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// A tenant may claim no more than its highest priority.
func TestHighest(t *testing.T) {
	c, share := crowded(t, 10, func(cfg *Config) {
		cfg.Tenants = &Tenants{Rows: []Tenant{{ID: "batch", Highest: Background}}, Others: Tenant{Highest: Default}}
	})
	batch := c.Offer(0, Request{Deadline: Never, Tenant: "batch", Priority: Critical}).Waiter
	sheddable := c.Offer(0, Request{Deadline: Never, Tenant: "x", Priority: Sheddable}).Waiter
	other := c.Offer(0, Request{Deadline: Never, Tenant: "x", Priority: Critical}).Waiter
	if s := c.Stats(0); s.WaitingBy != [priorities]int{0, 1, 1, 1} {
		t.Errorf("waiting by priority %v", s.WaitingBy)
	}
	for _, w := range []*Waiter{other, sheddable, batch} {
		c.Release(0, End{Outcome: Completed, Share: share})
		if share = w.Share(); w.Verdict() != Admitted {
			t.Fatalf("%s waits", w.flow.row.ID)
		}
	}
}

// A quiet id without a row is served at once beside one that floods, whatever their hands
// have in common, unless that is all of it.
func TestHandOfAnId(t *testing.T) {
	quick := 0
	const ids = 500
	for i := range ids {
		c, share := crowded(t, 1000, func(cfg *Config) { cfg.Tenants = &Tenants{} })
		for range 200 {
			c.Offer(0, Request{Deadline: Never, Tenant: "flood"})
		}
		w := c.Offer(0, Request{Deadline: Never, Tenant: fmt.Sprint("quiet", i)}).Waiter
		ends := 0
		for ; w.Verdict() == Queued; ends++ {
			c.Release(0, End{Outcome: Completed, Share: share})
			n := c.Next()
			share = n.Share()
		}
		if ends <= 1+DefaultHand { // each bucket of the flood once, and it
			quick++
		}
	}
	if quick < ids { // one in 4.4e9 shares the whole hand
		t.Errorf("%d of %d started at their first turn", quick, ids)
	}
	if p := (&Tenants{}).Squished(1); math.Abs(p-1/4426165368.0) > 1e-15 { // C(64, 8)
		t.Errorf("the probability to share all of a hand is %v", p)
	}
}

// A retry of another tenant that would give way first, but whose place is not after that
// of the newcomer, is not passed over for a first attempt that is: it ranks above.
func TestWhoGivesWayIsNotPassedOver(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(3), Depth: 6, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "a"}, {ID: "b"}, {ID: "busy"}},
	}})
	c.Offer(0, Request{Deadline: Never, Tenant: "busy", Cost: 3})
	wait := func(id string, cost, attempt int) *Waiter {
		return c.Offer(0, Request{Deadline: Never, Tenant: id, Cost: cost, Attempt: attempt}).Waiter
	}
	// In virtual time b is served until 4, of which the retry is what comes after 1; and the
	// next of a would begin at 2.
	first, retry := wait("b", 1, 1), wait("b", 3, 2)
	mine := []*Waiter{wait("a", 1, 2), wait("a", 1, 2)}
	if wait("a", 2, 1) == nil || first.Verdict() != Queued || retry.Verdict() != Queued {
		t.Errorf("of b the first attempt %v, the retry %v", first.Reason(), retry.Reason())
	}
	for _, w := range mine {
		if w.Reason() != Displaced {
			t.Errorf("a retry of the newcomer's own tenant is still there")
		}
	}
}

// Nobody gives way to a newcomer that finds no place all the same: here the one below it
// is not enough.
func TestNobodyGivesWayInVain(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(4), Depth: 6, MaxWait: time.Hour})
	offer := func(p Priority, cost int) Decision {
		return c.Offer(0, Request{Deadline: Never, Priority: p, Cost: cost})
	}
	offer(Critical, 4)
	offer(Critical, 4)
	below := offer(Background, 1).Waiter
	if d := offer(Default, 3); d.Verdict != Refused || below.Verdict() != Queued {
		t.Errorf("newcomer %v %v, who is below it %v %v", d.Verdict, d.Reason, below.Verdict(), below.Reason())
	}
	if d := offer(Default, 2); d.Verdict != Queued || below.Reason() != Displaced {
		t.Errorf("newcomer %v %v, who is below it %v %v", d.Verdict, d.Reason, below.Verdict(), below.Reason())
	}
}

// MaxQueue bounds what of the queue a tenant fills, and one may always wait.
func TestMaxQueue(t *testing.T) {
	for part, want := range map[float64]int{0.1: 10, 0.005: 1, 0: 100} {
		c, _ := crowded(t, 100, func(cfg *Config) {
			cfg.Tenants = &Tenants{Rows: []Tenant{{ID: "a", MaxQueue: part}}}
		})
		for range 200 {
			c.Offer(0, Request{Deadline: Never, Tenant: "a"})
		}
		if got := c.Stats(0).Waiting; got != want {
			t.Errorf("max queue %v of 100: %d wait, want %d", part, got, want)
		}
	}
}

// flooded returns a core of 20 slots and 400 requests per second after six seconds in
// which an id has asked for 1200, and the time.
func flooded(t *testing.T, id string) (*Core, time.Duration) {
	t.Helper()
	c := benchCore(t, Config{Limit: limit.Fixed(20), Service: 50 * ms, Tenants: &Tenants{Rows: []Tenant{{ID: "flood"}, {ID: "burst"}}}})
	var running []Share
	now := time.Duration(0)
	started := func() {
		for w := c.Next(); w != nil; w = c.Next() {
			if w.Verdict() == Admitted {
				running = append(running, w.Share())
			}
		}
	}
	for ; now < 6*time.Second; now += 2500 * time.Microsecond {
		if len(running) == 20 {
			c.Release(now, End{Outcome: Completed, Share: running[0]})
			running = running[1:]
			started()
		}
		for range 3 {
			if d := c.Offer(now, Request{Deadline: Never, Tenant: id, Arrival: now}); d.Verdict == Admitted {
				running = append(running, d.Share)
			}
		}
		started()
	}
	if s := c.Stats(now); !s.Overload || s.Depth*3 > s.Derivation.Depth {
		t.Fatalf("that is no overload: depth %d of %d", s.Depth, s.Derivation.Depth)
	}
	return c, now
}

// In an overload the queue is short for who makes it, and a burst of another finds the
// depth of the objective: here at least half of it, for half of the slots.
func TestBurstBesideAFlood(t *testing.T) {
	c, now := flooded(t, "flood")
	s, waiting := c.Stats(now), 0
	for range s.Derivation.Depth {
		if c.Offer(now, Request{Deadline: Never, Tenant: "burst", Arrival: now}).Verdict == Queued {
			waiting++
		}
	}
	if waiting < s.Derivation.Depth/2 {
		t.Errorf("%d of a burst wait, of a depth of %d and %d in force", waiting, s.Derivation.Depth, s.Depth)
	}
}

// That holds for ids without a row among themselves: the one that floods has a short
// queue, and quiet ones find a place beside it.
func TestQuietIdBesideAFlood(t *testing.T) {
	c, now := flooded(t, "stranger")
	for i := range 10 {
		if d := c.Offer(now, Request{Deadline: Never, Tenant: fmt.Sprint("quiet", i), Arrival: now}); d.Verdict != Queued {
			t.Errorf("quiet id %d: %v", i, d.Reason)
		}
	}
	for range 10 {
		if d := c.Offer(now, Request{Deadline: Never, Tenant: "stranger", Arrival: now}); d.Verdict != Refused {
			t.Error("the one that floods has found a place")
		}
	}
}

// What of a tenant waits for its ceiling in a high priority is not overtaken by what it
// sends in a lower one, which would take the units one by one for ever. Other tenants go on.
func TestCeilingKeepsTheTenantsOwnOrder(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(10), Depth: 1000, MaxWait: time.Hour, Tenants: &Tenants{Rows: []Tenant{{ID: "a", MaxInUse: 5}}}})
	var running []Share
	for range 3 {
		running = append(running, c.Offer(0, Request{Deadline: Never, Tenant: "a"}).Share)
	}
	big := c.Offer(0, Request{Deadline: Never, Tenant: "a", Priority: Critical, Cost: 5}).Waiter
	for _, share := range running {
		for range 3 {
			if d := c.Offer(0, Request{Deadline: Never, Tenant: "a"}); d.Verdict != Queued {
				t.Fatalf("overtakes: %+v", d)
			}
			if d := c.Offer(0, Request{Deadline: Never, Tenant: "b"}); d.Verdict != Admitted {
				t.Fatalf("another tenant waits: %+v", d)
			} else {
				c.Release(0, End{Outcome: Completed, Share: d.Share})
			}
		}
		c.Release(0, End{Outcome: Completed, Share: share})
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if big.Verdict() != Admitted {
		t.Error("it still waits once all of its tenant have ended")
	}
}

// A reload keeps whose slots are whose, also those of ids without a row when their
// buckets change, and lets those go on that a ceiling held back.
func TestReloadKeepsShares(t *testing.T) {
	cfg := Config{Limit: limit.Fixed(4), Objective: 400 * ms, Depth: 20, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "a", MaxInUse: 1}}, Others: Tenant{MaxInUse: 1},
	}}
	for name, becomes := range map[string]func(*Config){
		"other buckets":   func(c *Config) { c.Tenants = &Tenants{Rows: cfg.Tenants.Rows, Others: cfg.Tenants.Others, Buckets: 8} },
		"no row":          func(c *Config) { c.Tenants = &Tenants{} },
		"no tenants":      func(c *Config) { c.Tenants = nil },
		"higher ceilings": func(c *Config) { c.Tenants = &Tenants{Rows: []Tenant{{ID: "a"}}} },
		"the same":        func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			c := benchCore(t, cfg)
			var shares []Share
			for _, id := range []string{"a", "a", "a", "x", "x", "y"} {
				if d := c.Offer(0, Request{Deadline: Never, Tenant: id}); d.Verdict == Admitted {
					shares = append(shares, d.Share)
				}
			}
			if len(shares) != 2 {
				t.Fatalf("%d run", len(shares))
			}
			for _, change := range []func(*Config){becomes, func(*Config) {}} {
				next := cfg
				change(&next)
				if err := c.Reconfigure(0, next); err != nil {
					t.Fatal(err)
				}
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
			}
			for i := 0; i < len(shares); i++ {
				for w := c.Next(); w != nil; w = c.Next() {
					shares = append(shares, w.Share())
				}
				c.Release(0, End{Outcome: Completed, Share: shares[i]})
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
				for w := c.Next(); w != nil; w = c.Next() {
					shares = append(shares, w.Share())
				}
			}
			if s := c.Stats(0); len(shares) != 6 || s.InUse != 0 || s.Waiting != 0 {
				t.Errorf("%d ran, %d run, %d wait", len(shares), s.InUse, s.Waiting)
			}
		})
	}
}
