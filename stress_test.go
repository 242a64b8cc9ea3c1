package goodput

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A load is what the stress tests do to a limiter: everything at once.
type load struct {
	l       *Limiter
	workers int
	ops     int                   // of each worker
	until   time.Time             // go on until then, if later
	pause   func(d time.Duration) // how work passes the time
	seed    uint64
	shared  bool      // tenants come, go and change
	allowed bool      // as does an allowance
	law     limit.Law // nil: a fixed one that is set again and again
	turns   bool      // somebody turns the switch of observe mode
}

const maxLimit = 16

var errWork = errors.New("work failed")

// run returns when all workers are done.
func (s *load) run() {
	var wg sync.WaitGroup
	for i := range s.workers {
		rng := rand.New(rand.NewPCG(s.seed, uint64(i)))
		wg.Go(func() {
			for n := 0; n < s.ops || time.Now().Before(s.until); n++ {
				s.op(rng)
			}
		})
	}
	wg.Wait()
}

// op is one request of any kind, or one change of the limiter.
func (s *load) op(rng *rand.Rand) {
	switch n := rng.IntN(100); {
	case n < 2 && s.law == nil:
		if err := s.l.SetLimit(rng.IntN(maxLimit)); err != nil {
			panic(err)
		}
	case n == 2 && rng.IntN(10) == 0:
		s.l.SetPresent(false)
		s.pause(time.Duration(rng.IntN(20)) * time.Millisecond)
		s.l.SetPresent(true)
	case n == 2 && s.turns:
		if err := s.l.SetObserve(rng.IntN(2) == 0); err != nil {
			panic(err)
		}
	case n < 3:
		st := s.l.Stats()
		if sum := ended(&st) + uint64(st.Running) + uint64(st.Waiting); sum != st.Arrivals {
			panic("the counters do not add up")
		}
	case n < 4:
		_ = s.l.Explain()
	case n < 5 && s.shared:
		s.share(rng)
	case n < 20:
		slot, ok := s.l.TryAcquire()
		if ok {
			s.work(&slot, rng)
		}
	case n < 30:
		s.do(rng)
	default:
		s.acquire(rng)
	}
}

// someone is one of n names, or none.
func someone(rng *rand.Rand, n int) string {
	if i := rng.IntN(n + 1); i > 0 {
		return string(rune('a' + i - 1))
	}
	return ""
}

// share changes who has which share, or looks at it.
func (s *load) share(rng *rand.Rand) {
	switch rng.IntN(3) {
	case 0:
		s.l.SetWeight(someone(rng, 6), 4*rng.NormFloat64())
	case 1:
		_ = s.l.Tenants(rng.IntN(5))
	case 2:
		cfg := stressConfig()
		cfg.Observe = s.l.observe.Load()
		cfg.Limit = cmp.Or(s.law, cfg.Limit)
		cfg.Overflow = []Overflow{Displace, LatestOnly, EvictOldest}[rng.IntN(3)]
		if cfg.Tenants = nil; rng.IntN(3) > 0 {
			cfg.Tenants = stressTenants(rng)
		}
		if s.allowed && rng.IntN(4) > 0 {
			cfg.Allowance = Quota{Rate: float64(1000 * (1 + rng.IntN(4))), Burst: 12}
		}
		if err := s.l.Reconfigure(cfg); err != nil {
			panic(err)
		}
	}
}

// stressTenants are some of a to d with weights, ceilings and quotas; e and f have no row.
func stressTenants(rng *rand.Rand) *Tenants {
	t := &Tenants{Others: Tenant{MaxInUse: rng.IntN(6)}, Buckets: 8, Hand: 1 + rng.IntN(3)}
	for _, id := range []string{"a", "b", "c", "d"} {
		row := Tenant{ID: id, Weight: float64(rng.IntN(4)), MaxInUse: rng.IntN(6)}
		if rng.IntN(2) == 0 {
			row.Quota = Quota{Rate: 1 + 500*rng.Float64(), Burst: 10}
		}
		if rng.IntN(4) > 0 {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// do runs a function that may fail, panic or end its goroutine.
func (s *load) do(rng *rand.Rand) {
	done := make(chan struct{})
	kind, d := rng.IntN(4), time.Duration(rng.IntN(int(5*time.Millisecond)))
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_ = s.l.Do(context.Background(), func(context.Context) error {
			s.pause(d)
			switch kind {
			case 0:
				panic("boom")
			case 1:
				runtime.Goexit()
			case 2:
				return errWork
			}
			return nil
		})
	}()
	<-done
}

// acquire makes a request with random attributes whose caller may leave.
func (s *load) acquire(rng *rand.Rand) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	switch rng.IntN(4) {
	case 0:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(int(40*time.Millisecond))))
	case 1:
		ctx, cancel = context.WithCancel(ctx)
		leave := cancel
		d := time.Duration(rng.IntN(int(10 * time.Millisecond)))
		var wg sync.WaitGroup
		wg.Go(func() { s.pause(d); leave() })
		defer wg.Wait()
	case 2:
		ctx = WithPriority(ctx, Priority(1+rng.IntN(4)))
		ctx = WithArrival(ctx, time.Now().Add(-time.Duration(rng.IntN(int(20*time.Millisecond)))))
	}
	defer cancel()
	w := Work{}
	if rng.IntN(2) == 0 {
		w = Work{
			Cost: rng.IntN(4), Size: rng.IntN(10), Bytes: int64(rng.IntN(10_000)), Attempt: rng.IntN(3),
			Priority: Priority(rng.IntN(5)), Exempt: rng.IntN(10) == 0,
			Tenant: someone(rng, 6), User: someone(rng, 40), Key: someone(rng, 3),
		}
	} else if rng.IntN(2) == 0 {
		ctx = WithUser(WithTenant(ctx, someone(rng, 6)), someone(rng, 40))
	}
	slot, err := s.l.AcquireWork(ctx, w)
	if err != nil {
		slot.Release() // there is nothing to release
		return
	}
	s.work(&slot, rng)
}

// work holds a slot and ends it in any way, some twice.
func (s *load) work(slot *Slot, rng *rand.Rand) {
	s.pause(time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond)))
	if rng.IntN(3) == 0 {
		slot.Served()
		s.pause(time.Millisecond)
	}
	if rng.IntN(3) == 0 {
		slot.SetCost(rng.IntN(9))
		slot.SetSize(rng.IntN(20))
	}
	switch rng.IntN(7) {
	case 0:
		slot.Fail(errWork)
	case 4:
		slot.Dropped()
	case 1:
		slot.Abandon()
	case 2:
		slot.Detach()
	case 3:
		slot.Release()
		slot.Fail(errWork)
	}
	slot.Release()
}

func stressConfig() Config {
	return Config{
		Limit: limit.Fixed(8), Objective: 20 * time.Millisecond, MaxItems: 40, MaxBytes: 100_000, Exempt: 2,
	}
}

// spin passes the time without the clock: the scheduler may do what it likes.
func spin(d time.Duration) {
	for range d / (200 * time.Microsecond) {
		runtime.Gosched()
	}
}

func stressSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return seed
}

// Real goroutines, the real clock, no sleep. Run it with -race.
func TestStress(t *testing.T) {
	for i := range 4 {
		observe, shared := i&1 != 0, i&2 != 0
		cfg := stressConfig()
		cfg.Observe = observe
		l := New(cfg)
		before := runtime.NumGoroutine()
		s := &load{l: l, workers: 64, ops: 300, until: time.Now().Add(stress(t)), pause: spin, seed: stressSeed(t), shared: shared}
		s.run()
		if err := l.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		checkEmpty(t, l)
		st := l.Stats()
		if observe && (st.Waiting != 0 || ended(&st) != st.Outcomes[Completed]+st.Outcomes[Late]+st.Outcomes[Failed]+st.Outcomes[Abandoned]) {
			t.Errorf("observe mode refused somebody: %v", st.Outcomes)
		}
		// The goroutines of the last ones may not have returned from their
		// last line yet; they need no time but their turn.
		for range 1_000_000 {
			if runtime.NumGoroutine() <= before {
				break
			}
			runtime.Gosched()
		}
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines more than before", n-before)
		}
		t.Logf("observe %v, shared %v: %d arrivals, outcomes %v, refusals %v", observe, shared, st.Arrivals, st.Outcomes, st.Refusals)
	}
}

// The same under the fake clock, where alarms and windows come at their time and
// the bubble does not end before its last goroutine.
func TestStressInFakeTime(t *testing.T) {
	if os.Getenv("GOODPUT_STRESS") != "" {
		t.Skip("the long run is in real time")
	}
	seed := stressSeed(t)
	synctest.Test(t, func(t *testing.T) {
		l := New(stressConfig())
		s := &load{l: l, workers: 40, ops: 300, pause: time.Sleep, seed: seed}
		s.run()
		checkEmpty(t, l)
		st := l.Stats()
		for _, r := range []Reason{QueueFull, TooCostly, NoBudget, Client} {
			if st.Refusals[r] == 0 {
				t.Errorf("the run never met %v: %v", r, st.Refusals)
			}
		}
		t.Logf("%d arrivals, outcomes %v, refusals %v", st.Arrivals, st.Outcomes, st.Refusals)
	})
}
