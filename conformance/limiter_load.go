package conformance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The checks of many callers at once. What runs is counted here, not by the limiter.

// A tally counts who runs.
type tally struct{ running, most atomic.Int64 }

func (t *tally) in() {
	now := t.running.Add(1)
	for m := t.most.Load(); now > m && !t.most.CompareAndSwap(m, now); m = t.most.Load() {
	}
}

func (t *tally) out() { t.running.Add(-1) }

// together runs f in n goroutines and waits for them as long as anybody gets on.
func (e *env) together(n int, what string, f func(who int)) error {
	var wg sync.WaitGroup
	for who := range n {
		wg.Go(func() { e.caught(what, nil, func() { f(who) }) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	return e.progress(done, "%s: %d goroutines", what, n)
}

// checkLimit fills a limiter of 10 with 12 callers, and then has 48 of them come and go.
func checkLimit(e *env) error {
	const limit, callers = 10, 48
	l := e.limiter(limit)
	if err := e.exactly(&l, limit, "of an idle limiter"); err != nil {
		return err
	}
	for burst := range e.rounds(20, "bursts of 12") {
		var twelve []*caller
		for range limit + 2 {
			twelve = append(twelve, e.ask(&l, e.ctx))
		}
		got, err := e.count(twelve, limit, fmt.Sprintf("burst %d of 12 callers at a limit of 10", burst))
		if err != nil {
			return err
		}
		e.soon(&l, 2)
		if n := admitted(twelve); n > limit {
			return fmt.Errorf("burst %d: %d of 12 callers run at a limit of 10", burst, n)
		}
		for _, c := range got {
			c.release()
		}
		for _, c := range twelve {
			if err := e.await(c.done, "burst %d: the last two of 12", burst); err != nil {
				return err
			}
			if c.err == nil && !slices.Contains(got, c) {
				c.release()
			}
		}
	}
	var t tally
	err := e.together(callers, "acquire and release at a limit of 10", func(who int) {
		rng := e.rng(who)
		for range e.rounds(e.times(200), "slots of each of 48 callers") {
			release, err := l.take(e.ctx)
			if err != nil {
				runtime.Gosched()
				continue
			}
			t.in()
			for range rng.IntN(3) {
				runtime.Gosched()
			}
			t.out()
			release()
		}
	})
	if err != nil {
		return err
	}
	if most := t.most.Load(); most > limit {
		return fmt.Errorf("%d ran at once at a limit of %d", most, limit)
	}
	return e.exactly(&l, limit, "after the load")
}

// A caller of cancel-race leaves within span of its asking, evenly drawn. It is doubled by who
// has left and halved by who has got a slot, so that half of them do, however long that
// takes: the moment of admission is where most of them leave.
const (
	firstSpan = 12  // microseconds, or what is shorter:
	yields    = 200 // up to which as many yields are made instead, as timers are not so exact
)

// checkCancelRace has callers leave at any moment, that of their admission among them. On one
// processor chance does not meet that: so who gives back a slot makes another leave in the
// same breath, before or after it, with no turn of anybody else in between.
func checkCancelRace(e *env) error {
	const limit, callers = 2, 12
	l := e.limiter(limit)
	var t tally
	var cancels [callers]atomic.Pointer[context.CancelFunc]
	var got, left, last atomic.Int64 // last: when somebody got a slot
	began := time.Now()
	err := e.together(callers, "callers that leave at any moment", func(who int) {
		rng, span := e.rng(who), firstSpan
		for range e.rounds(e.times(400), "calls of each of 12 callers") {
			ctx, cancel := context.WithCancel(e.ctx)
			cancels[who].Store(&cancel)
			stop := leaves(cancel, rng.IntN(span))
			release, err := l.Acquire(ctx)
			if err != nil {
				left.Add(1)
				if time.Since(began)-time.Duration(last.Load()) > e.patience {
					return // the slots are gone, or it needs more than patience for one
				}
				span = min(2*span, max(int(e.patience/time.Microsecond), firstSpan))
				continue
			}
			span = max(span/2, firstSpan)
			got.Add(1)
			last.Store(int64(time.Since(began)))
			t.in()
			runtime.Gosched()
			t.out()
			back(release, cancels[rng.IntN(callers)].Load(), rng.IntN(4))
			stop()
		}
	})
	if err != nil {
		return err
	}
	if most := t.most.Load(); most > limit {
		return fmt.Errorf("%d ran at once at a limit of %d while callers left", most, limit)
	}
	if got.Load() == 0 {
		return fmt.Errorf("of %d callers, some of which were ready to wait for %v, nobody was admitted", left.Load(), e.patience)
	}
	return e.exactly(&l, limit, fmt.Sprintf("after %d callers got a slot and %d left at any moment", got.Load(), left.Load()))
}

// back gives back a slot, and in two of four ways has another caller leave, nil if there has
// been none.
func back(release func(), other *context.CancelFunc, way int) {
	if other != nil && way == 0 {
		(*other)()
	}
	release()
	if other != nil && way == 1 {
		(*other)()
	}
}

// leaves has cancel called at a moment, and returns what calls it at once.
func leaves(cancel context.CancelFunc, moment int) (stop func()) {
	if moment < yields {
		go func() {
			for range moment {
				runtime.Gosched()
			}
			cancel()
		}()
		return cancel
	}
	t := time.AfterFunc(time.Duration(moment)*time.Microsecond, cancel)
	return func() {
		t.Stop()
		cancel()
	}
}

// checkLostWakeup waits for each burst: one that has no end is found however many went well.
func checkLostWakeup(e *env) error {
	const callers = 4
	bursts := e.times(4000)
	l := e.limiter(1)
	var t tally
	for i := range e.rounds(bursts, "bursts") {
		if err := e.burst(&l, callers, &t); err != nil {
			return fmt.Errorf("burst %d of %d: %w", i+1, bursts, err)
		}
	}
	if t.most.Load() > 1 {
		return fmt.Errorf("%d ran at once on one slot", t.most.Load())
	}
	return e.exactly(&l, 1, "after the bursts")
}

// burst has callers take the slot one after the other.
func (e *env) burst(l *Limiter, callers int, t *tally) error {
	refusals := make(chan error, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			release, err := l.Acquire(e.ctx)
			if err != nil {
				refusals <- err
				return
			}
			t.in()
			runtime.Gosched()
			t.out()
			release()
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	if err := e.progress(done, "it did not end, of %d callers on one slot", callers); err != nil {
		return err
	}
	select {
	case err := <-refusals:
		return fmt.Errorf("one of %d callers was refused: %w", callers, err)
	default:
		return nil
	}
}

const (
	// manyCancelled wait at once: a search through all of them shows as time (100,000 x
	// 100,000 / 2 steps), and so does what is woken for nothing. Each is a goroutine of 2 to
	// 4 kB.
	manyCancelled = 100_000

	// mostRaced is how many wait at once under the race detector, which ends a program with
	// more than 8,128 goroutines, those of other tests included.
	mostRaced = 4_000

	// leftBytes is what each caller may leave behind. The least that one could is a pointer
	// to something: 8 + 16 bytes. The slack is for the noise of the heap of the process.
	leftBytes = 16
	slack     = 512 << 10
)

// checkManyCancelled has all of them wait and leave twice: what a limiter keeps to have room
// for so many, and the runtime of their goroutines, is kept after the first time.
func checkManyCancelled(e *env) error {
	l := e.limiter(1)
	held, err := e.hold(&l, 1, "at first")
	if err != nil {
		return err
	}
	many, err := e.many(&l, e.times(manyCancelled))
	if err != nil {
		return err
	}
	atOnce, waves := many, 1
	if raced {
		atOnce = min(many, mostRaced)
		waves = (many + atOnce - 1) / atOnce
	}
	refused, err := e.leave(&l, atOnce)
	if err != nil {
		return err
	}
	bytes, goroutines := footprint()
	for range waves {
		if _, err := e.leave(&l, atOnce); err != nil {
			return err
		}
	}
	bytesAfter, goroutinesAfter := footprint()
	many = waves * atOnce
	if more := goroutinesAfter - goroutines; more > many/100 {
		return fmt.Errorf("%d goroutines more than before, after %d callers have left", more, many)
	}
	if more := bytesAfter - bytes; more > int64(leftBytes*many)+slack {
		return fmt.Errorf("%d bytes more than before, after %d callers have left: %d each", more, many, more/int64(many))
	}
	held[0].release()
	if err := e.exactly(&l, 1, fmt.Sprintf("after %d callers have left the queue", many)); err != nil {
		return err
	}
	if refused > 0 {
		return note(fmt.Sprintf("of %d callers at once %d were refused and did not wait: the queue is shorter", atOnce, refused))
	}
	return nil
}

// many is how many of n can wait and leave in the time of a check, going by a hundredth of
// them.
func (e *env) many(l *Limiter, n int) (int, error) {
	few := max(n/100, 1)
	began := time.Now()
	if _, err := e.leave(l, few); err != nil {
		return 0, err
	}
	each := max(time.Since(began)/time.Duration(few), 1)
	if most := int(e.whole / each); most < n {
		most = max(most, few)
		e.cut("callers", most, n)
		return most, nil
	}
	return n, nil
}

// leave has n callers wait at once and leave together. It returns how many were told no
// before that.
func (e *env) leave(l *Limiter, n int) (refused int64, err error) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var asked, admitted, early atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			asked.Add(1)
			if _, err := l.Acquire(ctx); err == nil {
				admitted.Add(1)
			} else if ctx.Err() == nil {
				early.Add(1)
			}
		})
	}
	e.until(func() (int, bool) {
		there := asked.Load()
		if there == int64(n) && l.Waiting != nil {
			there = int64(l.Waiting()) + early.Load()
		}
		return int(there), there >= int64(n)
	}, func() { time.Sleep(time.Millisecond) }) // who asks how many wait holds them up
	e.soon(nil, n) // the last ones are on their way where nobody counts those that wait
	refused = early.Load()
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	if err := e.progress(done, "%d callers that waited at once and have left", n); err != nil {
		return 0, err
	}
	if n := admitted.Load(); n > 0 {
		return 0, fmt.Errorf("%d were admitted while the only slot was held", n)
	}
	return refused, nil
}

// footprint is what is in use once nothing is left to be collected.
func footprint() (bytes int64, goroutines int) {
	var m runtime.MemStats
	for range 3 { // finalizers, and pools that keep a generation
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), runtime.NumGoroutine()
}
