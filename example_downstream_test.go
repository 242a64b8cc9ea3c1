package goodput_test

import (
	"context"
	"fmt"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A handler that waits for something with a bound of its own, here a lock of another
// service, marks that time: more or fewer slots here would not make it shorter, so the law
// that looks for the right limit must not take it for contention. The slot is held all the
// same. goodputhttp.Transport, goodputsql, pool and Limiter.Do do this by themselves.
func ExampleDownstream() {
	lim := goodput.New(goodput.Config{Name: "orders", Limit: limit.Fixed(2)})

	err := lim.Do(context.Background(), func(ctx context.Context) error {
		price() // own work
		span := goodput.Downstream(ctx)
		defer span.End()
		return lock(ctx) // somebody else's
	})
	fmt.Println(err)
	// Output:
	// priced
	// locked
	// <nil>
}

func price() { fmt.Println("priced") }

func lock(context.Context) error { fmt.Println("locked"); return nil }
