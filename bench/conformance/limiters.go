package conformance

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/zeromicro/go-zero/core/syncx"
	"golang.org/x/sync/semaphore"

	"github.com/goodput/goodput"
	kit "github.com/goodput/goodput/conformance"
	"github.com/goodput/goodput/limit"
)

// A limiter is a contestant that gives out slots.
type limiter struct {
	name string // the head of its column
	what string // what it is, in the list below the table
	path string // its module; "" for this one and for the standard library
	of   func(limit int) kit.Limiter
	none func(limit int) kit.Limiter // without a queue; nil if it has no such form
	skip map[string]string           // see kit.LimiterOptions
}

// patient is as long as a contestant lets its callers wait where it asks for a bound, and
// roomy how many wait where it asks for that: what the kit wants, which is 100,000 callers at
// once of a limiter, and a few hundred requests of a handler.
const (
	patient  = time.Minute
	roomy    = 1 << 17
	requests = 4096
)

var limiters = []limiter{
	{
		name: "goodput", what: "`goodput.Limiter` with `limit.Fixed`, by `AcquireWork`, `TryAcquire` and `Do`",
		of:   func(n int) kit.Limiter { return ours(n, roomy) },
		none: func(n int) kit.Limiter { return ours(n, goodput.NoQueue) },
	},
	{
		name: "channel", what: "a buffered channel and a `select` on it and the context, as it is often written",
		of: channel,
	},
	{
		name: "x/sync", what: "`semaphore.Weighted`", path: "golang.org/x/sync",
		of: xsync,
	},
	{
		name: "bulkhead", what: "`bulkhead.Bulkhead` of failsafe-go, by `AcquirePermit`, and for `do` and `panic` by an executor with `WithMaxWaitTime`", path: "github.com/failsafe-go/failsafe-go",
		of: bulkheads, none: noBulkhead,
	},
	{
		name: "adaptive", what: "`adaptivelimiter.AdaptiveLimiter` of failsafe-go, with `WithLimits(n, n, n)` and `WithQueueing`, and for `do` and `panic` by an executor", path: "github.com/failsafe-go/failsafe-go",
		of: func(n int) kit.Limiter { return adaptive(queueing(n)) }, none: noAdaptive,
	},
	{
		name: "go-zero", what: "`syncx.Limit` of go-zero, by `TryBorrow`: its `Borrow` knows no context", path: "github.com/zeromicro/go-zero",
		of: goZero,
	},
}

func ours(n, depth int) kit.Limiter {
	l := goodput.New(goodput.Config{Limit: limit.Fixed(n), Objective: patient, Depth: depth, MaxItems: roomy})
	take := func(ctx context.Context, cost int) (func(), error) {
		slot, err := l.AcquireWork(ctx, goodput.Work{Cost: cost})
		return slot.Release, err
	}
	return kit.Limiter{
		Acquire:     func(ctx context.Context) (func(), error) { return take(ctx, 1) },
		AcquireCost: take,
		Try: func() (func(), bool) {
			slot, ok := l.TryAcquire()
			return slot.Release, ok
		},
		Do:      l.Do,
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

func channel(n int) kit.Limiter {
	slots := make(chan struct{}, n)
	acquire := func(ctx context.Context) (func(), error) {
		select {
		case slots <- struct{}{}:
			return func() { <-slots }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return kit.Limiter{
		Acquire: acquire,
		Try: func() (func(), bool) {
			select {
			case slots <- struct{}{}:
				return func() { <-slots }, true
			default:
				return nil, false
			}
		},
		Do: func(ctx context.Context, fn func(context.Context) error) error {
			release, err := acquire(ctx)
			if err != nil {
				return err
			}
			defer release()
			return fn(ctx)
		},
		InUse: func() int { return len(slots) },
	}
}

func xsync(n int) kit.Limiter {
	s := semaphore.NewWeighted(int64(n))
	take := func(ctx context.Context, cost int) (func(), error) {
		if err := s.Acquire(ctx, int64(cost)); err != nil {
			return nil, err
		}
		return func() { s.Release(int64(cost)) }, nil
	}
	return kit.Limiter{
		Acquire:     func(ctx context.Context) (func(), error) { return take(ctx, 1) },
		AcquireCost: take,
		Try:         func() (func(), bool) { return func() { s.Release(1) }, s.TryAcquire(1) },
	}
}

func bulkheads(n int) kit.Limiter {
	b := bulkhead.NewBuilder[any](uint(n)).WithMaxWaitTime(patient).Build()
	return kit.Limiter{
		Acquire: func(ctx context.Context) (func(), error) {
			return b.ReleasePermit, b.AcquirePermit(ctx)
		},
		Try: func() (func(), bool) { return b.ReleasePermit, b.TryAcquirePermit() },
		Do:  executed(b),
	}
}

func noBulkhead(n int) kit.Limiter {
	b := bulkhead.New[any](uint(n))
	return kit.Limiter{Acquire: func(ctx context.Context) (func(), error) {
		return b.ReleasePermit, b.AcquirePermitWithMaxWait(ctx, 0)
	}}
}

// executed is the form that the documentation of failsafe-go shows, with the context.
func executed(p failsafe.Policy[any]) func(ctx context.Context, fn func(context.Context) error) error {
	return func(ctx context.Context, fn func(context.Context) error) error {
		return failsafe.With(p).WithContext(ctx).RunWithExecution(func(exec failsafe.Execution[any]) error {
			return fn(exec.Context())
		})
	}
}

// queueing is an adaptive limit that has one value, and a queue that is given in multiples of
// it: roomy for a limit of 1.
func queueing(n int) adaptivelimiter.AdaptiveLimiter[any] {
	return adaptivelimiter.NewBuilder[any]().WithLimits(uint(n), uint(n), uint(n)).WithQueueing(roomy, roomy).WithMaxWaitTime(patient).Build()
}

func adaptive(l adaptivelimiter.AdaptiveLimiter[any]) kit.Limiter {
	return kit.Limiter{
		Acquire: func(ctx context.Context) (func(), error) {
			p, err := l.AcquirePermit(ctx)
			if err != nil {
				return nil, err
			}
			return p.Record, nil
		},
		Try: func() (func(), bool) {
			p, ok := l.TryAcquirePermit()
			if !ok {
				return nil, false
			}
			return p.Record, true
		},
		Do:      executed(l),
		InUse:   l.Inflight,
		Waiting: l.Queued,
	}
}

// noAdaptive has no WithQueueing; its documentation says that AcquirePermit waits all the
// same, and AcquirePermitWithMaxWait of 0 is the form that does not.
func noAdaptive(n int) kit.Limiter {
	l := adaptivelimiter.NewBuilder[any]().WithLimits(uint(n), uint(n), uint(n)).Build()
	return kit.Limiter{Acquire: func(ctx context.Context) (func(), error) {
		p, err := l.AcquirePermitWithMaxWait(ctx, 0)
		if err != nil {
			return nil, err
		}
		return p.Record, nil
	}}
}

func goZero(n int) kit.Limiter {
	l := syncx.NewLimit(n)
	back := func() { _ = l.Return() } // its error says that more was given back than taken
	return kit.Limiter{Try: func() (func(), bool) { return back, l.TryBorrow() }}
}
