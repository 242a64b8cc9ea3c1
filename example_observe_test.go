package goodput_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// In an incident somebody suspects the limiter: with the switch on everything runs, who waits as
// well, and the shadow counts what would have been.
func ExampleLimiter_SetObserve() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue, Objective: 400 * time.Millisecond})
	slot, _ := lim.Acquire(context.Background())
	defer slot.Release()

	_, err := lim.Acquire(context.Background())
	fmt.Println("off:", err != nil)

	lim.SetObserve(true) // no error: it is no member of a group
	more, err := lim.Acquire(context.Background())
	defer more.Release()
	s := lim.Stats()
	fmt.Println("on:", err, "running", s.Running, "would have been refused", s.Shadow.Refusals[goodput.QueueFull])

	lim.SetObserve(false)
	_, err = lim.Acquire(context.Background())
	fmt.Println("off:", err != nil)
	// Output:
	// off: true
	// on: <nil> running 2 would have been refused 1
	// off: true
}
