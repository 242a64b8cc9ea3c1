package watch

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// At the shutdown there is a last line: what was refused since the tick before is not lost, and it
// says over how long that was.
func TestTheLastPartOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Run(ctx, slog.New(slog.NewTextHandler(&log, nil)), func() []*goodput.Limiter { return []*goodput.Limiter{lim} })
		}()
		time.Sleep(2250 * time.Millisecond) // a quarter of a second after a tick
		slot, err := lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer slot.Release()
		for range 7 {
			if _, err := lim.Acquire(t.Context()); err == nil {
				t.Fatal("not refused")
			}
		}
		cancel()
		<-done
		if got := messages(log.String()); !slices.Equal(got, []string{"derived depth", "overload began", "shedding"}) || !strings.Contains(log.String(), " interval_seconds=0.25 arrivals=8 admitted=1 completed=0 refused=7 ") {
			t.Errorf("%s", log.String())
		}
	})
}

// The facts of a line are those of the snapshot, and the interval is the one that was: a machine
// that is busy drops ticks.
func TestFactsOfALine(t *testing.T) {
	var log bytes.Buffer
	w := New(slog.New(slog.NewTextHandler(&log, nil)))
	s := goodput.Stats{Name: "default"}
	s.Derivation.Reachable = true
	w.Step(time.Unix(1000, 0), s)
	s.Limit, s.Depth, s.Derivation.Depth, s.Waiting, s.Order, s.Load, s.Age = 3, 4, 5, 6, goodput.NewestFirst, 1.2344, 350*time.Millisecond
	s.Arrivals, s.Refusals[goodput.QueueFull] = 20, 11
	log.Reset()
	w.Step(time.Unix(1003, int64(500*time.Millisecond)), s)
	lines := strings.SplitAfter(log.String(), "\n")
	const facts = " limit=3 depth=4 derived_depth=5 waiting=6 order=newest_first queue_age_seconds=0.35 demand_ratio=1.234 condition="
	for _, line := range lines[len(lines)-3 : len(lines)-1] {
		if !strings.Contains(line, facts) {
			t.Errorf("no %s in %s", facts, line)
		}
	}
	if last := lines[len(lines)-2]; !strings.Contains(last, " interval_seconds=3.5 arrivals=20 ") {
		t.Errorf("the interval is not the one that was: %s", last)
	}
}

// What is want of capacity begins an overload, each reason by itself; what is wrong with a request,
// or a limiter that shuts down, has its line and is none.
func TestWhatIsAnOverload(t *testing.T) {
	overload := map[goodput.Reason]bool{}
	for _, r := range []goodput.Reason{goodput.QueueFull, goodput.BytesFull, goodput.NoBudget, goodput.Shed, goodput.Displaced, goodput.WaitBound, goodput.Doomed} {
		overload[r] = true
	}
	for i := 1; i < len(goodput.Stats{}.Refusals); i++ {
		r := goodput.Reason(i)
		var log bytes.Buffer
		w := New(slog.New(slog.NewTextHandler(&log, nil)))
		s := goodput.Stats{Name: "default"}
		s.Derivation.Reachable = true
		w.Step(time.Unix(0, 0), s)
		s.Refusals[i] = 3
		log.Reset()
		w.Step(time.Unix(1, 0), s)
		began := slices.Contains(messages(log.String()), "overload began")
		if began != r.ForCapacity() {
			t.Errorf("%v: an overload began: %v, for want of capacity: %v", r, began, r.ForCapacity())
		}
		if began != overload[r] {
			t.Errorf("%v: an overload began: %v", r, began)
		}
	}
}
