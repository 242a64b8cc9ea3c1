package goodput

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// The knobs of shares, turned: what changes against the default.
func TestShareKnobs(t *testing.T) {
	bg := context.Background()
	two := &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}
	// Two of a and then one of b: in turn with tenants, in order without.
	turns := func(r *row) {
		r.join("a1", bg, Work{Tenant: "a"})
		r.join("a2", bg, Work{Tenant: "a"})
		r.join("b1", bg, Work{Tenant: "b"})
	}
	keyed := func(r *row) {
		r.join("x1", bg, Work{Key: "x"})
		time.Sleep(time.Millisecond)
		r.join("y1", bg, Work{Key: "y"})
		r.join("x2", bg, Work{Key: "x"})
	}
	long := strings.Repeat("k", maxKey+1)
	for _, c := range []struct {
		name  string
		cfg   Config
		story func(r *row)
		want  []string
	}{
		{"tenants: none", Config{Depth: 9}, turns, []string{"a1 admitted", "a2 admitted", "b1 admitted"}},
		{"tenants: in turn", Config{Depth: 9, Tenants: two}, turns, []string{"a1 admitted", "b1 admitted", "a2 admitted"}},
		{"tenant: the context's", Config{Depth: 9, Tenants: two}, func(r *row) {
			r.join("a1", WithTenant(bg, "a"), Work{})
			r.join("a2", WithPriority(WithTenant(bg, "a"), Default), Work{})
			r.join("b1", WithTenant(bg, "b"), Work{})
		}, []string{"a1 admitted", "b1 admitted", "a2 admitted"}},
		{"tenant: the work's wins", Config{Depth: 9, Tenants: two}, func(r *row) {
			r.join("a1", bg, Work{Tenant: "a"})
			r.join("a2", bg, Work{Tenant: "a"})
			r.join("b1", WithTenant(bg, "a"), Work{Tenant: "b"})
		}, []string{"a1 admitted", "b1 admitted", "a2 admitted"}},
		{"tenant: a long id is one of the others", Config{Depth: 9, Tenants: &Tenants{
			Rows: []Tenant{{ID: strings.Repeat("i", maxID-1), Quota: Quota{Rate: 1, Burst: 1}}},
		}}, func(r *row) {
			r.join("row", bg, Work{Tenant: strings.Repeat("i", maxID-1)})
			r.join("again", bg, Work{Tenant: strings.Repeat("i", maxID-1)})
			r.join("long", bg, Work{Tenant: strings.Repeat("i", maxID)})
			r.join("longer", bg, Work{Tenant: strings.Repeat("i", 1<<20)})
		}, []string{"again quota", "row admitted", "long admitted", "longer admitted"}},

		{"latest only: off", Config{Depth: 9}, keyed, []string{"x1 admitted", "y1 admitted", "x2 admitted"}},
		{"latest only", Config{Depth: 9, Overflow: LatestOnly}, keyed, []string{"x1 replaced", "x2 admitted", "y1 admitted"}},
		{"latest only: without a key", Config{Depth: 9, Overflow: LatestOnly}, func(r *row) {
			r.join("1", bg, Work{})
			r.join("2", bg, Work{})
			r.join("long1", bg, Work{Key: long})
			r.join("long2", bg, Work{Key: long})
		}, []string{"1 admitted", "2 admitted", "long1 admitted", "long2 admitted"}},
		{"latest only: by tenant", Config{Depth: 9, Overflow: LatestOnly, Tenants: two}, func(r *row) {
			r.join("a1", bg, Work{Tenant: "a", Key: "x"})
			r.join("b1", bg, Work{Tenant: "b", Key: "x"})
			r.join("a2", bg, Work{Tenant: "a", Key: "x"})
		}, []string{"a1 replaced", "a2 admitted", "b1 admitted"}},

		{"highest: default", Config{Depth: 9, Tenants: two}, func(r *row) {
			r.join("a", bg, Work{Tenant: "a"})
			r.join("b", bg, Work{Tenant: "b", Priority: Critical})
		}, []string{"b admitted", "a admitted"}},
		{"highest: default priority", Config{Depth: 9, Tenants: &Tenants{
			Rows: []Tenant{{ID: "a"}, {ID: "b", Highest: Default}},
		}}, func(r *row) {
			r.join("a", bg, Work{Tenant: "a"})
			r.join("b", bg, Work{Tenant: "b", Priority: Critical})
		}, []string{"a admitted", "b admitted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(t, c.cfg, c.story); !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// account returns that of one tenant.
func account(t testing.TB, l *Limiter, id string) TenantState {
	t.Helper()
	all := l.Tenants(1 << 20)
	for i := range all {
		if all[i].ID == id {
			return all[i]
		}
	}
	t.Fatalf("no tenant %q among %+v", id, all)
	return TenantState{}
}

// Work that was accepted and must not be lost leaves only two ways to say no.
func TestDurable(t *testing.T) {
	for _, o := range []Overflow{Displace, RefuseNewest, EvictOldest, Block, LatestOnly} {
		err := Config{Limit: limit.Fixed(1), Overflow: o, Durable: true}.Validate()
		if lossless := o == RefuseNewest || o == Block; (err == nil) != lossless {
			t.Errorf("durable and %v: %v", o, err)
		}
	}
}

// A tenant at its ceiling waits while a slot is idle, and holds up nobody; the slot goes
// back to its account however it ends.
func TestCeilingOfATenant(t *testing.T) {
	ends := map[string]func(*Slot){
		"release": (*Slot).Release, "fail": func(s *Slot) { s.Fail(errWork) },
		"abandon": (*Slot).Abandon, "detach": (*Slot).Detach,
	}
	for name, end := range ends {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: limit.Fixed(3), Depth: 9, Tenants: &Tenants{Rows: []Tenant{{ID: "a", MaxInUse: 1}}}})
			r := &row{l: l}
			slot, err := l.AcquireWork(context.Background(), Work{Tenant: "a"})
			if err != nil {
				t.Fatal(err)
			}
			r.join("second", context.Background(), Work{Tenant: "a"})
			r.join("other", context.Background(), Work{Tenant: "b"})
			end(&slot)
			synctest.Wait()
			r.join("third", context.Background(), Work{Tenant: "a"})
			if want := []string{"other admitted", "second admitted", "third admitted"}; !slices.Equal(r.log, want) {
				t.Errorf("%s: told %q, want %q", name, r.log, want)
			}
			if n := account(t, l, "a").InUse; n != 0 {
				t.Errorf("%s: %d in use by the tenant after the end", name, n)
			}
			checkEmpty(t, l)
		})
	}
}

// A grant that comes while its caller leaves goes back to the account that it was on.
func TestDeclineGivesBackTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Depth: 10, Tenants: &Tenants{Rows: []Tenant{{ID: "a", MaxInUse: 1}}}})
		declined := 0
		for range 50 { // whether the grant or the end of its context is seen first is chance
			slot := mustAcquire(t, l)
			late := ownContext{WithTenant(context.Background(), "a"), make(chan struct{})}
			done := make(chan error)
			go func() {
				slot, err := l.Acquire(late)
				slot.Release()
				done <- err
			}()
			synctest.Wait()
			slot.Release()
			close(late.done)
			if <-done != nil {
				declined++
			}
			if n := account(t, l, "a").InUse; n != 0 {
				t.Fatalf("%d in use by the tenant after it left", n)
			}
		}
		if declined == 0 {
			t.Error("nobody left at the moment of its grant")
		}
		checkEmpty(t, l)
	})
}

// A priority has its reserve while those above it want everything.
func TestReserve(t *testing.T) {
	served := func(r Reserve) (background int) {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: limit.Fixed(1), Depth: 500, Order: FIFO, MaxWait: time.Hour, Reserve: r})
			var order []Priority
			begin := mustAcquire(t, l)
			for i := range 200 {
				p := []Priority{Critical, Background}[i%2]
				go func() {
					slot, err := l.AcquireWork(context.Background(), Work{Priority: p})
					if err != nil {
						t.Error(err)
					}
					order = append(order, p) // one slot: nobody else is here
					time.Sleep(time.Millisecond)
					slot.Release()
				}()
				synctest.Wait()
			}
			begin.Release()
			time.Sleep(time.Second)
			for _, p := range order[:80] {
				if p == Background {
					background++
				}
			}
			checkEmpty(t, l)
		})
		return background
	}
	// Without: one after each 32, the guard against starvation. With a quarter: 20 of
	// 80, and as it may have saved up or be owed up to a request at each end, 2.
	if none, quarter := served(Reserve{}), served(Reserve{Background: 0.25}); none != 2 || quarter < 18 || quarter > 22 {
		t.Errorf("of 80: %d without a reserve, %d with a quarter", none, quarter)
	}
}

// A quota: what is said, when it is right, and what SetCost makes of it.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "search", Limit: limit.Fixed(60), Tenants: &Tenants{
			Rows:   []Tenant{{ID: "a", Quota: Quota{Rate: 10, Burst: 2}}},
			Others: Tenant{Quota: Quota{Rate: 0.5}},
		}})
		ask := func(w Work, want time.Duration) *Rejection {
			t.Helper()
			slot, err := l.AcquireWork(context.Background(), w)
			slot.Release()
			var r *Rejection
			if !errors.As(err, &r) {
				if want != 0 {
					t.Errorf("%+v: admitted, want %v until the quota has enough", w, want)
				}
				return nil
			}
			// Virtual time is exact to a nanosecond, and the account is a float64.
			if r.Reason != OverQuota || (r.RetryAfter-want).Abs() > time.Nanosecond {
				t.Errorf("%+v: %v, want quota with %v", w, err, want)
			}
			return r
		}
		a := Work{Tenant: "a"}
		ask(a, 0)
		ask(a, 0)
		r := ask(a, 100*time.Millisecond)
		for _, want := range []string{"what its quota allows", "quota 10/s, burst 2, enough for it in 100ms"} {
			if !strings.Contains(r.Error(), want) {
				t.Errorf("%q does not say %q", r, want)
			}
		}
		if r.Jittered() != time.Second || r.Quota != (Quota{Rate: 10, Burst: 2}) {
			t.Errorf("in seconds %v, quota %+v", r.Jittered(), r.Quota)
		}
		ask(Work{Tenant: "a", Cost: 2}, 200*time.Millisecond) // its own time, whoever was refused before
		ask(a, 100*time.Millisecond)
		time.Sleep(70 * time.Millisecond)
		ask(a, 30*time.Millisecond)
		time.Sleep(30 * time.Millisecond)
		ask(a, 0)

		// The others have one account, and the tenants with a row are not on it.
		ask(Work{Tenant: "x"}, 0)
		ask(Work{Tenant: "y"}, 2*time.Second)
		ask(Work{}, 2*time.Second)

		// Corrected upwards it owes: 12 units of a burst of 2 take a second.
		time.Sleep(time.Minute)
		slot, err := l.AcquireWork(context.Background(), a)
		if err != nil {
			t.Fatal(err)
		}
		slot.SetCost(12)
		slot.Release()
		ask(a, 1100*time.Millisecond)
		if s := account(t, l, "a"); math.Abs(s.Left+10) > 1e-6 || s.Quotaed != 5 || s.Granted != 15 {
			t.Errorf("owes %v, %d refused, %d granted, want -10, 5, 15", s.Left, s.Quotaed, s.Granted)
		}
		checkEmpty(t, l)
	})
}

// Refusals of one tenant share a value as long as it is right to a millisecond and not
// too short, and no longer.
func TestQuotaRefusalsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(60), Objective: 24 * time.Hour, Tenants: &Tenants{Rows: []Tenant{
			{ID: "a", Quota: Quota{Rate: 1, Burst: 1}}, {ID: "b", Quota: Quota{Rate: 1, Burst: 1}}, {ID: "c", Quota: Quota{Rate: 1, Burst: 1}},
		}}})
		refused := func(tenant string) error {
			slot, err := l.AcquireWork(context.Background(), Work{Tenant: tenant})
			slot.Release()
			return err
		}
		refused("a")
		refused("b")
		a, b := refused("a"), refused("b")
		if reason(a) != OverQuota || reason(b) != OverQuota || a == b {
			t.Fatalf("%v and %v", a, b)
		}
		time.Sleep(quotaSlack)
		if refused("a") != a {
			t.Error("a value that is right to a millisecond is not shared")
		}
		time.Sleep(1)
		if refused("a") == a {
			t.Error("a value is shared that is too long by more than a millisecond")
		}
		// Nor for longer than a window, however often the same time is right.
		refused("c")
		last := refused("c")
		time.Sleep(last.(*Rejection).RetryAfter)
		if err := refused("c"); err != nil {
			t.Errorf("after the time that it was told: %v", err)
		}
		if refused("c") == last {
			t.Error("a value is shared that is a second old")
		}
		// What was built before a change is not told after it.
		refused("a")
		last = refused("a")
		if err := l.SetLimit(50); err != nil {
			t.Fatal(err)
		}
		if err := refused("a"); err == last || err.(*Rejection).Limit != 50 {
			t.Errorf("after SetLimit(50): %v", err)
		}
	})
}

// SetSize and SetCost: what the sample is of, what is charged, what stays.
func TestSetSizeAndSetCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learned := func(correct func(*Slot)) time.Duration {
			l := New(Config{Limit: limit.Fixed(1), Objective: time.Second})
			for range 1000 { // far more than the prior is worth
				slot, err := l.AcquireWork(context.Background(), Work{Size: 1})
				if err != nil {
					t.Fatal(err)
				}
				correct(&slot)
				time.Sleep(30 * time.Millisecond)
				slot.Release()
			}
			return time.Duration(float64(time.Second) / l.Stats().Capacity)
		}
		plain, three := learned(func(*Slot) {}), learned(func(s *Slot) { s.SetSize(99); s.SetSize(3) })
		if plain != three { // how long a unit of cost is held has nothing to do with size
			t.Errorf("a slot serves one request in %v, with another size in %v", plain, three)
		}
		service := func(correct func(*Slot)) time.Duration {
			l := New(Config{Limit: limit.Fixed(1), Objective: time.Second})
			slot := mustAcquire(t, l)
			correct(slot)
			time.Sleep(90 * time.Millisecond)
			slot.Release()
			var b admission.Batch
			l.rec.gather(&b)
			core, err := admission.New(admission.Config{Limit: limit.Fixed(1)})
			if err != nil {
				t.Fatal(err)
			}
			core.Observe(time.Minute, &b)
			busy := core.Offer(time.Minute, admission.Request{Deadline: admission.Never, Arrival: time.Minute})
			d := core.Offer(time.Minute, admission.Request{Deadline: time.Minute + 1, Arrival: time.Minute})
			if busy.Verdict != admission.Admitted || d.Reason != NoBudget {
				t.Fatalf("got %+v", d)
			}
			return d.Service
		}
		one := service(func(*Slot) {})
		third := service(func(s *Slot) { s.SetSize(3) })
		least := service(func(s *Slot) { s.SetSize(-5) })
		if one != least || third >= one {
			t.Errorf("a unit of size needs %v; with size 3 %v, with -5 %v", one, third, least)
		}
		if other := service(func(s *Slot) { s.SetCost(50) }); other != one {
			t.Errorf("SetCost changes the sample: %v, want %v", other, one)
		}
	})
}

// The units that a slot holds are those it was admitted with.
func TestSetCostKeepsTheUnits(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(4), Depth: NoQueue, Tenants: &Tenants{Rows: []Tenant{{ID: "a"}}}})
	slot, err := l.AcquireWork(context.Background(), Work{Tenant: "a", Cost: 3})
	if err != nil {
		t.Fatal(err)
	}
	slot.SetCost(math.MaxInt)
	if n := l.Stats().InUse; n != 3 {
		t.Errorf("%d in use", n)
	}
	slot.Release()
	slot.SetCost(7) // there is nothing to correct any more
	if s := account(t, l, "a"); s.Granted != limit.Max {
		t.Errorf("granted %+v, want the largest cost there is", s)
	}
	checkEmpty(t, l)
}

// SetWeight changes who goes first; out of range it is clamped and counted.
func TestSetWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Depth: 500, Order: FIFO, MaxWait: time.Hour, Tenants: &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}})
		l.SetWeight("a", 3)
		begin := mustAcquire(t, l)
		got := map[string]int{}
		n := 0
		for i := range 200 {
			tenant := []string{"a", "b"}[i%2]
			go func() {
				_ = l.Do(WithTenant(context.Background(), tenant), func(context.Context) error {
					if n++; n <= 80 {
						got[tenant]++
					}
					time.Sleep(time.Millisecond)
					return nil
				})
			}()
			synctest.Wait()
		}
		begin.Release()
		time.Sleep(time.Second)
		// 60 and 20; start-time fair queueing may be off by the largest cost of each.
		if got["a"] < 59 || got["a"] > 61 {
			t.Errorf("of 80 %v, want 3 to 1", got)
		}
		for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
			l.SetWeight("b", w)
			if w := account(t, l, "b").Weight; !(w > 0 && w <= 3e6) {
				t.Errorf("clamped to %v", w)
			}
		}
		if n := l.Stats().Tenants.Clamped; n != 4 {
			t.Errorf("%d clamped, want 4", n)
		}
		checkEmpty(t, l)
	})
}

// The configuration that New was given may be changed and used again.
func TestTenantsAreCopied(t *testing.T) {
	cfg := Config{Limit: limit.Fixed(1), Tenants: &Tenants{Rows: []Tenant{{ID: "a", Quota: Quota{Rate: 1, Burst: 1}}}}}
	l := New(cfg)
	if err := l.Reconfigure(cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Tenants.Rows[0] = Tenant{ID: "b"}
	cfg.Tenants.Others.Quota = Quota{Rate: 1, Burst: 1}
	for i, want := range []Reason{None, OverQuota} {
		slot, err := l.AcquireWork(context.Background(), Work{Tenant: "a"})
		if reason(err) != want {
			t.Errorf("request %d: %v, want %v", i, err, want)
		} else if err != nil && err.(*Rejection).Quota.Rate != 1 {
			t.Errorf("quota %+v", err.(*Rejection).Quota)
		}
		slot.Release()
	}
	account(t, l, "a")
}

// The cohort is a hash of the user, else of a tenant that has no share of its own, and of
// the hour by the wall clock, so two limiters agree.
func TestCohort(t *testing.T) {
	bg := context.Background()
	requests := []struct {
		ctx context.Context
		w   Work
	}{
		{bg, Work{}},
		{bg, Work{Tenant: "t"}},
		{bg, Work{User: "u", Tenant: "t"}},
		{WithUser(bg, "u"), Work{}},
		{WithUser(bg, "u"), Work{User: "v"}},
		{WithUser(WithTenant(bg, "t"), "u"), Work{}},
	}
	synctest.Test(t, func(t *testing.T) {
		cohorts := func(l *Limiter) (got []int) {
			now := l.enter()
			l.noLend = true
			l.journal = func(c call) {
				if c.op == "offer" {
					got = append(got, c.request.Cohort)
				}
			}
			l.leave(now)
			for _, r := range requests {
				slot, err := l.AcquireWork(r.ctx, r.w)
				if err != nil {
					t.Fatal(err)
				}
				slot.Release()
			}
			return got
		}
		alike, shared := Config{Limit: limit.Fixed(9)}, Config{Limit: limit.Fixed(9), Tenants: &Tenants{}}
		one, two := New(alike), New(shared)
		turn := turnAt(time.Now())
		tt, u, v := admission.CohortOf("t", turn), admission.CohortOf("u", turn), admission.CohortOf("v", turn)
		if got, want := cohorts(one), []int{0, tt, u, u, v, u}; !slices.Equal(got, want) {
			t.Errorf("cohorts %v, want %v", got, want)
		}
		if got, want := cohorts(two), []int{0, 0, u, u, v, u}; !slices.Equal(got, want) {
			t.Errorf("with tenants: cohorts %v, want %v", got, want)
		}
		time.Sleep(time.Hour)
		one.Stats() // a window is over
		if a, b := cohorts(one), cohorts(New(alike)); !slices.Equal(a, b) || a[2] == u {
			t.Errorf("an hour later %v, in another instance %v", a, b)
		}
	})
}

// A client that sends a megabyte does not have it hashed.
func TestLongIDsAreCut(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(9), Tenants: &Tenants{}})
	now := l.enter()
	l.journal = func(c call) {
		if n := len(c.request.Tenant) + len(c.request.Key); n > maxID {
			t.Errorf("the core is told %d bytes", n)
		}
	}
	l.leave(now)
	long := strings.Repeat("x", 1<<20)
	slot, err := l.AcquireWork(context.Background(), Work{Tenant: long, User: long, Key: long})
	if err != nil {
		t.Fatal(err)
	}
	slot.Release()
	if l.cohort(long, "") != l.cohort(long[:maxID], "") || l.cohort(long, "") == l.cohort(long[:maxID-1], "") {
		t.Errorf("of a user not the first %d bytes count", maxID)
	}
}

// The rare parts of slots with an account are used again, and those of others are not
// kept.
func TestAccountsAreBounded(t *testing.T) {
	kept := func(l *Limiter) (n int) {
		now := l.enter()
		for own := l.accounts.spare; own != nil; own = own.next {
			n++
		}
		l.leave(now)
		return n
	}
	bg := context.Background()
	with := New(Config{Limit: limit.Fixed(9), Tenants: &Tenants{}})
	without := New(Config{Limit: limit.Fixed(9)})
	for range 100 {
		var slots [3]Slot
		for _, l := range []*Limiter{with, without} {
			for i := range slots {
				var err error
				if slots[i], err = l.AcquireWork(bg, Work{Size: 5, Tenant: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
				slots[i].Answered()
				slots[i].SetCost(7)
				slots[i].SetSize(7)
			}
			for i := range slots {
				slots[i].Fail(errWork) // meets the core
				if slots[i].Waited() != 0 || slots[i].rare != nil && l == with {
					t.Error("a slot has kept what is used again")
				}
			}
		}
	}
	slot, err := with.AcquireWork(bg, Work{Tenant: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (rare{size: 1, cost: 1, share: slot.rare.share, lent: true}); *slot.rare != want {
		t.Errorf("what another slot has left: %+v", *slot.rare)
	}
	slot.Release()
	if n := kept(with); n != 3 {
		t.Errorf("%d rare parts are kept of 3 that ran at once", n)
	}
	if n := kept(without); n != 0 {
		t.Errorf("%d rare parts are kept that nobody takes", n)
	}
}
