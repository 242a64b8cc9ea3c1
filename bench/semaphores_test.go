package bench

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"
)

// The two that everybody has at hand: neither bounds its queue, reads a clock or
// knows a deadline before it has passed.

var background = context.Background()

// deadline returns a context of a request that has a budget, as a server would
// hand it down. It outlives any benchmark, so nobody cancels it.
func deadline() context.Context {
	ctx, cancel := context.WithTimeout(background, time.Hour)
	_ = cancel
	return ctx
}

var xsync = contestant{
	name: "xsync",
	acquire: func(slots int) func(n int) error {
		return xsyncAcquire(background, slots)
	},
	do: func(slots int) func(n int) error {
		s := semaphore.NewWeighted(int64(slots))
		do := func(ctx context.Context, fn func(context.Context) error) error {
			if err := s.Acquire(ctx, 1); err != nil {
				return err
			}
			defer s.Release(1)
			return fn(ctx)
		}
		return func(n int) error {
			for range n {
				if err := do(background, nothing); err != nil {
					return err
				}
			}
			return nil
		}
	},
	try: func(slots int) func(n int) error {
		s := semaphore.NewWeighted(int64(slots))
		return func(n int) error {
			for range n {
				if !s.TryAcquire(1) {
					return errFull
				}
				s.Release(1)
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		s := semaphore.NewWeighted(1)
		s.TryAcquire(1)
		return func(n int) error {
			for range n {
				if s.TryAcquire(1) {
					return errAdmitted
				}
			}
			return nil
		}, func() {}
	},
	turn: func(slots int) func() error {
		s := semaphore.NewWeighted(int64(slots))
		return func() error {
			if err := s.Acquire(background, 1); err != nil {
				return err
			}
			runtime.Gosched()
			s.Release(1)
			return nil
		}
	},
}

var xsyncDeadline = contestant{
	name: "xsync-deadline",
	acquire: func(slots int) func(n int) error {
		return xsyncAcquire(deadline(), slots)
	},
}

func xsyncAcquire(ctx context.Context, slots int) func(n int) error {
	s := semaphore.NewWeighted(int64(slots))
	return func(n int) error {
		for range n {
			if err := s.Acquire(ctx, 1); err != nil {
				return err
			}
			s.Release(1)
		}
		return nil
	}
}

var channel = contestant{
	name: "channel",
	acquire: func(slots int) func(n int) error {
		c := make(chan struct{}, slots)
		return func(n int) error {
			for range n {
				select {
				case c <- struct{}{}:
				case <-background.Done():
					return background.Err()
				}
				<-c
			}
			return nil
		}
	},
	do: func(slots int) func(n int) error {
		c := make(chan struct{}, slots)
		do := func(ctx context.Context, fn func(context.Context) error) error {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-c }()
			return fn(ctx)
		}
		return func(n int) error {
			for range n {
				if err := do(background, nothing); err != nil {
					return err
				}
			}
			return nil
		}
	},
	try: func(slots int) func(n int) error {
		c := make(chan struct{}, slots)
		return func(n int) error {
			for range n {
				select {
				case c <- struct{}{}:
				default:
					return errFull
				}
				<-c
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		c := make(chan struct{}, 1)
		c <- struct{}{}
		return func(n int) error {
			for range n {
				select {
				case c <- struct{}{}:
					return errAdmitted
				default:
				}
			}
			return nil
		}, func() {}
	},
	turn: func(slots int) func() error {
		c := make(chan struct{}, slots)
		return func() error {
			select {
			case c <- struct{}{}:
			case <-background.Done():
				return background.Err()
			}
			runtime.Gosched()
			<-c
			return nil
		}
	},
}
