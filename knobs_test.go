package goodput

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Each field of Config and Work that a caller may turn, turned: what changes
// against the default. A field that is not handed on to the core shows here.

// A row is requests that come one after the other to a limiter of one slot that
// is taken, and what each of them was told, in the order in which they were told.
type row struct {
	l   *Limiter
	mu  sync.Mutex
	log []string
}

// join makes a request and lets it come to rest.
func (r *row) join(name string, ctx context.Context, w Work) {
	go func() {
		slot, err := r.l.AcquireWork(ctx, w)
		r.mu.Lock()
		if err == nil {
			name += " admitted"
		} else {
			name += " " + reason(err).String()
		}
		r.log = append(r.log, name)
		r.mu.Unlock()
		slot.Release()
	}()
	synctest.Wait()
}

// told plays a story on a limiter of one slot, then ends what runs, and returns
// what everybody was told.
func told(t *testing.T, cfg Config, story func(r *row)) (log []string) {
	t.Helper()
	cfg.Limit = limit.Fixed(1)
	synctest.Test(t, func(t *testing.T) {
		r := &row{l: New(cfg)}
		slot := mustAcquire(t, r.l)
		story(r)
		slot.Release()
		synctest.Wait()
		checkEmpty(t, r.l)
		log = r.log
	})
	return log
}

func TestKnobs(t *testing.T) {
	bg := context.Background()
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	twoFirsts := func(r *row) {
		r.join("a", bg, Work{})
		r.join("b", bg, Work{})
	}
	retryFirst := func(attempt int) func(r *row) {
		return func(r *row) {
			r.join("a", bg, Work{Attempt: attempt})
			r.join("b", bg, Work{Attempt: 1})
		}
	}
	deadlines := func(r *row) {
		r.join("a", bg, Work{Deadline: ago(-20 * time.Second)})
		r.join("b", bg, Work{Deadline: ago(-10 * time.Second)})
		r.join("c", bg, Work{Deadline: ago(-15 * time.Second)})
	}
	patient := func(r *row) {
		r.join("a", bg, Work{})
		time.Sleep(400 * time.Millisecond)
		synctest.Wait() // an alarm of this instant has rung
	}
	for _, c := range []struct {
		name  string
		cfg   Config
		story func(r *row)
		want  []string
	}{
		{"overflow: default", Config{Depth: 1}, twoFirsts, []string{"b queue_full", "a admitted"}},
		{"overflow: evict oldest", Config{Depth: 1, Overflow: EvictOldest}, twoFirsts, []string{"a displaced", "b admitted"}},

		{"max items: default", Config{Depth: 10}, twoFirsts, []string{"a admitted", "b admitted"}},
		{"max items: 1", Config{Depth: 10, MaxItems: 1}, twoFirsts, []string{"b queue_full", "a admitted"}},

		{"attempt: both first", Config{Depth: 1}, retryFirst(0), []string{"b queue_full", "a admitted"}},
		{"attempt: a retry", Config{Depth: 1}, retryFirst(2), []string{"a displaced", "b admitted"}},

		{"order: default", Config{Depth: 10}, deadlines, []string{"a admitted", "b admitted", "c admitted"}},
		{"order: newest first", Config{Depth: 10, Order: NewestFirst}, deadlines, []string{"c admitted", "b admitted", "a admitted"}},
		{"order: earliest deadline", Config{Depth: 10, Order: EDF}, deadlines, []string{"b admitted", "c admitted", "a admitted"}},

		{"max wait: default, the objective", Config{Depth: 10, Objective: time.Second}, patient, []string{"a admitted"}},
		{"max wait: 400 ms", Config{Depth: 10, Objective: time.Second, MaxWait: 400 * time.Millisecond}, patient, []string{"a wait_bound"}},
		{"max wait: longer than the objective", Config{Depth: 10, Objective: 300 * time.Millisecond, MaxWait: time.Hour}, patient, []string{"a admitted"}},

		{"arrival: the context's", Config{Depth: 10, Order: FIFO}, func(r *row) {
			r.join("a", bg, Work{})
			r.join("b", WithArrival(bg, ago(time.Second)), Work{})
		}, []string{"b admitted", "a admitted"}},
		{"arrival: the work's wins", Config{Depth: 10, Order: FIFO}, func(r *row) {
			r.join("a", bg, Work{})
			r.join("b", WithArrival(bg, ago(time.Second)), Work{Arrival: time.Now()})
			r.join("c", WithArrival(bg, time.Now()), Work{Arrival: ago(2 * time.Second)})
		}, []string{"c admitted", "a admitted", "b admitted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(t, c.cfg, c.story); !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// A lower percentile lets more be late, so more may wait.
func TestPercentileSizesTheQueue(t *testing.T) {
	depth := func(p float64) int {
		return New(Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Percentile: p}).Stats().Derivation.Depth
	}
	if byDefault, p99, p90 := depth(0), depth(0.99), depth(0.9); byDefault != p99 || p90 <= p99 {
		t.Errorf("depth %d by default, %d for the p99, %d for the p90", byDefault, p99, p90)
	}
}

// serveOnce gives the estimator its first sample. It is called in a bubble.
func serveOnce(t *testing.T, l *Limiter) {
	t.Helper()
	slot := mustAcquire(t, l)
	time.Sleep(100 * time.Millisecond)
	slot.Release()
	time.Sleep(time.Second) // until the window is over
	l.Stats()
}

// Work of three times the size needs three times as long.
func TestSizeScalesTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := func(w Work) time.Duration {
			l := New(Config{Limit: limit.Fixed(1), Objective: time.Second})
			serveOnce(t, l) // before, nobody knows what a unit of size takes
			slot := mustAcquire(t, l)
			defer slot.Release()
			w.Deadline = time.Now().Add(30 * time.Millisecond)
			_, err := l.AcquireWork(context.Background(), w)
			if reason(err) != NoBudget {
				t.Fatalf("got %v, want no_budget", err)
			}
			return err.(*Rejection).Service
		}
		one, three := service(Work{}), service(Work{Size: 3})
		if off := three - 3*one; one <= 0 || off.Abs() > 3 { // each is rounded to a nanosecond
			t.Errorf("size 1 needs %v, size 3 needs %v", one, three)
		}
	})
}

func TestExemptIsCapped(t *testing.T) {
	for _, c := range []struct{ exempt, want int }{{0, 8}, {1, 1}, {3, 3}} {
		l := New(Config{Limit: limit.Fixed(1), Depth: NoQueue, Exempt: c.exempt})
		slot := mustAcquire(t, l)
		var probes [10]Slot
		admitted := 0
		for i := range probes {
			var err error
			if probes[i], err = l.AcquireWork(context.Background(), Work{Exempt: true}); err == nil {
				admitted++
			}
		}
		if admitted != c.want {
			t.Errorf("exempt %d: %d probes at once, want %d", c.exempt, admitted, c.want)
		}
		for i := range probes {
			probes[i].Release()
		}
		slot.Release()
		checkEmpty(t, l)
	}
}
