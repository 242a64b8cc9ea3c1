package goodput

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestEvery(t *testing.T) {
	for _, c := range []struct {
		rate float64
		k    uint32
	}{
		{0, 1}, {1, 1}, {10_000, 1}, {10_001, 2}, {20_000, 2}, {45_000, 8}, {640_000, 64}, {70e6, 64}, {math.Inf(1), 64},
	} {
		if k := every(c.rate); k != c.k {
			t.Errorf("%v/s: one in %d, want %d", c.rate, k, c.k)
		}
	}
}

// rate sends n requests per second for a second, each of the given time.
func rate(l *Limiter, n int, took time.Duration) {
	const step = 10 * time.Millisecond
	var wg sync.WaitGroup
	for range time.Second / step {
		for range n / 100 {
			wg.Go(func() {
				slot, err := l.Acquire(context.Background())
				if err != nil {
					return
				}
				time.Sleep(took)
				slot.Release()
			})
		}
		time.Sleep(step)
	}
	wg.Wait()
}

// Below 10,000 requests per second every one is timed, above a part of them, and
// below again every one: the counters are exact all the time.
func TestSamplingFollowsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(10_000), Objective: 400 * time.Millisecond})
		counted := func() uint64 { // each that is timed counts for all that it stands for
			if h := l.Stats().Service[Completed]; h != nil {
				return h.Count
			}
			return 0
		}
		rate(l, 5000, 5*time.Millisecond)
		if n := counted(); n != 5000 || l.rec.epochs.Load().every != 1 {
			t.Errorf("5,000/s: %d counted, want 5,000, by timing each and not one in %d", n, l.rec.epochs.Load().every)
		}
		before := counted()
		rate(l, 40_000, 5*time.Millisecond)
		// Of each of some twenty windows up to 8 that begin with it are not timed, or 8 more are
		// meant than there were; and what is timed on each word of the slots that are lent likewise.
		if n, of := counted()-before, l.rec.epochs.Load().every; n < 40_000-20*8*4 || n > 40_000+20*8*4 || of != 4 && of != 8 {
			t.Errorf("40,000/s: %d counted, want about as many, by timing one in %d, want 4 or 8", n, of)
		}
		rate(l, 1000, 5*time.Millisecond) // 64 at most are missed until somebody notices
		before = counted()
		rate(l, 1000, 5*time.Millisecond)
		if n := counted() - before; n != 1000 || l.rec.epochs.Load().every != 1 {
			t.Errorf("1,000/s again: %d counted, want 1,000, by timing each and not one in %d", n, l.rec.epochs.Load().every)
		}
		s := l.Stats()
		if s.Outcomes[Completed] != 47_000 || s.Arrivals != 47_000 {
			t.Errorf("%d of %d completed, want 47,000: counters are exact", s.Outcomes[Completed], s.Arrivals)
		}
		if d := s.Derivation.Mean; d < 4900*time.Microsecond || d > 5100*time.Microsecond {
			t.Errorf("mean %v, want 5ms", d)
		}
		checkEmpty(t, l)
	})
}

// What is not timed is in time or late like the last one that was.
func TestUntimedGoesTheWayOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(100), Objective: 100 * time.Millisecond})
		l.rec.mask.Store(1) // one in two
		for _, took := range []time.Duration{200 * time.Millisecond, time.Millisecond} {
			late := took > 100*time.Millisecond
			before := l.Stats().Outcomes
			l.rec.mask.Store(1)
			timed, untimed := mustAcquire(t, l), mustAcquire(t, l)
			if timed.start == 0 || untimed.start != 0 {
				t.Fatalf("started at %v and %v, want the first timed", timed.start, untimed.start)
			}
			time.Sleep(took)
			timed.Release()
			untimed.Release()
			s := l.Stats()
			if n := s.Outcomes[Late] - before[Late]; late != (n == 2) || !late && s.Outcomes[Completed]-before[Completed] != 2 {
				t.Errorf("took %v: outcomes %v after %v", took, s.Outcomes, before)
			}
		}
		checkEmpty(t, l)
	})
}

func TestExplainSaysTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "search", Limit: limit.Fixed(2), Objective: 400 * time.Millisecond, Service: 20 * time.Millisecond})
		says := func(want string) {
			t.Helper()
			if text := l.Explain(); !strings.Contains(flat(text), flat(want)) {
				t.Errorf("want %q in\n%s", want, text)
			}
		}
		says("search: idle\n")
		says("depth    " + l.Stats().Derivation.String())
		first := mustAcquire(t, l)
		says("search: busy")
		second := mustAcquire(t, l)
		says("search: at the admission boundary")
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, _ = l.Acquire(ctx) }()
		synctest.Wait()
		says("search: burst")
		cancel()
		synctest.Wait()
		says("refused  client 1")
		first.Release()
		second.Release()
		var load sync.WaitGroup
		load.Go(func() { rate(l, 300, 20*time.Millisecond) })
		// 3x what it serves, and the queue has stood for two objectives.
		time.Sleep(950 * time.Millisecond)
		says("search: saturated and doing its job")
		says("in force, what keeps the slots busy at load")
		load.Wait()
		if err := l.SetLimit(0); err != nil {
			t.Fatal(err)
		}
		says("search: paused")
		if err := l.Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		says("search: drained")
	})
}
