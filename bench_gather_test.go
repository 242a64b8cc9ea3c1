package goodput

import (
	"context"
	"sync"
	"testing"
	"time"
)

// 100 calls that take no time, beside goroutines and a WaitGroup that do nothing else, and
// beside those with a context that is cancelled, as errgroup has.
func BenchmarkGather(b *testing.B) {
	const n = 100
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	call := func(_ context.Context, i int) (int, error) { return i, nil }
	b.Run("gather", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got, err := Gather(ctx, Gathering[int]{Min: n}, n, call); err != nil || got.Came() != n {
				b.Fatal(err)
			}
		}
	})
	b.Run("waitgroup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			values := make([]int, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { values[i], _ = call(ctx, i) })
			}
			all.Wait()
		}
	})
	b.Run("errgroup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			values := make([]int, n)
			ctx, cancel := context.WithCancelCause(ctx)
			var all sync.WaitGroup
			var once sync.Once
			for i := range n {
				all.Go(func() {
					v, err := call(ctx, i)
					if err != nil {
						once.Do(func() { cancel(err) })
						return
					}
					values[i] = v
				})
			}
			all.Wait()
			cancel(nil)
		}
	})
}
