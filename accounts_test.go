package goodput

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// Whose account a slot is on, from the context to the end.

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
