package goodput

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// untimed returns a limiter that times one request in maxSkip, as it does after
// a window of many: the path on which a slot is one compare-and-swap and nothing
// else notices it.
func untimed(n int) *Limiter {
	l := New(Config{Limit: limit.Fixed(n), Objective: time.Hour})
	l.rec.mask.Store(maxSkip - 1)
	return l
}

// Many callers on the fast path at once: never more than the limit run, and in
// the end every slot is back and every admission counted.
func TestFastPathUnderContention(t *testing.T) {
	// More slots than callers: nobody is refused, nobody takes the lock. They
	// go on until two have met often enough, which one processor never sees.
	const slots, callers, meetings, most = 8, 4, 100_000, 1_000_000
	l := untimed(slots)
	var running, met, over, admitted atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := 0; n < most && met.Load() < meetings; n++ {
				slot, ok := l.TryAcquire()
				if !ok {
					t.Error("refused with free slots")
					return
				}
				admitted.Add(1)
				switch n := running.Add(1); {
				case n > slots:
					over.Add(1)
				case n > 1:
					met.Add(1)
				}
				running.Add(-1)
				slot.Release()
			}
		})
	}
	wg.Wait()
	s := l.Stats()
	if n := over.Load(); n > 0 {
		t.Errorf("more than %d ran, %d times", slots, n)
	}
	if s.InUse != 0 || s.Running != 0 {
		t.Errorf("%d slots in use in the end", s.InUse)
	}
	if got := int64(s.Outcomes[Completed] + s.Outcomes[Late]); got != admitted.Load() || int64(s.Arrivals) != got {
		t.Errorf("%d ended of %d admitted, %d arrivals", got, admitted.Load(), s.Arrivals)
	}
}

// A slot that nothing timed ends once, too.
func TestUntimedSlotEndsOnce(t *testing.T) {
	l := untimed(3)
	for range 2 * maxSkip {
		slot, err := l.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		slot.Release()
		slot.Release()
		slot.Fail(errWork)
	}
	if s := l.Stats(); s.InUse != 0 || s.Outcomes[Completed] != 2*maxSkip {
		t.Errorf("%d in use, %d completed, want 0 and %d", s.InUse, s.Outcomes[Completed], 2*maxSkip)
	}
	for n := range 4 {
		if _, ok := l.TryAcquire(); ok != (n < 3) {
			t.Errorf("slot %d of 3: %v", n+1, ok)
		}
	}
}

// One request in k is timed on each word, however often the loan ends in between.
func TestLoansThatEndDoNotHaveMoreTimed(t *testing.T) {
	for _, every := range []int{1, 3, 10, 1_000_000} { // one in so many fails
		synctest.Test(t, func(t *testing.T) { // no window ends, and one in maxSkip it is
			l := untimed(50)
			const n = 100 * maxSkip
			timed := 0
			for i := range n {
				slot := mustAcquire(t, l)
				if slot.start != 0 {
					timed++
				}
				if i%every == 0 {
					slot.Fail(errWork)
				} else {
					slot.Release()
				}
			}
			if timed < n/maxSkip-maxWords || timed > n/maxSkip+maxWords {
				t.Errorf("one in %d fails: %d of %d are timed, want one in %d", every, timed, n, maxSkip)
			}
			if s := l.Stats(); s.Arrivals != n {
				t.Errorf("one in %d fails: %d arrivals, want %d", every, s.Arrivals, n)
			}
			checkEmpty(t, l)
		})
	}
}
