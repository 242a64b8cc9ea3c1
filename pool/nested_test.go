package pool

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// bounded is a pool of n slots in which nobody waits for longer than a second.
func bounded(n int) *Pool {
	return New(goodput.New(goodput.Config{
		Limit: limit.Fixed(n), Depth: 1000, Order: goodput.FIFO, MaxWait: time.Second, Objective: time.Hour,
	}), Unchanged)
}

// A task that waits for another of the same pool runs it within its own slot, however
// deep: a hundred at once, and two slots, with no time lost and no second slot taken.
func TestC014NestedDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(2)
		var all sync.WaitGroup
		running := make(chan int, 1)
		running <- 0
		most := 0
		leaf := func(context.Context) (int, error) {
			n := <-running + 1
			most = max(most, n)
			running <- n
			time.Sleep(10 * time.Millisecond)
			running <- <-running - 1
			return 1, nil
		}
		var deep func(ctx context.Context, level int) (int, error)
		deep = func(ctx context.Context, level int) (int, error) {
			if level == 0 {
				return leaf(ctx)
			}
			n, err := Do(ctx, p, goodput.Work{}, func(ctx context.Context) (int, error) { return deep(ctx, level-1) })
			return n + 1, err
		}
		for range 100 {
			all.Go(func() {
				if n, err := deep(t.Context(), 5); n != 6 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start(t)); took != 500*time.Millisecond {
			t.Errorf("took %v, want 500ms: a hundred leaves, two at a time", took)
		}
		<-running
		s := p.Stats()
		if most != 2 || s.Nested != 400 || s.Ran != 100 || s.Limiter.Arrivals != 100 {
			t.Errorf("%d at once, %d nested, %d ran, %d arrivals; want 2, 400, 100, 100", most, s.Nested, s.Ran, s.Limiter.Arrivals)
		}
		synctest.Wait()
		empty(t, p)
	})
}

// A task that submits others and waits for them runs those that have no slot yet within
// its own: fork and join with as many forks as slots.
func TestForkAndJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(2)
		var sum func(ctx context.Context, from, to int) (int, error)
		sum = func(ctx context.Context, from, to int) (int, error) {
			if to-from == 1 {
				time.Sleep(time.Millisecond)
				return from, nil
			}
			middle := (from + to) / 2
			left, err := Submit(ctx, p, goodput.Work{}, func(ctx context.Context) (int, error) { return sum(ctx, from, middle) })
			if err != nil {
				return 0, err
			}
			right, err := sum(ctx, middle, to)
			if err != nil {
				return 0, err
			}
			n, err := left.Wait(ctx)
			return n + right, err
		}
		n, err := Do(t.Context(), p, goodput.Work{}, func(ctx context.Context) (int, error) { return sum(ctx, 0, 64) })
		if n != 63*64/2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		// 64 ms of work on two slots, none of it waiting for the bound of a wait.
		if took := time.Since(start(t)); took < 32*time.Millisecond || took > 64*time.Millisecond {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		s := p.Stats()
		// Each that ran within another was in the queue already, and has left it there.
		if s.Nested == 0 || s.Limiter.Refusals[goodput.Parent] != s.Nested || s.Limiter.Outcomes[goodput.Cancelled] != s.Nested || s.Ran+s.Nested != s.Limiter.Arrivals {
			t.Errorf("%d nested, %d ran, %d arrivals, refusals %v, outcomes %v", s.Nested, s.Ran, s.Limiter.Arrivals, s.Limiter.Refusals, s.Limiter.Outcomes)
		}
		empty(t, p)
	})
}

// The other nested calls wait, and every wait has its bound: a second Do at the same time,
// a Start, one that costs more than the slot that is held, and a Wait for a task that
// somebody else submitted.
func TestNestedWaitsAreBounded(t *testing.T) {
	work := func(context.Context) (int, error) { return 1, nil }
	for _, c := range []struct {
		name string
		fn   func(ctx context.Context, p *Pool, other *Task[int]) error
		took time.Duration
		why  goodput.Reason
	}{
		{"do", func(ctx context.Context, p *Pool, _ *Task[int]) error {
			_, err := Do(ctx, p, goodput.Work{}, work)
			return err
		}, 0, goodput.None},
		{"start", func(ctx context.Context, p *Pool, _ *Task[int]) error {
			_, err := Start(ctx, p, goodput.Work{}, work)
			return err
		}, time.Second, goodput.WaitBound},
		{"a higher cost", func(ctx context.Context, p *Pool, _ *Task[int]) error {
			_, err := Do(ctx, p, goodput.Work{Cost: 2}, work)
			return err
		}, 0, goodput.TooCostly},
		{"a task of somebody else", func(ctx context.Context, _ *Pool, other *Task[int]) error {
			_, err := other.Wait(ctx)
			return err
		}, time.Second, goodput.WaitBound},
		{"the context of the outer task", func(ctx context.Context, p *Pool, _ *Task[int]) error {
			_, err := Do(ctx, p, goodput.Work{}, func(context.Context) (int, error) {
				return Do(ctx, p, goodput.Work{}, work) // ctx of the outer one, in which this one runs
			})
			return err
		}, time.Second, goodput.WaitBound},
		{"a deadline that has passed", func(ctx context.Context, p *Pool, _ *Task[int]) error {
			_, err := Do(ctx, p, goodput.Work{Deadline: time.Now()}, work)
			return err
		}, 0, goodput.Deadline},
		{"a context that is over", func(ctx context.Context, p *Pool, _ *Task[int]) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := Do(ctx, p, goodput.Work{}, work)
			return err
		}, 0, goodput.Client},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := bounded(1)
				began := make(chan struct{})
				var other *Task[int]
				task, err := Submit(t.Context(), p, goodput.Work{}, func(ctx context.Context) (int, error) {
					<-began
					return 0, c.fn(ctx, p, other)
				})
				if err != nil {
					t.Fatal(err)
				}
				other, err = Submit(t.Context(), p, goodput.Work{Priority: goodput.Background}, work)
				if err != nil {
					t.Fatal(err)
				}
				close(began)
				_, err = task.Wait(t.Context())
				if took := time.Since(start(t)); took != c.took || reason(err) != c.why {
					t.Errorf("after %v: %v; want %v after %v", took, err, c.why, c.took)
				}
				<-other.Done()
				time.Sleep(time.Minute)
				synctest.Wait()
				empty(t, p)
			})
		})
	}
}

// Two that wait for each other through another pool have a slot each, and the one that is
// asked again uses it.
func TestNestedThroughAnotherPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := bounded(1), bounded(1)
		n, err := Do(t.Context(), a, goodput.Work{}, func(ctx context.Context) (int, error) {
			return Do(ctx, b, goodput.Work{}, func(ctx context.Context) (int, error) {
				n, err := Do(ctx, a, goodput.Work{}, func(ctx context.Context) (int, error) {
					return Do(ctx, b, goodput.Work{}, sleep(0, 3)) // b's is held one further out
				})
				return n + 1, err
			})
		})
		if n != 4 || err != nil || time.Since(start(t)) != 0 {
			t.Errorf("%d, %v after %v", n, err, time.Since(start(t)))
		}
		// Who is not waited for does not hold anything for those inside it.
		_, err = Do(t.Context(), a, goodput.Work{}, func(ctx context.Context) (int, error) {
			task, err := Submit(ctx, b, goodput.Work{}, func(ctx context.Context) (int, error) {
				return Do(ctx, a, goodput.Work{}, sleep(0, 3))
			})
			if err != nil {
				return 0, err
			}
			return task.Wait(ctx)
		})
		if reason(err) != goodput.WaitBound {
			t.Errorf("the task of b ran in the slot of a task that might compute: %v", err)
		}
		synctest.Wait()
		empty(t, a)
		empty(t, b)
	})
}

// A context that outlives its task gives nobody the slot that is not held any more; and
// what runs within a slot keeps it until it ends.
func TestContextOutlivesTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(1)
		var leaked context.Context
		if _, err := Do(t.Context(), p, goodput.Work{}, func(ctx context.Context) (int, error) {
			leaked = ctx
			go func() { _, _ = Do(ctx, p, goodput.Work{}, sleep(100*time.Millisecond, 0)) }()
			synctestYield()
			return 0, nil
		}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start(t)); took != 100*time.Millisecond {
			t.Errorf("the slot was given back after %v, and something ran in it for 100ms", took)
		}
		busy, err := p.Limiter().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Do(leaked, p, goodput.Work{}, sleep(0, 0)); reason(err) != goodput.WaitBound {
			t.Errorf("it ran without a slot: %v", err)
		}
		busy.Release()
		synctest.Wait()
		empty(t, p)
	})
}

// synctestYield lets the others run: the clock of the bubble moves once all of them wait.
func synctestYield() { time.Sleep(time.Nanosecond) }

// A Wait that is late for its turn leaves the task to whoever runs it.
func TestWaitForOneThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(2)
		n, err := Do(t.Context(), p, goodput.Work{}, func(ctx context.Context) (int, error) {
			task, err := Submit(ctx, p, goodput.Work{}, sleep(100*time.Millisecond, 5))
			if err != nil {
				return 0, err
			}
			synctestYield()
			own, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if _, err := task.Wait(own); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it did not wait: %v", err)
			}
			return task.Wait(ctx)
		})
		if n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if s := p.Stats(); s.Nested != 0 || s.Limiter.Arrivals != 2 {
			t.Errorf("%d nested of %d", s.Nested, s.Limiter.Arrivals)
		}
		synctest.Wait()
		empty(t, p)
	})
}
