package goodput

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// What the package is for, live but for the clock: goroutines, contexts, alarms
// and lent slots under three times what 60 slots of 50 ms serve. The simulation
// of the core alone has the full table; this shows that nothing is lost on the
// way through the runtime.
func TestThreefoldOverload(t *testing.T) {
	const (
		slots     = 60
		mean      = 50 * time.Millisecond
		objective = 400 * time.Millisecond
		deadline  = 2 * time.Second
		length    = 10 * time.Second
		load      = 3
	)
	seed := stressSeed(t)
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		l := New(Config{Limit: limit.Fixed(slots), Objective: objective})
		var mu sync.Mutex
		var served, told Histogram
		var all sync.WaitGroup
		capacity := slots / mean.Seconds()
		begun := time.Now()
		for time.Since(begun) < length {
			time.Sleep(time.Duration(rng.ExpFloat64() / (load * capacity) * float64(time.Second)))
			service := time.Duration(rng.ExpFloat64() * float64(mean))
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				defer cancel()
				arrived := time.Now()
				err := l.Do(ctx, func(context.Context) error { time.Sleep(service); return nil })
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					told.Add(time.Since(arrived))
				} else {
					served.Add(time.Since(arrived))
				}
			})
		}
		all.Wait()
		s := l.Stats()
		ratio := float64(s.Outcomes[Completed]) / (capacity * length.Seconds())
		p50, _ := served.Quantile(0.5)
		p99, _ := served.Quantile(0.99)
		refused, _ := told.Quantile(0.5)
		t.Logf("goodput %.3f of capacity, p50 %v, p99 %v, median refusal %v\n%s", ratio, p50, p99, refused, l.Explain())
		// 0.99 of capacity, less three standard errors of what 12,000
		// exponential services add up to, 3/sqrt(12,000) = 2.7 %.
		if ratio < 0.99-0.027 {
			t.Errorf("goodput %.3f of capacity", ratio)
		}
		// A bucket is 9.1 % wide.
		if p99 > objective*1091/1000 {
			t.Errorf("p99 %v, objective %v", p99, objective)
		}
		if refused > time.Millisecond {
			t.Errorf("the median refusal is told after %v", refused)
		}
		checkEmpty(t, l)
	})
}
