package goodput_test

import (
	"context"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/conformance"
	"github.com/goodput/goodput/limit"
)

// Every form in which a slot is had, and every law that keeps a limit where it is told to,
// does what any limiter must.

// roomy is for callers that wait for a minute, and as many as the checks have at once.
func roomy(law limit.Law) goodput.Config {
	return goodput.Config{Limit: law, Objective: time.Minute, Depth: 1 << 17, MaxItems: 1 << 17}
}

// seen is a Limiter with all but a way to Acquire.
func seen(l *goodput.Limiter) conformance.Limiter {
	return conformance.Limiter{
		Do: l.Do,
		Try: func() (func(), bool) {
			slot, ok := l.TryAcquire()
			return slot.Release, ok
		},
		InUse:   func() int { return l.Stats().InUse },
		Waiting: func() int { return l.Stats().Waiting },
		Resize: func(n int) {
			if err := l.SetLimit(n); err != nil {
				panic(err)
			}
		},
		Close: func() {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.Drain(over) // its error is that of the context
		},
	}
}

func byAcquire(l *goodput.Limiter) conformance.Limiter {
	c := seen(l)
	c.Acquire = func(ctx context.Context) (func(), error) {
		slot, err := l.Acquire(ctx)
		return slot.Release, err
	}
	return c
}

func byWork(l *goodput.Limiter) conformance.Limiter {
	c := seen(l)
	c.AcquireCost = func(ctx context.Context, cost int) (func(), error) {
		slot, err := l.AcquireWork(ctx, goodput.Work{Cost: cost, Bytes: 1, Priority: goodput.Critical})
		return slot.Release, err
	}
	c.Acquire = func(ctx context.Context) (func(), error) { return c.AcquireCost(ctx, 1) }
	c.Try = func() (func(), bool) {
		slot, ok := l.TryAcquireWork(context.Background(), goodput.Work{})
		return slot.Release, ok
	}
	c.Close = func() { _ = l.Drain(context.Background()) }
	return c
}

// byGo has the slot in a goroutine of the limiter's.
func byGo(l *goodput.Limiter) conformance.Limiter {
	c := seen(l)
	c.Acquire = func(ctx context.Context) (func(), error) {
		type grant struct {
			slot *goodput.Slot
			err  error
		}
		got := make(chan grant, 1)
		if err := l.Go(ctx, goodput.Work{}, func(slot *goodput.Slot, err error) { got <- grant{slot, err} }); err != nil {
			return nil, err
		}
		g := <-got
		return g.slot.Release, g.err
	}
	return c
}

// conformant runs every check with a twentieth of its rounds, in bubbles and in real time.
func conformant(t *testing.T, limiters func(limit int) conformance.Limiter, opts conformance.LimiterOptions) {
	t.Helper()
	opts.Part = 20
	t.Run("real", func(t *testing.T) { conformance.TestLimiter(t, limiters, opts) })
	opts.Bubble = true
	t.Run("bubble", func(t *testing.T) { conformance.TestLimiter(t, limiters, opts) })
}

func TestLimiterConformance(t *testing.T) {
	for name, by := range map[string]func(*goodput.Limiter) conformance.Limiter{"Acquire": byAcquire, "AcquireWork": byWork, "Go": byGo} {
		t.Run(name, func(t *testing.T) {
			conformant(t, func(n int) conformance.Limiter {
				return by(goodput.New(roomy(limit.Fixed(n))))
			}, conformance.LimiterOptions{
				NoQueue: func(n int) conformance.Limiter {
					cfg := roomy(limit.Fixed(n))
					cfg.Depth = goodput.NoQueue
					return by(goodput.New(cfg))
				},
			})
		})
	}
}

func TestLawsConformance(t *testing.T) {
	for name, law := range map[string]func(n int) limit.Law{
		"Auto": func(n int) limit.Law { return limit.Auto{From: n, Min: n, Max: n} },
	} {
		t.Run(name, func(t *testing.T) {
			conformant(t, func(n int) conformance.Limiter {
				l := byAcquire(goodput.New(roomy(law(n))))
				l.Resize = nil // it replaces the law, and is that of Fixed
				return l
			}, conformance.LimiterOptions{Skip: map[string]string{"limit-zero": "0 is the default in the fields of limit.Auto"}})
		})
	}
}

func TestGroupConformance(t *testing.T) {
	conformant(t, func(n int) conformance.Limiter {
		cfg := roomy(nil)
		cfg.Name = "only"
		g := goodput.NewGroup(goodput.GroupConfig{Units: n, Members: []goodput.Member{{Config: cfg}}})
		l := byAcquire(g.Limiter("only"))
		l.Resize = func(n int) {
			if err := g.SetUnits(n); err != nil {
				panic(err)
			}
		}
		return l
	}, conformance.LimiterOptions{})
}

// With tenants and a reserve every request takes the lock.
func TestTenantsConformance(t *testing.T) {
	conformant(t, func(n int) conformance.Limiter {
		cfg := roomy(limit.Fixed(n))
		cfg.Tenants = &goodput.Tenants{}
		return byAcquire(goodput.New(cfg))
	}, conformance.LimiterOptions{})
}
