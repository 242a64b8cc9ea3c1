package goodput_test

import (
	"context"
	"fmt"
	"math"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// Two customers with a share of their own, one of them with a quota, and everybody else
// together. A share that is not used is used by the others at once.
func ExampleTenants() {
	lim := goodput.New(goodput.Config{
		Name: "search", Limit: limit.Fixed(60),
		Tenants: &goodput.Tenants{
			Rows: []goodput.Tenant{
				{ID: "acme", Weight: 3},
				{ID: "trial", Weight: 1, Quota: goodput.Quota{Rate: 0.5, Burst: 1}},
			},
			Others: goodput.Tenant{Weight: 1, MaxInUse: 10},
		},
	})
	ctx := goodput.WithTenant(context.Background(), "trial")
	for range 2 {
		err := lim.Do(ctx, func(context.Context) error { return nil })
		if r, ok := err.(*goodput.Rejection); ok {
			fmt.Println(r.Reason, "quota", r.Quota.Rate, "per second, come back in", r.Jittered())
		}
	}
	// Output: quota quota 0.5 per second, come back in 2s
}

// What the work costs is known once it is done: the tenant pays for that, and not for what
// it said at the door.
func ExampleSlot_SetCost() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(8), Tenants: &goodput.Tenants{
		Rows: []goodput.Tenant{{ID: "acme", Quota: goodput.Quota{Rate: 1e-3, Burst: 1000}}},
	}})
	generate := func() (tokens int) { return 700 }

	slot, err := lim.AcquireWork(context.Background(), goodput.Work{Tenant: "acme", Size: 200})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer slot.Release()
	tokens := generate()
	slot.SetCost(tokens) // charged
	slot.SetSize(tokens) // learned from: so much time for so many tokens
	slot.Release()

	for _, t := range lim.Tenants(10) {
		if t.ID == "acme" {
			fmt.Println(t.ID, "has", math.Round(t.Left), "tokens left")
		}
	}
	// Output: acme has 300 tokens left
}

// A customer has bought more.
func ExampleLimiter_SetWeight() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(8), Tenants: &goodput.Tenants{
		Rows: []goodput.Tenant{{ID: "acme"}},
	}})
	lim.SetWeight("acme", 3)
	for _, t := range lim.Tenants(10) {
		fmt.Printf("%q has a weight of %v\n", t.ID, t.Weight)
	}
	// Output:
	// "" has a weight of 1
	// "acme" has a weight of 3
}
