package goodput

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// stress is how long the stress tests run beyond their minimum: 0 for a quick
// run, GOODPUT_STRESS=60s for the long one.
func stress(t testing.TB) time.Duration {
	s := os.Getenv("GOODPUT_STRESS")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("GOODPUT_STRESS: %v", err)
	}
	return d
}

// rounds is n in a quick run and full in a long one.
func rounds(t testing.TB, n, full int) int {
	if stress(t) > 0 {
		return full
	}
	return n
}

// seeded returns a source of randomness, and a failure says which.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// fixed is a limiter of n slots whose queue holds depth, whatever it measures.
func fixed(n, depth int) *Limiter {
	return New(Config{Limit: limit.Fixed(n), Depth: depth, Order: FIFO, MaxWait: time.Hour})
}

func mustAcquire(t testing.TB, l *Limiter) *Slot {
	t.Helper()
	slot, err := l.Acquire(context.Background())
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return &slot
}

// checkCore asserts the invariants of the core.
func checkCore(t testing.TB, l *Limiter) {
	t.Helper()
	now := l.enter()
	err := l.core.Check()
	l.leave(now)
	if err != nil {
		t.Error(err)
	}
}

// checkCounts asserts that each arrival is accounted for.
func checkCounts(t testing.TB, s Stats) {
	t.Helper()
	sum := ended(&s) + uint64(s.Running) + uint64(s.Waiting)
	if s.Arrivals != sum {
		t.Errorf("%d arrivals, but outcomes, waiting and running add up to %d: %+v", s.Arrivals, sum, s.Stats)
	}
	var refused uint64
	for _, n := range s.Refusals {
		refused += n
	}
	if told := s.Outcomes[Rejected] + s.Outcomes[Expired] + s.Outcomes[Cancelled]; refused != told {
		t.Errorf("%d refusals by reason, %d by outcome", refused, told)
	}
}

// checkEmpty asserts that nothing is left of what ran and waited.
func checkEmpty(t testing.TB, l *Limiter) {
	t.Helper()
	checkCore(t, l)
	s := l.Stats()
	checkCounts(t, s)
	if s.InUse != 0 || s.Running != 0 || s.Waiting != 0 || s.WaitingCost != 0 || s.WaitingBytes != 0 || s.Stats.Exempt != 0 {
		t.Errorf("left behind: %d in use by %d, %d waiting of cost %d with %d bytes, %d exempt",
			s.InUse, s.Running, s.Waiting, s.WaitingCost, s.WaitingBytes, s.Stats.Exempt)
	}
}

// reason returns why err refused, None if it is no refusal.
func reason(err error) Reason {
	if r, ok := err.(*Rejection); ok {
		return r.Reason
	}
	return None
}

// waitFor returns when n wait.
func waitFor(l *Limiter, n int) {
	for {
		now := l.enter()
		waiting := l.core.Stats(now).Waiting
		l.leave(now)
		if waiting >= n {
			return
		}
		runtime.Gosched()
	}
}
