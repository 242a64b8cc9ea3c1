package goodput

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Ten run at once on a limit of 2 with room for 3: nobody is refused, and the
// shadow says what would have been.
func TestObserveRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 3, Order: FIFO, Overflow: RefuseNewest, MaxWait: time.Hour, Observe: true})
		var slots [10]Slot
		for i := range slots {
			var err error
			if slots[i], err = l.Acquire(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		s := l.Stats()
		if s.InUse != 10 || s.Running != 10 || s.Waiting != 0 || s.Arrivals != 10 || s.Immediate != 10 || s.Limit != 2 {
			t.Errorf("really: %+v", s.Stats)
		}
		if s.Shadow.InUse != 2 || s.Shadow.Waiting != 3 || s.Shadow.Refusals[QueueFull] != 5 {
			t.Errorf("shadow: %+v", s.Shadow)
		}
		if text := l.Explain(); !strings.Contains(text, "would have been: queue_full 5") {
			t.Errorf("Explain does not say so:\n%s", text)
		}
		checkCounts(t, s)
		time.Sleep(time.Second)
		slots[0].Release() // the shadow grants the next one
		if s = l.Stats(); s.Shadow.Dequeued != 1 || s.InUse != 9 {
			t.Errorf("after a release: %d dequeued in the shadow, %d really in use", s.Shadow.Dequeued, s.InUse)
		}
		slots[4].Release() // which waits in the shadow: it is taken out
		if s = l.Stats(); s.Shadow.Waiting != 1 || s.Shadow.Outcomes[Cancelled] != 1 {
			t.Errorf("%d wait in the shadow, outcomes %v", s.Shadow.Waiting, s.Shadow.Outcomes)
		}
		for i := range slots {
			slots[i].Release()
		}
		s = l.Stats()
		if s.Outcomes[Completed]+s.Outcomes[Late] != 10 || ended(&s) != 10 {
			t.Errorf("outcomes %v", s.Outcomes)
		}
		if s.Shadow.InUse != 0 || s.Shadow.Waiting != 0 {
			t.Errorf("left in the shadow: %+v", s.Shadow)
		}
		checkEmpty(t, l)
	})
}

// The shadow drops who is doomed at its time, as the core that decides does.
func TestObserveHasAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Objective: 2 * time.Second, Service: 100 * time.Millisecond, Observe: true})
		first, _ := l.TryAcquire()
		ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
		defer cancel()
		second, err := l.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500*time.Millisecond - time.Nanosecond)
		if s := l.Stats(); s.Shadow.Refusals[Doomed] != 1 || s.Shadow.Waiting != 0 {
			t.Errorf("shadow: %d waiting, refusals %v", s.Shadow.Waiting, s.Shadow.Refusals)
		}
		second.Release()
		first.Release()
		if s := l.Stats(); s.Outcomes[Completed] != 2 {
			t.Errorf("outcomes %v", s.Outcomes)
		}
		checkEmpty(t, l)
	})
}

func TestObserveRunsWhatIsOverAndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Depth: NoQueue, Observe: true})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		slot, err := l.Acquire(ctx)
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		probe, err := l.AcquireWork(ctx, Work{Exempt: true})
		if err != nil || !probe.Exempt() {
			t.Errorf("a probe: %v, exempt %v", err, probe.Exempt())
		}
		done := make(chan error)
		go func() { done <- l.Drain(context.Background()) }()
		synctest.Wait()
		late, err := l.Acquire(context.Background())
		if err != nil {
			t.Errorf("refused while draining: %v", err)
		}
		slot.Release()
		late.Release()
		probe.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		checkEmpty(t, l)
	})
}
