package pool_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/conformance"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/pool"
)

// A slot of a Pool is a task that runs: it does what any limiter must.
func TestPoolConformance(t *testing.T) {
	conformance.TestLimiter(t, func(n int) conformance.Limiter {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(n), Objective: time.Minute, Depth: 1 << 17})
		p := pool.New(lim, pool.Unchanged)
		return conformance.Limiter{
			Acquire: func(ctx context.Context) (func(), error) {
				end := make(chan struct{})
				task, err := pool.Start(ctx, p, goodput.Work{}, func(context.Context) (int, error) {
					<-end
					return 0, nil
				})
				if err != nil {
					return nil, err
				}
				return sync.OnceFunc(func() {
					close(end)
					_, _ = task.Wait(context.Background())
				}), nil
			},
			Do: func(ctx context.Context, fn func(context.Context) error) error {
				_, err := pool.Do(ctx, p, goodput.Work{}, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
				return err
			},
			InUse:   func() int { return lim.Stats().InUse },
			Waiting: func() int { return lim.Stats().Waiting },
			Resize: func(n int) {
				if err := lim.SetLimit(n); err != nil {
					panic(err)
				}
			},
			Close: func() { _ = p.Stop(context.Background()) },
		}
	}, conformance.LimiterOptions{Part: 20, Skip: map[string]string{"double-release": "a task ends once"}})
}
