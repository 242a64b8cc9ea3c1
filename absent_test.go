package goodput

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// An answer is what a request was told, and after how long.
type answer struct {
	why   Reason
	after time.Duration
	retry time.Duration
}

// asks makes requests that run for a moment and returns what each was told, once all are.
func asks(l *Limiter, n int, ctx context.Context) func() []answer {
	all := make([]answer, n)
	var over sync.WaitGroup
	begun := time.Now()
	for i := range all {
		over.Go(func() {
			slot, err := l.Acquire(ctx)
			all[i] = answer{why: reason(err), after: time.Since(begun)}
			var r *Rejection
			if errors.As(err, &r) {
				all[i].retry = r.RetryAfter
			}
			slot.Release()
		})
	}
	return func() []answer {
		over.Wait()
		return all
	}
}

// F34: while there is nothing to run work on nobody is admitted, and who comes waits for
// MaxAbsence at most. Those that waited before are told at one instant, by one timer.
func TestAbsenceIsWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "search", Limit: limit.Fixed(2), Objective: 100 * time.Millisecond, Depth: 50, MaxWait: time.Hour, MaxAbsence: 300 * time.Millisecond})
		a, b := mustAcquire(t, l), mustAcquire(t, l)
		before := asks(l, 4, context.Background())
		time.Sleep(10 * time.Millisecond)
		l.SetPresent(false)
		l.SetPresent(false) // once is enough
		a.Release()         // frees a slot of nothing
		time.Sleep(100 * time.Millisecond)
		during := asks(l, 4, context.Background())
		hurried, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
		defer cancel()
		short := asks(l, 1, hurried)
		if _, ok := l.TryAcquire(); ok {
			t.Error("there was a slot of nothing")
		}
		synctest.Wait()
		sayings(t, l, []string{
			"search: absent: there is nothing to run work on\n",
			"  absent   nothing to run work on since 100ms: who waits is refused as unavailable after 300ms\n",
		}, nil)
		for _, got := range before() {
			if got.why != Unavailable || got.after != 310*time.Millisecond || got.retry < time.Second {
				t.Errorf("who waited before the absence: %+v, want unavailable 300ms after its beginning", got)
			}
		}
		for _, got := range short() {
			if got.why != Deadline && got.why != Doomed || got.after > 250*time.Millisecond {
				t.Errorf("who could not wait as long: %+v", got)
			}
		}
		for _, got := range during() {
			if got.why != Unavailable || got.after != 300*time.Millisecond {
				t.Errorf("who came during the absence: %+v, want unavailable after 300ms", got)
			}
		}
		s := l.Stats()
		if !s.Absent || s.AbsentFor != 400*time.Millisecond || s.InUse != 1 || s.Refusals[Unavailable] != 9 || s.Outcomes[Rejected] != 9 {
			t.Errorf("%+v", s.Stats)
		}
		b.Release() // what ran goes on to its end
		l.SetPresent(true)
		mustAcquire(t, l).Release()
		sayings(t, l, nil, []string{"absent"})
		checkEmpty(t, l)
	})
}

// A gap that is shorter costs nobody anything, and the queue is served when it is over.
func TestShortAbsenceLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 50, MaxWait: time.Hour})
		mustAcquire(t, l).Release() // there is a loan, which must be taken back
		l.SetPresent(false)
		waits := asks(l, 40, context.Background())
		time.Sleep(500 * time.Millisecond)
		if s := l.Stats(); s.Waiting != 40 || s.InUse != 0 {
			t.Errorf("%d wait, %d run", s.Waiting, s.InUse)
		}
		l.SetPresent(true)
		for _, got := range waits() {
			if got.why != None || got.after != 500*time.Millisecond {
				t.Errorf("%+v, want a slot after 500ms", got)
			}
		}
		checkEmpty(t, l)
	})
}

// In observe mode the shadow is refused, and everybody runs.
func TestAbsenceObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Observe: true, MaxWait: time.Hour})
		l.SetPresent(false)
		slot := mustAcquire(t, l)
		time.Sleep(2 * time.Second)
		if s := l.Stats(); s.Running != 1 || s.Shadow.Refusals[Unavailable] != 1 || !s.Shadow.Absent {
			t.Errorf("%+v, shadow %+v", s.Stats, s.Shadow)
		}
		slot.Release()
		checkEmpty(t, l)
	})
}
