package goodput

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

func benchLimiter() *Limiter {
	return New(Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond})
}

func BenchmarkAcquire(b *testing.B) { benchAcquire(b, benchLimiter()) }

func benchAcquire(b *testing.B, l *Limiter) {
	b.Helper()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		slot, err := l.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		slot.Release()
	}
}

// Every request is timed.
func BenchmarkAcquireDeadline(b *testing.B) {
	l := benchLimiter()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		slot, err := l.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		slot.Release()
	}
}

// Every request meets the core.
func BenchmarkAcquireLocked(b *testing.B) {
	l, ctx := benchLimiter(), context.Background()
	now := l.enter()
	l.noLend = true
	l.leave(now)
	b.ReportAllocs()
	for b.Loop() {
		slot, err := l.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		slot.Release()
	}
}

func BenchmarkTryAcquire(b *testing.B) {
	l := benchLimiter()
	b.ReportAllocs()
	for b.Loop() {
		slot, ok := l.TryAcquire()
		if !ok {
			b.Fatal("no slot")
		}
		slot.Release()
	}
}

func BenchmarkDo(b *testing.B) {
	l, ctx := benchLimiter(), context.Background()
	fn := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Do(ctx, fn); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParallel(b *testing.B) {
	l, ctx := benchLimiter(), context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			slot, err := l.Acquire(ctx)
			if err != nil {
				b.Error(err)
				return
			}
			slot.Release()
		}
	})
}

func BenchmarkRefusal(b *testing.B) {
	l, ctx := New(Config{Limit: limit.Fixed(1), Depth: NoQueue}), context.Background()
	slot := mustAcquire(b, l)
	defer slot.Release()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Acquire(ctx); err == nil {
			b.Fatal("admitted")
		}
	}
}

// A slot goes from hand to hand: callers that always find others waiting.
func BenchmarkHandOff(b *testing.B) {
	for _, depth := range []int{2, 30, 1000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			l, ctx := fixed(1, depth), context.Background()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range depth {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						slot, err := l.Acquire(ctx)
						if err != nil {
							b.Error(err)
							return
						}
						slot.Release()
					}
				})
			}
			wg.Wait()
		})
	}
}

// One caller leaves a queue of the given depth: in, out, and what it takes the
// goroutine to be told. It must be flat in the depth.
func BenchmarkCancel(b *testing.B) {
	for _, depth := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			l := New(Config{Limit: limit.Fixed(1), Depth: depth + 1, MaxItems: depth + 1, Order: FIFO, MaxWait: time.Hour})
			slot := mustAcquire(b, l)
			defer slot.Release()
			waiters, leave := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer leave()
			for range depth {
				wg.Go(func() { _, _ = l.Acquire(waiters) })
			}
			waitFor(l, depth)
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = l.Acquire(ctx)
				}()
				waitFor(l, depth+1)
				cancel()
				<-done
			}
		})
	}
}
