package admission_test

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
)

// A driver of a budget, beside the one of Example_driver for each core. It has no locks;
// one that has them takes that of a member for Take, and none of another with it.
func ExampleBudget() {
	budget, err := admission.NewBudget(admission.BudgetConfig{Units: 10, Members: make([]admission.Member, 2)})
	if err != nil {
		panic(err)
	}
	var now time.Duration
	var cores [2]*admission.Core
	var stakes [2]admission.Stake
	for i := range cores {
		cores[i], _ = admission.New(admission.Config{Limit: admission.Granted{}})
	}
	round := func() {
		for again := true; again; again = !budget.Settled() {
			for i, terms, ok := budget.Next(); ok; i, terms, ok = budget.Next() {
				budget.Hear(i, stakes[i].Take(now, cores[i], terms))
				for w := cores[i].Next(); w != nil; w = cores[i].Next() {
					_ = w // wake it
				}
			}
		}
	}
	after := func(i int) { // every call of core i
		if stakes[i].Asks(now, stakes[i].Look(now, cores[i]), budget.Hungry()) {
			round()
		}
	}
	say := func() { fmt.Println(stakes[0].Terms().Limit, stakes[1].Terms().Limit) }

	round() // brings the nominal shares
	say()
	for range 10 {
		cores[1].Offer(now, admission.Request{Arrival: now, Deadline: admission.Never})
		after(1)
	}
	say()
	cores[0].Offer(now, admission.Request{Arrival: now, Deadline: admission.Never})
	after(0)
	say() // at once
	cores[1].Release(now, admission.End{Outcome: admission.Completed})
	after(1)
	say() // and when the unit is free
	// Output:
	// 5 5
	// 0 10
	// 0 9
	// 1 9
}
