package goodput

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestWaitIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		first := mustAcquire(t, l)
		var order []int
		for i := range 5 {
			go func() {
				slot, err := l.Acquire(context.Background())
				if err != nil {
					t.Errorf("waiter %d: %v", i, err)
					return
				}
				order = append(order, i) // one at a time: they share one slot
				if want := 100*time.Millisecond + time.Duration(i)*10*time.Millisecond; slot.Waited() != want {
					t.Errorf("waiter %d waited %v, want %v", i, slot.Waited(), want)
				}
				time.Sleep(10 * time.Millisecond)
				slot.Release()
			}()
			synctest.Wait()
		}
		time.Sleep(100 * time.Millisecond)
		first.Release()
		time.Sleep(time.Second)
		synctest.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("served in the order %v", order)
			}
		}
		if s := l.Stats(); s.Dequeued != 5 || s.Wait[WaitAdmitted].Count != 5 || s.Immediate != 1 {
			t.Errorf("dequeued %d, waits %d, immediate %d", s.Dequeued, s.Wait[WaitAdmitted].Count, s.Immediate)
		}
		checkEmpty(t, l)
	})
}

// Who can no longer be served is told at its doom time, deadline - p99 of the
// service, although no slot moves.
func TestDoomedIsToldAtItsDoomTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Objective: 2 * time.Second, Service: 100 * time.Millisecond})
		slot := mustAcquire(t, l)
		const budget = 1500 * time.Millisecond
		ctx, cancel := context.WithTimeout(context.Background(), budget)
		defer cancel()
		begun := time.Now()
		_, err := l.Acquire(ctx)
		took := time.Since(begun)
		var r *Rejection
		if !errors.As(err, &r) || r.Reason != Doomed || r.Outcome != Expired {
			t.Fatalf("got %v, want doomed", err)
		}
		// One nanosecond later what is left is below the quantile.
		if want := budget - r.Service + 1; took != want || r.Waited != want {
			t.Errorf("told after %v, noted %v, want %v - %v = %v", took, r.Waited, budget, r.Service, want)
		}
		for _, want := range []string{" after ", "too short to serve it (service "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		slot.Release()
		if s := l.Stats(); s.Wait[WaitRefused].Count != 1 {
			t.Errorf("%d waits of refused requests", s.Wait[WaitRefused].Count)
		}
		checkEmpty(t, l)
	})
}

// Without a deadline, in time is within the objective of the arrival, and the
// wait counts.
func TestWaitCountsInTheVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objective = 400 * time.Millisecond
		for _, c := range []struct {
			waits, works time.Duration
			want         Outcome
		}{
			{300 * time.Millisecond, 100 * time.Millisecond, Completed},
			{300 * time.Millisecond, 101 * time.Millisecond, Late},
		} {
			l := New(Config{Limit: limit.Fixed(1), Objective: objective, Depth: 10, Order: FIFO})
			first := mustAcquire(t, l)
			time.AfterFunc(c.waits, first.Release)
			second := mustAcquire(t, l)
			time.Sleep(c.works)
			second.Release()
			s := l.Stats()
			s.Outcomes[Completed]-- // the first
			if s.Outcomes[c.want] != 1 || second.Waited() != c.waits {
				t.Errorf("waited %v, worked %v: outcomes %v, want one %v", second.Waited(), c.works, s.Outcomes, c.want)
			}
			checkEmpty(t, l)
		}
	})
}

func TestWaitBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), MaxWait: 300 * time.Millisecond})
		slot := mustAcquire(t, l)
		begun := time.Now()
		_, err := l.Acquire(context.Background())
		if took := time.Since(begun); reason(err) != WaitBound || took != 300*time.Millisecond {
			t.Errorf("%v after %v, want wait_bound after 300ms", err, took)
		}
		if r := err.(*Rejection); r.RetryAfter < time.Second {
			t.Errorf("retry after %v: a retry can win", r.RetryAfter)
		}
		slot.Release()
		checkEmpty(t, l)
	})
}

func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		slot := mustAcquire(t, l)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			_, err := l.AcquireWork(ctx, Work{Bytes: 1000})
			done <- err
		}()
		synctest.Wait()
		if s := l.Stats(); s.Waiting != 1 || s.WaitingBytes != 1000 {
			t.Fatalf("%d waiting with %d bytes", s.Waiting, s.WaitingBytes)
		}
		time.Sleep(70 * time.Millisecond)
		cancel()
		err := <-done
		if !errors.Is(err, ErrRejected) || !errors.Is(err, context.Canceled) || reason(err) != Client {
			t.Errorf("got %v, want a rejection that is context.Canceled", err)
		}
		if w := err.(*Rejection).Waited; w != 70*time.Millisecond {
			t.Errorf("waited %v, want 70ms", w)
		}
		s := l.Stats()
		if s.Waiting != 0 || s.WaitingBytes != 0 || s.Outcomes[Cancelled] != 1 || s.Wait[WaitCancelled].Count != 1 {
			t.Errorf("after the cancel: %+v", s.Stats)
		}
		slot.Release()
		checkEmpty(t, l)
	})
}

// ownContext is over on its own terms: it has no deadline that it tells.
type ownContext struct {
	context.Context
	done chan struct{}
}

func (c ownContext) Done() <-chan struct{} { return c.done }
func (c ownContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestContextThatExpiresWithoutTellingWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		slot := mustAcquire(t, l)
		ctx := ownContext{context.Background(), make(chan struct{})}
		time.AfterFunc(time.Second, func() { close(ctx.done) })
		begun := time.Now()
		_, err := l.Acquire(ctx)
		if took := time.Since(begun); !errors.Is(err, ErrRejected) || took != time.Second {
			t.Errorf("%v after %v, want a rejection after 1s", err, took)
		}
		slot.Release()
		if _, err := l.Acquire(ctx); reason(err) != Deadline {
			t.Errorf("on arrival: %v, want deadline", err)
		}
		checkEmpty(t, l)
	})
}

func TestPriorityGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		slot := mustAcquire(t, l)
		var order []Priority
		wait := func(ctx context.Context, w Work, p Priority) {
			go func() {
				slot, err := l.AcquireWork(ctx, w)
				if err != nil {
					t.Errorf("%v: %v", p, err)
					return
				}
				order = append(order, p)
				slot.Release()
			}()
			synctest.Wait()
		}
		bg := context.Background()
		wait(WithPriority(bg, Background), Work{}, Background)
		wait(bg, Work{}, Default)
		wait(WithPriority(bg, Background), Work{Priority: Critical}, Critical) // the field wins
		wait(WithPriority(bg, Sheddable), Work{}, Sheddable)
		slot.Release()
		synctest.Wait()
		for i, p := range []Priority{Critical, Default, Sheddable, Background} {
			if len(order) != 4 || order[i] != p {
				t.Fatalf("served in the order %v", order)
			}
		}
		checkEmpty(t, l)
	})
}

func TestSetLimitWakesWhoFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(0, 10)
		var admitted atomic.Int32
		for range 4 {
			go func() {
				slot, err := l.Acquire(context.Background())
				if err != nil {
					t.Error(err)
				}
				admitted.Add(1)
				time.Sleep(time.Second)
				slot.Release()
			}()
		}
		synctest.Wait()
		if s := l.Stats(); admitted.Load() != 0 || s.Waiting != 4 {
			t.Fatalf("limit 0: %d admitted, %d waiting", admitted.Load(), s.Waiting)
		}
		if err := l.SetLimit(3); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := admitted.Load(); n != 3 {
			t.Errorf("limit 3: %d admitted", n)
		}
		if err := l.SetLimit(-1); err == nil {
			t.Error("a negative limit was taken")
		}
		if s := l.Stats(); s.Limit != 3 {
			t.Errorf("limit %d after a failed change, want 3", s.Limit)
		}
		time.Sleep(3 * time.Second)
		checkEmpty(t, l)
	})
}

func TestReconfigureKeepsWhoWaitsAndWhoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		slot := mustAcquire(t, l)
		for range 3 {
			go func() {
				if err := l.Do(context.Background(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		cfg := Config{Name: "search", Limit: limit.Fixed(1), Objective: 500 * time.Millisecond, Depth: 5}
		if err := l.Reconfigure(cfg); err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.Waiting != 3 || s.Running != 1 || s.Name != "search" || s.Derivation.Objective != 500*time.Millisecond {
			t.Errorf("after: %+v", s.Stats)
		}
		if err := l.Reconfigure(Config{Limit: limit.Fixed(-1)}); err == nil {
			t.Error("a configuration with a limit below 0 was taken")
		}
		slot.Release()
		synctest.Wait()
		checkEmpty(t, l)
	})
}
