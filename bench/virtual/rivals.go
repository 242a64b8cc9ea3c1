package virtual

import (
	"context"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"
)

// The libraries, by the calls that their documentation shows for use without an executor,
// which adds nothing to what they decide.

var semaphoreTry = Contestant{
	Words: Words{"xsync/try", "semaphore.NewWeighted(slots), TryAcquire", "x/sync where it must not wait", true, "chan/try"},
	New: func(slots int) Door {
		s := semaphore.NewWeighted(int64(slots))
		return Door{Acquire: func(context.Context) (func(), error) {
			if !s.TryAcquire(1) {
				return nil, errFull
			}
			return func() { s.Release(1) }, nil
		}}
	},
}

var semaphoreWait = Contestant{
	Words: Words{"xsync/acquire-ctx", "semaphore.NewWeighted(slots), Acquire with the context of the request", "as its example has it", true, ""},
	New: func(slots int) Door {
		s := semaphore.NewWeighted(int64(slots))
		return Door{Acquire: func(ctx context.Context) (func(), error) {
			if err := s.Acquire(ctx, 1); err != nil {
				return nil, err
			}
			return func() { s.Release(1) }, nil
		}}
	},
}

var bulkheadTry = Contestant{
	Words: Words{"failsafe/bulkhead", "bulkhead.New(slots), TryAcquirePermit", "its default: full is refused at once", true, "chan/try"},
	New: func(slots int) Door {
		b := bulkhead.New[any](uint(slots))
		return Door{Acquire: func(context.Context) (func(), error) {
			if !b.TryAcquirePermit() {
				return nil, bulkhead.ErrFull
			}
			return b.ReleasePermit, nil
		}}
	},
}

var bulkheadWait = Contestant{
	Words: Words{"failsafe/bulkhead-wait", "the same with a wait of at most 400 ms", "its way to absorb bursts: WithMaxWaitTime of the objective", true, ""},
	New: func(slots int) Door {
		b := bulkhead.New[any](uint(slots))
		return Door{Acquire: func(ctx context.Context) (func(), error) {
			if err := b.AcquirePermitWithMaxWait(ctx, objective); err != nil {
				return nil, err
			}
			return b.ReleasePermit, nil
		}}
	},
}

var adaptiveCold = Contestant{
	Words: Words{"failsafe/adaptive", "adaptivelimiter.NewBuilder().Build(): 1 to 200, first 20", "its defaults: full is refused at once", false, ""},
	New: func(int) Door {
		return adaptive(adaptivelimiter.NewBuilder[any]().Build(), false)
	},
}

var adaptiveTold = Contestant{
	Words: Words{"failsafe/adaptive-60", "the same, WithLimits(1, 200, slots): 60 in most scenes", "begun where it should end, in its favour", true, ""},
	New: func(slots int) Door {
		return adaptive(adaptivelimiter.NewBuilder[any]().WithLimits(1, 200, uint(slots)).Build(), false)
	},
}

var adaptiveQueue = Contestant{
	Words: Words{"failsafe/adaptive-queue", "its defaults and WithQueueing(2, 3)", "recommended against refusals in bursts; 2 and 3 are what its prioritized form takes", false, ""},
	New: func(int) Door {
		return adaptive(adaptivelimiter.NewBuilder[any]().WithQueueing(2, 3).Build(), true)
	},
}

func adaptive(l adaptivelimiter.AdaptiveLimiter[any], waits bool) Door {
	return Door{Limit: l.Limit, Acquire: func(ctx context.Context) (func(), error) {
		var p adaptivelimiter.Permit
		if waits {
			var err error
			if p, err = l.AcquirePermit(ctx); err != nil {
				return nil, err
			}
		} else {
			var ok bool
			if p, ok = l.TryAcquirePermit(); !ok {
				return nil, adaptivelimiter.ErrExceeded
			}
		}
		return p.Record, nil
	}}
}
