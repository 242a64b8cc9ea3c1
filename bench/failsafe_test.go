package bench

import (
	"context"
	"fmt"
	"runtime"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/priority"
)

var failsafeBulkhead = contestant{
	name: "failsafe-bulkhead",
	acquire: func(slots int) func(n int) error {
		bh := bulkhead.New[any](uint(slots))
		return func(n int) error {
			for range n {
				if err := bh.AcquirePermit(background); err != nil {
					return err
				}
				bh.ReleasePermit()
			}
			return nil
		}
	},
	do: func(slots int) func(n int) error {
		return failsafeRun(failsafe.With(bulkhead.New[any](uint(slots))))
	},
	try: func(slots int) func(n int) error {
		bh := bulkhead.New[any](uint(slots))
		return func(n int) error {
			for range n {
				if !bh.TryAcquirePermit() {
					return errFull
				}
				bh.ReleasePermit()
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		bh := bulkhead.New[any](1)
		bh.TryAcquirePermit()
		return func(n int) error {
			for range n {
				if bh.TryAcquirePermit() {
					return errAdmitted
				}
			}
			return nil
		}, func() {}
	},
	turn: func(slots int) func() error {
		bh := bulkhead.New[any](uint(slots))
		return func() error {
			if err := bh.AcquirePermit(background); err != nil {
				return err
			}
			runtime.Gosched()
			bh.ReleasePermit()
			return nil
		}
	},
}

// failsafeRun goes through the executor, the form that its documentation shows.
func failsafeRun(e failsafe.Executor[any]) func(n int) error {
	fn := func() error { return nil }
	return func(n int) error {
		for range n {
			if err := e.Run(fn); err != nil {
				return err
			}
		}
		return nil
	}
}

// adaptive is the builder for a limit that starts at slots and may not fall below
// it, so that the law runs and nobody is refused for it; the queue is bounded at
// wait to 1.5 wait times the limit, its documented default being 2 to 3.
func adaptive(slots int, wait float64) adaptivelimiter.Builder[any] {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(slots), 200, uint(slots)).
		WithQueueing(wait, 1.5*wait)
}

// A permitter is what both adaptive limiters of failsafe-go are.
type permitter interface {
	AcquirePermit(context.Context) (adaptivelimiter.Permit, error)
}

func failsafeAcquire(l permitter) func(n int) error {
	return func(n int) error {
		for range n {
			p, err := l.AcquirePermit(background)
			if err != nil {
				return err
			}
			p.Record()
		}
		return nil
	}
}

func failsafeTurn(l permitter) func() error {
	return func() error {
		p, err := l.AcquirePermit(background)
		if err != nil {
			return err
		}
		runtime.Gosched()
		p.Record()
		return nil
	}
}

// failsafeFull holds the one slot and fills the queue behind it.
func failsafeFull(l permitter, queued func() int, depth int) (refuse func(n int) error, stop func()) {
	held, err := l.AcquirePermit(background)
	if err != nil {
		panic(fmt.Sprintf("an empty limiter refuses: %v", err))
	}
	ctx, cancel := context.WithCancel(background)
	for i := range depth {
		go func() { _, _ = l.AcquirePermit(ctx) }()
		for queued() <= i {
			runtime.Gosched()
		}
	}
	return func(n int) error {
			for range n {
				if _, err := l.AcquirePermit(background); err == nil {
					return errAdmitted
				}
			}
			return nil
		}, func() {
			cancel()
			held.Drop()
		}
}

var failsafeAdaptive = contestant{
	name: "failsafe-adaptive",
	acquire: func(slots int) func(n int) error {
		return failsafeAcquire(adaptive(slots, 2).Build())
	},
	do: func(slots int) func(n int) error {
		return failsafeRun(failsafe.With(adaptive(slots, 2).Build()))
	},
	try: func(slots int) func(n int) error {
		l := adaptive(slots, 2).Build()
		return func(n int) error {
			for range n {
				p, ok := l.TryAcquirePermit()
				if !ok {
					return errFull
				}
				p.Record()
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		l := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).WithQueueing(1, 1).Build()
		return failsafeFull(l, l.Queued, 1)
	},
	turn: func(slots int) func() error {
		// 30 wait for 2: the queue must not refuse before 15 times the limit.
		return failsafeTurn(adaptive(slots, 20).Build())
	},
}

var failsafePriority = contestant{
	name: "failsafe-priority",
	acquire: func(slots int) func(n int) error {
		return failsafeAcquire(prioritized(adaptive(slots, 2)))
	},
	do: func(slots int) func(n int) error {
		return failsafeRun(failsafe.With(prioritized(adaptive(slots, 2))))
	},
	turn: func(slots int) func() error {
		return failsafeTurn(prioritized(adaptive(slots, 20)))
	},
}

func prioritized(b adaptivelimiter.Builder[any]) adaptivelimiter.PriorityLimiter[any] {
	var p priority.Prioritizer = adaptivelimiter.NewPrioritizer()
	return b.BuildPrioritized(p)
}
