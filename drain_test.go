package goodput

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestDrainServesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(2, 10)
		var served sync.WaitGroup
		for range 6 {
			served.Go(func() {
				if err := l.Do(context.Background(), func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		for range 3 { // several calls are fine
			served.Go(func() {
				if err := l.Drain(context.Background()); err != nil {
					t.Error(err)
				}
				// 6 requests of 100 ms on 2 slots.
				if took := time.Since(begun); took != 300*time.Millisecond {
					t.Errorf("drained after %v, want 300ms", took)
				}
			})
		}
		synctest.Wait()
		if _, err := l.Acquire(context.Background()); reason(err) != Draining {
			t.Errorf("a newcomer got %v, want draining", err)
		} else if r := err.(*Rejection); r.RetryAfter != 0 || r.Jittered() != 0 || strings.Contains(r.Error(), "retry after") ||
			!strings.Contains(r.Error(), "; another instance may take it at once;") {
			t.Errorf("%v: a limiter that drains asks nobody to come back to it", r)
		}
		if got := fact(l.Explanation(), "refused"); got != "draining 1; another instance may take what comes now" {
			t.Errorf("explained as %q", got)
		}
		if _, ok := l.TryAcquire(); ok {
			t.Error("TryAcquire got a slot while draining")
		}
		served.Wait()
		if _, ok := l.TryAcquire(); ok {
			t.Error("TryAcquire got a slot of a drained limiter")
		}
		if err := l.Drain(context.Background()); err != nil {
			t.Errorf("drained again: %v", err)
		}
		s := l.Stats()
		if !s.Draining || s.State() != "drained" || s.Outcomes[Completed] != 6 || s.Refusals[Draining] != 3 {
			t.Errorf("after: %q, %+v", s.State(), s.Stats)
		}
		checkEmpty(t, l)
	})
}

func TestDrainGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 10)
		slot := mustAcquire(t, l)
		refused := make(chan error)
		for range 3 {
			go func() {
				_, err := l.Acquire(context.Background())
				refused <- err
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begun := time.Now()
		if err := l.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the error of the context", err)
		}
		for range 3 {
			if err := <-refused; reason(err) != Draining {
				t.Errorf("who waited got %v, want draining", err)
			}
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		if s := l.Stats(); s.Running != 1 || s.Waiting != 0 {
			t.Errorf("%d running, %d waiting: what runs goes on", s.Running, s.Waiting)
		}
		slot.Release()
		if err := l.Drain(ctx); err != nil {
			t.Errorf("nothing is left to wait for: %v", err)
		}
		checkEmpty(t, l)
	})
}

// A limiter that is asked while idle has nothing to wait for, and what the fast
// path has lent comes back.
func TestDrainOfAnIdleLimiter(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(3)})
	slot := mustAcquire(t, l)
	slot.Release()
	if err := l.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(context.Background()); reason(err) != Draining {
		t.Errorf("got %v, want draining", err)
	}
	checkEmpty(t, l)
}

// Whoever runs on a slot of the fast path is waited for as well.
func TestDrainWaitsForTheFastPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(3, 10)
		slot := mustAcquire(t, l)
		drained := false
		go func() {
			if err := l.Drain(context.Background()); err != nil {
				t.Error(err)
			}
			drained = true
		}()
		synctest.Wait()
		if drained {
			t.Fatal("drained while a request runs")
		}
		slot.Release()
		synctest.Wait()
		if !drained {
			t.Fatal("not drained after the last release")
		}
	})
}
