package goodput

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One of five hangs. Once three have come the others have 20 ms more: what comes in them is
// kept, the one that hangs is not waited for, and a gathering that lacks even three waits
// until its time is up.
func TestLinger(t *testing.T) {
	for _, c := range []struct {
		name   string
		g      Gathering[int]
		takes  [5]time.Duration // each call; an hour hangs
		want   time.Duration
		came   int
		errs   bool
		reason error
	}{
		{"one hangs", Gathering[int]{Min: 3, Linger: 20 * time.Millisecond}, [5]time.Duration{5e6, 10e6, 15e6, 20e6, 3600e9}, 35 * time.Millisecond, 4, false, ErrUnneeded},
		{"one is slow", Gathering[int]{Min: 3, Linger: 20 * time.Millisecond}, [5]time.Duration{5e6, 10e6, 15e6, 20e6, 34e6}, 34 * time.Millisecond, 5, false, nil},
		{"three hang", Gathering[int]{Min: 3, Linger: 20 * time.Millisecond, Margin: 1}, [5]time.Duration{5e6, 10e6, 3600e9, 3600e9, 3600e9}, 500*time.Millisecond - 1, 2, true, context.DeadlineExceeded},
		{"no linger", Gathering[int]{Min: 3, Margin: 1}, [5]time.Duration{5e6, 10e6, 15e6, 20e6, 3600e9}, 500*time.Millisecond - 1, 4, false, context.DeadlineExceeded},
		{"enough before", Gathering[int]{Min: 3, Enough: 4, Linger: 20 * time.Millisecond}, [5]time.Duration{5e6, 10e6, 15e6, 20e6, 3600e9}, 20 * time.Millisecond, 4, false, ErrUnneeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			start := time.Now()
			got, err := Gather(ctx, c.g, 5, func(ctx context.Context, i int) (int, error) {
				select {
				case <-time.After(c.takes[i]):
					return i, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
			if took := time.Since(start); took != c.want || got.Came() != c.came || (err != nil) != c.errs {
				t.Errorf("%s: %d came in %v, %v; want %d in %v", c.name, got.Came(), took, err, c.came, c.want)
			}
			for _, m := range got.Missing {
				late := c.name != "enough before"
				if !errors.Is(m.Err, c.reason) || (m.Outcome == Late) != late {
					t.Errorf("%s: call %d is missing as %v: %v", c.name, m.Index, m.Outcome, m.Err)
				}
			}
			if err := got.Wait(t.Context()); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
