package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

var errWork = errors.New("work failed")

// fixed is a pool of n slots and a queue of depth whose waits end after an hour.
func fixed(n, depth int) *Pool {
	return New(goodput.New(goodput.Config{
		Limit: limit.Fixed(n), Depth: depth, Order: goodput.FIFO, MaxWait: time.Hour, Objective: time.Hour,
	}), Unchanged)
}

// reason returns why err refused, None if it is no refusal.
func reason(err error) goodput.Reason {
	var r *goodput.Rejection
	if errors.As(err, &r) {
		return r.Reason
	}
	return goodput.None
}

// sleep returns a function that takes d and returns n, whatever its context says.
func sleep(d time.Duration, n int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		time.Sleep(d)
		return n, nil
	}
}

// empty asserts that nothing is left of what ran and waited, and that the counters of
// the limiter add up.
func empty(t testing.TB, p *Pool) {
	t.Helper()
	s := p.Stats()
	l := &s.Limiter
	if l.InUse != 0 || l.Running != 0 || l.Waiting != 0 || l.WaitingCost != 0 || l.WaitingBytes != 0 || s.Running != 0 || s.Left != 0 {
		t.Errorf("left behind: %d in use by %d, %d waiting; %d tasks run, %d left", l.InUse, l.Running, l.Waiting, s.Running, s.Left)
	}
	var sum uint64
	for _, n := range l.Outcomes {
		sum += n
	}
	if sum != l.Arrivals {
		t.Errorf("%d arrivals, %d outcomes: %v", l.Arrivals, sum, l.Outcomes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != 0 || p.running.n != 0 || p.running.first != nil {
		t.Errorf("%d tasks without an outcome, %d in the list of those that run", p.live, p.running.n)
	}
}

// Each way in which a function can end is one outcome of the task, the same by all three
// ways in, and one of the limiter.
func TestOutcomes(t *testing.T) {
	type in func(context.Context, *Pool, func(context.Context) (int, error)) (int, error)
	ways := map[string]in{
		"do": func(ctx context.Context, p *Pool, fn func(context.Context) (int, error)) (int, error) {
			return Do(ctx, p, goodput.Work{}, fn)
		},
		"submit": func(ctx context.Context, p *Pool, fn func(context.Context) (int, error)) (int, error) {
			task, err := Submit(ctx, p, goodput.Work{}, fn)
			if err != nil {
				return 0, err
			}
			return task.Wait(context.Background())
		},
		"start": func(ctx context.Context, p *Pool, fn func(context.Context) (int, error)) (int, error) {
			task, err := Start(ctx, p, goodput.Work{}, fn)
			if err != nil {
				return 0, err
			}
			<-task.Done()
			return task.Wait(ctx)
		},
		"nested": func(ctx context.Context, p *Pool, fn func(context.Context) (int, error)) (int, error) {
			return Do(context.WithoutCancel(ctx), p, goodput.Work{}, func(outer context.Context) (n int, err error) {
				joined, stop := context.WithCancel(outer)
				defer stop()
				context.AfterFunc(ctx, stop)
				return Do(joined, p, goodput.Work{}, fn)
			})
		},
	}
	for _, c := range []struct {
		name    string
		fn      func(ctx context.Context, leave func()) (int, error)
		value   int
		err     error  // errors.Is
		says    string // in the error
		outcome goodput.Outcome
		panics  uint64
		exits   uint64
	}{
		{"a value", func(context.Context, func()) (int, error) { return 7, nil }, 7, nil, "", goodput.Completed, 0, 0},
		{"a value and an error", func(context.Context, func()) (int, error) { return 7, errWork }, 7, errWork, "", goodput.Failed, 0, 0},
		{"somebody else's time is over", func(context.Context, func()) (int, error) { return 0, context.DeadlineExceeded }, 0, context.DeadlineExceeded, "", goodput.Failed, 0, 0},
		{"the caller leaves", func(ctx context.Context, leave func()) (int, error) { leave(); <-ctx.Done(); return 3, ctx.Err() }, 0, context.Canceled, "", goodput.Abandoned, 0, 0},
		{"a panic", func(context.Context, func()) (int, error) { panic("boom") }, 0, nil, "pool: the task panicked: boom", goodput.Failed, 1, 0},
		{"a panic with an error", func(context.Context, func()) (int, error) { panic(errWork) }, 0, errWork, "panicked", goodput.Failed, 1, 0},
		{"a panic with the error of its context", func(ctx context.Context, leave func()) (int, error) { leave(); <-ctx.Done(); panic(ctx.Err()) }, 0, context.Canceled, "", goodput.Failed, 1, 0},
		{"a panic with nil", func(context.Context, func()) (int, error) { panic(nil) }, 0, nil, "panic called with nil", goodput.Failed, 1, 0},
		{"an index out of range", func(context.Context, func()) (int, error) { return []int{}[len(ways)], nil }, 0, nil, "index out of range", goodput.Failed, 1, 0},
		{"goexit", func(context.Context, func()) (int, error) { runtime.Goexit(); return 0, nil }, 0, ErrGoexit, "", goodput.Failed, 0, 1},
		{"an error that panics", func(ctx context.Context, leave func()) (int, error) { leave(); <-ctx.Done(); return 0, rude{} }, 0, nil, "rude", goodput.Failed, 1, 0},
	} {
		for way, in := range ways {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := fixed(1, goodput.NoQueue)
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					value, err := in(ctx, p, func(ctx context.Context) (int, error) {
						return c.fn(ctx, func() { leave(); time.Sleep(time.Millisecond) })
					})
					time.Sleep(time.Second)
					left := c.outcome == goodput.Abandoned || c.name == "a panic with the error of its context" || c.name == "an error that panics"
					if way == "do" && left {
						// The caller was told at once, before the function returned.
						if !errors.Is(err, context.Canceled) || errors.Is(err, goodput.ErrRejected) {
							t.Errorf("a caller that left was told %v", err)
						}
					} else {
						check(t, value, err, c.value, c.err, c.says)
					}
					s := p.Stats()
					if way != "nested" && s.Limiter.Outcomes[c.outcome] != 1 {
						t.Errorf("outcomes %v, want one %v", s.Limiter.Outcomes, c.outcome)
					}
					if s.Panics != c.panics || s.Exits != c.exits || s.Ran != 1 {
						t.Errorf("%d panics, %d exits, %d ran; want %d, %d, 1", s.Panics, s.Exits, s.Ran, c.panics, c.exits)
					}
					var boom *PanicError
					if errors.As(err, &boom) && !strings.Contains(string(boom.Stack), "pool_test.go") {
						t.Errorf("the stack does not name the line:\n%s", boom.Stack)
					}
					empty(t, p)
				})
			})
		}
	}
}

// rude panics when it is asked what it is.
type rude struct{}

func (rude) Error() string { return "rude" }
func (rude) Is(error) bool { panic("rude") }

func check(t *testing.T, value int, err error, wantValue int, wantErr error, says string) {
	t.Helper()
	switch {
	case wantErr != nil && !errors.Is(err, wantErr):
		t.Errorf("error %v, want %v", err, wantErr)
	case wantErr == nil && says == "" && err != nil:
		t.Errorf("error %v, want none", err)
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("error %v, want one that says %q", err, says)
	}
	if value != wantValue && wantValue != 0 {
		t.Errorf("value %d, want %d", value, wantValue)
	}
	if errors.Is(err, goodput.ErrRejected) {
		t.Errorf("%v says that it did not run", err)
	}
}

// What is refused at the door is refused by the call, at once, and never runs; whoever
// waits is told by its task.
func TestRefusedAtTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(1, goodput.NoQueue)
		busy, err := Submit(t.Context(), p, goodput.Work{}, sleep(time.Second, 1))
		if err != nil {
			t.Fatal(err)
		}
		never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
		if task, err := Submit(t.Context(), p, goodput.Work{}, never); task != nil || reason(err) != goodput.QueueFull {
			t.Errorf("Submit: %v, %v", task, err)
		}
		if task, err := Start(t.Context(), p, goodput.Work{}, never); task != nil || reason(err) != goodput.QueueFull {
			t.Errorf("Start: %v, %v", task, err)
		}
		if _, err := Do(t.Context(), p, goodput.Work{}, never); reason(err) != goodput.QueueFull {
			t.Errorf("Do: %v", err)
		}
		if _, err := Submit(t.Context(), p, goodput.Work{Cost: 2}, never); reason(err) != goodput.TooCostly {
			t.Errorf("a cost above the limit: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Submit(gone, p, goodput.Work{}, never); reason(err) != goodput.Client {
			t.Errorf("a context that is over: %v", err)
		}
		if took := time.Since(start(t)); took != 0 {
			t.Errorf("the refusals took %v", took)
		}
		if n, err := busy.Wait(t.Context()); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		synctest.Wait()
		empty(t, p)
	})
}

// start is when the clock of a bubble begins.
func start(testing.TB) time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// Wait gives up with its own context, and the task goes on.
func TestWaitGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(1, 1)
		task, err := Submit(t.Context(), p, goodput.Work{}, sleep(time.Second, 5))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if n, err := task.Wait(ctx); n != 0 || err != context.DeadlineExceeded || time.Since(start(t)) != 100*time.Millisecond {
			t.Errorf("%d, %v after %v", n, err, time.Since(start(t)))
		}
		select {
		case <-task.Done():
			t.Error("it has ended")
		default:
		}
		for range 2 {
			if n, err := task.Wait(t.Context()); n != 5 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		if n, err := task.Wait(ctx); n != 5 || err != nil {
			t.Errorf("an outcome that is there: %d, %v", n, err)
		}
		synctest.Wait()
		empty(t, p)
	})
}

// A function that ignores its context holds its slot until it returns: callers are told
// in time, and what runs is never more than the limit.
func TestC011FunctionIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(4, 8)
		var running, most int
		ch := make(chan struct{}, 1)
		ch <- struct{}{}
		count := func(d int) {
			<-ch
			running += d
			most = max(most, running)
			ch <- struct{}{}
		}
		late := make(chan time.Duration, 2000)
		n := 0
		for range 50 * 30 { // 50 a second for 30 s
			n++
			go func() {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := Do(ctx, p, goodput.Work{}, func(context.Context) (int, error) {
					count(1)
					defer count(-1)
					time.Sleep(10 * time.Second)
					return 0, nil
				})
				if err == nil {
					t.Error("a task of 10 s was done within 100 ms")
				}
				late <- time.Since(began)
			}()
			time.Sleep(20 * time.Millisecond)
			if n == 400 {
				if s := p.Stats(); s.Left != 4 || s.Running != 4 {
					t.Errorf("%d run, %d of them left; want 4, 4", s.Running, s.Left)
				}
				if s := p.Explain(); !strings.Contains(s, "4 run, 4 of them left by their callers") {
					t.Error(s)
				}
			}
		}
		synctest.Wait()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		<-ch
		if most != 4 {
			t.Errorf("%d ran at once, want 4", most)
		}
		for range n {
			if d := <-late; d > 100*time.Millisecond {
				t.Fatalf("a caller was told after %v", d)
			}
		}
		empty(t, p)
	})
}

// There is no goroutine while no task waits or runs; a flood makes no more than those that
// run and wait, and slack for those that have just been evicted, whose goroutines have
// their last lines to go. On one CPU, where they have to wait for the producer's turn to end.
func TestGoroutinesAreBounded(t *testing.T) {
	setProcs(t, 1)
	const slots, depth, flood = 4, 100, 20_000
	for _, c := range []struct {
		overflow goodput.Overflow
		most     int
		evicts   bool
	}{
		{goodput.Displace, slots + depth, false},
		{goodput.RefuseNewest, slots + depth, false},
		{goodput.Block, slots + 1000, false}, // MaxItems
		{goodput.EvictOldest, slots + depth + 2*slack, true},
		{goodput.LatestOnly, slots + depth + 2*slack, true},
	} {
		p := New(goodput.New(goodput.Config{
			Limit: limit.Fixed(slots), Depth: depth, MaxItems: 1000, Overflow: c.overflow, MaxWait: time.Hour, Objective: time.Hour,
		}), Unchanged)
		before := goroutines()
		stop := make(chan struct{})
		accepted, most := 0, 0
		for range flood {
			_, err := Submit(context.Background(), p, goodput.Work{Key: "k"}, func(context.Context) (int, error) { <-stop; return 0, nil })
			if err == nil {
				accepted++
			}
			most = max(most, runtime.NumGoroutine()-before)
		}
		switch {
		case most > c.most:
			t.Errorf("%v: %d goroutines, want at most %d", c.overflow, most, c.most)
		case c.evicts && accepted != flood, !c.evicts && accepted != c.most:
			t.Errorf("%v: %d accepted", c.overflow, accepted)
		}
		close(stop)
		if err := p.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		settle(t, before)
		empty(t, p)
	}
}

// goroutines returns how many there are, without those of earlier tests that have nothing
// but their last lines to go.
func goroutines() int {
	n := runtime.NumGoroutine()
	for range 1000 {
		runtime.Gosched()
		n = min(n, runtime.NumGoroutine())
	}
	return n
}

// settle waits for the last lines of goroutines that have nothing else left: they need no
// time but their turn.
func settle(t testing.TB, before int) {
	t.Helper()
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines more than before", runtime.NumGoroutine()-before)
}

// A task that is kept for its value does not keep what its function held, however it ended.
func TestTaskLetsGoOfItsFunction(t *testing.T) {
	p := fixed(1, 1)
	gone := make(chan int, 3)
	task := func(i int) *Task[int] {
		held := new([1 << 20]byte)
		runtime.AddCleanup(held, func(i int) { gone <- i }, i)
		task, err := Submit(t.Context(), p, goodput.Work{}, func(context.Context) (int, error) {
			if held[0]++; i == 1 {
				panic("boom")
			}
			return i, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	var tasks []*Task[int]
	for i := range 2 {
		tasks = append(tasks, task(i))
		<-tasks[i].Done()
	}
	busy, err := p.Limiter().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tasks = append(tasks, task(2))
	if err := p.Stop(over(t)); err == nil {
		t.Error("it did not wait for who runs")
	}
	busy.Release()
	if _, err := tasks[2].Wait(t.Context()); reason(err) != goodput.Draining {
		t.Errorf("the last: %v", err)
	}
	for range 1000 {
		if len(gone) == 3 {
			break
		}
		runtime.GC()
		runtime.Gosched()
	}
	if len(gone) != 3 {
		t.Errorf("%d of 3 functions were let go", len(gone))
	}
	runtime.KeepAlive(tasks)
}

// over returns a context that is.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestNewPanics(t *testing.T) {
	group := goodput.NewGroup(goodput.GroupConfig{Units: 4, Members: []goodput.Member{
		{Config: goodput.Config{Name: "a"}}, {Config: goodput.Config{Name: "b"}},
	}})
	for _, c := range []struct {
		name string
		lim  *goodput.Limiter
		size Size
		says string
	}{
		{"no limiter", nil, GOMAXPROCS, "pool: the limiter is nil"},
		{"no such size", goodput.New(goodput.Config{Limit: limit.Fixed(1)}), Unchanged + 1, "pool: size 2 is none of GOMAXPROCS, Unchanged"},
		{"a member", group.Limiter("a"), GOMAXPROCS, `pool: goodput: the limit of "a" is granted by group`},
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.HasPrefix(v, c.says) {
					t.Errorf("%s: %s", c.name, v)
				}
			}()
			New(c.lim, c.size)
		}()
	}
	p := New(group.Limiter("b"), Unchanged)
	if n, err := Do(t.Context(), p, goodput.Work{}, sleep(0, 3)); n != 3 || err != nil {
		t.Errorf("a member of a group: %d, %v", n, err)
	}
	if p.Limiter() != group.Limiter("b") {
		t.Error("another limiter")
	}
}
