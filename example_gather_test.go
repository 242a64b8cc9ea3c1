package goodput_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// A search over four shards. One is slow and one is down; the page goes out in time with
// what the others found, and says that it is not complete.
func ExampleGather() {
	shards := []func(context.Context) (string, error){
		func(context.Context) (string, error) { return "amber", nil },
		func(context.Context) (string, error) { return "", errors.New("connection refused") },
		func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		func(context.Context) (string, error) { return "azure", nil },
	}

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	got, err := goodput.Gather(ctx, goodput.Gathering[string]{Min: 2}, len(shards),
		func(ctx context.Context, i int) (string, error) { return shards[i](ctx) })
	if err != nil {
		fmt.Println(err) // a *goodput.Shortfall: fewer than 2
		return
	}

	var hits []string
	for _, hit := range got.All() {
		hits = append(hits, hit)
	}
	fmt.Println(strings.Join(hits, ", "))
	for _, m := range got.Missing {
		fmt.Printf("shard %d is missing: %v\n", m.Index, m.Outcome)
	}
	fmt.Println("time left to send it:", ctx.Err() == nil)
	// Output:
	// amber, azure
	// shard 1 is missing: failed
	// shard 2 is missing: late
	// time left to send it: true
}

// A read that two of three replicas must answer. It ends with the second answer, and it
// would end with the second failure.
func ExampleGather_quorum() {
	versions := []int{7, 8, 8}
	got, err := goodput.Gather(context.Background(), goodput.Gathering[int]{Min: 2, Enough: 2}, len(versions),
		func(ctx context.Context, i int) (int, error) {
			if i == 0 { // it hangs
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			return versions[i], nil
		})
	newest := 0
	for _, v := range got.All() {
		newest = max(newest, v)
	}
	fmt.Println(newest, err)
	fmt.Println(got.Missing[0].Outcome, errors.Is(got.Missing[0].Err, goodput.ErrUnneeded))
	// Output:
	// 8 <nil>
	// abandoned true
}

// The first of two replicas that answers. What the other one opened all the same is closed
// when it comes.
func ExampleGather_first() {
	closed := make(chan string)
	g := goodput.Gathering[string]{
		Enough:  1,
		Discard: func(_ int, conn string, _ error) { closed <- conn },
	}
	first := make(chan struct{})
	got, err := goodput.Gather(context.Background(), g, 2, func(_ context.Context, i int) (string, error) {
		if i == 0 {
			<-first // it does not look at its context
			return "connection to a", nil
		}
		return "connection to b", nil
	})
	for _, conn := range got.All() {
		fmt.Println("use", conn, err)
	}
	close(first)
	fmt.Println("close", <-closed)
	fmt.Println(got.Wait(context.Background()), got.Left())
	// Output:
	// use connection to b <nil>
	// close connection to a
	// <nil> 0
}

// Who needs all says so: the first failure ends it, and the error has the reason.
func ExampleShortfall() {
	_, err := goodput.Gather(context.Background(), goodput.Gathering[string]{Min: 2, Parallel: 1}, 2,
		func(_ context.Context, i int) (string, error) { return "", errors.New("no such shard") })
	var short *goodput.Shortfall
	if errors.As(err, &short) {
		fmt.Println(short.Came, "of", short.Of, "came,", short.Min, "are needed")
	}
	fmt.Println(err)
	// Output:
	// 0 of 2 came, 2 are needed
	// goodput: 0 of 2 results came and 2 are needed: 1 failed, 1 cancelled; call 0: no such shard
}
