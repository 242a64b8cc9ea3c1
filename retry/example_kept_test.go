package retry_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/retry"
)

// An adapter with a limiter in front of each attempt: what that refuses was not sent.
func ExampleCall_Kept() {
	lim := goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(0)}) // nothing may run there
	p := &retry.Policy{Name: "search"}

	c := p.Begin(context.Background())
	for {
		ctx, cancel := c.Context()
		slot, err := lim.Acquire(ctx)
		if err != nil {
			cancel()
			fmt.Println(c.Kept(err), p.Stats().Budget.Calls)
			break
		}
		status := 200 // send here, with ctx
		slot.Release()
		cancel()
		if c.Again(retry.HTTPFault(status, http.Header{}, time.Now())) != retry.NoStop {
			break
		}
	}
	// Output: kept 0
}
