package goodput_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// Two restarts of the one server behind a limiter. Whoever comes meanwhile waits for MaxAbsence
// at most: a short one loses nothing, and a long one is told soon.
func ExampleLimiter_SetPresent() {
	lim := goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(10), MaxAbsence: 100 * time.Millisecond})

	lim.SetPresent(false) // says whoever watches over the server
	time.AfterFunc(10*time.Millisecond, func() { lim.SetPresent(true) })
	err := lim.Do(context.Background(), func(context.Context) error { return nil })
	fmt.Println("a short one:", err)

	lim.SetPresent(false)
	err = lim.Do(context.Background(), func(context.Context) error { return nil })
	var r *goodput.Rejection
	if errors.As(err, &r) {
		fmt.Printf("a long one: %v, retry after %v\n", r.Reason, r.RetryAfter)
	}
	// Output:
	// a short one: <nil>
	// a long one: unavailable, retry after 1s
}
