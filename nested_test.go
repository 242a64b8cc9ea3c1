package goodput

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Who waits in the queue of a dependency holds the slot of the door, but never for
// longer than there is hope: when its deadline passes in the inner queue the outer slot
// is free at that instant, and work that does not need the dependency runs.
func TestExpiredInTheInnerQueueFreeTheOuter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := New(Config{Name: "door", Limit: limit.Fixed(10), Service: time.Millisecond})
		database := New(Config{Name: "database", Limit: limit.Fixed(1), Depth: 100, Service: time.Millisecond})
		stuck, _ := database.Acquire(t.Context()) // for ten seconds
		time.AfterFunc(10*time.Second, stuck.Release)

		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				_ = door.Do(ctx, func(ctx context.Context) error {
					return database.Do(ctx, func(context.Context) error { return nil })
				})
			})
		}
		synctest.Wait()
		if s := door.Stats(); s.InUse != 10 {
			t.Fatalf("%d at the door, want all 10 waiting for the database", s.InUse)
		}
		start := time.Now()
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if s := door.Stats(); s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("%v after their deadline %d hold the door, %d wait at it", time.Since(start)-50*time.Millisecond, s.InUse, s.Waiting)
		}
		if s := database.Stats(); s.Waiting != 0 || s.Outcomes[Expired] != 10 {
			t.Errorf("database: %d wait, %d expired", s.Waiting, s.Outcomes[Expired])
		}
		if slot, ok := door.TryAcquire(); !ok {
			t.Error("work that does not need the database finds no slot")
		} else {
			slot.Release()
		}
		all.Wait()
	})
}

// Two limits for one call, an endpoint of a host: the narrow one first. Then who waits for
// the endpoint holds nothing of the host, and the other endpoints have all of it. The
// other way round nine who expire in the queue of the endpoint hold nine of ten slots of
// the host as long as they live.
func TestTheNarrowLimitFirst(t *testing.T) {
	for _, c := range []struct {
		name        string
		narrowFirst bool
		held        int // slots of the host, while one call of the endpoint runs and nine wait
	}{
		{"narrow first", true, 1},
		{"wide first", false, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := New(Config{Name: "host", Limit: limit.Fixed(10), Service: time.Millisecond})
				endpoint := New(Config{Name: "endpoint", Limit: limit.Fixed(1), Depth: 100, Service: time.Millisecond})
				outer, inner := host, endpoint
				if c.narrowFirst {
					outer, inner = endpoint, host
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						_ = outer.Do(ctx, func(ctx context.Context) error {
							return inner.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
						})
					})
				}
				synctest.Wait()
				if s := host.Stats(); s.InUse != c.held {
					t.Errorf("%d slots of the host are held, want %d", s.InUse, c.held)
				}
				all.Wait()
				synctest.Wait()
				if h, e := host.Stats(), endpoint.Stats(); h.InUse+h.Waiting+e.InUse+e.Waiting != 0 {
					t.Errorf("left: host %d + %d, endpoint %d + %d", h.InUse, h.Waiting, e.InUse, e.Waiting)
				}
			})
		})
	}
}

// A caller that holds a slot and waits for a second one of the same limiter is told so: not
// who waits for another limiter, nor one whose slot has been given back.
func TestNestedUseIsNamed(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	for _, c := range []struct {
		name string
		call func(ctx context.Context, l, other *Limiter) error
		want bool
	}{
		{"Do in Do", func(ctx context.Context, l, _ *Limiter) error {
			return l.Do(ctx, func(ctx context.Context) error { return l.Do(ctx, nothing) })
		}, true},
		{"another limiter", func(ctx context.Context, l, other *Limiter) error {
			slot, _ := l.Acquire(ctx)
			defer slot.Release()
			return other.Do(ctx, func(ctx context.Context) error { return l.Do(ctx, nothing) })
		}, false},
		{"after the end", func(ctx context.Context, l, _ *Limiter) error {
			var left context.Context
			_ = l.Do(ctx, func(ctx context.Context) error { left = ctx; return nil })
			slot, _ := l.Acquire(ctx)
			defer slot.Release()
			return l.Do(left, nothing)
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, other := New(Config{Limit: limit.Fixed(1), MaxWait: time.Second}), New(Config{Limit: limit.Fixed(1)})
			var rej *Rejection
			if err := c.call(t.Context(), l, other); !errors.As(err, &rej) || rej.Reason != WaitBound || rej.Nested != c.want ||
				strings.Contains(rej.Error(), "holds a slot of this limiter itself") != c.want {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
