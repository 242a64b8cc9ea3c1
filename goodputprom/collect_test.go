package goodputprom

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// C128: the classic buckets of a scrape reach past the objective, also where there are no
// deadlines, and past the longest deadline, whichever is later.
func TestScrapeReachesPastTheObjective_C128(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Objective: 20 * time.Second})
	for _, c := range []struct {
		longest func(string) time.Duration
		want    float64
	}{
		{nil, 30},
		{func(string) time.Duration { return 5 * time.Second }, 30},
		{func(string) time.Duration { return 70 * time.Second }, 120},
	} {
		col := New(lim)
		col.Longest = c.longest
		found := 0
		for _, f := range gather(t, col) {
			if f.GetType() != dto.MetricType_HISTOGRAM {
				continue
			}
			for _, m := range f.Metric {
				found++
				all := m.Histogram.Bucket
				if last := all[len(all)-1].GetUpperBound(); last != c.want {
					t.Errorf("%s: the last bound is %v s, want %v s", f.GetName(), last, c.want)
				}
			}
		}
		if found != 8 {
			t.Errorf("%d histograms, want 8", found)
		}
	}
}

// However many tenants are asked for, at most 100 are shown by their names.
func TestTenantsAreAtMost100(t *testing.T) {
	var rows []goodput.Tenant
	for i := range 110 {
		rows = append(rows, goodput.Tenant{ID: fmt.Sprintf("t%03d", i)})
	}
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(200), Tenants: &goodput.Tenants{Rows: rows}})
	for _, r := range rows {
		if _, err := lim.AcquireWork(t.Context(), goodput.Work{Tenant: r.ID}); err != nil {
			t.Fatal(err)
		}
	}
	col := New(lim)
	col.Tenants = 1000
	all := gather(t, col)
	of := func(name string) *dto.MetricFamily {
		return all[slices.IndexFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == name })]
	}
	if n := len(of("goodput_tenant_usage").Metric); n != 101 { // and the others
		t.Errorf("usage of %d, want 101", n)
	}
	if f := of("goodput_tenant_arrivals_total"); len(f.Metric) != 100 || f.GetType() != dto.MetricType_COUNTER {
		t.Errorf("arrivals of %d, want 100; %v", len(f.Metric), f.GetType())
	}
}

// In observe mode the accounts of tenants are those of the decisions, and so are the others: together
// they are what would run and wait, and not what does.
func TestTenantsWhileItObserves(t *testing.T) {
	lim := goodput.New(goodput.Config{
		Limit: limit.Fixed(2), Depth: 3, Objective: time.Minute, Observe: true,
		Tenants: &goodput.Tenants{Rows: []goodput.Tenant{{ID: "acme"}}},
	})
	for i := range 9 {
		if _, err := lim.AcquireWork(t.Context(), goodput.Work{Tenant: []string{"acme", ""}[i%2]}); err != nil {
			t.Fatal(err)
		}
	}
	s := lim.Stats()
	if s.InUse != 9 || s.Shadow.InUse != 2 || s.Shadow.WaitingCost != 3 {
		t.Fatalf("not the scene: %d run, would be %d and %d waiting", s.InUse, s.Shadow.InUse, s.Shadow.WaitingCost)
	}
	col := New(lim)
	col.Tenants = 5
	got := values(gather(t, col))
	for name, want := range map[string]int{"usage": s.Shadow.InUse, "queue_depth": s.Shadow.WaitingCost} {
		series := "goodput_tenant_" + name + `{limiter="default",tenant=%q}`
		acme, others := got[fmt.Sprintf(series, "acme")], got[fmt.Sprintf(series, others)]
		if acme == 0 || acme+others != float64(want) {
			t.Errorf("%s of acme %v, of the others %v, want %d together", name, acme, others, want)
		}
	}
}

// The accounts are of a moment after the snapshot: what is left for the others is not below nothing.
func TestTheOthersAreNotBelowNothing(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(10), Tenants: &goodput.Tenants{Rows: []goodput.Tenant{{ID: "acme"}}}})
	before := lim.Stats()
	for range 4 { // between the two
		if _, err := lim.AcquireWork(t.Context(), goodput.Work{Tenant: "acme"}); err != nil {
			t.Fatal(err)
		}
	}
	ch := make(chan prometheus.Metric, 100)
	newShown(lim, "default").sendTenants(ch, &before, 1)
	close(ch)
	got := parsed(t, ch)
	if acme, others := got[`tenant_usage{tenant="acme"}`], got[`tenant_usage{tenant="_other"}`]; acme != 4 || others != 0 {
		t.Errorf("acme has %v of the slots, the others %v; want 4 and 0", acme, others)
	}
}
