package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// workers is the plain pool that everybody writes: goroutines that are parked on a channel
// of functions, and a result through a channel. It has no deadlines, no refusals, no
// panics and no drain.
type workers struct {
	tasks chan func()
	all   sync.WaitGroup
}

func newWorkers(n, depth int) *workers {
	w := &workers{tasks: make(chan func(), depth)}
	for range n {
		w.all.Go(func() {
			for fn := range w.tasks {
				fn()
			}
		})
	}
	return w
}

func (w *workers) do(fn func() int) int {
	done := make(chan int, 1)
	w.tasks <- func() { done <- fn() }
	return <-done
}

func (w *workers) stop() {
	close(w.tasks)
	w.all.Wait()
}

// compute is n rounds of arithmetic, about 2 ns each.
func compute(n int) int {
	x := uint64(n)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return int(x & 1)
}

func computing(n int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return compute(n), nil }
}

func ofCPUs() *Pool {
	return New(goodput.New(goodput.Config{Limit: limit.Fixed(1), Overflow: goodput.Block, MaxWait: time.Hour}), GOMAXPROCS)
}

// A task from hand-in to result, beside parked workers on a channel and beside a bare
// goroutine, for tasks of nothing and of 100 µs; by one caller, and by four per CPU, so
// that some always wait.
func BenchmarkWorkers(b *testing.B) {
	for _, rounds := range []int{0, 50_000} {
		for _, callers := range []int{1, 4 * runtime.GOMAXPROCS(0)} {
			p := ofCPUs()
			w := newWorkers(runtime.GOMAXPROCS(0), 1000)
			ctx, fn := context.Background(), computing(rounds)
			name := func(what string) string { return fmt.Sprintf("%s/rounds=%d/callers=%d", what, rounds, callers) }
			b.Run(name("do"), func(b *testing.B) {
				each(b, callers, func() {
					if _, err := Do(ctx, p, goodput.Work{}, fn); err != nil {
						b.Error(err)
					}
				})
			})
			b.Run(name("submit"), func(b *testing.B) {
				each(b, callers, func() {
					task, err := Submit(ctx, p, goodput.Work{}, fn)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = task.Wait(ctx)
				})
			})
			b.Run(name("channel"), func(b *testing.B) {
				each(b, callers, func() { w.do(func() int { return compute(rounds) }) })
			})
			b.Run(name("goroutine"), func(b *testing.B) {
				each(b, callers, func() {
					done := make(chan int, 1)
					go func() { done <- compute(rounds) }()
					<-done
				})
			})
			w.stop()
		}
	}
}

// each calls fn b.N times in all, from so many goroutines.
func each(b *testing.B, callers int, fn func()) {
	b.ReportAllocs()
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for next.Add(1) <= int64(b.N) {
				fn()
			}
		})
	}
	all.Wait()
}

// What it costs to say no, and to run within a slot that is held.
func BenchmarkRefusal(b *testing.B) {
	p := fixed(0, goodput.NoQueue)
	ctx, fn := context.Background(), computing(0)
	b.Run("submit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Submit(ctx, p, goodput.Work{}, fn); err == nil {
				b.Fatal("it was accepted")
			}
		}
	})
	b.Run("do", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Do(ctx, p, goodput.Work{}, fn); err == nil {
				b.Fatal("it was accepted")
			}
		}
	})
}

func BenchmarkNested(b *testing.B) {
	p, fn := ofCPUs(), computing(0)
	_, _ = Do(context.Background(), p, goodput.Work{}, func(ctx context.Context) (int, error) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Do(ctx, p, goodput.Work{}, fn); err != nil {
				b.Fatal(err)
			}
		}
		return 0, nil
	})
}

// Three times more work than two slots can do, each task of 5 ms with 100 ms until nobody
// wants it: how many of those that could be done are done in time (goodput), by the pool
// and by parked workers with a queue of 1000, which do all of them late. Tasks sleep, so
// what is compared is the queue and not the machine; how long they really slept is what
// could be done.
func BenchmarkOverload(b *testing.B) {
	const slots, service, deadline, every, window = 2, 5 * time.Millisecond, 100 * time.Millisecond, 833 * time.Microsecond, 2 * time.Second
	var slept, done, inTime, refused atomic.Int64
	work := func(context.Context) (int, error) {
		begin := time.Now()
		time.Sleep(service) // wall clock: a benchmark
		slept.Add(int64(time.Since(begin)))
		done.Add(1)
		return 0, nil
	}
	offer := func(b *testing.B, do func(due time.Time)) {
		for _, n := range []*atomic.Int64{&slept, &done, &inTime, &refused} {
			n.Store(0)
		}
		var all sync.WaitGroup
		begin := time.Now()
		for i := range int(window / every) {
			due := begin.Add(time.Duration(i) * every)
			time.Sleep(time.Until(due)) // wall clock: a benchmark
			all.Go(func() { do(due) })
		}
		all.Wait()
		mean := float64(slept.Load()) / float64(done.Load())
		b.ReportMetric(float64(inTime.Load())*mean/float64(slots*window), "goodput")
		b.ReportMetric(float64(refused.Load()), "refused")
	}
	b.Run("pool", func(b *testing.B) {
		for b.Loop() {
			p := New(goodput.New(goodput.Config{Limit: limit.Fixed(slots), Objective: deadline}), Unchanged)
			offer(b, func(due time.Time) {
				ctx, cancel := context.WithDeadline(context.Background(), due.Add(deadline))
				defer cancel()
				_, err := Do(ctx, p, goodput.Work{}, work)
				if err == nil && time.Since(due) <= deadline {
					inTime.Add(1)
				} else if errors.Is(err, goodput.ErrRejected) {
					refused.Add(1)
				}
			})
		}
	})
	b.Run("channel", func(b *testing.B) {
		for b.Loop() {
			w := newWorkers(slots, 1000)
			offer(b, func(due time.Time) {
				w.do(func() int { n, _ := work(context.Background()); return n })
				if time.Since(due) <= deadline {
					inTime.Add(1)
				}
			})
			w.stop()
		}
	})
}
