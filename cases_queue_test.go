package goodput

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Failures of other systems: queues that race and wake-ups that are lost.

// golang/go#63615: Acquire succeeded with a context that was over when a slot
// happened to be free.
func TestC017ContextThatIsOverIsNeverAdmitted(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	l := New(Config{Limit: limit.Fixed(10)})
	for range 1000 {
		if _, err := l.Acquire(cancelled); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrRejected) {
			t.Fatalf("cancelled context: %v", err)
		}
		if _, err := l.Acquire(past); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrRejected) {
			t.Fatalf("past deadline: %v", err)
		}
		if err := l.Do(cancelled, func(context.Context) error { t.Fatal("it ran"); return nil }); err == nil {
			t.Fatal("Do returned nil")
		}
		w := Work{Deadline: time.Now().Add(-time.Nanosecond)}
		if _, err := l.AcquireWork(context.Background(), w); reason(err) != Deadline {
			t.Fatalf("past Work.Deadline: %v", err)
		}
	}
	s := l.Stats()
	if s.Immediate != 0 || s.Arrivals != 4000 || s.Refusals[Client] != 2000 || s.Refusals[Deadline] != 2000 {
		t.Errorf("%d admitted of %d, refused %v", s.Immediate, s.Arrivals, s.Refusals)
	}
	if s.Outcomes[Cancelled] != 2000 || s.Outcomes[Expired] != 2000 {
		t.Errorf("outcomes %v", s.Outcomes)
	}
	checkEmpty(t, l)
}

// marusama/semaphore#2: a waiter subscribed just after the wake-up had gone out
// and slept on. The fake clock moves only when everybody sleeps: if it has moved
// at all, somebody slept while a slot was free.
func TestC019NobodySleepsWhileASlotIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 8
		l := fixed(1, workers)
		n := rounds(t, 40_000, 1_000_000) / workers
		begun := time.Now()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range n {
					slot, err := l.Acquire(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					if (i+w)%7 == 0 {
						runtime.Gosched()
					}
					slot.Release()
				}
			})
		}
		wg.Wait()
		if moved := time.Since(begun); moved != 0 {
			t.Errorf("everybody slept for %v", moved)
		}
		checkEmpty(t, l)
	})
}

// lalinsky/zio#94, moonbitlang/async#160, ocaml-multicore/eio#110: a waiter was
// cancelled after it had been picked for a slot and before it ran, and the slot
// vanished.
func TestC021ReleaseAndCancelAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		var admitted, left uint64
		n := rounds(t, 10_000, 1_000_000)
		for i := range n {
			slot := mustAcquire(t, l)
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() {
				slot, err := l.Acquire(ctx)
				if err == nil {
					admitted++
				} else {
					left++
				}
				slot.Release()
			})
			synctest.Wait()
			switch i % 3 {
			case 0:
				wg.Go(slot.Release)
			case 1:
				wg.Go(slot.Release)
				runtime.Gosched()
			case 2: // granted, and left before it has run
				slot.Release()
			}
			cancel()
			wg.Wait()
			again, ok := l.TryAcquire()
			if !ok {
				t.Fatalf("round %d: the slot has vanished", i)
			}
			again.Release()
		}
		s := l.Stats()
		// Every grant ended: those that were used and those that came too late.
		if s.Outcomes[Completed] != uint64(2*n)+admitted || s.Outcomes[Abandoned]+s.Outcomes[Cancelled] != left {
			t.Errorf("%d admitted, %d left, outcomes %v", admitted, left, s.Outcomes)
		}
		t.Logf("%d admitted, %d cancelled while waiting, %d declined", admitted, s.Outcomes[Cancelled], s.Outcomes[Abandoned])
		checkEmpty(t, l)
	})
}

// vibe-d/vibe.d#1563: a newcomer snatched the freed slot from the waiter that
// had been woken for it.
func TestC022NobodyIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service = 10 * time.Millisecond
		l := fixed(2, 100)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for !stop.Load() {
					err := l.Do(context.Background(), func(context.Context) error { time.Sleep(service); return nil })
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(service / 2)
		for range 20 {
			synctest.Wait() // whoever comes at this instant has come
			ahead := l.Stats().Waiting
			slot, err := l.Acquire(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			// Two leave per service time, and the first two within half of one.
			if bound := time.Duration(ahead/2+1) * service; slot.Waited() > bound {
				t.Errorf("waited %v behind %d, want at most %v", slot.Waited(), ahead, bound)
			}
			slot.Release()
			time.Sleep(service)
		}
		stop.Store(true)
		wg.Wait()
		checkEmpty(t, l)
	})
}

// dotnet/SqlClient#4302: on shutdown a waiter that had been granted a slot
// returned without giving it back.
func TestC024DrainDuringAStormOfGrants(t *testing.T) {
	n := rounds(t, 500, 10_000)
	synctest.Test(t, func(t *testing.T) {
		for range n {
			l := fixed(2, 100)
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					for {
						slot, err := l.Acquire(context.Background())
						if err != nil {
							if reason(err) != Draining {
								t.Error(err)
							}
							return
						}
						runtime.Gosched()
						slot.Release()
					}
				})
			}
			ctx, cancel := context.WithCancel(context.Background())
			wg.Go(cancel)
			_ = l.Drain(ctx)
			wg.Wait()
			if err := l.Drain(context.Background()); err != nil {
				t.Error(err)
			}
			checkEmpty(t, l)
		}
	})
}

// thomhurst/Dekaf#426, nanomsg/nng#54: every release woke all waiters. Here a
// release wakes whom it grants. Whoever is woken for nothing asks the core what
// there is, so what is counted is those that were decided and those that asked;
// no alarm rings within the hour.
func TestC025OneWakePerRelease(t *testing.T) {
	for _, depth := range []int{10, 1000, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(1, depth)
			slot := mustAcquire(t, l)
			var served atomic.Int64
			for range depth {
				go func() {
					slot, err := l.Acquire(context.Background())
					if err != nil {
						t.Error(err)
					}
					served.Add(1)
					slot.Release()
				}()
			}
			synctest.Wait()
			releases, woken, most, asked := 0, 0, 0, 0
			now := l.enter()
			l.journal = func(c call) { // under the lock
				switch {
				case c.op == "release":
					releases++
					woken = 0
				case c.op == "next" && c.waiter != nil:
					woken++
					most = max(most, woken)
				case c.op == "cancel":
					asked++
				}
			}
			l.leave(now)
			slot.Release()
			synctest.Wait()
			// The last releases find nobody, and go back to the lent slots.
			if int(served.Load()) != depth || releases < depth || most != 1 || asked != 0 {
				t.Errorf("depth %d: %d served by %d releases, which woke up to %d each and %d for nothing",
					depth, served.Load(), releases, most, asked)
			}
			checkEmpty(t, l)
		})
		if t.Failed() {
			return // a deeper queue shows no more
		}
	}
}

// The same with deadlines that pass at the instant of the grant: the core grants
// at the last nanosecond, the context is over before the goroutine has run.
func TestC021DeadlineAtTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Depth: 10, Objective: time.Second, Service: time.Microsecond})
		for range 200 { // replace the prior: the service takes next to nothing
			slot := mustAcquire(t, l)
			time.Sleep(time.Microsecond)
			slot.Release()
			time.Sleep(10 * time.Millisecond)
		}
		for i := range 300 {
			slot := mustAcquire(t, l)
			ctx, cancel := context.WithCancelCause(context.Background())
			late := ownContext{ctx, make(chan struct{})} // expires when it likes
			done := make(chan error)
			go func() {
				slot, err := l.Acquire(late)
				slot.Release()
				done <- err
			}()
			synctest.Wait()
			slot.Release()
			close(late.done)
			if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("round %d: %v, want a slot or deadline", i, err)
			}
			cancel(nil)
			checkEmpty(t, l)
		}
	})
}
