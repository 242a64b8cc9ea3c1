package goodput

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A backend is a resource of so many slots of its own behind a limiter.
type backend struct {
	l    *Limiter
	rng  *rand.Rand
	free chan struct{}
	all  sync.WaitGroup
}

// offer lets so many come a second, each for service, and looks once a second.
func (b *backend) offer(d time.Duration, rate float64, service func() time.Duration, look func(*Stats)) {
	second := time.Now()
	for end := second.Add(d); time.Now().Before(end); {
		takes := service()
		b.all.Go(func() {
			slot, err := b.l.Acquire(context.Background())
			if err != nil {
				return
			}
			b.free <- struct{}{}
			time.Sleep(takes)
			<-b.free
			slot.Release()
		})
		time.Sleep(time.Duration(b.rng.ExpFloat64() / rate * float64(time.Second)))
		if time.Since(second) > time.Second {
			second = time.Now()
			s := b.l.Stats()
			look(&s)
		}
	}
}

func (b *backend) exponential(mean time.Duration) time.Duration {
	return time.Duration(b.rng.ExpFloat64() * float64(mean))
}

// What is load is not called slow, and what may be other requests is not called the dependency for sure: nothing is
// said that was not measured.
func TestSlowedSaysWhatIsKnown(t *testing.T) {
	const seed = 7
	run := func(limited, slots int, test func(*backend)) {
		synctest.Test(t, func(*testing.T) {
			b := &backend{
				l:   New(Config{Limit: limit.Fixed(limited), Objective: 400 * time.Millisecond}),
				rng: rand.New(rand.NewPCG(seed, 0)), free: make(chan struct{}, slots),
			}
			test(b)
			b.all.Wait()
		})
	}
	// Ten slots behind a limit of a hundred, and 1.9 times the load: work queues behind the limit.
	run(100, 10, func(b *backend) {
		service := func() time.Duration { return b.exponential(50 * time.Millisecond) }
		b.offer(200*time.Second, 140, service, func(*Stats) {})
		said := 0
		b.offer(30*time.Second, 260, service, func(s *Stats) {
			if s.Slowed {
				t.Errorf("seed %d: %s", seed, s.State())
			}
			if held := fact(b.l.Explanation(), "held"); s.busier() && s.SlowedBy > 1.25 && strings.Contains(held, "the limit may be above what the resource does at once") {
				said++
			}
		})
		if said < 20 { // of 30 looks
			t.Errorf("seed %d: said in %d looks that work queues behind the limit: %s", seed, said, fact(b.l.Explanation(), "held"))
		}
	})
	// A fifth of the requests take ten times as long, at a load of 0.1.
	run(60, 60, func(b *backend) {
		service := func() time.Duration { return b.exponential(20 * time.Millisecond) }
		b.offer(200*time.Second, 100, service, func(*Stats) {})
		var last Stats
		b.offer(30*time.Second, 100, func() time.Duration {
			if b.rng.IntN(5) == 0 {
				return 10 * service()
			}
			return service()
		}, func(s *Stats) { last = *s })
		held := fact(b.l.Explanation(), "held")
		if !last.Slowed || !strings.Contains(last.State(), "or the requests are others") || !strings.Contains(held, "or the requests are others") || strings.Contains(last.State(), "come where") {
			t.Errorf("seed %d: %s; %s", seed, last.State(), held)
		}
		time.Sleep(time.Hour)
		if s := b.l.Stats(); s.Slowed || s.SlowedBy != 0 || s.Condition() != ConditionIdle {
			t.Errorf("seed %d: slowed %v by %.2f after an hour of nothing", seed, s.Slowed, s.SlowedBy)
		}
		if held := fact(b.l.Explanation(), "held"); !strings.HasPrefix(held, "a unit was held for 2") {
			t.Errorf("seed %d: %s", seed, held)
		}
	})
	// A dependency at three times the service time, at 1.8 times what it then can: no rate that never was.
	run(20, 20, func(b *backend) {
		b.offer(200*time.Second, 240, func() time.Duration { return b.exponential(50 * time.Millisecond) }, func(*Stats) {})
		var last Stats
		b.offer(15*time.Second, 240, func() time.Duration { return b.exponential(150 * time.Millisecond) }, func(s *Stats) { last = *s })
		// Five standard errors: of 48,000 before, of 3 s of 133/s now.
		if near := func(got, want, off float64) bool { return got > want-off && got < want+off }; !last.Slowed ||
			!near(last.OfferedBefore, 240, 24) || !near(last.CompletedBefore, 240, 12) || !near(last.CompletedNow, 133, 35) {
			t.Errorf("seed %d: slowed %v, %.0f/s came, %.0f/s were completed and are %.0f/s now", seed, last.Slowed, last.OfferedBefore, last.CompletedBefore, last.CompletedNow)
		}
		if says := last.State(); !strings.Contains(says, "/s complete where 2") {
			t.Errorf("seed %d: %s", seed, says)
		}
	})
}
