package goodput_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// Somebody else's API takes 100 calls per second, 20 of them at once, and at most 8 may be
// open. Who is over that waits here, in order and no longer than its deadline, and is
// refused at once where it would wait in vain: the API never answers 429.
//
// Set the rate a little below the one that was agreed: it counts when a call begins, and
// over there when it arrives. If a call turns out to cost more than was said, Slot.SetCost
// says so, and the next ones wait for it.
//
// When not to use it: this is about a resource that has a rate, not about callers that
// have a plan. What each of your own callers may have is a Tenant.Quota where it protects
// the others, and rate limiting by plan, with its bills and its windows of a month, is
// another trade: a service or a proxy made for it stands in front of this one. And several
// processes that share one allowance each need a part of it; nothing here counts for all.
func ExampleConfig_allowance() {
	api := goodput.New(goodput.Config{
		Name:      "api",
		Limit:     limit.Fixed(8),
		Allowance: goodput.Quota{Rate: 100, Burst: 20},
		Objective: time.Second,
		Service:   50 * time.Millisecond, // until it has been measured
	})

	var served, refused atomic.Int32
	var calls sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 30 {
		calls.Go(func() {
			err := api.Do(ctx, func(context.Context) error {
				return nil // the call of the API
			})
			if err == nil {
				served.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	calls.Wait()
	fmt.Println(served.Load(), "served,", refused.Load(), "refused")

	s := api.Stats()
	fmt.Printf("%.0f/s can be served; %.0f/s are allowed, %.0f at once\n", s.Capacity, s.Allowance.Rate, s.Allowance.Burst)
	// Output:
	// 30 served, 0 refused
	// 100/s can be served; 100/s are allowed, 20 at once
}
