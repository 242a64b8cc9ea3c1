package goodput

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What the limiter costs in memory. What it costs in time is in the benchmarks.

func TestNothingIsAllocated(t *testing.T) {
	background := context.Background()
	deadline, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	free := New(Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond})
	full := New(Config{Limit: limit.Fixed(1), Depth: NoQueue, Objective: 24 * time.Hour})
	held := mustAcquire(t, full)
	defer held.Release()
	past, cancelPast := context.WithDeadline(background, time.Unix(0, 0))
	defer cancelPast()
	left, leave := context.WithCancel(background)
	leave()
	ended, end := context.WithCancelCause(background)
	end(errWork)
	// Somebody waits, for as long as the test takes, for 1 slot of 2.
	small := New(Config{Limit: limit.Fixed(2), Depth: 1, MaxBytes: 100, Objective: 24 * time.Hour, MaxWait: 24 * time.Hour})
	costly, err := small.AcquireWork(background, Work{Cost: 2})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- small.Do(background, func(context.Context) error { return nil }) }()
	waitFor(small, 1)
	defer func() {
		costly.Release()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	}()
	shared := New(Config{Limit: limit.Fixed(60), Tenants: &Tenants{Rows: []Tenant{
		{ID: "a"}, {ID: "b", Quota: Quota{Rate: 1e-3, Burst: 1}},
	}}})
	refused := func(l *Limiter, ctx context.Context, w Work, want Reason) func() {
		return func() {
			if _, err := l.AcquireWork(ctx, w); reason(err) != want {
				t.Fatalf("got %v, want %v", err, want)
			}
		}
	}
	work := func(context.Context) error { return nil }
	for _, c := range []struct {
		name string
		op   func()
	}{
		{"Acquire", func() {
			slot, _ := free.Acquire(background)
			slot.Release()
		}},
		{"Acquire with a deadline", func() {
			slot, _ := free.Acquire(deadline)
			slot.Release()
		}},
		{"AcquireWork", func() {
			slot, _ := free.AcquireWork(deadline, Work{Bytes: 100, Priority: Critical})
			slot.Release()
		}},
		{"AcquireWork of a cost", func() {
			slot, _ := free.AcquireWork(background, Work{Cost: 3})
			slot.Release()
		}},
		{"AcquireWork of a tenant", func() {
			slot, _ := shared.AcquireWork(background, Work{Tenant: "a", User: "somebody"})
			slot.SetSize(7)
			slot.SetCost(2)
			slot.Release()
		}},
		{"AcquireWork of a stranger, failed", func() {
			slot, _ := shared.AcquireWork(background, Work{Tenant: "stranger", Cost: 5})
			slot.Served()
			slot.Fail(errWork)
		}},
		{"TryAcquire of a tenant", func() {
			slot, _ := shared.TryAcquire()
			slot.Release()
		}},
		{"over quota", func() {
			slot, _ := shared.AcquireWork(background, Work{Tenant: "b"})
			slot.Release()
		}},
		{"TryAcquire", func() {
			slot, _ := free.TryAcquire()
			slot.Release()
		}},
		{"Do", func() { _ = free.Do(background, work) }},
		{"failure", func() {
			slot, _ := free.Acquire(background)
			slot.Fail(errWork)
		}},
		// Of the refusals the first of a window allocates; the windows of an
		// objective of a day are 100 ms.
		{"refusal", func() { _, _ = full.Acquire(background) }},
		{"refusal with a deadline", func() { _, _ = full.Acquire(deadline) }},
		{"refusal of Go", func() { _ = full.Go(background, Work{}, nil) }},
		{"refused TryAcquire", func() { _, _ = full.TryAcquire() }},
		{"refusal of a size", refused(full, background, Work{Size: 7}, QueueFull)},
		{"refusal of a cost", refused(small, background, Work{Cost: 2}, QueueFull)},
		{"shed", refused(small, background, Work{Cost: 2, Priority: Background}, Shed)},
		{"too costly", refused(small, background, Work{Cost: 3}, TooCostly)},
		{"too large", refused(small, background, Work{Cost: 2, Bytes: 101}, TooLarge)},
		{"no budget", refused(small, background, Work{Cost: 2, Deadline: time.Now().Add(time.Minute)}, NoBudget)},
		{"expired", refused(free, past, Work{Cost: 2}, Deadline)},
		{"cancelled", refused(free, left, Work{Cost: 2}, Client)},
		{"ended", refused(free, ended, Work{Cost: 2}, Parent)},
	} {
		want := 0.0
		if c.name == "Do" {
			want = 1 // the context of its function; none for those that are not timed
		}
		if n := testing.AllocsPerRun(10_000, c.op); n > want {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// maxWaiter is the promise: bytes that a waiter costs beside its goroutine and
// its context. It has a place in the queue of the core (128), its waiter (96),
// a channel (112), a timer (128) with its function (16), and its part of the
// heap of timers.
const maxWaiter = 512

// The cost of 100,000 that wait is what the heap holds beyond that of 100,000
// that are parked on one channel, with the same contexts.
func TestWaiterCostsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 200,000 goroutines")
	}
	const n = 100_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one has freed of pools
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	park := func(wait func(ctx context.Context), parked func() int) (bytes uint64) {
		before := heap()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { wait(ctx) })
		}
		for parked() < n {
			runtime.Gosched()
		}
		bytes = heap() - before
		cancel()
		wg.Wait()
		return bytes
	}
	never := make(chan struct{})
	bareOnes := func() uint64 {
		var parked atomic.Int64
		return park(func(ctx context.Context) {
			parked.Add(1)
			select {
			case <-never:
			case <-ctx.Done():
			}
		}, func() int { return int(parked.Load()) })
	}
	bareOnes() // the runtime keeps what it has made for goroutines, but not at first
	bare := bareOnes()

	l := New(Config{Limit: limit.Fixed(1), Depth: n, MaxItems: n, Order: FIFO, MaxWait: time.Hour})
	slot := mustAcquire(t, l)
	var cancels, others int
	waiting := park(func(ctx context.Context) {
		if _, err := l.Acquire(ctx); reason(err) != Client {
			t.Error(err)
		}
	}, func() int { waitFor(l, n); count(l, &cancels, &others); return n })
	// Whoever leaves is one call of the core, whatever the depth; what else was
	// called is lending and collecting, and a window now and then.
	if cancels != n || others > 4*n {
		t.Errorf("%d waiters left by %d calls of Cancel and %d others", n, cancels, others)
	}
	slot.Release()
	checkEmpty(t, l)
	per := (int(waiting) - int(bare)) / n
	t.Logf("%d bytes per waiter, beside %d of its goroutine", per, int(bare)/n)
	if per > maxWaiter {
		t.Errorf("a waiter costs %d bytes, want at most %d", per, maxWaiter)
	}
}

// count counts the calls of the core from now on.
func count(l *Limiter, cancels, others *int) {
	now := l.enter()
	l.journal = func(c call) { // under the lock
		if c.op == "cancel" {
			*cancels++
		} else {
			*others++
		}
	}
	l.leave(now)
}
