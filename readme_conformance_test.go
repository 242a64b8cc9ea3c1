package goodput_test

import (
	"context"
	"sync"
	"testing"

	"github.com/goodput/goodput/conformance"
)

// The limiter of a reader of the README: a channel, asked in the right order.
type myLimiter struct{ slots chan struct{} }

func newMyLimiter(limit int) *myLimiter { return &myLimiter{make(chan struct{}, limit)} }

func (m *myLimiter) acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case m.slots <- struct{}{}:
		var once sync.Once
		return func() { once.Do(func() { <-m.slots }) }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *myLimiter) do(ctx context.Context, fn func(context.Context) error) error {
	release, err := m.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return fn(ctx)
}

// The snippet of the README, as it stands there.
func TestMyLimiter(t *testing.T) {
	conformance.TestLimiter(t, func(limit int) conformance.Limiter {
		mine := newMyLimiter(limit)
		return conformance.Limiter{
			Acquire: mine.acquire, // func(context.Context) (release func(), err error)
			Do:      mine.do,      // func(context.Context, func(context.Context) error) error
		}
	}, conformance.LimiterOptions{Bubble: true}) // in virtual time: half a second
}
