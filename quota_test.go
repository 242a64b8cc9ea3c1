package goodput

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// Quotas, and what is corrected once it is known.

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
		time.Sleep(time.Nanosecond)
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
		l := New(Config{Limit: limit.Fixed(1)})
		slot, err := l.AcquireWork(context.Background(), Work{Size: 2})
		if err != nil {
			t.Fatal(err)
		}
		slot.SetSize(6)
		time.Sleep(90 * time.Millisecond)
		slot.Release()
		var got, want admission.Batch
		l.rec.gather(&got)
		want.AddSample(admission.Sample{Service: 90 * time.Millisecond, Hold: 90 * time.Millisecond, Cost: 1, Offered: 2, Size: 6})
		want.Quiet = 90 * time.Millisecond
		if got != want {
			t.Error("the sample is not of an offered size of 2 and an actual one of 6")
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
