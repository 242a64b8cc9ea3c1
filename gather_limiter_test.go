package goodput

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The calls of a fan-out say themselves what they do elsewhere; together that is as long as
// the slowest, and the time in which the answer is assembled is the caller's own.
func TestGatherIsElsewhereOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 1)
		err := l.Do(t.Context(), func(ctx context.Context) error {
			plans := takes(50*ms, 80*ms, 20*ms, 80*ms)
			_, err := Gather(ctx, Gathering[int]{}, len(plans), func(ctx context.Context, i int) (int, error) {
				span := Downstream(ctx)
				defer span.End()
				return plans[i].run(ctx, i)
			})
			time.Sleep(20 * ms)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		l.Do(t.Context(), func(context.Context) error { return nil }) //nolint:errcheck // it ends the window
		if s := l.Stats(); s.Elsewhere < 0.8-1e-6 || s.Elsewhere > 0.8+1e-6 {
			t.Errorf("elsewhere %.3f of the time, want 80 of 100 ms", s.Elsewhere)
		}
	})
}

// Calls that wait in the limiter of a dependency leave its queue when the gathering is over:
// none is executed for an answer that has gone out, and no slot is left.
func TestGatherLeavesTheQueue(t *testing.T) {
	for _, tt := range []struct {
		name string
		g    Gathering[int]
		came int // 0: what the limiter lets run
		at   time.Duration
	}{
		{"in time", Gathering[int]{}, 0, 230 * ms},
		{"enough", Gathering[int]{Enough: 2}, 2, 100 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(2, 20)
				ctx, cancel := context.WithTimeout(t.Context(), 250*ms)
				defer cancel()
				start := time.Now()
				var ran atomic.Int64
				got, err := Gather(ctx, tt.g, 10, func(ctx context.Context, i int) (v int, err error) {
					err = l.Do(ctx, func(ctx context.Context) error {
						ran.Add(1)
						v, err = planned{takes: 100 * ms}.run(ctx, i)
						return err
					})
					return v, err
				})
				at := time.Since(start)
				synctest.Wait()
				// The limiter may say before the end that the rest is doomed.
				if err != nil || tt.came > 0 && got.Came() != tt.came || at > tt.at {
					t.Errorf("%d came after %v, want %d after %v: %v", got.Came(), at, tt.came, tt.at, err)
				}
				if n := int(ran.Load()); n > got.Came()+2 { // two slots
					t.Errorf("%d were executed and %d came", n, got.Came())
				}
				for _, m := range got.Missing {
					if m.Outcome == Failed || m.Outcome == Rejected && !errors.Is(m.Err, ErrRejected) {
						t.Errorf("call %d %v: %v", m.Index, m.Outcome, m.Err)
					}
				}
				checkEmpty(t, l)
			})
		})
	}
}
