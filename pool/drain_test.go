package pool

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// Drain serves who waits, Stop refuses them; both wait for who runs, refuse newcomers, and
// return once every task has its outcome.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		drain   func(*Pool, context.Context) error
		patient time.Duration
		took    time.Duration
		err     string
		second  goodput.Reason // of the two that wait
		third   goodput.Reason
	}{
		{"drain", (*Pool).Drain, time.Hour, 3 * time.Second, "", goodput.None, goodput.None},
		{"drain, not for long", (*Pool).Drain, 1500 * time.Millisecond, 1500 * time.Millisecond, "pool: cpu is not drained, 1 task still runs", goodput.None, goodput.Draining},
		{"stop", (*Pool).Stop, time.Hour, time.Second, "", goodput.Draining, goodput.Draining},
		{"stop, not for long", (*Pool).Stop, 500 * time.Millisecond, 500 * time.Millisecond, "pool: cpu is not drained, 1 task still runs", goodput.Draining, goodput.Draining},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New(goodput.New(goodput.Config{Name: "cpu", Limit: limit.Fixed(1), Depth: 10, Order: goodput.FIFO, MaxWait: time.Hour, Objective: time.Hour}), Unchanged)
				var tasks []*Task[int]
				for i := range 3 {
					task, err := Submit(t.Context(), p, goodput.Work{}, sleep(time.Second, i))
					if err != nil {
						t.Fatal(err)
					}
					tasks = append(tasks, task)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.patient)
				defer cancel()
				err := c.drain(p, ctx)
				if took := time.Since(start(t)); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.err == "" && err != nil || c.err != "" && (!errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), c.err)) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if _, err := Submit(t.Context(), p, goodput.Work{}, sleep(0, 0)); reason(err) != goodput.Draining {
					t.Errorf("a newcomer: %v", err)
				}
				if _, err := Do(t.Context(), p, goodput.Work{}, sleep(0, 0)); reason(err) != goodput.Draining {
					t.Errorf("a newcomer: %v", err)
				}
				if err == nil { // each has its outcome already
					for i, task := range tasks {
						select {
						case <-task.Done():
						default:
							t.Errorf("task %d has no outcome", i)
						}
					}
				}
				if err := p.Drain(t.Context()); err != nil {
					t.Errorf("a second drain: %v", err)
				}
				for i, want := range []goodput.Reason{goodput.None, c.second, c.third} {
					n, err := tasks[i].Wait(t.Context())
					if reason(err) != want || want == goodput.None && n != i {
						t.Errorf("task %d: %d, %v; want %v", i, n, err, want)
					}
				}
				synctest.Wait()
				empty(t, p)
			})
		})
	}
}

// A task whose slot has been given back and whose outcome is not there yet is waited for.
func TestDrainWaitsForTheLastLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(1, 1)
		p.accept()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "0 tasks still run") {
			t.Errorf("it did not wait: %v", err)
		}
		p.accept()
		for i := range 2 {
			time.AfterFunc(time.Duration(i+1)*time.Second, p.settle)
		}
		if err := p.Drain(t.Context()); err != nil || time.Since(start(t)) != 3*time.Second {
			t.Errorf("%v after %v, want 3s", err, time.Since(start(t)))
		}
		empty(t, p)
	})
}

// A task that runs on while its pool drains still has what it waits for itself, if that
// runs within its slot.
func TestNestedDoWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(1, 1)
		task, err := Submit(t.Context(), p, goodput.Work{}, func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			return Do(ctx, p, goodput.Work{}, sleep(time.Second, 4))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Drain(t.Context()); err != nil || time.Since(start(t)) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start(t)))
		}
		if n, err := task.Wait(t.Context()); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		empty(t, p)
	})
}

// setProcs sets GOMAXPROCS for a test.
func setProcs(t *testing.T, n int) {
	t.Helper()
	was := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
}

// The limit is GOMAXPROCS whatever the law of the limiter says, and follows it: with the
// next task that comes, the next that ends, and the next look at it.
func TestFollowsGOMAXPROCS(t *testing.T) {
	setProcs(t, 3)
	now := func(p *Pool) int { return p.Limiter().Stats().Limit }
	p := New(goodput.New(goodput.Config{Limit: limit.Fixed(50), Depth: 10, MaxWait: time.Hour, Objective: time.Hour}), GOMAXPROCS)
	own := New(goodput.New(goodput.Config{Limit: limit.Fixed(50)}), Unchanged)
	if n := now(p); n != 3 {
		t.Errorf("limit %d at first, want 3", n)
	}
	if n := now(own); n != 50 {
		t.Errorf("Unchanged: limit %d", n)
	}
	runtime.GOMAXPROCS(5)
	stop := make(chan struct{})
	wait := func(context.Context) (int, error) { <-stop; return 0, nil }
	if _, err := Submit(t.Context(), p, goodput.Work{}, wait); err != nil {
		t.Fatal(err)
	}
	if n := now(p); n != 5 {
		t.Errorf("limit %d after a task came, want 5", n)
	}
	runtime.GOMAXPROCS(2)
	if s := p.Stats(); s.Limiter.Limit != 2 || s.GOMAXPROCS != 2 {
		t.Errorf("limit %d at a look, GOMAXPROCS %d, want 2", s.Limiter.Limit, s.GOMAXPROCS)
	}
	var tasks []*Task[int]
	for range 2 {
		task, err := Submit(t.Context(), p, goodput.Work{}, wait)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	if s := p.Stats(); s.Limiter.Running != 2 || s.Limiter.Waiting != 1 {
		t.Errorf("%d run, %d wait; want 2, 1", s.Limiter.Running, s.Limiter.Waiting)
	}
	runtime.GOMAXPROCS(4)
	close(stop)
	for _, task := range tasks {
		<-task.Done()
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := now(p); n != 4 {
		t.Errorf("limit %d after a task ended, want 4", n)
	}
	if _, err := Do(t.Context(), own, goodput.Work{}, sleep(0, 0)); err != nil || now(own) != 50 {
		t.Errorf("Unchanged: limit %d, %v", now(own), err)
	}
}

// A task that would use more threads than there are uses those that there are, and is as
// much work as it was; with a limit of its own that is too costly.
func TestCostAboveGOMAXPROCS(t *testing.T) {
	setProcs(t, 2)
	lim := func() *goodput.Limiter { return goodput.New(goodput.Config{Limit: limit.Fixed(2)}) }
	p := New(lim(), GOMAXPROCS)
	if _, err := Do(t.Context(), p, goodput.Work{Cost: 16}, func(ctx context.Context) (int, error) {
		if s := p.Stats().Limiter; s.InUse != 2 {
			t.Errorf("%d in use, want 2", s.InUse)
		}
		return Do(ctx, p, goodput.Work{Cost: 4}, sleep(0, 0))
	}); err != nil {
		t.Error(err)
	}
	w, cost := p.admit(goodput.Work{Cost: 16})
	if w.Cost != 2 || cost != 2 || w.Size != 16 {
		t.Errorf("offered as %+v", w)
	}
	if w, cost = p.admit(goodput.Work{Cost: 16, Size: 3}); w.Cost != 2 || cost != 2 || w.Size != 3 {
		t.Errorf("offered as %+v", w)
	}
	if w, cost = p.admit(goodput.Work{Cost: -1}); cost != 1 || w.Size != 0 {
		t.Errorf("offered as %+v", w)
	}
	if _, err := Do(t.Context(), New(lim(), Unchanged), goodput.Work{Cost: 16}, sleep(0, 0)); reason(err) != goodput.TooCostly {
		t.Errorf("Unchanged: %v", err)
	}
}

// Explain says what GOMAXPROCS comes from.
func TestWhy(t *testing.T) {
	for _, c := range []struct {
		procs, cpus int
		env, want   string
	}{
		{2, 16, "", "of 16 CPUs, by the CPU quota of the cgroup (rounded up, at least 2) or by a call of runtime.GOMAXPROCS"},
		{16, 16, "", "all CPUs that the process may use"},
		{20, 16, "", "a call of runtime.GOMAXPROCS, for 16 CPUs"},
		{3, 16, "3", "the environment says GOMAXPROCS=3, so it does not follow the CPU quota"},
	} {
		if got := why(c.procs, c.cpus, c.env); got != c.want {
			t.Errorf("%d of %d, %q: %s", c.procs, c.cpus, c.env, got)
		}
	}
	setProcs(t, 2)
	lim := func() *goodput.Limiter { return goodput.New(goodput.Config{Limit: limit.Fixed(7)}) }
	if s := New(lim(), GOMAXPROCS).Explain(); !strings.Contains(s, "limit    2 (fixed(2))") || !strings.Contains(s, "the limit follows GOMAXPROCS, now 2: ") {
		t.Error(s)
	}
	if s := New(lim(), Unchanged).Explain(); !strings.Contains(s, "limit    7 (fixed(7))") || !strings.Contains(s, "the limit is the limiter's own; GOMAXPROCS is 2") {
		t.Error(s)
	}
}

// What a request waits for in a pool is not the service of its own slot, by Do, by Start
// and by Wait; and what a task says to be downstream is on the account of its slot in the pool.
func TestAttribution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := goodput.New(goodput.Config{Name: "door", Limit: limit.Fixed(10), Objective: time.Second})
		p := New(goodput.New(goodput.Config{Name: "cpu", Limit: limit.Fixed(1), Objective: time.Second}), Unchanged)
		work := func(ctx context.Context) (int, error) {
			time.Sleep(60 * time.Millisecond)
			span := goodput.Downstream(ctx)
			defer span.End()
			time.Sleep(30 * time.Millisecond)
			return 0, nil
		}
		err := door.Do(t.Context(), func(ctx context.Context) error {
			time.Sleep(10 * time.Millisecond)
			if _, err := Do(ctx, p, goodput.Work{}, work); err != nil {
				return err
			}
			if _, err := Submit(ctx, p, goodput.Work{}, work); err != nil { // does not wait
				return err
			}
			task, err := Start(ctx, p, goodput.Work{}, work) // waits for that one
			if err != nil {
				return err
			}
			_, err = task.Wait(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			lim  *goodput.Limiter
			want float64 // of the time that slots were held
		}{{door, 270.0 / 280}, {p.Limiter(), 30.0 / 90}} {
			if s := c.lim.Stats(); s.Elsewhere < c.want-1e-6 || s.Elsewhere > c.want+1e-6 { // nanoseconds in 0.1 s
				t.Errorf("%s: %.4f elsewhere, want %.4f", s.Name, s.Elsewhere, c.want)
			}
		}
	})
}
