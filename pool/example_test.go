package pool_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/pool"
)

// sum is work that computes.
func sum(text string) uint32 { return crc32.ChecksumIEEE([]byte(text)) }

// A pool that runs as many tasks as there are CPUs for this process, also when their
// number changes.
func ExampleNew() {
	p := pool.New(goodput.New(goodput.Config{
		Name:      "thumbnails",
		Limit:     limit.Fixed(1), // the pool keeps it at GOMAXPROCS
		Objective: 2 * time.Second,
	}), pool.GOMAXPROCS)

	s := p.Stats()
	fmt.Println(s.Limiter.Limit == s.GOMAXPROCS)
	// Output: true
}

// Four workers, whatever the machine is: the limit is that of the limiter.
func ExampleNew_unchanged() {
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(4)}), pool.Unchanged)
	fmt.Println(p.Limiter().Stats().Limit)
	// Output: 4
}

// The value, or why there is none.
func ExampleDo() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(1)}), pool.GOMAXPROCS)

	n, err := pool.Do(ctx, p, goodput.Work{}, func(context.Context) (uint32, error) {
		return sum("hello"), nil
	})
	fmt.Println(n, err)

	_, err = pool.Do(ctx, p, goodput.Work{}, func(context.Context) (uint32, error) {
		return sum(strings.Repeat("hello", -1)), nil
	})
	if boom := (*pool.PanicError)(nil); errors.As(err, &boom) {
		fmt.Println(boom, "- and the pool goes on")
	}
	// Output:
	// 907060870 <nil>
	// pool: the task panicked: strings: negative Repeat count - and the pool goes on
}

// Several tasks at once, and their results in the order in which they were submitted.
func ExampleSubmit() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(2), Depth: 100}), pool.Unchanged)

	var tasks []*pool.Task[uint32]
	for _, text := range []string{"one", "two", "three"} {
		task, err := pool.Submit(ctx, p, goodput.Work{}, func(context.Context) (uint32, error) {
			return sum(text), nil
		})
		if err != nil { // refused at the door: it will not run
			fmt.Println(err)
			continue
		}
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		fmt.Println(task.Wait(ctx))
	}
	// Output:
	// 2053932785 <nil>
	// 298486374 <nil>
	// 1187371253 <nil>
}

// Of the readings of a sensor only the latest is worth the computation: one that waits is
// replaced by the next of the same sensor, in its place, and its task says so.
func ExampleSubmit_latestOnly() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(1), Overflow: goodput.LatestOnly}), pool.Unchanged)

	busy := make(chan struct{})
	_, _ = pool.Submit(ctx, p, goodput.Work{}, func(context.Context) (int, error) {
		<-busy
		return 0, nil
	})
	var tasks []*pool.Task[string]
	for _, reading := range []string{"boiler 71", "pump 3", "boiler 74", "boiler 78"} {
		sensor, _, _ := strings.Cut(reading, " ")
		task, err := pool.Submit(ctx, p, goodput.Work{Key: sensor}, func(context.Context) (string, error) {
			return "shown", nil
		})
		if err != nil {
			fmt.Println(reading, err)
			continue
		}
		tasks = append(tasks, task)
	}
	close(busy)
	for _, task := range tasks {
		shown, err := task.Wait(ctx)
		if refused := (*goodput.Rejection)(nil); errors.As(err, &refused) {
			shown = refused.Reason.String()
		}
		fmt.Println(shown)
	}
	// Output:
	// replaced
	// shown
	// replaced
	// shown
}

// A producer that goes at the pace of the pool: Start returns when its task has a slot.
func ExampleStart() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{
		Limit: limit.Fixed(2), Overflow: goodput.Block, MaxWait: time.Minute,
	}), pool.Unchanged)

	var tasks []*pool.Task[uint32]
	for i := range 1000 {
		task, err := pool.Start(ctx, p, goodput.Work{}, func(context.Context) (uint32, error) {
			return sum(fmt.Sprint(i)) % 2, nil
		})
		if err != nil { // nothing moved for MaxWait
			fmt.Println(err)
			return
		}
		tasks = append(tasks, task)
	}
	odd := uint32(0)
	for _, task := range tasks {
		n, _ := task.Wait(ctx)
		odd += n
	}
	fmt.Println(odd, "of", len(tasks))
	// Output: 502 of 1000
}

// Work that is cut in two, and each half in two again, on the slots of one pool: who waits
// for a half that has no slot yet computes it within its own, so that nobody waits for a
// slot while holding one.
func Example_nested() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(2), Depth: 100}), pool.Unchanged)

	var most func(ctx context.Context, of []int) (int, error)
	most = func(ctx context.Context, of []int) (int, error) {
		if len(of) == 1 {
			return of[0], nil
		}
		half := len(of) / 2
		left, err := pool.Submit(ctx, p, goodput.Work{}, func(ctx context.Context) (int, error) {
			return most(ctx, of[:half])
		})
		if err != nil {
			return 0, err
		}
		right, err := most(ctx, of[half:])
		if err != nil {
			return 0, err
		}
		n, err := left.Wait(ctx)
		return max(n, right), err
	}
	fmt.Println(pool.Do(ctx, p, goodput.Work{}, func(ctx context.Context) (int, error) {
		return most(ctx, []int{31, 41, 59, 26, 53, 58, 97, 93})
	}))
	// Output: 97 <nil>
}

// At the end: nobody new, and everybody who was accepted has an outcome.
func ExamplePool_Drain() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: 10}), pool.Unchanged)
	task, _ := pool.Submit(ctx, p, goodput.Work{}, func(context.Context) (uint32, error) { return sum("last"), nil })

	patience, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	fmt.Println(p.Drain(patience))

	fmt.Println(task.Wait(ctx))
	_, err := pool.Submit(ctx, p, goodput.Work{}, func(context.Context) (uint32, error) { return 0, nil })
	fmt.Println(err.(*goodput.Rejection).Reason)
	// Output:
	// <nil>
	// 1255909792 <nil>
	// draining
}

// At the end, in a hurry: who waits is refused.
func ExamplePool_Stop() {
	ctx := context.Background()
	p := pool.New(goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: 10}), pool.Unchanged)
	going := make(chan struct{})
	runs, _ := pool.Submit(ctx, p, goodput.Work{}, func(context.Context) (string, error) { <-going; return "done", nil })
	waits, _ := pool.Submit(ctx, p, goodput.Work{}, func(context.Context) (string, error) { return "done", nil })

	go func() {
		_, err := waits.Wait(ctx)
		fmt.Println(err.(*goodput.Rejection).Reason)
		close(going)
	}()
	fmt.Println(p.Stop(ctx))
	fmt.Println(runs.Wait(ctx))
	// Output:
	// draining
	// <nil>
	// done <nil>
}
