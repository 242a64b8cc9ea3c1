package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fails is a function that always fails, in a way after which it is safe to try again.
func fails(context.Context, int) error { return NotExecuted(errTest) }

// stopOf returns the *Error of err, which must be one.
func stopOf(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e
}

// fixed returns a policy whose draws are all of draw.
func fixed(draw float64) *Policy { return &Policy{draw: func() float64 { return draw }} }

// The waits are drawn from nothing to the bound, which doubles up to the cap.
func TestFullJitter(t *testing.T) {
	for _, draw := range []float64{0, 0.5, math.Nextafter(1, 0)} {
		synctest.Test(t, func(t *testing.T) {
			p := fixed(draw)
			p.Attempts, p.Backoff, p.MaxBackoff = 6, 100*time.Millisecond, 500*time.Millisecond
			var at []time.Duration
			start := time.Now()
			_ = p.Do(t.Context(), func(_ context.Context, attempt int) error {
				if at = append(at, time.Since(start)); len(at) != attempt {
					t.Errorf("attempt %d is called %d", len(at), attempt)
				}
				return NotExecuted(errTest)
			})
			bounds := []time.Duration{0, 100, 200, 400, 500, 500}
			want := time.Duration(0)
			for i, b := range bounds {
				want += time.Duration(float64(b*time.Millisecond) * draw)
				// A wait is 1 ns more than its part of the bound, and floats round.
				if i >= len(at) || at[i] < want || at[i] > want+20 {
					t.Fatalf("draw %v: attempts at %v, want the %d. at %v", draw, at, i+1, want)
				}
			}
		})
	}
}

// The mean of the waits is half the bound, over the source that production has: 4,000
// draws from 0 to 50 ms have a standard error of 50/sqrt(12 x 4000) = 0.23 ms.
func TestJitterIsEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Attempts: 2, Budget: &Budget{Ratio: 1}}
		start := time.Now()
		for range 4000 {
			_ = p.Do(t.Context(), fails)
		}
		if mean := time.Since(start) / 4000; mean < 24*time.Millisecond || mean > 26*time.Millisecond {
			t.Errorf("mean wait %v, want 25 ms within 1 ms: 4 standard errors", mean)
		}
	})
}

func TestSuccessAndStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{}
		var before context.Context
		err := p.Do(t.Context(), func(ctx context.Context, attempt int) error {
			if before != nil && before.Err() == nil {
				t.Errorf("attempt %d: the context of the one before lives", attempt)
			}
			if before = ctx; attempt < 3 {
				return NotExecuted(errTest)
			}
			return nil
		})
		if err != nil || before.Err() == nil {
			t.Error(err, before.Err())
		}
		if err := stopOf(t, p.Do(t.Context(), func(context.Context, int) error { return errTest })); err.Stop != StopPermanent || err.Attempts != 1 {
			t.Errorf("not marked: %v", err)
		}
		s := p.Stats()
		if s.Calls != 2 || s.Attempts != 4 || s.Retries() != 2 || s.Stops[StopAnswered] != 1 || s.Stops[StopPermanent] != 1 ||
			s.Budget.Calls != 2 || s.Budget.Retries != 2 || s.Budget.Granted != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// A panic of fn goes on, and nothing is left.
func TestPanicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Total: time.Hour, PerAttempt: time.Minute}
		var inside context.Context
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = p.Do(t.Context(), func(ctx context.Context, _ int) error {
				inside = ctx
				panic("boom")
			})
		}()
		if inside.Err() != context.Canceled {
			t.Errorf("its context: %v, want it cancelled", inside.Err())
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = p.Do(t.Context(), func(context.Context, int) error { runtime.Goexit(); return nil })
		}()
		<-done
		if s := p.Stats(); s.Calls != 2 || s.Attempts != 2 || s.Stops != [Stops]uint64{} {
			t.Errorf("%+v", s)
		}
		// What goes on in the background with the context is not inside a call.
		err := p.Do(context.WithoutCancel(inside), fails)
		if e := stopOf(t, err); e.Stop != StopExhausted {
			t.Errorf("after the call: %v", err)
		}
	}) // which fails if a goroutine or a timer that anybody waits for is left
}

// A caller that leaves is told at once, in an attempt and in a wait.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{}
		ctx, cancel := context.WithCancel(t.Context())
		err := p.Do(Idempotent(ctx), func(context.Context, int) error {
			cancel()
			return errTest
		})
		if e := stopOf(t, err); e.Stop != StopGone || e.Attempts != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, errTest) {
			t.Errorf("in an attempt: %v", err)
		}
		err = p.Do(ctx, func(context.Context, int) error { t.Error("called with a context that is over"); return nil })
		if e := stopOf(t, err); e.Stop != StopGone || e.Attempts != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("before it: %v", err)
		}
		late, stop := context.WithDeadline(t.Context(), time.Now())
		defer stop()
		if e := stopOf(t, p.Do(late, fails)); e.Stop != StopTooLate || e.Attempts != 0 || !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("after its deadline: %v", e)
		}

		ctx, cancel = context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, cancel)
		err = p.Do(ctx, func(context.Context, int) error { return After(NotExecuted(errTest), 30*time.Second) })
		if e := stopOf(t, err); e.Stop != StopGone || e.Attempts != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, errTest) {
			t.Errorf("in a wait: %v", err)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("told after %v, want the 1 s after which it left", got)
		}
		if s := p.Stats(); s.Stops[StopGone] != 3 || s.Stops[StopTooLate] != 1 || s.Calls != 4 || s.Attempts != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// grpc/grpc-java#9703: an absolute deadline in a client that is used again is over at
// its second call.
func TestC055EachCallHasItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(0.5)
		p.Attempts, p.Total, p.Backoff = 10, 5*time.Second, 2*time.Second
		for call := range 3 {
			start := time.Now()
			var ends []time.Time
			err := p.Do(t.Context(), func(ctx context.Context, _ int) error {
				end, _ := ctx.Deadline()
				ends = append(ends, end)
				return NotExecuted(errTest)
			})
			for _, end := range ends {
				if !end.Equal(start.Add(5 * time.Second)) {
					t.Errorf("call %d: an attempt ends %v after the start of its call, want 5 s for all", call, end.Sub(start))
				}
			}
			// Waits of 1 and 2 s; the next one of 4 s would end after 7 s.
			if e := stopOf(t, err); e.Stop != StopTooLate || len(ends) != 3 || time.Since(start) > 3*time.Second+10 || e.Wait <= 2*time.Second {
				t.Errorf("call %d: %v after %v", call, err, time.Since(start))
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// An attempt has the earlier of its own time and that of the call, which counts on
// through all of them. That an attempt took too long does not end the call.
func TestPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(0)
		p.PerAttempt, p.Total, p.Attempts = 2*time.Second, 5*time.Second, 5
		start := time.Now()
		var took []time.Duration
		hang := func(ctx context.Context, _ int) error {
			from := time.Now()
			<-ctx.Done()
			took = append(took, time.Since(from).Round(time.Millisecond))
			return ctx.Err()
		}
		err := p.Do(Idempotent(t.Context()), hang)
		if e := stopOf(t, err); e.Stop != StopTooLate || time.Since(start) != 5*time.Second || !errors.Is(err, context.DeadlineExceeded) ||
			fmt.Sprint(took) != "[2s 2s 1s]" {
			t.Errorf("%v after %v, attempts of %v", err, time.Since(start), took)
		}
		took = nil
		if e := stopOf(t, p.Do(t.Context(), hang)); e.Stop != StopPermanent || len(took) != 1 {
			t.Errorf("C072: not marked, it timed out after %d attempts: %v", len(took), e)
		}
		if e := stopOf(t, p.Do(Idempotent(t.Context()), func(context.Context, int) error { return context.Canceled })); e.Stop != StopPermanent {
			t.Errorf("cancelled by itself: %v", e)
		}
	})
}

// The deadline of the context is in force if it is earlier than Total.
func TestEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, total := range []time.Duration{0, time.Second, 3 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			p := &Policy{Total: total}
			start, want := time.Now(), 2*time.Second
			if total == time.Second {
				want = total
			}
			_ = p.Do(Idempotent(ctx), func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
			if got := time.Since(start); got != want {
				t.Errorf("Total %v: ends after %v, want %v", total, got, want)
			}
			cancel()
		}
		// It decides about the wait as well.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		err := (&Policy{Total: 3 * time.Second}).Do(ctx, func(context.Context, int) error {
			return After(NotExecuted(errTest), 2500*time.Millisecond)
		})
		if e := stopOf(t, err); e.Stop != StopTooLate || e.Left != 2*time.Second || time.Since(start) != 0 {
			t.Errorf("a hint beyond it and within Total: %v after %v", err, time.Since(start))
		}
	})
}

// Many calls at once: the counters add up, and the budget holds.
func TestManyAtOnce(t *testing.T) {
	rng := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Budget: &Budget{Reserve: 1}}
		var th Throttle
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 1000 {
			wg.Go(func() {
				mu.Lock()
				good, leave := rng.IntN(3), rng.IntN(4) == 0
				mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leave {
					time.AfterFunc(time.Millisecond, cancel)
				}
				_ = p.Do(ctx, func(ctx context.Context, attempt int) error {
					time.Sleep(time.Microsecond)
					if attempt > good {
						th.Accepted()
						return nil
					}
					if th.Refuses() {
						return th.Err()
					}
					th.Refused()
					return NotExecuted(errTest)
				})
			})
		}
		wg.Wait()
		s := p.Stats()
		var ended uint64
		for _, n := range s.Stops {
			ended += n
		}
		if s.Calls != 1000 || ended != 1000 {
			t.Errorf("%d calls, %d ended", s.Calls, ended)
		}
		if n := th.Stats(); n.Kept+n.Accepted+n.Refused != s.Attempts {
			t.Errorf("%+v of %d attempts", n, s.Attempts)
		}
		if s.Retries() > 100 || s.Retries() > s.Budget.Granted || s.Budget.Refused != s.Stops[StopRetriesSpent] {
			t.Errorf("%d retries, %d granted of 1000 x 0.1; %d of %d refused", s.Retries(), s.Budget.Granted, s.Budget.Refused, s.Stops[StopRetriesSpent])
		}
	})
}
