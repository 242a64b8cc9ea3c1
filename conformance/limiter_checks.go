package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// limiterChecks are in the order of what fails first for somebody who writes a limiter:
// the count, then how slots come back, then who waits, then what is optional.
var limiterChecks = []Check{
	{
		Name:    "limit",
		Proves:  "As many as the limit run at once, and never one more.",
		Seen:    []string{"Netflix/concurrency-limits#140", "Netflix/concurrency-limits#233", "kubernetes/kubernetes#134196"},
		missing: needsNothing, run: checkLimit,
	},
	{
		Name:    "limit-zero",
		Proves:  "A limit of 0 admits nobody, or is refused as a configuration; it does not mean unlimited.",
		Seen:    []string{"kubernetes/kubernetes#134213", "kubernetes/kubernetes#138944"},
		missing: needsNothing, run: checkLimitZero,
	},
	{
		Name:    "try",
		Proves:  "The form that never waits takes a slot that is free and says no at once when none is.",
		missing: needsTry, run: checkTry,
	},
	{
		Name:    "no-queue",
		Proves:  "A queue of size 0 refuses at once who finds no slot; it does not mean unbounded.",
		missing: needsNoQueue, run: checkNoQueue,
	},
	{
		Name:    "one-limit",
		Proves:  "Acquire, AcquireCost and Try take from the same slots: what one has taken, no other gives away.",
		missing: needsForms, run: checkOneLimit,
	},
	{
		Name:    "counts",
		Proves:  "InUse and Waiting say how many hold a slot and how many wait for one, 0 of either at rest.",
		missing: needsCounts, run: checkCounts,
	},
	{
		Name:    "do",
		Proves:  "A function that runs in a slot has the context of its caller, is one of as many as the limit, and gives its slot back whatever it returns.",
		missing: needsDo, run: checkDo,
	},
	{
		Name:    "panic",
		Proves:  "Work that panics a thousand times gives back a thousand slots.",
		Seen:    []string{"Netflix/concurrency-limits#190", "zalando/skipper#1054"},
		missing: needsDo, run: checkPanic,
	},
	{
		Name:    "double-release",
		Proves:  "Giving a slot back twice gives back one, or panics without taking the slot of another.",
		Seen:    []string{"llm-d/llm-d-router#2295"},
		missing: needsNothing, run: checkDoubleRelease,
	},
	{
		Name:    "other-goroutine",
		Proves:  "A slot may be given back by another goroutine than the one that took it.",
		missing: needsNothing, run: checkOtherGoroutine,
	},
	{
		Name:    "cancelled-before",
		Proves:  "A context that is over already is never admitted, not even to a free slot, whichever form it uses.",
		Seen:    []string{"golang/go#63615", "golang/go#67723"},
		missing: needsAcquire, run: checkCancelledBefore,
	},
	{
		Name:    "cancel-waiting",
		Proves:  "A caller that leaves while it waits is told so at once, and leaves neither its place nor a slot behind.",
		Seen:    []string{"platinummonkey/go-concurrency-limits#78", "ClickHouse/clickhouse-go#1759"},
		missing: needsAcquire, run: checkCancelWaiting,
	},
	{
		Name:    "deadline-waiting",
		Proves:  "Whoever's deadline passes in the queue never runs, even if a slot comes free in that moment.",
		Seen:    []string{"kubernetes/kubernetes#119799", "zalando/skipper#2266"},
		missing: needsAcquire, run: checkDeadlineWaiting,
	},
	{
		Name:    "cancel-race",
		Proves:  "Callers that leave just as they get a slot neither lose one nor make one.",
		Seen:    []string{"Netflix/concurrency-limits#179", "ClickHouse/clickhouse-go#1759"},
		missing: needsAcquire, run: checkCancelRace,
	},
	{
		Name:    "cancelled-front",
		Proves:  "When who is first in the queue leaves as a slot comes free, the next one gets it.",
		Seen:    []string{"golang/go#37852"},
		missing: needsAcquire, run: checkCancelledFront,
	},
	{
		Name:    "cancelled-large",
		Proves:  "When a caller leaves that wanted more units than were free, those behind it that want less get theirs.",
		Seen:    []string{"golang/go#37852"},
		missing: needsCost, run: checkCancelledLarge,
	},
	{
		Name:    "lost-wakeup",
		Proves:  "In 4,000 bursts of 4 callers on one slot nobody is left waiting.",
		Seen:    []string{"platinummonkey/go-concurrency-limits#154", "platinummonkey/go-concurrency-limits#162"},
		missing: needsAcquire, run: checkLostWakeup,
	},
	{
		Name:    "starvation",
		Proves:  "Who waits is served within 200 turns, whoever comes later. First come, first served is not asked for.",
		Seen:    []string{"golang/go#31708", "golang/go#13327"},
		missing: needsAcquire, run: checkStarvation,
	},
	{
		Name:    "many-cancelled",
		Proves:  "100,000 callers that wait at once and leave together are told so, and leave no memory and no goroutine behind.",
		Seen:    []string{"platinummonkey/go-concurrency-limits#154", "golang/go#35407"},
		missing: needsAcquire, real: true, run: checkManyCancelled,
	},
	{
		Name:    "resize-up",
		Proves:  "A limit that grows by k admits k of those that wait, at once.",
		missing: needsResize, run: checkResizeUp,
	},
	{
		Name:    "resize-down",
		Proves:  "A limit that shrinks keeps counting what runs, and admits nobody until that has followed.",
		missing: needsResize, run: checkResizeDown,
	},
	{
		Name:    "close",
		Proves:  "After Close those that wait get an answer and newcomers are refused, whichever form they use.",
		Seen:    []string{"Netflix/concurrency-limits#179", "kubernetes-sigs/gateway-api-inference-extension#1982"},
		missing: needsClose, run: checkClose,
	},
}

func needsNothing(e *env) string {
	if e.web != nil { // a check of handlers
		return ""
	}
	return needs(e, func(*Limiter) bool { return true }, "")
}

// needs looks at a limiter, which is all that a limiter without a limit could be asked for.
func needs(e *env, has func(*Limiter) bool, why string) string {
	l := e.limiter(1)
	if has(&l) {
		return ""
	}
	return why
}

func needsAcquire(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.Acquire != nil }, "nobody waits in it: it has no Acquire")
}

func needsTry(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.Try != nil }, "it has no Try")
}

func needsForms(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.Acquire != nil && (l.Try != nil || l.AcquireCost != nil) }, "it has one form only")
}

func needsCounts(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.InUse != nil || l.Waiting != nil }, "it does not say how many there are")
}

func needsDo(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.Do != nil }, "it has no form that runs a function")
}

func needsCost(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.AcquireCost != nil }, "every caller takes one unit")
}

func needsResize(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.Resize != nil && l.Acquire != nil }, "its limit does not change while somebody waits")
}

func needsClose(e *env) string {
	return needs(e, func(l *Limiter) bool { return l.Close != nil }, "it cannot be closed")
}

func needsNoQueue(e *env) string {
	if e.noQueue == nil {
		return "it has no queue of a size that can be 0"
	}
	return ""
}

// checkLimitZero takes both for an answer: a panic of the constructor, and a limiter in
// which nobody runs.
func checkLimitZero(e *env) (err error) {
	var l Limiter
	refused := func() (msg any) {
		defer func() { msg = recover() }()
		l = e.factory(0)
		return nil
	}()
	if refused != nil {
		return note(fmt.Sprintf("refused as a configuration: %v", refused))
	}
	l = e.wrap(l)
	how := "told no at once"
	for range 3 {
		c := e.ask(&l, e.ctx)
		e.settle(&l, 1)
		if c.admitted() {
			return errors.New("a limiter with the limit 0 has admitted a caller")
		}
		if !c.returned() {
			how = "wait until they leave"
		}
		c.cancel()
		if err := e.out(c, "cancelled at a limit of 0"); err != nil {
			return err
		}
	}
	if l.Try != nil {
		if _, ok := l.Try(); ok {
			return errors.New("a slot was taken by Try at a limit of 0")
		}
	}
	return note("callers " + how)
}

func checkTry(e *env) error {
	const limit = 3
	l := e.limiter(limit)
	var held []func()
	for round := range e.rounds(100, "rounds of Try") {
		for i := range limit {
			release, ok := l.Try()
			if !ok {
				return fmt.Errorf("round %d: Try says no with %d of %d slots taken", round, i, limit)
			}
			held = append(held, release)
		}
		said := make(chan struct{})
		var release func()
		var ok bool
		go func() {
			defer close(said)
			release, ok = l.Try()
		}()
		if err := e.await(said, "round %d: Try with no slot free", round); err != nil {
			return err
		}
		if ok {
			release()
			return fmt.Errorf("round %d: Try has taken slot %d of %d", round, limit+1, limit)
		}
		for _, release := range held {
			release()
		}
		held = held[:0]
	}
	return e.rest(&l, "after 100 rounds of Try")
}

func checkNoQueue(e *env) error {
	const limit = 2
	l := e.refuser(limit)
	held, err := e.hold(&l, limit, "without a queue")
	if err != nil {
		return err
	}
	for range 10 {
		c := e.ask(&l, e.ctx)
		if err := e.out(c, "with both slots taken and no queue"); err != nil {
			return err
		}
	}
	for _, c := range held {
		c.release()
	}
	return e.exactly(&l, limit, "after ten refusals without a queue")
}

func checkPanic(e *env) error {
	const limit = 3
	panics := max(e.times(1000), 2*limit)
	l := e.limiter(limit)
	lost := 0
	calls := 0
	for i := range e.rounds(panics, "panics") {
		calls++
		ran := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = l.Do(e.ctx, func(context.Context) error {
				ran = true
				panic(fmt.Sprintf("panic %d of a check", i))
			})
		}()
		if err := e.await(done, "Do, after %d panics at a limit of %d", i, limit); err != nil {
			return err
		}
		if !ran {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d of %d calls of Do, one after the other at a limit of %d, did not run their function: the slots of those that panicked are gone", lost, calls, limit)
	}
	if err := e.rest(&l, "after so many panics"); err != nil {
		return err
	}
	return e.filled(&l, limit, "after so many panics")
}

// filled is exactly by Do, whose slots may not be those of Acquire in a limiter that has
// no other form.
func (e *env) filled(l *Limiter, limit int, when string) error {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	running := make(chan struct{}, limit)
	var all sync.WaitGroup
	for range limit {
		all.Go(func() {
			_ = l.Do(ctx, func(context.Context) error {
				running <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			})
		})
	}
	for i := range limit {
		in := make(chan struct{})
		go func() {
			defer close(in)
			select {
			case <-running:
			case <-ctx.Done():
			}
		}()
		if err := e.await(in, "%s: only %d of %d functions run at once", when, i, limit); err != nil {
			return err
		}
	}
	cancel()
	left := make(chan struct{})
	go func() { defer close(left); all.Wait() }()
	return e.await(left, "%s: functions whose context is over", when)
}

// checkDoubleRelease holds both slots and gives one of them back twice, so that the second
// time takes that of the other holder if it takes one.
func checkDoubleRelease(e *env) error {
	const limit = 2
	for round := range e.rounds(10, "rounds") {
		l := e.limiter(limit)
		held, err := e.hold(&l, limit, "before a double release")
		if err != nil {
			return err
		}
		held[0].release()
		go func() { // it may block or panic, which tells whoever does it
			defer func() { _ = recover() }()
			held[0].release()
		}()
		e.settle(&l, 0)
		next, err := e.hold(&l, 1, "after one of two slots was given back twice")
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		over := e.ask(&l, e.ctx)
		e.settle(&l, 1)
		if over.admitted() {
			return fmt.Errorf("round %d: 3 run at a limit of 2 after one of two slots was given back twice", round)
		}
		over.cancel()
		if err := e.out(over, "round %d: cancelled while it waited for a slot", round); err != nil {
			return err
		}
		held[1].release()
		next[0].release()
	}
	return nil
}

func checkOtherGoroutine(e *env) error {
	const limit = 2
	l := e.limiter(limit)
	for round := range e.rounds(100, "rounds") {
		held, err := e.hold(&l, limit, fmt.Sprintf("round %d of slots given back by another goroutine", round))
		if err != nil {
			return err
		}
		for _, c := range held {
			back := make(chan struct{})
			go func() {
				defer close(back)
				c.release()
			}()
			if err := e.await(back, "round %d: release in another goroutine", round); err != nil {
				return err
			}
		}
	}
	return e.exactly(&l, limit, "after 200 slots were given back by other goroutines")
}
