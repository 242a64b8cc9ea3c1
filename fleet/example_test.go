package fleet_test

import (
	"fmt"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/fleet"
	"github.com/goodput/goodput/limit"
)

// Four instances of which one is twice as large.
func ExampleDivide() {
	fmt.Println(fleet.Divide(100, 1, 1, 1, 2))
	fmt.Println(fleet.Divide(100, 1, 1, 1, 2, 1))
	// Output:
	// [20 20 20 40]
	// [17 17 17 33 16]
}

// A number that is fixed: at most 12 replicas, and 3 more in a rolling update. Which one
// this is nobody knows, so the 10 units that do not divide evenly stay unused.
func ExampleSplit_Share() {
	split := fleet.Split{Budget: 200, Reserve: 10, Surge: 3}
	units := split.Share(fleet.Place{Count: 12})
	lim := goodput.New(goodput.Config{Name: "database", Limit: limit.Fixed(units)})
	fmt.Println(lim.Stats().Limit, "x 15 =", 15*units)

	// The pod web-2 of a StatefulSet, whose ordinals begin at 0, with two processes in each.
	const ordinal = 2
	fmt.Println(split.Share(fleet.Place{Count: 12, Nth: ordinal + 1, Workers: 2, Worker: 1}))
	// Output:
	// 12 x 15 = 180
	// 7
}

// A number that changes: a look at it every few seconds, at the DNS records of the service
// or at the Kubernetes API, goes to Set.
func ExampleNew() {
	lim := goodput.New(goodput.Config{Name: "database", Limit: limit.Fixed(1)})
	share, err := fleet.New(lim.SetLimit, fleet.Split{Budget: 100, Surge: 1, Settle: 50 * time.Second}, fleet.Place{Count: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer share.Stop()
	fmt.Println("of 4:", lim.Stats().Limit)

	if err := share.Set(fleet.Place{Count: 9}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("of 9:", lim.Stats().Limit)

	if err := share.Set(fleet.Place{Count: 4}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("of 4, for 50 s:", lim.Stats().Limit, "then", share.State().Share)
	// Output:
	// of 4: 20
	// of 9: 10
	// of 4, for 50 s: 10 then 20
}

func ExampleCheck() {
	for _, warning := range fleet.Check(fleet.Claim{Resource: "the database", Units: 200, Limit: 20, Instances: 50}) {
		fmt.Println(warning)
	}
	// Output:
	// 50 instances x 20 = 1,000 > the 200 of the database: at most 4 each
}
