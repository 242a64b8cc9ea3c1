package admission

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// However few are asked for, they are the first of all in the documented order.
func TestTopTenantsAreTheFirstOfAll(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	rows := make([]Tenant, 60)
	for i := range rows {
		rows[i].ID = fmt.Sprint(i)
	}
	c := benchCore(t, Config{Limit: limit.Fixed(30), Tenants: &Tenants{Rows: rows}})
	now := time.Duration(0)
	for range 400 {
		now += time.Duration(rng.IntN(3)) * ms // of one instant many are equal
		d := c.Offer(now, Request{Deadline: Never, Tenant: fmt.Sprint(rng.IntN(50) * rng.IntN(2))})
		for c.Next() != nil {
		}
		if d.Verdict == Admitted && rng.IntN(2) == 0 {
			c.Release(now, End{Outcome: Completed, Share: d.Share})
		}
	}
	all := c.TopTenants(now, 1000)
	if len(all) != 61 || !slices.IsSortedFunc(all, func(a, b TenantState) int {
		return cmp.Or(cmp.Compare(b.Offered, a.Offered), cmp.Compare(b.InUse+b.WaitingCost, a.InUse+a.WaitingCost), cmp.Compare(b.Arrivals, a.Arrivals))
	}) {
		t.Errorf("seed %d: %d tenants, or not in order", seed, len(all))
	}
	for n := range 62 {
		if got := c.TopTenants(now, n); !slices.Equal(got, all[:min(n, 61)]) {
			t.Errorf("seed %d: the first %d are %v, want %v", seed, n, got, all[:min(n, 61)])
		}
	}
}

// Whoever looks is told the burst in force, as in Derivation.Allowance, and not that none is configured.
func TestAccountHasTheBurstInForce(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(1), Objective: time.Second, Tenants: &Tenants{Rows: []Tenant{
		{ID: "said", Quota: Quota{Rate: 10, Burst: 3}}, {ID: "second", Quota: Quota{Rate: 100}}, {ID: "slow", Quota: Quota{Rate: 0.1}}, {ID: "none"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"said": 3, "second": 100, "slow": 1, "none": 0}
	for _, s := range c.TopTenants(0, 9) {
		if s.Quota.Burst != want[s.ID] || s.Quota.Rate > 0 && s.Left != want[s.ID] {
			t.Errorf("%q: burst %v, %v left, want %v", s.ID, s.Quota.Burst, s.Left, want[s.ID])
		}
	}
}
