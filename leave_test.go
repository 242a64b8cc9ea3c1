package goodput

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// What is left of a request whose caller leaves, and what is said about it.

// silent is a context that is over without anybody hearing of it: whoever waits
// with it finds out when it has a slot.
type silent struct{ context.Context }

func (silent) Done() <-chan struct{} { return nil }

// A context that was cancelled with a cause was ended by whoever owns the
// caller; one without was left by the caller. At the door, while waiting, and at
// the moment of the grant.
func TestWhoLeft(t *testing.T) {
	for _, c := range []struct {
		name  string
		cause error
		want  Reason
	}{
		{"no cause", nil, Client},
		{"the plain cause", context.Canceled, Client},
		{"a cause", errWork, Parent},
		{"somebody's time is over", context.DeadlineExceeded, Parent},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := func(err error, waited time.Duration, granted bool) {
					t.Helper()
					var r *Rejection
					if !errors.As(err, &r) || r.Reason != c.want || r.Outcome != Cancelled || r.Waited != waited || r.RetryAfter != 0 || r.Declined() != granted {
						t.Errorf("got %+v, want %v after %v", r, c.want, waited)
					}
					if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v is not context.Canceled alone", err)
					}
				}
				l := fixed(1, 10)
				slot := mustAcquire(t, l)
				owner, end := context.WithCancelCause(context.Background())
				ctx, cancel := context.WithTimeout(owner, time.Hour) // what the owner did shows in its children
				defer cancel()
				waiting, granted := make(chan error), make(chan error)
				go func() {
					_, err := l.Acquire(ctx)
					waiting <- err
				}()
				go func() {
					_, err := l.Acquire(silent{owner})
					granted <- err
				}()
				synctest.Wait()
				time.Sleep(70 * time.Millisecond)
				end(c.cause)
				check(<-waiting, 70*time.Millisecond, false)
				_, err := l.Acquire(ctx)
				check(err, 0, false)
				slot.Release()
				check(<-granted, 70*time.Millisecond, true)

				// Whoever was granted is abandoned in the counters, and no refusal.
				s := l.Stats()
				if s.Refusals[c.want] != 2 || s.Outcomes[Cancelled] != 2 || s.Outcomes[Abandoned] != 1 || s.Dequeued != 1 {
					t.Errorf("refusals %v, outcomes %v, %d dequeued", s.Refusals, s.Outcomes, s.Dequeued)
				}
				checkEmpty(t, l)
			})
		})
	}
}

// Whoever was doomed is told the service of its own size, whatever the others
// are that share the refusal.
func TestDoomedIsToldItsOwnService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Objective: 2 * time.Second, Service: 100 * time.Millisecond})
		serveOnce(t, l)
		slot := mustAcquire(t, l)
		const budget = 3 * time.Second
		var told [4]*Rejection
		done := make(chan int)
		for size := 1; size <= 3; size++ {
			ctx, cancel := context.WithTimeout(context.Background(), budget)
			defer cancel()
			go func() {
				_, err := l.AcquireWork(ctx, Work{Size: size})
				errors.As(err, &told[size])
				done <- size
			}()
		}
		for range 3 {
			size := <-done
			r := told[size]
			if r == nil || r.Reason != Doomed || r.Waited != budget-r.Service+1 {
				t.Errorf("size %d: %+v, want doomed at %v less its service", size, r, budget)
			}
		}
		if t.Failed() {
			return
		}
		if off := told[3].Service - 3*told[1].Service; off.Abs() > 3 { // each is rounded to a nanosecond
			t.Errorf("size 1 needs %v, size 3 needs %v", told[1].Service, told[3].Service)
		}
		slot.Release()
		checkEmpty(t, l)
	})
}

// A waiter's timer ends with it: one that goes on holds the waiter in memory
// until its alarm, which may be a day away.
func TestNoTimerIsLeft(t *testing.T) {
	for _, observe := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: limit.Fixed(1), Depth: 10, Order: FIFO, MaxWait: 24 * time.Hour, Objective: 24 * time.Hour, Observe: observe})
			var waiters []*waiter
			now := l.enter()
			l.journal = func(c call) { // under the lock
				if (c.op == "next" || c.op == "cancel") && c.waiter != nil {
					waiters = append(waiters, c.waiter.Ref.(*waiter))
				}
			}
			l.leave(now)
			slot := mustAcquire(t, l)
			left, leave := context.WithCancel(context.Background())
			done := make(chan error)
			work := func(ctx context.Context) error {
				if observe {
					<-ctx.Done() // it runs at once, and its place in the shadow is what waits
				}
				return ctx.Err()
			}
			served, end := context.WithCancel(context.Background())
			for _, ctx := range []context.Context{left, served} {
				go func() { done <- l.Do(ctx, work) }()
				synctest.Wait()
			}
			time.Sleep(time.Second)
			leave() // it is taken out
			<-done
			slot.Release() // and the other one is granted
			synctest.Wait()
			end()
			<-done
			if len(waiters) != 2 || time.Since(l.epoch) > time.Minute {
				t.Fatalf("observe %v: %d were decided after %v, want 2 after 1s", observe, len(waiters), time.Since(l.epoch))
			}
			for i, w := range waiters {
				if w.timer.Stop() {
					t.Errorf("observe %v: the timer of waiter %d was left running", observe, i)
				}
			}
			checkEmpty(t, l)
		})
	}
}
