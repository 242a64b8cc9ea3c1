package goodput

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A heard is a law that keeps what it was told.
type heard struct{ last *limit.Window }

func (h heard) Start() (int, error) { return 4, nil }

func (h heard) Begin(uint64) limit.State { return h }

func (h heard) Next(current int, w *limit.Window) limit.Move {
	if w.Samples > 0 {
		*h.last = *w
	}
	return limit.Move{Limit: current}
}

func (heard) Why() string { return "" }

// Time downstream is no part of what the law goes by, and all of what the depth goes by:
// 10 ms of each 40 ms are the service's own.
func TestDownstreamIsNotHeard(t *testing.T) {
	for _, c := range []struct {
		name string
		work func(context.Context)
		own  time.Duration // of 40 ms
	}{
		{"nothing marked", func(context.Context) { time.Sleep(40 * time.Millisecond) }, 40 * time.Millisecond},
		{"marked", func(ctx context.Context) {
			time.Sleep(10 * time.Millisecond)
			span := Downstream(ctx)
			time.Sleep(30 * time.Millisecond)
			again := Span{of: span.of} // what go vet calls a copy
			span.End()
			span.End() // counts nothing
			again.End()
		}, 10 * time.Millisecond},
		{"a fan-out counts once", func(ctx context.Context) {
			time.Sleep(10 * time.Millisecond)
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() {
					span := Downstream(ctx)
					defer span.End()
					time.Sleep(time.Duration(i+1) * 10 * time.Millisecond)
				})
			}
			all.Wait()
		}, 10 * time.Millisecond},
		{"spans that overlap count once", func(ctx context.Context) {
			time.Sleep(5 * time.Millisecond)
			first := Downstream(ctx)
			time.Sleep(10 * time.Millisecond)
			second := Downstream(ctx)
			time.Sleep(10 * time.Millisecond)
			first.End()
			first.End() // is not the end of the second
			time.Sleep(10 * time.Millisecond)
			second.End()
			time.Sleep(5 * time.Millisecond)
		}, 10 * time.Millisecond},
		{"never ended", func(ctx context.Context) {
			time.Sleep(10 * time.Millisecond)
			_ = Downstream(ctx)
			time.Sleep(30 * time.Millisecond)
		}, 10 * time.Millisecond},
		{"another limiter, by itself", func(ctx context.Context) {
			time.Sleep(10 * time.Millisecond)
			inner := New(Config{Name: "inner", Limit: limit.Fixed(1)})
			_ = inner.Do(ctx, func(context.Context) error { time.Sleep(30 * time.Millisecond); return nil })
		}, 10 * time.Millisecond},
		{"waiting for another limiter", func(ctx context.Context) {
			time.Sleep(10 * time.Millisecond)
			inner := New(Config{Name: "inner", Limit: limit.Fixed(1)})
			slot, _ := inner.Acquire(context.Background())
			time.AfterFunc(30*time.Millisecond, slot.Release)
			_ = inner.Do(ctx, func(context.Context) error { return nil })
		}, 10 * time.Millisecond},
		{"marked below a context that is below", func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			time.Sleep(10 * time.Millisecond)
			span := Downstream(WithPriority(ctx, Critical))
			defer span.End()
			time.Sleep(30 * time.Millisecond)
		}, 10 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last limit.Window
				l := New(Config{Limit: heard{&last}, Objective: 400 * time.Millisecond})
				for range 20 {
					if err := l.Do(context.Background(), func(ctx context.Context) error { c.work(ctx); return nil }); err != nil {
						t.Fatal(err)
					}
				}
				if last.Mean != 40*time.Millisecond || (last.Own-c.own).Abs() > time.Microsecond {
					t.Errorf("the law was told %v of which %v its own, want 40ms and %v", last.Mean, last.Own, c.own)
				}
				s := l.Stats()
				if want := 1 - c.own.Seconds()/0.040; s.Elsewhere < want-1e-6 || s.Elsewhere > want+1e-6 {
					t.Errorf("elsewhere %.3f of the time, want %.3f", s.Elsewhere, want)
				}
				if s.Derivation.Service < 38*time.Millisecond { // the bucket of 40 ms, and a rest of the prior
					t.Errorf("the depth goes by a service of %v, the caller waits for 40ms", s.Derivation.Service)
				}
				if says := strings.Contains(l.Explain(), "downstream"); says != (c.own < 40*time.Millisecond) {
					t.Errorf("explained:\n%s", l.Explain())
				}
			})
		})
	}
}

// A span is that of the innermost slot.
func TestDownstreamIsOfTheInnermost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := New(Config{Name: "inner", Limit: limit.Fixed(1)})
		outer := New(Config{Name: "outer", Limit: limit.Fixed(1)})
		for range 20 {
			_ = outer.Do(t.Context(), func(ctx context.Context) error {
				slot, _ := inner.Acquire(ctx)
				defer slot.Release()
				ctx = slot.Context(ctx)
				span := Downstream(ctx)
				defer span.End()
				time.Sleep(10 * time.Millisecond)
				return nil
			})
		}
		if i, o := inner.Stats().Elsewhere, outer.Stats().Elsewhere; i < 0.999 || o != 0 {
			t.Errorf("elsewhere %.2f of the time of the inner, %.2f of the outer; want 1 and 0", i, o)
		}
	})
}

// What outlives its slot is harmless, and what has no slot costs nothing.
func TestDownstreamWithoutSlot(t *testing.T) {
	span := Downstream(context.Background())
	span.End()
	l := New(Config{Limit: limit.Fixed(1)})
	var left context.Context
	_ = l.Do(context.Background(), func(ctx context.Context) error { left = ctx; return nil })
	span = Downstream(left)
	if err := l.Do(context.Background(), func(ctx context.Context) error {
		inner := Downstream(ctx)
		span.End()
		inner.End()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var none Slot
	if ctx := context.Background(); none.Context(ctx) != ctx {
		t.Error("a slot that holds nothing has a context of its own")
	}
	slot, _ := l.Acquire(context.Background())
	ctx, second := slot.Context(context.Background()), slot.Context(context.Background())
	if ctx.Value(absenceKey{}) != second.Value(absenceKey{}) {
		t.Error("a second context of a slot is on another account")
	}
	if n := testing.AllocsPerRun(1000, func() { s := Downstream(ctx); s.End() }); n != 0 {
		t.Errorf("a span allocates %v times", n)
	}
	slot.Release()
	if s := l.Stats(); s.InUse != 0 || s.Outcomes[Completed] != 3 {
		t.Errorf("%d in use, %d completed", s.InUse, s.Outcomes[Completed])
	}
}

// Go decides at the door, and calls back once: with a slot, or why there is none.
func TestGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Depth: 1, MaxWait: time.Second, Service: time.Millisecond})
		var ended []error
		var mu sync.Mutex
		told := func() []error { // what fn was called with so far
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(ended)
		}
		offer := func(ctx context.Context, work time.Duration) error {
			return l.Go(ctx, Work{}, func(slot *Slot, err error) {
				defer slot.Release()
				if err == nil {
					time.Sleep(work)
				}
				mu.Lock()
				ended = append(ended, err)
				mu.Unlock()
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		for i, want := range []Reason{None, None, QueueFull} {
			var rej *Rejection
			err := offer(ctx, time.Hour)
			if got := errors.As(err, &rej); got != (want != None) || got && rej.Reason != want {
				t.Fatalf("offer %d: %v, want %v", i, err, want)
			}
		}
		time.Sleep(10 * time.Millisecond)
		cancel() // of one that runs, which does not look, and one that waits
		synctest.Wait()
		var rej *Rejection
		if len(told()) != 1 || !errors.As(told()[0], &rej) || rej.Reason != Client || rej.Waited != 10*time.Millisecond {
			t.Fatalf("called back with %v, want one that left after 10ms", told())
		}
		if err := offer(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has left: %v", err)
		}
		late, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if err := offer(late, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if len(told()) != 2 || !errors.As(told()[1], &rej) || rej.Outcome != Expired {
			t.Fatalf("called back with %v, want one that could not be served in time", told())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := l.Stats(); len(told()) != 3 || told()[2] != nil || s.Running+s.Waiting != 0 {
			t.Errorf("called back with %v, %d left", told(), s.Running+s.Waiting)
		}
	})
}

// As many goroutines as requests that run or wait, however many offer.
func TestGoBoundsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(3), Depth: 4, MaxWait: time.Hour})
		refused, called := 0, 0
		var mu sync.Mutex
		for range 10_000 {
			if err := l.Go(t.Context(), Work{}, func(slot *Slot, err error) {
				defer slot.Release()
				mu.Lock()
				called++
				mu.Unlock()
				time.Sleep(time.Second)
			}); err != nil {
				refused++
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if refused != 10_000-7 || called != 7 {
			t.Errorf("%d refused, %d called, want all but 7 and 7", refused, called)
		}
	})
}

// A gradient is the simplest law that goes by latency: half the slots when work takes
// twice as long as it ever did.
type gradient struct {
	least *time.Duration
	whole bool // it goes by all of the time
}

func (g gradient) Start() (int, error) { return 16, nil }

func (g gradient) Begin(uint64) limit.State { return g }

func (gradient) Why() string { return "" }

func (g gradient) Next(current int, w *limit.Window) limit.Move {
	return limit.Move{Limit: g.next(current, w)}
}

func (g gradient) next(current int, w *limit.Window) int {
	took := w.Own
	if g.whole {
		took = w.Mean
	}
	if w.Samples == 0 {
		return current
	}
	if *g.least == 0 || took < *g.least {
		*g.least = took
	}
	if took > 2**g.least {
		return max(current/2, 1)
	}
	return current
}

// A dependency that becomes ten times as slow does not shrink the front door; a law that
// goes by the whole time shuts it.
func TestSlowDependencyDoesNotShrinkTheDoor(t *testing.T) {
	for _, c := range []struct {
		whole bool
		want  int
	}{{false, 16}, {true, 1}} {
		synctest.Test(t, func(t *testing.T) {
			door := New(Config{Name: "door", Limit: gradient{new(time.Duration), c.whole}})
			database := New(Config{Name: "database", Limit: limit.Fixed(4)})
			for i := range 200 {
				slow := time.Duration(1)
				if i >= 100 {
					slow = 10
				}
				err := door.Do(t.Context(), func(ctx context.Context) error {
					time.Sleep(5 * time.Millisecond)
					return database.Do(ctx, func(context.Context) error { time.Sleep(slow * 10 * time.Millisecond); return nil })
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := door.Stats().Limit; got != c.want {
				t.Errorf("by the whole time %v: the door has %d slots, want %d", c.whole, got, c.want)
			}
		})
	}
}
