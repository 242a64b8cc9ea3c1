package goodput

import (
	"context"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// counters are those of Stats that never fall.
func counters(s *admission.Stats) []uint64 {
	return slices.Concat([]uint64{s.Arrivals, s.Immediate, s.Dequeued, s.ExemptAdmitted, s.Dropped}, s.Outcomes[:], s.Refusals[:])
}

// A witness looks at a limiter again and again.
type witness struct {
	l       *Limiter
	was     [2][]uint64
	looks   int
	watched int // of them, those at which something observed ran
	both    int // of these, those after it was switched off
}

// look asserts what holds in every snapshot, however often the switch is turned.
func (w *witness) look(t *testing.T) {
	s := w.l.Stats()
	w.looks++
	now := w.l.enter()
	if n := w.l.waiting.len(); n > 0 && w.l.observe.Load() {
		t.Errorf("%d really wait while the limiter observes", n)
	}
	w.l.leave(now)
	for i, part := range []*admission.Stats{&s.Stats, &s.Shadow} {
		checkCounts(t, Stats{Stats: *part})
		if part.Running < 0 || part.InUse < part.Running || part.Waiting < 0 || part.WaitingCost < part.Waiting || part.WaitingBytes < 0 || part.Age < 0 {
			t.Errorf("part %d: %+v", i, part)
		}
		waiting := 0
		for _, n := range part.WaitingBy {
			waiting += n
		}
		if waiting != part.WaitingCost {
			t.Errorf("part %d: %v wait, of cost %d", i, part.WaitingBy, part.WaitingCost)
		}
		now := counters(part)
		for j, n := range now {
			if w.was[i] != nil && n < w.was[i][j] {
				t.Errorf("part %d: counter %d fell from %d to %d", i, j, w.was[i][j], n)
			}
		}
		w.was[i] = now
	}
	if s.Shadow.Running+s.Shadow.Waiting > 0 {
		w.watched++
		if !s.Observe {
			w.both++
		}
	}
}

// Real goroutines that run, wait, are refused and leave, while the switch is turned all the time.
// In every snapshot each arrival is counted once, in what happened and in the shadow; no counter
// falls; and nothing is left. Run it with -race. (F28)
func TestStressSwitches(t *testing.T) {
	for i := range 2 {
		cfg := stressConfig()
		l := New(cfg)
		before := runtime.NumGoroutine()
		s := &load{l: l, workers: 48, ops: 400, until: time.Now().Add(stress(t)), pause: spin, seed: stressSeed(t), shared: i == 1, turns: true}
		var over atomic.Bool
		w := witness{l: l}
		var wg sync.WaitGroup
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(s.seed, 1<<32))
			for n := 0; !over.Load() && !t.Failed(); n++ {
				if n%3 == 0 {
					mustObserve(t, l, rng.IntN(2) == 0)
				}
				w.look(t)
				runtime.Gosched()
			}
		})
		s.run()
		over.Store(true)
		wg.Wait()
		mustObserve(t, l, false)
		w.look(t)
		checkEmpty(t, l)
		if d := l.Stats().Shadow; d.Running != 0 || d.InUse != 0 || d.Waiting != 0 || d.WaitingBytes != 0 || d.Arrivals == 0 {
			t.Errorf("left in the shadow: %+v", d)
		}
		if n := l.watched.waiting.len() + l.waiting.len(); n != 0 {
			t.Errorf("%d waiters are left", n)
		}
		for range 1_000_000 { // the last ones need no time but their turn: see TestStress
			if runtime.NumGoroutine() <= before {
				break
			}
			runtime.Gosched()
		}
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines more than before", n-before)
		}
		t.Logf("%d looks, %d with observed ones, %d of these switched off", w.looks, w.watched, w.both)
	}
}

func (q *line) len() (n int) {
	for w := q.first; w != nil; w = w.after {
		n++
	}
	return n
}

// Who always observes has as its shadow what its core says, number for number.
func TestShadowIsWhatTheCoreSays(t *testing.T) {
	seed := stressSeed(t)
	synctest.Test(t, func(t *testing.T) {
		cfg := stressConfig()
		cfg.Observe = true
		l := New(cfg)
		waited := 0
		var over atomic.Bool
		go func() {
			for !over.Load() {
				time.Sleep(3 * time.Millisecond)
				now := l.enter()
				core := l.core.Stats(now)
				_, shadow := l.apart(now, core)
				l.leave(now)
				if !reflect.DeepEqual(core, shadow) {
					t.Errorf("the core  %+v\nthe shadow %+v", core, shadow)
					return
				}
				if shadow.Age > 0 {
					waited++
				}
			}
		}()
		s := &load{l: l, workers: 30, ops: 150, pause: time.Sleep, seed: seed, shared: true}
		s.run()
		over.Store(true)
		if time.Sleep(4 * time.Millisecond); waited < 10 { // it has had its last look
			t.Errorf("somebody waited in %d looks", waited)
		}
	})
}

// A tally is what callers saw themselves.
type tally struct {
	sync.Mutex
	refused           [admission.Reasons]uint64
	completed, failed uint64
	runs              int // now
	most              int // of that while the switch has been off and nothing observed ran
}

// The counters of what happened against what the callers saw, over a random run in which the switch
// is turned 200 times: every refusal that anybody was told, every end of everybody who ran, and
// never more at once than the limit once what was observed has ended.
func TestSwitchesAgainstTheCallers(t *testing.T) {
	const limited = 3
	seed := stressSeed(t)
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(limited), Depth: 6, Objective: 50 * time.Millisecond})
		w := witness{l: l}
		var saw tally
		clean := atomic.Bool{} // the switch has been off since nothing observed ran
		clean.Store(true)
		var wg sync.WaitGroup
		for i := range 16 {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for range 250 {
					saw.call(l, rng, &clean)
				}
			})
		}
		rng := rand.New(rand.NewPCG(seed, 1<<32))
		for range 200 {
			on := rng.IntN(2) == 0
			if on {
				clean.Store(false)
			}
			mustObserve(t, l, on)
			w.look(t)
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			w.look(t)
			if s := l.Stats(); !s.Observe && s.Shadow.Running == 0 && l.observedRunning() == 0 && s.InUse <= limited {
				clean.Store(true)
			}
		}
		wg.Wait()
		mustObserve(t, l, false)
		w.look(t)
		checkEmpty(t, l)
		s := l.Stats()
		if s.Refusals != saw.refused {
			t.Errorf("refusals %v, callers were told %v", s.Refusals, saw.refused)
		}
		if s.Outcomes[Completed]+s.Outcomes[Late] != saw.completed || s.Outcomes[Failed] != saw.failed {
			t.Errorf("outcomes %v, callers saw %d completed and %d failed", s.Outcomes, saw.completed, saw.failed)
		}
		if saw.most > limited {
			t.Errorf("%d ran at once on a limit of %d", saw.most, limited)
		}
		if w.both == 0 || s.Refusals[QueueFull]+s.Refusals[Displaced] == 0 || s.Dequeued == 0 || s.Shadow.Dequeued == 0 || saw.most == 0 {
			t.Errorf("the run proves nothing: %+v of %+v, most %d", w.both, s.Stats, saw.most)
		}
		t.Logf("%d arrivals, %d of them observed; refused %v", s.Arrivals, s.Shadow.Arrivals, s.Refusals)
	})
}

func (l *Limiter) observedRunning() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watched.ran.running
}

// call makes one request and counts what came of it.
func (a *tally) call(l *Limiter, rng *rand.Rand, clean *atomic.Bool) {
	time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
	took, fails := time.Duration(rng.IntN(20))*time.Millisecond, rng.IntN(4) == 0
	slot, err := l.AcquireWork(context.Background(), Work{Priority: Priority(rng.IntN(5)), Bytes: int64(rng.IntN(100))})
	a.Lock()
	if err != nil {
		a.refused[reason(err)]++
		a.Unlock()
		return
	}
	if a.runs++; clean.Load() {
		a.most = max(a.most, a.runs)
	}
	a.Unlock()
	time.Sleep(took)
	a.Lock()
	defer a.Unlock()
	a.runs--
	if fails {
		a.failed++
		slot.Fail(errWork)
		return
	}
	a.completed++
	slot.Release()
}
