package goodput

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
			synctest.Wait() // they have ended: what they noted may be read
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
		synctest.Wait() // they have ended: what they counted may be read
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
