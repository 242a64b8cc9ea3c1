package goodput

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// flooded is what Explain says of 100/s of a tenant with a ceiling and 10/s of ten others,
// where 40/s can be served; of users, if they have a name.
func flooded(t *testing.T, users bool) (text, rows string) {
	synctest.Test(t, func(t *testing.T) {
		tenants := rowsOf(20, Tenant{})
		tenants.Rows[0] = Tenant{ID: "big", Weight: 2, MaxInUse: 3}
		tenants.Rows[1] = Tenant{ID: "metered", Quota: Quota{Rate: 2, Burst: 4}}
		l := New(Config{
			Limit: limit.Fixed(4), Tenants: tenants, Objective: time.Second, Service: 100 * time.Millisecond,
			Reserve: Reserve{Critical: 0.2, Background: 0.05},
		})
		asked := 0
		ask := func(tenant string) {
			ctx := WithTenant(context.Background(), tenant)
			if asked++; users {
				ctx = WithUser(ctx, fmt.Sprint("user ", asked))
			}
			go func() {
				_ = l.Do(ctx, func(context.Context) error {
					time.Sleep(100 * time.Millisecond)
					return nil
				})
			}()
		}
		for i := range 3000 {
			ask("big")
			if i%10 == 0 {
				ask("metered")
				ask(fmt.Sprintf("tenant-%d", 2+i/10%9))
			}
			time.Sleep(10*time.Millisecond + 1)
		}
		for range 4 {
			ask("metered") // until there is less than a unit left
		}
		synctest.Wait()
		text = l.Explain()
		for _, f := range l.Explanation().Facts {
			if f.Topic == "tenants" {
				rows = f.Text
			}
		}
		time.Sleep(time.Minute)
		checkEmpty(t, l)
	})
	return text, rows
}

// Explain says of the tenants that ask for most who has what, and why; and who is shed
// first, if that goes by users.
func TestExplainShowsShares(t *testing.T) {
	sheds := []string{"shed     default, users from cohort ", " of 128 on: ", "/s offered where ", "/s are left for it"}
	for _, users := range []bool{false, true} {
		text, tenants := flooded(t, users)
		t.Logf("\n%s", text)
		for _, want := range []string{
			"tenants  20 with a row; ", " ask, 1 for more than their share; cost ", " waits for a ceiling of its own",
			`"big": weight 2, 3 in use of at most 3,`, "/s entitled: over its share of 2 x ",
			`"metered": weight 1, `, " waiting; ", "quota 2/s, burst 4, ", " left, the next unit in ", "for the quota",
			"reserve  20 % for critical, 5 % for background of what is granted\n",
			"that ask for less",
		} {
			if !strings.Contains(flat(text), flat(want)) {
				t.Errorf("users %v: does not say %q", users, want)
			}
		}
		for _, want := range sheds {
			if strings.Contains(flat(text), flat(want)) != users {
				t.Errorf("users %v, and %q is said: %v", users, want, !users)
			}
		}
		rows := 0
		for line := range strings.Lines(tenants) {
			if strings.Contains(line, ": weight ") {
				rows++
				if strings.Contains(line, " left") != strings.Contains(line, `"metered"`) {
					t.Errorf("what is left of a quota: %s", line)
				}
			}
		}
		if rows != explained {
			t.Errorf("%d tenants, want %d", rows, explained)
		}
	}
	if text := fixed(1, 1).Explain(); strings.Contains(text, "tenants") || strings.Contains(text, "reserve") || strings.Contains(text, "shed ") {
		t.Errorf("without tenants:\n%s", text)
	}
}

// In observe mode tenants run whatever their quota and ceiling say, and the shadow says
// what would have been; the accounts are settled with the real ends.
func TestObserveHasTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(4), Depth: 9, Order: FIFO, MaxWait: time.Hour, Observe: true, Tenants: &Tenants{
			Rows: []Tenant{{ID: "a", MaxInUse: 1}, {ID: "b", Quota: Quota{Rate: 1, Burst: 2}}},
		}})
		var slots []*Slot
		for range 3 {
			for _, id := range []string{"a", "b"} {
				slot, err := l.AcquireWork(context.Background(), Work{Tenant: id})
				if err != nil {
					t.Fatal(err)
				}
				slots = append(slots, &slot)
			}
		}
		a, b := account(t, l, "a"), account(t, l, "b")
		if a.InUse != 1 || a.Waiting != 2 || b.InUse != 2 || b.Quotaed != 1 {
			t.Errorf("in the shadow: %+v and %+v", a, b)
		}
		slots[0].Release() // the next of a has its slot in the shadow
		if a = account(t, l, "a"); a.InUse != 1 || a.Waiting != 1 {
			t.Errorf("in the shadow: %+v", a)
		}
		slots[2].SetCost(5)
		for _, s := range slots {
			s.Release()
		}
		a, b = account(t, l, "a"), account(t, l, "b")
		if a.InUse != 0 || a.Waiting != 0 || b.InUse != 0 || a.Granted != 7 { // 1, 5 and 1
			t.Errorf("after all have ended: %+v and %+v", a, b)
		}
		if s := l.Stats(); s.Arrivals != 6 || s.Shadow.Refusals[OverQuota] != 1 || ended(&s) != 6 {
			t.Errorf("really %v, in the shadow %v", s.Outcomes, s.Shadow.Refusals)
		}
		checkEmpty(t, l)
	})
}
