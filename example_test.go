package goodput_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// The two settings that a service needs, and the call that most callers want.
func Example() {
	lim := goodput.New(goodput.Config{
		Limit:     limit.Fixed(60),        // what may run at once
		Objective: 400 * time.Millisecond, // p99 of wait + service that admitted work must meet
	})
	err := lim.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("searching")
		return nil
	})
	fmt.Println(err)
	// Output:
	// searching
	// <nil>
}

func ExampleNew() {
	cfg := goodput.Config{Name: "search", Limit: limit.Fixed(-1)}
	if err := cfg.Validate(); err != nil { // New would panic with it
		fmt.Println(err)
	}
	cfg.Limit = limit.Fixed(60)
	fmt.Println(goodput.New(cfg).Name())
	// Output:
	// limit -1 is out of range: a fixed limit is 0 to 1048576 units of cost
	// search
}

// Work that is not one function call: the deferred Release does nothing if one of
// the other ends came first.
func ExampleLimiter_Acquire() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	handle := func(ctx context.Context) error {
		slot, err := lim.Acquire(ctx)
		if err != nil {
			return err
		}
		defer slot.Release()
		if err := query(ctx); err != nil {
			slot.Fail(err)
			return err
		}
		return nil
	}
	fmt.Println(handle(context.Background()))
	fmt.Println("failed:", lim.Stats().Outcomes[goodput.Failed])
	// Output:
	// no such table
	// failed: 1
}

func query(context.Context) error { return errors.New("no such table") }

// A call to a model occupies one slot, and takes as long as it has tokens.
func ExampleLimiter_AcquireWork() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(8), Objective: 10 * time.Second})
	slot, err := lim.AcquireWork(context.Background(), goodput.Work{
		Size:     1800, // tokens
		Bytes:    7200, // of the prompt, in memory while it waits
		Priority: goodput.Sheddable,
		Attempt:  2, // a retry is shed before first attempts
	})
	if err != nil {
		return
	}
	defer slot.Release()
	fmt.Println(lim.Stats().InUse, "of", lim.Stats().Limit)
	// Output: 1 of 8
}

// Work that is worth doing only if there is room for it now.
func ExampleLimiter_TryAcquire() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
	for range 2 {
		slot, ok := lim.TryAcquire()
		fmt.Println("refresh the cache:", ok)
		defer slot.Release() // of a slot that was not got: does nothing
	}
	// Output:
	// refresh the cache: true
	// refresh the cache: false
}

// A refusal says why, whether a retry can win, and when.
func ExampleRejection() {
	lim := goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(1), Depth: goodput.NoQueue})
	running, _ := lim.Acquire(context.Background())
	defer running.Release()

	err := lim.Do(context.Background(), func(context.Context) error { return nil })
	var r *goodput.Rejection
	if errors.As(err, &r) {
		fmt.Println(r.Outcome, r.Reason, r.RetryAfter)
		fmt.Printf("%d of %d in use, %d waiting\n", r.InUse, r.Limit, r.Waiting)
	}
	fmt.Println(errors.Is(err, goodput.ErrRejected))
	// Output:
	// rejected queue_full 1s
	// 1 of 1 in use, 0 waiting
	// true
}

// A deadline is the caller's: work that is refused for it never ran.
func ExampleLimiter_Do() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	err := lim.Do(ctx, func(context.Context) error {
		fmt.Println("never")
		return nil
	})
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

func ExampleLimiter_SetLimit() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	_ = lim.SetLimit(80)
	fmt.Println(lim.Stats().Limit)
	fmt.Println(lim.SetLimit(-1))
	// Output:
	// 80
	// goodput: limit -1 is out of range: a fixed limit is 0 to 1048576 units of cost
}

// A configuration that was read again: who waits and who runs is kept.
func ExampleLimiter_Reconfigure() {
	cfg := goodput.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond}
	lim := goodput.New(cfg)
	cfg.Objective = 250 * time.Millisecond
	fmt.Println(lim.Reconfigure(cfg))
	fmt.Println(lim.Stats().Derivation.Objective)
	// Output:
	// <nil>
	// 250ms
}

// Shutting down: newcomers are refused, the queue is served for ten seconds at
// most, and what runs is waited for.
func ExampleLimiter_Drain() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	var served sync.WaitGroup
	served.Go(func() {
		_ = lim.Do(context.Background(), func(context.Context) error { return nil })
	})
	served.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(lim.Drain(ctx))
	_, err := lim.Acquire(ctx)
	var r *goodput.Rejection
	fmt.Println(errors.As(err, &r) && r.Reason == goodput.Draining)
	// Output:
	// <nil>
	// true
}

func ExampleLimiter_Stats() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	for range 3 {
		_ = lim.Do(context.Background(), func(context.Context) error { return nil })
	}
	s := lim.Stats()
	fmt.Println(s.Arrivals, s.Outcomes[goodput.Completed], s.Service[goodput.Completed].Count)
	// Output: 3 3 3
}

// What the limiter does now, and the arithmetic behind it.
func ExampleLimiter_Explain() {
	lim := goodput.New(goodput.Config{
		Name: "search", Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Service: 50 * time.Millisecond,
	})
	fmt.Print(lim.Explain())
	// Output:
	// search: idle
	//   limit    60 (fixed(60)); 0 in use by 0 requests
	//   depth    60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms
	//            -> 201 deep (rule of thumb 480: p99 would be 634ms); 0 samples, prior
	//            service 50ms
	//   queue    0 waiting
	//   order    fifo: nobody waits
	//   load     0.00 over the last 400ms, fading: 0/s offered, 1200/s can be served
	//   latency  no data: nothing that was timed has ended
	//   ended    0 of 0 arrivals
}

// What Explain prints, in parts.
func ExampleLimiter_Explanation() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue, Objective: 400 * time.Millisecond})
	slot, _ := lim.Acquire(context.Background())
	defer slot.Release()
	_, err := lim.Acquire(context.Background())
	fmt.Println(errors.Is(err, goodput.ErrRejected))

	e := lim.Explanation()
	fmt.Println(e.Condition)
	for _, f := range e.Facts {
		if f.Topic == "order" || f.Topic == "ended" {
			fmt.Printf("%s: %s\n", f.Topic, f.Text)
		}
	}
	for _, r := range e.Refused {
		fmt.Println(r.Count, r.Reason, "by", r.Knob())
	}
	// Output:
	// true
	// boundary
	// order: fifo: nobody waits
	// ended: 1 of 2 arrivals: rejected 1
	// 1 queue_full by Depth none
}

// Trying a configuration on real traffic: everything runs, and the shadow says
// what would have been refused.
func ExampleConfig_observe() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue, Observe: true})
	for range 3 {
		slot, _ := lim.Acquire(context.Background())
		defer slot.Release()
	}
	s := lim.Stats()
	fmt.Println("running", s.Running, "would have refused", s.Shadow.Refusals[goodput.QueueFull])
	// Output: running 3 would have refused 2
}

// Attributes that travel with a request. A field of Work wins over them.
func ExampleWithPriority() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	ctx := goodput.WithPriority(context.Background(), goodput.Background)
	err := lim.Do(ctx, func(ctx context.Context) error {
		return lim.Do(ctx, func(context.Context) error { return nil }) // background as well
	})
	fmt.Println(err)
	// Output: <nil>
}

// The call belongs to a request that entered the system a second ago: it cannot
// be within the objective any more.
func ExampleWithArrival() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond})
	ctx := goodput.WithArrival(context.Background(), time.Now().Add(-time.Second))
	_ = lim.Do(ctx, func(context.Context) error { return nil })
	fmt.Println("late:", lim.Stats().Outcomes[goodput.Late])
	// Output: late: 1
}

// The work becomes a connection that is open for hours: it leaves its slot and
// says nothing about how long requests take.
func ExampleSlot_Detach() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	slot, err := lim.Acquire(context.Background())
	if err != nil {
		return
	}
	defer slot.Release()
	slot.Detach()
	fmt.Println(lim.Stats().InUse)
	// Output: 0
}

// The time until the header of a response is the service sample; the body takes
// as long as its reader likes, and keeps the slot.
func ExampleSlot_Served() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	slot, err := lim.Acquire(context.Background())
	if err != nil {
		return
	}
	defer slot.Release()
	slot.Served()
	fmt.Println(lim.Stats().InUse)
	// Output: 1
}

// The caller is answered at its deadline, and work that does not look at its
// context goes on in its slot: what runs never exceeds the limit.
func ExampleSlot_Answered() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
	slot, err := lim.Acquire(context.Background())
	if err != nil {
		return
	}
	answer := make(chan string)
	go func() {
		defer slot.Release()    // when the work has ended
		defer close(answer)     // it goes on here
		slot.Answered()         // in time or not is judged now
		answer <- "a good part" // what there is so far
	}()
	fmt.Println(<-answer)
	// Output: a good part
}
