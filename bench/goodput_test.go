package bench

import (
	"context"
	"runtime"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/pressure"
)

// A Limiter as the README shows it, with every default.
func limiter(slots int) *goodput.Limiter {
	return goodput.New(goodput.Config{
		Limit:     limit.Fixed(slots),
		Objective: 400 * time.Millisecond,
	})
}

var plain = contestant{
	name: "goodput",
	acquire: func(slots int) func(n int) error {
		return goodputAcquire(background, slots)
	},
	do: func(slots int) func(n int) error {
		return goodputDo(background, slots)
	},
	try: func(slots int) func(n int) error {
		l := limiter(slots)
		return func(n int) error {
			for range n {
				slot, ok := l.TryAcquire()
				if !ok {
					return errFull
				}
				slot.Release()
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		// One runs, one waits, and whoever comes finds the queue full.
		l := goodput.New(goodput.Config{
			Limit:     limit.Fixed(1),
			Objective: time.Hour,
			Depth:     1,
			Overflow:  goodput.RefuseNewest,
		})
		ctx, cancel := context.WithCancel(background)
		held, err := l.Acquire(ctx)
		if err != nil {
			panic("an empty limiter refuses: " + err.Error())
		}
		go func() {
			if slot, err := l.Acquire(ctx); err == nil {
				slot.Release()
			}
		}()
		for l.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		return func(n int) error {
				for range n {
					slot, err := l.Acquire(background)
					if err == nil {
						slot.Release()
						return errAdmitted
					}
				}
				return nil
			}, func() {
				cancel()
				held.Release()
			}
	},
	turn: func(slots int) func() error {
		// 30 callers of the same program wait for 2 slots, without end: they
		// ask to be slowed down, not to be refused, and in order.
		l := goodput.New(goodput.Config{
			Limit:     limit.Fixed(slots),
			Objective: time.Hour,
			Overflow:  goodput.Block,
			Order:     goodput.FIFO,
		})
		return func() error {
			slot, err := l.Acquire(background)
			if err != nil {
				return err
			}
			runtime.Gosched()
			slot.Release()
			return nil
		}
	},
}

var withDeadline = contestant{
	name: "goodput-deadline",
	acquire: func(slots int) func(n int) error {
		return goodputAcquire(deadline(), slots)
	},
	do: func(slots int) func(n int) error {
		return goodputDo(deadline(), slots)
	},
}

var withWork = contestant{
	name: "goodput-work",
	acquire: func(slots int) func(n int) error {
		l := limiter(slots)
		ctx := deadline()
		w := goodput.Work{Cost: 8, Bytes: 4096, Priority: goodput.Sheddable}
		return func(n int) error {
			for range n {
				slot, err := l.AcquireWork(ctx, w)
				if err != nil {
					return err
				}
				slot.Release()
			}
			return nil
		}
	},
}

// A limit that finds itself, with the signals of processor time, as serve has it by default.
// It begins at the number of slots, as the adaptive rivals do.
func autoLimiter(slots int) *goodput.Limiter {
	return goodput.New(goodput.Config{
		Limit:     limit.Auto{From: slots},
		Objective: 400 * time.Millisecond,
		Pressure:  pressure.Largest(&pressure.Scheduler{}, &pressure.CGroup{}),
	})
}

var withAuto = contestant{
	name: "goodput-auto",
	acquire: func(slots int) func(n int) error {
		return acquireWith(background, autoLimiter(slots))
	},
	do: func(slots int) func(n int) error {
		return doWith(background, autoLimiter(slots))
	},
}

func goodputAcquire(ctx context.Context, slots int) func(n int) error {
	return acquireWith(ctx, limiter(slots))
}

func goodputDo(ctx context.Context, slots int) func(n int) error {
	return doWith(ctx, limiter(slots))
}

func acquireWith(ctx context.Context, l *goodput.Limiter) func(n int) error {
	return func(n int) error {
		for range n {
			slot, err := l.Acquire(ctx)
			if err != nil {
				return err
			}
			slot.Release()
		}
		return nil
	}
}

func doWith(ctx context.Context, l *goodput.Limiter) func(n int) error {
	return func(n int) error {
		for range n {
			if err := l.Do(ctx, nothing); err != nil {
				return err
			}
		}
		return nil
	}
}
