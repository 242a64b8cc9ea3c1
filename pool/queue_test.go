package pool

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A made is what became of the tasks of a test, by name.
type made struct {
	t     *testing.T
	p     *Pool
	mu    sync.Mutex
	began []string // in this order
	ended map[string]goodput.Reason
	all   sync.WaitGroup
}

// submit hands in a task of 100 ms, and notes what becomes of it.
func (m *made) submit(ctx context.Context, name string, w goodput.Work) {
	m.t.Helper()
	task, err := Submit(ctx, m.p, w, func(context.Context) (string, error) {
		m.mu.Lock()
		m.began = append(m.began, name)
		m.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		return name, nil
	})
	if err != nil {
		m.note(name, reason(err))
		return
	}
	synctest.Wait()
	m.all.Go(func() {
		value, err := task.Wait(context.Background())
		if err == nil && value != name {
			m.t.Errorf("%s was given the value of %s", name, value)
		}
		m.note(name, reason(err))
	})
}

func (m *made) note(name string, why goodput.Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, twice := m.ended[name]; twice {
		m.t.Errorf("%s has a second outcome", name)
	}
	m.ended[name] = why
}

// The policies of the queue are those of the limiter, and everybody hears what became of
// its task. One slot, two places; each task takes 100 ms; a runs, b and c wait.
func TestOverflow(t *testing.T) {
	none := goodput.None
	for _, c := range []struct {
		name  string
		cfg   goodput.Config
		come  func(ctx context.Context, m *made)
		want  map[string]goodput.Reason
		began []string
	}{
		{
			"displace",
			goodput.Config{Overflow: goodput.Displace},
			func(ctx context.Context, m *made) {
				m.submit(ctx, "d", goodput.Work{Priority: goodput.Critical})
				m.submit(ctx, "e", goodput.Work{Priority: goodput.Background})
			},
			map[string]goodput.Reason{"a": none, "b": none, "c": goodput.Displaced, "d": none, "e": goodput.Shed},
			[]string{"a", "d", "b"},
		},
		{
			"refuse newest",
			goodput.Config{Overflow: goodput.RefuseNewest},
			func(ctx context.Context, m *made) {
				m.submit(ctx, "d", goodput.Work{Priority: goodput.Critical})
			},
			map[string]goodput.Reason{"a": none, "b": none, "c": none, "d": goodput.QueueFull},
			[]string{"a", "b", "c"},
		},
		{
			"evict oldest",
			goodput.Config{Overflow: goodput.EvictOldest},
			func(ctx context.Context, m *made) {
				m.submit(ctx, "d", goodput.Work{})
				m.submit(ctx, "e", goodput.Work{})
			},
			map[string]goodput.Reason{"a": none, "b": goodput.Displaced, "c": goodput.Displaced, "d": none, "e": none},
			[]string{"a", "d", "e"},
		},
		{
			"block",
			goodput.Config{Overflow: goodput.Block, MaxItems: 3},
			func(ctx context.Context, m *made) {
				m.submit(ctx, "d", goodput.Work{}) // beyond the depth
				m.submit(ctx, "e", goodput.Work{}) // beyond MaxItems
			},
			map[string]goodput.Reason{"a": none, "b": none, "c": none, "d": none, "e": goodput.QueueFull},
			[]string{"a", "b", "c", "d"},
		},
		{
			"deadlines",
			goodput.Config{Service: 100 * time.Millisecond},
			func(ctx context.Context, m *made) {
				time.Sleep(250 * time.Millisecond) // c runs, and a service of 100 ms is known
				m.submit(ctx, "d", goodput.Work{Deadline: time.Now().Add(40 * time.Millisecond)})
				late, cancel := context.WithTimeout(ctx, time.Second)
				m.all.Go(func() { time.Sleep(time.Second); cancel() })
				m.submit(late, "e", goodput.Work{})
				m.submit(ctx, "f", goodput.Work{Deadline: time.Now().Add(-time.Millisecond)})
			},
			map[string]goodput.Reason{"a": none, "b": none, "c": none, "d": goodput.NoBudget, "e": none, "f": goodput.Deadline},
			[]string{"a", "b", "c", "e"},
		},
		{
			// d would be served at 300 ms if nobody overtook it, and must begin by about 390 ms
			// (the prior's p99 is 4.6 means); with e and f before it it would begin at 500 ms.
			"doomed",
			goodput.Config{Service: 100 * time.Millisecond, Depth: 4},
			func(ctx context.Context, m *made) {
				time.Sleep(150 * time.Millisecond)
				m.submit(ctx, "d", goodput.Work{Deadline: time.Now().Add(700 * time.Millisecond)})
				m.submit(ctx, "e", goodput.Work{Priority: goodput.Critical})
				m.submit(ctx, "f", goodput.Work{Priority: goodput.Critical})
			},
			map[string]goodput.Reason{"a": none, "b": none, "c": none, "d": goodput.Doomed, "e": none, "f": none},
			[]string{"a", "b", "e", "f", "c"},
		},
		{
			"a bound",
			goodput.Config{MaxWait: 150 * time.Millisecond},
			func(context.Context, *made) {},
			map[string]goodput.Reason{"a": none, "b": none, "c": goodput.WaitBound},
			[]string{"a", "b"},
		},
		{
			"the caller leaves",
			goodput.Config{},
			func(ctx context.Context, m *made) {
				time.Sleep(110 * time.Millisecond)
				left, leave := context.WithCancel(ctx)
				m.submit(left, "d", goodput.Work{})
				leave()
			},
			map[string]goodput.Reason{"a": none, "b": none, "c": none, "d": goodput.Client},
			[]string{"a", "b", "c"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.cfg.Limit, c.cfg.Order, c.cfg.Objective = limit.Fixed(1), goodput.FIFO, time.Minute
				if c.cfg.Depth == 0 {
					c.cfg.Depth = 2
				}
				m := &made{t: t, p: New(goodput.New(c.cfg), Unchanged), ended: map[string]goodput.Reason{}}
				for _, name := range []string{"a", "b", "c"} {
					m.submit(t.Context(), name, goodput.Work{})
				}
				c.come(t.Context(), m)
				m.all.Wait()
				synctest.Wait()
				for name, want := range c.want {
					if got, ok := m.ended[name]; !ok || got != want {
						t.Errorf("%s ended as %q (%v), want %q", name, got, ok, want)
					}
				}
				if !slices.Equal(m.began, c.began) {
					t.Errorf("began %v, want %v", m.began, c.began)
				}
				empty(t, m.p)
			})
		})
	}
}

// Of a key the latest is kept, in the place of the one before it.
func TestLatestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: 2, Order: goodput.FIFO, Overflow: goodput.LatestOnly, Objective: time.Minute}), Unchanged)
		m := &made{t: t, p: p, ended: map[string]goodput.Reason{}}
		for _, name := range []string{"busy", "1", "2"} {
			m.submit(t.Context(), name, goodput.Work{Key: name})
		}
		for _, again := range []string{"1'", "1''", "2'"} {
			m.submit(t.Context(), again, goodput.Work{Key: again[:1]})
		}
		m.all.Wait()
		for _, name := range []string{"1", "1'", "2"} {
			if m.ended[name] != goodput.Replaced {
				t.Errorf("%s: %v", name, m.ended[name])
			}
		}
		if want := []string{"busy", "1''", "2'"}; !slices.Equal(m.began, want) {
			t.Errorf("began %v, want %v", m.began, want)
		}
		synctest.Wait()
		empty(t, p)
	})
}

// Cost is how many threads a task uses: a limit of 4 runs one of 4, or one of 3 and one
// of 1.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(4, 100)
		m := &made{t: t, p: p, ended: map[string]goodput.Reason{}}
		at := map[int]int{}
		for i, cost := range []int{4, 3, 1, 2, 2} {
			m.submit(t.Context(), string(rune('a'+i)), goodput.Work{Cost: cost})
		}
		for range 3 {
			s := p.Stats().Limiter
			at[s.InUse]++
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if at[4] != 3 {
			t.Errorf("in use: %v, want 4 three times", at)
		}
		m.all.Wait()
		if time.Since(start(t)) != 300*time.Millisecond {
			t.Errorf("took %v, want 300ms", time.Since(start(t)))
		}
		empty(t, p)
	})
}

// Start is backpressure: the producer goes at the pace of the pool and has no more tasks
// under way than there are slots. Submit under Block does not wait.
func TestStartAtThePaceOfThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(goodput.New(goodput.Config{Limit: limit.Fixed(2), Overflow: goodput.Block, MaxWait: time.Hour, Objective: time.Second}), Unchanged)
		var tasks []*Task[int]
		for i := range 10 {
			task, err := Start(t.Context(), p, goodput.Work{}, sleep(time.Second, i))
			if err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, task)
			if s := p.Stats(); s.Running > 2 || s.Limiter.Waiting != 0 {
				t.Errorf("%d run, %d wait", s.Running, s.Limiter.Waiting)
			}
		}
		if took := time.Since(start(t)); took != 4*time.Second {
			t.Errorf("ten were started after %v, want 4s: two at a time", took)
		}
		for i, task := range tasks {
			if n, err := task.Wait(t.Context()); n != i || err != nil {
				t.Errorf("task %d: %d, %v", i, n, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for range 2 {
			if _, err := Start(t.Context(), p, goodput.Work{}, sleep(time.Hour, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Start(ctx, p, goodput.Work{}, sleep(0, 0)); reason(err) != goodput.NoBudget {
			t.Errorf("a producer with a deadline: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		empty(t, p)
	})
}

// At three times the load a pool keeps its CPUs busy with tasks that are in time: what was
// admitted ends within the deadline, the rest is told no.
func TestGoodputAtThreeTimesTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, service, deadline = 2, 10 * time.Millisecond, 100 * time.Millisecond
		p := New(goodput.New(goodput.Config{Limit: limit.Fixed(slots), Objective: deadline}), Unchanged)
		var mu sync.Mutex
		inTime, late := 0, 0
		var all sync.WaitGroup
		const n = 6000
		for range n { // 600 a second, of 200 that can be
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, err := Do(ctx, p, goodput.Work{}, sleep(service, 0))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					inTime++
				} else if reason(err) == goodput.None {
					late++
				}
			})
			time.Sleep(service / slots / 3)
		}
		all.Wait()
		// In the n x 5/3 ms of arrivals two slots can serve n/3, the last of them after
		// those; 0.99 is the goodput that is asked of every fixed service.
		if ratio := float64(inTime) / (n / 3); ratio < 0.99 || late > n/300 {
			t.Errorf("goodput %.3f of what can be, %d late", ratio, late)
		}
		t.Logf("%d of %d in time, %d late", inTime, n, late)
		synctest.Wait()
		empty(t, p)
	})
}
