package goodput

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"
)

// Who is told ErrRejected may send the whole again, so a Shortfall matches it only if
// nothing of the whole was executed: not if one part was, whatever the others say, nor if
// the caller's context was ended by a refusal elsewhere, as errgroup does.
func TestShortfallIsNoRefusalOfTheWhole(t *testing.T) {
	refusal := &Rejection{Limiter: "other", RetryAfter: time.Second}
	for _, c := range []struct {
		name string
		call func(ctx context.Context, cancel context.CancelCauseFunc, i int) (int, error)
		want bool
	}{
		{"all refused", func(context.Context, context.CancelCauseFunc, int) (int, error) { return 0, refusal }, true},
		{"one came", func(_ context.Context, _ context.CancelCauseFunc, i int) (int, error) {
			if i == 0 {
				return 1, nil
			}
			return 0, refusal
		}, false},
		{"one failed", func(_ context.Context, _ context.CancelCauseFunc, i int) (int, error) {
			if i == 0 {
				return 0, errors.New("after the commit")
			}
			return 0, refusal
		}, false},
		{"one came, the caller's cause is a refusal", func(ctx context.Context, cancel context.CancelCauseFunc, i int) (int, error) {
			if i == 0 {
				return 1, nil
			}
			cancel(refusal)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, false},
		{"one was running, the caller's cause is a refusal", func(ctx context.Context, cancel context.CancelCauseFunc, i int) (int, error) {
			if i == 1 {
				cancel(refusal)
			}
			<-ctx.Done()
			return 0, errors.New("late")
		}, false},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		_, err := Gather(ctx, Gathering[int]{Min: 2}, 2, func(ctx context.Context, i int) (int, error) { return c.call(ctx, cancel, i) })
		cancel(nil)
		if err == nil || errors.Is(err, ErrRejected) != c.want {
			t.Errorf("%s: %v matches ErrRejected %v, want %v", c.name, err, !c.want, c.want)
		}
	}
}

// A nil with a type is an error that panics when it is asked what it is. It is a panic of
// its call, which goes on in the caller, and not the end of the process.
func TestErrorThatPanicsWhenAsked(t *testing.T) {
	defer func() {
		p, ok := recover().(*Panic)
		if !ok || p.Index != 1 {
			t.Errorf("recovered %v, want the *Panic of call 1", p)
		}
	}()
	_, err := Gather(context.Background(), Gathering[int]{Min: 2}, 2, func(_ context.Context, i int) (int, error) {
		var none *net.OpError
		if i == 1 {
			return 0, none
		}
		return i, nil
	})
	t.Errorf("returned %v", err)
}

// A Discard that ends its goroutine, as t.Fatal does, leaves nothing to wait for.
func TestDiscardThatDoesNotReturn(t *testing.T) {
	got, err := Gather(context.Background(), Gathering[int]{Min: 1, Enough: 1, Discard: func(int, int, error) { runtime.Goexit() }}, 2,
		func(ctx context.Context, i int) (int, error) {
			if i == 1 {
				<-ctx.Done()
			}
			return i, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Wait(t.Context()); err != nil || got.Left() != 0 {
		t.Errorf("%v, %d left", err, got.Left())
	}
}
