package theory_test

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/internal/theory"
)

// 60 slots with 50 ms each and a p99 of 400 ms to keep: what the rule of thumb,
// capacity x objective, comes to, and what is right.
func ExamplePlaceDepth() {
	capacity := theory.Capacity(60, 0.05)
	rule := int(capacity * 0.4)
	depth, _ := theory.PlaceDepth(60, 0.05, 0.4, 0.99)
	fmt.Printf("%.0f/s; rule of thumb %d deep: p99 %.1f ms\n", capacity, rule, 1000*theory.PlaceQuantile(rule, 60, 0.05, 0.99))
	fmt.Printf("%d deep: p99 %.1f ms\n", depth, 1000*theory.PlaceQuantile(depth, 60, 0.05, 0.99))
	// Output:
	// 1200/s; rule of thumb 480 deep: p99 633.6 ms
	// 201 deep: p99 399.2 ms
}

// Three times the capacity: the ceilings of a limit without a queue, of any
// policy that is blind to size, and of one that is not.
func ExampleLossCeiling() {
	const load = 3
	requests := []float64{0.01, 0.02, 0.02, 0.05, 0.1, 0.4} // sorted, in seconds
	fmt.Printf("no queue %.3f\n", theory.LossCeiling(60, load))
	fmt.Printf("refusals at 1 %% of a request %.3f\n", theory.RefusalCeiling(0.01, load))
	fmt.Printf("shortest first %.2f\n", theory.SizeAwareSample(load, requests))
	// Output:
	// no queue 0.992
	// refusals at 1 % of a request 0.980
	// shortest first 2.50
}

// Two servers and three requests with a second of patience each.
func ExamplePool() {
	jobs := []theory.Job{
		{Release: 0, Service: 900 * time.Millisecond, Deadline: time.Second},
		{Release: 0, Service: 900 * time.Millisecond, Deadline: time.Second},
		{Release: 100 * time.Millisecond, Service: 800 * time.Millisecond, Deadline: 1100 * time.Millisecond},
	}
	most, exact := theory.Clairvoyant(theory.Pool(jobs, nil, 2))
	fmt.Println("at most", most, "in time; exact for the pool:", exact)
	// Output:
	// at most 2 in time; exact for the pool: true
}
