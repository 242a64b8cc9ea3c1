package pool

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A storm hands in tasks of every kind from many goroutines and counts what becomes of
// them. Each is counted when its function begins, and once more when its outcome is there.
type storm struct {
	t     *testing.T
	p     *Pool
	slots int64
	pause func(time.Duration) // how work passes the time

	running, most atomic.Int64 // units of cost in functions that have a slot of their own
	began         atomic.Int64 // functions
	handed        atomic.Int64 // tasks
	ran           atomic.Int64 // outcomes of tasks that began
	refused       atomic.Int64 // outcomes of tasks that never did
	early         atomic.Int64 // callers of Do that left before the outcome
	wrong         atomic.Int64
}

// function returns what a task does, which is anything, and whether it began.
func (s *storm) function(rng *rand.Rand, cost int, nested bool) (fn func(context.Context) (int, error), began *atomic.Int64) {
	began = new(atomic.Int64)
	kind, d, seed := rng.IntN(20), time.Duration(rng.IntN(int(2*time.Millisecond))), rng.Uint64()
	return func(ctx context.Context) (int, error) {
		s.began.Add(1)
		if began.Add(1) > 1 {
			s.wrong.Add(1) // a second time
		}
		if !nested {
			n := s.running.Add(int64(cost))
			for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
			}
			defer s.running.Add(int64(-cost))
		}
		s.pause(d)
		switch kind {
		case 0:
			panic("boom")
		case 1:
			runtime.Goexit()
		case 2:
			return 0, errWork
		case 3:
			<-ctx.Done() // of those without an end of their own: see context
			return 0, ctx.Err()
		case 4, 5:
			if !nested { // within this slot, alone in it
				s.one(rand.New(rand.NewPCG(seed, 1)), ctx, true)
			}
		}
		return 1, nil
	}, began
}

// one hands in one task below parent, and checks its outcome.
func (s *storm) one(rng *rand.Rand, parent context.Context, nested bool) {
	s.handed.Add(1)
	ctx, cancel := context.WithTimeout(parent, time.Duration(rng.IntN(int(25*time.Millisecond))))
	defer cancel()
	if rng.IntN(4) == 0 {
		d := time.Duration(rng.IntN(int(5 * time.Millisecond)))
		var left sync.WaitGroup
		left.Go(func() { s.pause(d); cancel() })
		defer left.Wait()
	}
	w := goodput.Work{Cost: 1 + rng.IntN(2), Priority: goodput.Priority(rng.IntN(5)), Key: string(rune('a' + rng.IntN(6)))}
	if nested {
		w.Cost = 1 // so that it fits what is held
	}
	fn, began := s.function(rng, w.Cost, nested)
	var task *Task[int]
	var err error
	switch way := rng.IntN(4); {
	case nested || way == 0:
		_, err = Do(ctx, s.p, w, fn)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, goodput.ErrRejected) {
			s.early.Add(1) // it may still run
			return
		}
		s.outcome(err, began)
		return
	case way == 1:
		task, err = Start(ctx, s.p, w, fn)
	default:
		task, err = Submit(ctx, s.p, w, fn)
	}
	if err != nil {
		s.outcome(err, began)
		return
	}
	if rng.IntN(2) == 0 {
		_, _ = task.Wait(ctx)
	}
	<-task.Done()
	_, err = task.Wait(context.Background())
	s.outcome(err, began)
}

// outcome counts one, which is a refusal if and only if the function never began.
func (s *storm) outcome(err error, began *atomic.Int64) {
	rejected := errors.Is(err, goodput.ErrRejected)
	switch {
	case rejected && began.Load() != 0:
		s.wrong.Add(1)
	case began.Load() == 0:
		s.refused.Add(1)
		if !rejected {
			s.wrong.Add(1)
		}
	default:
		s.ran.Add(1)
	}
}

// run hands in n tasks from the goroutines of 32 producers and drains the pool in the
// middle of it if it is told to.
func (s *storm) run(seed uint64, n int, drain bool) {
	var all sync.WaitGroup
	for i := range 32 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range n / 32 {
				s.one(rng, context.Background(), false)
			}
		})
	}
	if drain {
		for s.handed.Load() < int64(n)/2 {
			s.pause(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_ = s.p.Drain(ctx)
		cancel()
	}
	all.Wait()
	if err := s.p.Drain(context.Background()); err != nil {
		s.t.Error(err)
	}
}

func (s *storm) check() {
	s.t.Helper()
	empty(s.t, s.p)
	if n := s.most.Load(); n > s.slots {
		s.t.Errorf("%d units ran at once, limit %d", n, s.slots)
	}
	if n := s.wrong.Load(); n != 0 {
		s.t.Errorf("%d tasks ran twice, or were told that they did not run although they did", n)
	}
	if sum := s.ran.Load() + s.refused.Load() + s.early.Load(); sum != s.handed.Load() {
		s.t.Errorf("%d tasks, %d outcomes", s.handed.Load(), sum)
	}
	st := s.p.Stats()
	if n := st.Ran + st.Nested; n != uint64(s.began.Load()) {
		s.t.Errorf("%d functions began, the pool says %d", s.began.Load(), n)
	}
	s.t.Logf("%d tasks: %d ran, %d refused, %d left by Do; %d nested, %d panics, %d exits, at most %d at once; outcomes %v, refusals %v",
		s.handed.Load(), s.ran.Load(), s.refused.Load(), s.early.Load(), st.Nested, st.Panics, st.Exits, s.most.Load(),
		st.Limiter.Outcomes, st.Limiter.Refusals)
}

func newStorm(t *testing.T, overflow goodput.Overflow, pause func(time.Duration)) *storm {
	return &storm{t: t, slots: 4, pause: pause, p: New(goodput.New(goodput.Config{
		Limit: limit.Fixed(4), Objective: 25 * time.Millisecond, MaxItems: 40, Overflow: overflow,
	}), Unchanged)}
}

// count is n, or a million with GOODPUT_MILLION=1.
func count(n int) int {
	if os.Getenv("GOODPUT_MILLION") == "1" {
		return 1_000_000
	}
	return n
}

// spin passes the time without the clock: the scheduler may do what it likes.
func spin(d time.Duration) {
	for range d / (200 * time.Microsecond) {
		runtime.Gosched()
	}
}

// Real goroutines, the real clock: cancels, panics, Goexit, timeouts, nested tasks, a
// drain in the middle. Run it with -race. Nothing is left: no slot, no goroutine, and each
// task has one outcome.
func TestStorm(t *testing.T) {
	policies := []goodput.Overflow{goodput.Displace, goodput.Block, goodput.LatestOnly, goodput.EvictOldest}
	for i, overflow := range policies {
		seed := rand.Uint64()
		before := goroutines()
		s := newStorm(t, overflow, spin)
		s.run(seed, count(4000)/len(policies), i == len(policies)-1)
		settle(t, before)
		s.check()
		if t.Failed() {
			t.Fatalf("%v, seed %d", overflow, seed)
		}
	}
}

// The same under the fake clock, where every deadline comes at its time.
func TestStormInFakeTime(t *testing.T) {
	if os.Getenv("GOODPUT_MILLION") == "1" {
		t.Skip("the long run is in real time")
	}
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t, goodput.Displace, time.Sleep)
		s.run(seed, 20_000, false)
		s.check()
		st := s.p.Stats()
		if st.Nested == 0 || st.Panics == 0 || st.Exits == 0 || s.early.Load() == 0 || st.Limiter.Outcomes[goodput.Abandoned] == 0 {
			t.Errorf("the storm never met something: %+v", st)
		}
	})
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}
