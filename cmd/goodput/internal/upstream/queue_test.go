package upstream

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// One queue, several servers: a limiter before a pool, wired as the proxy does.

// before puts a limiter before the pool of w.
func (w *world) before(cfg goodput.Config) *goodput.Limiter {
	l := goodput.New(cfg)
	slots, fixed := cfg.Limit.(limit.Fixed)
	stop := w.pool.Watch(func(c Capacity) {
		if fixed && c.Limit > 0 {
			l.SetLimit(c.Scale(int(slots))) // a number in range is no error
		}
		l.SetPresent(c.Present) // after the limit, or all that it was before come at once
	})
	w.Cleanup(stop)
	return l
}

// through sends one request through l.
func (w *world) through(ctx context.Context, l *goodput.Limiter) error {
	slot, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	_, err = w.ask(http.MethodGet, nil)
	slot.Fail(err)
	return err
}

// serves has a host take so long for each request.
func (h *host) serves(d time.Duration) {
	h.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(d) })
}

// each gives every server a limit.
func each(n int) func(*config.Upstream) {
	return func(u *config.Upstream) {
		for i := range u.Servers {
			u.Servers[i].Limit = n
		}
	}
}

// F34, late binding: of three servers with two slots each one is 20 times as slow. While
// anybody waits no slot of any server is free, so the fast ones serve what they can; had each
// request its server when it comes, in turn, all would go at the pace of the slow one.
func TestNextFreeSlotTakesTheNextRequest(t *testing.T) {
	const fast, slow, length = 5 * time.Millisecond, 100 * time.Millisecond, 4 * time.Second
	run := func(request func(w *world, l *goodput.Limiter, n int) error, begin func()) (served float64) {
		play(t, 3, each(2), func(w *world) {
			for name, h := range w.hosts {
				h.serves(map[bool]time.Duration{true: slow, false: fast}[name == "a"])
			}
			l := w.before(goodput.Config{Limit: limit.Fixed(6), Depth: 100, MaxWait: time.Hour})
			begin()
			var all sync.WaitGroup
			var mu sync.Mutex
			n, begun := 0, time.Now()
			for range 12 {
				all.Go(func() {
					for time.Since(begun) < length {
						mu.Lock()
						n++
						turn := n
						mu.Unlock()
						if err := request(w, l, turn); err != nil {
							t.Error(err)
						}
						mu.Lock()
						served++
						mu.Unlock()
					}
				})
			}
			time.Sleep(500 * time.Microsecond) // between two ends
			for time.Since(begun) < length {
				synctest.Wait()
				if s := l.Stats(); s.Waiting > 0 {
					for i, in := range w.pool.in() {
						if in != 2 {
							t.Errorf("at %v %d wait, and server %d has %d of 2 in flight", time.Since(begun), s.Waiting, i, in)
						}
					}
				}
				time.Sleep(time.Millisecond)
			}
			all.Wait()
		})
		return served / length.Seconds()
	}
	late := run(func(w *world, l *goodput.Limiter, _ int) error { return w.through(context.Background(), l) }, func() {})
	// Each server has a queue of its own, and requests come in turn.
	var queues [3]chan bool
	turns := run(func(w *world, _ *goodput.Limiter, n int) error {
		queue := queues[n%3]
		queue <- true
		time.Sleep(map[bool]time.Duration{true: slow, false: fast}[n%3 == 0])
		<-queue
		return nil
	}, func() {
		for i := range queues {
			queues[i] = make(chan bool, 2)
		}
	})
	t.Logf("late binding serves %.0f/s, queues of their own, filled in turn, %.0f/s", late, turns)
	// 2/5ms + 2/5ms + 2/100ms = 820/s, less the first and the last of 6 slots in 4 s.
	if late < 820*0.99 {
		t.Errorf("%.0f/s were served, want 820", late)
	}
	if turns > late/10 {
		t.Errorf("in turn %.0f/s are served", turns)
	}
}

// All servers go down at once: who comes waits for MaxAbsence and is refused as unavailable. When
// they are back who waits is served, and the limit grows with the share of the servers.
func TestAllDownAndBack(t *testing.T) {
	play(t, 2, each(10), func(w *world) {
		for _, h := range w.hosts {
			h.serves(10 * time.Millisecond)
		}
		l := w.before(goodput.Config{Limit: limit.Fixed(20), Depth: 1000, MaxWait: time.Hour, MaxAbsence: 1500 * time.Millisecond})
		for _, h := range w.hosts {
			h.set(true, false)
		}
		tried := 0
		for ; w.pool.Capacity().Present; tried++ {
			if err := w.through(context.Background(), l); err == nil {
				t.Error("served by nobody")
			}
		}
		if tried != 3 { // each of them fails at both servers
			t.Errorf("%d requests until both servers are out", tried)
		}
		for range 5 {
			begun := time.Now()
			err := w.through(context.Background(), l)
			var r *goodput.Rejection
			if !errors.As(err, &r) || r.Reason != goodput.Unavailable || r.RetryAfter < time.Second {
				t.Errorf("%v", err)
			}
			if waited := time.Since(begun); waited != 1500*time.Millisecond {
				t.Errorf("refused after %v", waited)
			}
		}
		text := strings.Join(strings.Fields(l.Explain()), " ") // without its line breaks
		if !strings.Contains(text, "nothing to run work on since") || !strings.Contains(text, "unavailable after 1.5s") {
			t.Error(text)
		}
		w.hosts["a"].set(false, false)
		w.hosts["b"].set(false, false)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				if err := w.through(context.Background(), l); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(7 * time.Millisecond)
		}
		most := func() (in int64) {
			for _, n := range w.pool.in() {
				in += n
			}
			return in
		}
		for l.Stats().Absent {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		first := l.Stats().Limit
		if first < 1 || first > 2 || most() > 2 { // a tenth of 10 or of 20
			t.Errorf("at first the limit is %d and %d are in flight", first, most())
		}
		all.Wait()
		time.Sleep(2*time.Second + 10*time.Second)
		if s := l.Stats(); s.Limit != 20 {
			t.Errorf("after the slow start the limit is %d", s.Limit)
		}
	})
}

// A gap of half a second in the only server loses nothing but the first three that find it, and
// a rolling restart of three servers nothing at all.
func TestGapAndRollingRestart(t *testing.T) {
	for servers, lost := range map[int]int{1: 3, 3: 0} {
		play(t, servers, nil, func(w *world) {
			for _, h := range w.hosts {
				h.serves(5 * time.Millisecond)
			}
			l := w.before(goodput.Config{Limit: limit.Fixed(30), Depth: 1000, MaxWait: time.Hour})
			var all sync.WaitGroup
			var mu sync.Mutex
			failed, sent := 0, 0
			stop := time.Now().Add(time.Duration(servers) * 3 * time.Second)
			for time.Now().Before(stop) {
				sent++
				all.Go(func() {
					if err := w.through(context.Background(), l); err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
					}
				})
				time.Sleep(10 * time.Millisecond)
				at := time.Until(stop) % (3 * time.Second)
				name := "abc"[int(time.Until(stop)/(3*time.Second))%3:][:1]
				if h := w.hosts[name]; h != nil {
					h.set(at > time.Second && at <= 1500*time.Millisecond, false)
				}
			}
			all.Wait()
			t.Logf("%d servers: %d of %d failed; %d refused", servers, failed, sent, l.Stats().Refusals[goodput.Unavailable])
			if failed > lost {
				t.Errorf("%d servers: %d of %d requests failed, at most %d", servers, failed, sent, lost)
			}
		})
	}
}

func TestCapacityScales(t *testing.T) {
	for _, c := range []struct {
		part       float64
		limit, out int
	}{{1, 60, 60}, {2.0 / 3, 60, 40}, {0.1, 60, 6}, {0.1, 3, 1}, {0, 60, 1}, {1, 0, 0}, {1.0 / 3, 3, 1}, {0.7, 10, 7}} {
		if got := (Capacity{Part: c.part}).Scale(c.limit); got != c.out {
			t.Errorf("%v of %d is %d, want %d", c.part, c.limit, got, c.out)
		}
	}
	p := pool(t, 10, 30)
	if c := p.Capacity(); c != (Capacity{Present: true, Part: 1, Limit: 40, Well: 2, Servers: 2}) {
		t.Errorf("%+v", c)
	}
	p.server(1).share.Store(500)
	if c := p.Capacity(); math.Abs(c.Part-25.0/40) > 1e-9 || c.Limit != 40 {
		t.Errorf("%+v", c)
	}
	if c := pool(t, 10, 0).Capacity(); c.Limit != 0 {
		t.Errorf("of one nobody has said a limit, and all have %d", c.Limit)
	}
}
