package goodput

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Failures of other systems, each named after its number in the collection of
// cases and the project that met it: slots that leak.

// argoproj/argo-workflows#16405: giving a slot back read the limit from outside,
// and a failed read leaked the slot. Here a change of the limit may fail while
// requests end, and the slots come back all the same.
func TestC001ReleaseNeedsNoOutsideRead(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(4), Depth: NoQueue})
	for range 2 {
		var slots [4]*Slot
		for i := range slots {
			slots[i] = mustAcquire(t, l)
		}
		for i := range slots {
			if err := l.SetLimit(-1); err == nil {
				t.Fatal("a limit of -1 was taken")
			}
			slots[i].Release()
		}
		if s := l.Stats(); s.InUse != 0 {
			t.Fatalf("%d in use after all have ended", s.InUse)
		}
	}
	checkEmpty(t, l)
}

// llm-d/llm-d-batch-gateway#206: the normal path and the panic path both
// released, and capacity drifted.
func TestC003ReleaseTwice(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(3), Depth: NoQueue})
	handle := func() {
		defer func() { _ = recover() }()
		slot := mustAcquire(t, l)
		defer slot.Release()
		slot.Release()
		panic("after the release")
	}
	for range 10_000 {
		handle()
	}
	for range 10_000 {
		slot := mustAcquire(t, l)
		slot.Release()
		slot.Release()
	}
	var slots [3]*Slot
	for i := range slots {
		slots[i] = mustAcquire(t, l)
	}
	if _, ok := l.TryAcquire(); ok {
		t.Error("a fourth slot of three")
	}
	for _, s := range slots {
		s.Release()
	}
	if s := l.Stats(); s.Outcomes[Completed] != 20_003 {
		t.Errorf("%d completed, want each once: 20,003", s.Outcomes[Completed])
	}
	checkEmpty(t, l)
}

// sirixdb/sirix#1072, openllb/hlb#320: the deferred release also ran when
// acquiring had failed, and added capacity.
func TestC004FailedAcquireHasNothingToRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 20)
		past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		for range 100 {
			slot, err := l.Acquire(past)
			if reason(err) != Deadline {
				t.Fatalf("got %v, want deadline", err)
			}
			slot.Release()
			slot.Fail(err)
		}
		var running, peak atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				slot, err := l.Acquire(context.Background())
				defer slot.Release()
				if err != nil {
					t.Error(err)
				}
				peak.Store(max(peak.Load(), running.Add(1)))
				time.Sleep(50 * time.Millisecond)
				running.Add(-1)
			})
		}
		wg.Wait()
		if peak.Load() != 1 {
			t.Errorf("%d ran at once on a limit of 1", peak.Load())
		}
		if s := l.Stats(); s.Outcomes[Expired] != 100 || s.Refusals[Deadline] != 100 {
			t.Errorf("%d expired, want 100", s.Outcomes[Expired])
		}
		checkEmpty(t, l)
	})
}

// kubernetes/kubernetes#83333, gofiber/fiber#4347, resilience4j/resilience4j#1530:
// a timeout freed the slot while the handler went on. Here a handler that
// ignores its context keeps its slot until it returns: what runs is never above
// the limit, and Stats shows it; who waits is told in time.
func TestC011HandlerThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(4), Objective: 100 * time.Millisecond})
		var running, peak atomic.Int32
		var wg sync.WaitGroup
		for range 50 * 30 { // 50 per second for 30 s
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				begun := time.Now()
				err := l.Do(ctx, func(context.Context) error {
					peak.Store(max(peak.Load(), running.Add(1)))
					time.Sleep(10 * time.Second)
					running.Add(-1)
					return ctx.Err()
				})
				if took := time.Since(begun); errors.Is(err, ErrRejected) && took > 100*time.Millisecond {
					t.Errorf("refused after %v, later than the deadline", took)
				}
			})
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			if s := l.Stats(); s.Running != int(running.Load()) {
				t.Fatalf("Stats says %d run, but %d do", s.Running, running.Load())
			}
		}
		wg.Wait()
		if peak.Load() != 4 {
			t.Errorf("%d ran at once on a limit of 4", peak.Load())
		}
		s := l.Stats()
		if s.Outcomes[Abandoned] == 0 || s.Outcomes[Completed] != 0 {
			t.Errorf("outcomes %v: whoever ran was left by its caller", s.Outcomes)
		}
		checkEmpty(t, l)
	})
}

// scylladb/scylladb#22588: the path of a full queue left a half-made entry.
func TestC012RefusalsLeaveNothing(t *testing.T) {
	l := fixed(1, 2)
	slot := mustAcquire(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { _, _ = l.AcquireWork(ctx, Work{Bytes: 100}) })
	}
	for l.Stats().Waiting < 2 {
		runtime.Gosched()
	}
	objects := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before, counts := objects(), l.Stats()
	for range 100_000 {
		if _, err := l.AcquireWork(ctx, Work{Bytes: 100}); reason(err) != QueueFull {
			t.Fatalf("got %v, want queue_full", err)
		}
	}
	after := l.Stats()
	// The test itself, the runtime and this window's Rejection: dozens. One
	// object per refusal would be 100,000.
	if n := objects(); n > before+1000 {
		t.Errorf("%d objects more than before", n-before)
	}
	if after.Waiting != 2 || after.WaitingBytes != 200 || after.Refusals[QueueFull] != counts.Refusals[QueueFull]+100_000 {
		t.Errorf("%d waiting with %d bytes, %d refused", after.Waiting, after.WaitingBytes, after.Refusals[QueueFull])
	}
	cancel()
	wg.Wait()
	slot.Release()
	checkEmpty(t, l)
}

// apache/solr#4236: completion callbacks ran on the thread that waited for a
// slot. Here work that acquires again from its own limiter ends by the bound on
// waiting at the latest.
func TestC014NestedUseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 100, MaxWait: time.Second})
		var nested, refused atomic.Int32
		begun := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				err := l.Do(context.Background(), func(ctx context.Context) error {
					slot, err := l.Acquire(ctx)
					if err == nil {
						nested.Add(1)
					}
					slot.Release()
					return err
				})
				if err != nil {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		// Two hold the slots and wait for one; after a second they are refused,
		// and so is everybody who came with them.
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("took %v, want no more than two waits of 1s", took)
		}
		t.Logf("%d nested, %d refused", nested.Load(), refused.Load())
		checkEmpty(t, l)
	})
}

// letsencrypt/boulder#7272: the early return for too many waiters forgot to
// unlock, and everything hung from the first overload on.
func TestC016EveryCallReturnsAfterQueueFull(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(1), Depth: NoQueue})
	slot := mustAcquire(t, l)
	if _, err := l.Acquire(context.Background()); reason(err) != QueueFull {
		t.Fatalf("got %v, want queue_full", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx := context.Background()
		_, _ = l.Acquire(ctx)
		_, _ = l.AcquireWork(ctx, Work{Cost: 2})
		_, _ = l.TryAcquire()
		_ = l.Do(ctx, func(context.Context) error { return nil })
		_ = l.SetLimit(2)
		_ = l.Reconfigure(Config{Limit: limit.Fixed(1), Depth: NoQueue})
		_ = l.Stats()
		_, _ = l.Explain(), l.Name()
		slot.Release()
		_ = l.Drain(ctx)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a call hangs")
	}
	checkEmpty(t, l)
}
