package goodput

import (
	"context"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// TryAcquireWork takes all that the work costs or nothing, waits for nothing, and is on the
// account of the tenant that its context or the work names.
func TestTryAcquireWork(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancelLate := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelLate()
	lim := New(Config{Limit: limit.Fixed(10), Tenants: &Tenants{Rows: []Tenant{{ID: "a"}}}})
	of := WithTenant(context.Background(), "a")
	for _, c := range []struct {
		name string
		ctx  context.Context
		cost int
		ok   bool
		used int // after it
	}{
		{"four of ten", of, 4, true, 4},
		{"four of six", of, 4, true, 8},
		{"four of two", of, 4, false, 8},
		{"left", over, 1, false, 8},
		{"late", late, 1, false, 8},
		{"the default is one", of, 0, true, 9},
		{"the last", of, 1, true, 10},
		{"none is left", of, 1, false, 10},
	} {
		slot, ok := lim.TryAcquireWork(c.ctx, Work{Cost: c.cost})
		if ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		}
		if ok {
			defer slot.Release()
		}
		if n := lim.Stats().InUse; n != c.used {
			t.Errorf("%s: %d in use, want %d", c.name, n, c.used)
		}
	}
	if n := lim.Stats().Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
	if top := lim.Tenants(1); len(top) != 1 || top[0].ID != "a" || top[0].InUse != 10 {
		t.Errorf("the accounts are %+v", top)
	}
}
