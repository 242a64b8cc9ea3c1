package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// The checks of those that wait. In most of them one caller, the holder, has the only
// slot, so that who asks is known to wait.

// checkCancelledBefore does it often, and by each form: a select over a free slot and a
// context that is over takes one of them at random.
func checkCancelledBefore(e *env) error {
	const limit = 2
	l := e.limiter(limit)
	over, cancel := context.WithCancel(e.ctx)
	cancel()
	past, cancel := context.WithDeadline(e.ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, form := range l.forms() {
		calls, admitted := 0, 0
		for i := range e.rounds(e.times(1000), "rounds of "+form.name) {
			for _, ctx := range []context.Context{over, past} {
				calls++
				c := start(ctx, func() {}, form.take)
				if err := e.await(c.done, "call %d of %s with a context that is over", i, form.name); err != nil {
					return err
				}
				if c.admitted() {
					admitted++
					c.release()
				}
			}
		}
		if admitted > 0 {
			return fmt.Errorf("%d of %d calls of %s with a context that was over got a slot", admitted, calls, form.name)
		}
	}
	return e.exactly(&l, limit, "after the calls with a context that was over")
}

func checkCancelWaiting(e *env) error {
	times := e.times(1000)
	l := e.limiter(1)
	held, err := e.hold(&l, 1, "at first")
	if err != nil {
		return err
	}
	calls := 0
	for i := range e.rounds(times, "callers") {
		calls++
		c := e.ask(&l, e.ctx)
		e.soon(&l, 1)
		c.cancel()
		if err := e.out(c, "caller %d, which has left while the only slot was held", i); err != nil {
			return err
		}
	}
	if l.Waiting != nil && l.Waiting() != 0 {
		return fmt.Errorf("after all of %[2]d that waited have left, Waiting is %[1]d", l.Waiting(), calls)
	}
	held[0].release()
	return e.exactly(&l, 1, "after so many callers have left the queue")
}

// checkDeadlineWaiting gives the slot back in the moment in which the deadline passes.
func checkDeadlineWaiting(e *env) error {
	const callers = 50
	rounds := e.times(20)
	l := e.limiter(1)
	for round := range e.rounds(rounds, "rounds") {
		held, err := e.hold(&l, 1, fmt.Sprintf("round %d", round))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(e.ctx, 5*time.Millisecond)
		var waiting []*caller
		for range callers {
			waiting = append(waiting, e.ask(&l, ctx))
		}
		<-ctx.Done()
		cancel() // it returns when all contexts below have ended as well
		held[0].release()
		for i, c := range waiting {
			if err := e.out(c, "round %d: caller %d of %d, whose deadline had passed before the slot came free", round, i, callers); err != nil {
				return err
			}
		}
	}
	if !e.bubble { // in which nobody is still on his way when time goes on
		if err := e.deadlineRace(&l); err != nil {
			return err
		}
	}
	return e.exactly(&l, 1, "after so many deadlines have passed in the queue")
}

// deadlineRace gives the slot back at the very deadline of others, of whom half wait by then
// and half are on their way.
func (e *env) deadlineRace(l *Limiter) error {
	const callers = 8
	asked, got := 0, 0
	for round := range e.rounds(e.times(200), "rounds at the very deadline") {
		held, err := e.hold(l, 1, fmt.Sprintf("at the very deadline, round %d", round))
		if err != nil {
			return err
		}
		var late []*caller
		atDeadline(e.ctx, callers, func(ctx context.Context, _ int) {
			late = append(late, start(ctx, func() {}, l.Acquire))
		})
		held[0].release()
		asked += callers
		for _, c := range late {
			if err := e.await(c.done, "at the very deadline, round %d: one of %d callers", round, callers); err != nil {
				return err
			}
			if c.admitted() {
				got++
				c.release()
			}
		}
	}
	if got > 0 {
		return fmt.Errorf("of %d callers whose deadline had passed just before the slot came free %d got it", asked, got)
	}
	return nil
}

// checkCancelledFront has the first of two leave and the slot come free at the same time,
// in either order and side by side.
func checkCancelledFront(e *env) error {
	rounds := e.times(1000)
	l := e.limiter(1)
	for round := range e.rounds(rounds, "rounds") {
		held, err := e.hold(&l, 1, fmt.Sprintf("round %d", round))
		if err != nil {
			return err
		}
		first := e.ask(&l, e.ctx)
		e.soon(&l, 1)
		next := e.ask(&l, e.ctx)
		e.soon(&l, 2)
		switch round % 3 {
		case 0:
			first.cancel()
			held[0].release()
		case 1:
			held[0].release()
			first.cancel()
		default:
			go first.cancel()
			held[0].release()
		}
		if err := e.await(first.done, "round %d: the first of two, which has left", round); err != nil {
			return err
		}
		if first.err == nil { // it was quicker, and has its slot
			first.release()
		}
		if err := e.in(next, "round %d: the first of two that waited has left, and the slot is free: the second", round); err != nil {
			return err
		}
		next.release()
	}
	return e.exactly(&l, 1, "after so many callers have left as a slot came free")
}

func checkCancelledLarge(e *env) error {
	const limit = 10
	for round := range e.rounds(e.times(20), "rounds") {
		l := e.limiter(limit)
		ask := func(cost int) *caller { return e.askFor(&l, e.ctx, cost) }
		holder := ask(limit - 2)
		if err := e.in(holder, "8 of 10 units"); err != nil {
			return err
		}
		large := ask(limit)
		e.settle(&l, 1)
		small := []*caller{ask(1), ask(1)}
		e.settle(&l, 3) // they may wait behind the large one, or pass it
		large.cancel()
		if err := e.out(large, "round %d: cancelled while it waited for all 10 units", round); err != nil {
			return err
		}
		for _, c := range small {
			if err := e.in(c, "round %d: who wanted 10 units has left, 2 are free: one that wants 1", round); err != nil {
				return err
			}
			c.release()
		}
		holder.release()
		if err := e.rest(&l, "after all units were given back"); err != nil {
			return err
		}
	}
	return nil
}

// checkStarvation lets one newcomer ask before each turn, so that an order that prefers
// newcomers always has one. Of five that wait, one that is drawn evenly is passed over 200
// times with the probability (4/5)^200 = 4e-20.
func checkStarvation(e *env) error {
	const early, turns = 4, 200
	l := e.limiter(1)
	held, err := e.hold(&l, 1, "at first")
	if err != nil {
		return err
	}
	holder := held[0]
	var waiting []*caller
	for i := range early {
		waiting = append(waiting, e.ask(&l, e.ctx))
		e.settle(&l, i+1)
	}
	victims := append([]*caller(nil), waiting...)
	for turn := range e.rounds(turns, "turns") {
		waiting = append(waiting, e.ask(&l, e.ctx))
		e.turn(&l, len(waiting))
		holder.release()
		i, err := e.next(waiting, turn)
		if err != nil {
			return err
		}
		holder = waiting[i]
		waiting = append(waiting[:i], waiting[i+1:]...)
		left := 0
		for _, v := range victims {
			if !v.returned() {
				left++
			}
		}
		if left == 0 {
			return e.dismiss(append(waiting, holder))
		}
	}
	if e.late() { // too few turns to say
		return e.dismiss(append(waiting, holder))
	}
	return fmt.Errorf("of %d callers that waited before all others, some are still waiting after %d turns, in each of which a newcomer asked", early, turns)
}

// dismiss has all callers leave and give back what they have.
func (e *env) dismiss(callers []*caller) error {
	for _, c := range callers {
		c.cancel()
	}
	for _, c := range callers {
		if err := e.await(c.done, "cancelled while it waited"); err != nil {
			return err
		}
		if c.err == nil {
			c.release()
		}
	}
	return nil
}

// turn is settle for a few hundred times: a millisecond where nothing better is known.
func (e *env) turn(l *Limiter, n int) {
	if e.bubble || l.Waiting != nil {
		e.settle(l, n)
		return
	}
	time.Sleep(time.Millisecond + e.slack())
}

// next waits until one of those that wait has the slot.
func (e *env) next(waiting []*caller, turn int) (int, error) {
	i := -1
	if !e.until(func() (int, bool) {
		i = slices.IndexFunc(waiting, (*caller).returned)
		return i, i >= 0
	}, e.breathe) {
		return 0, fmt.Errorf("turn %d: the slot is free, and none of %d that wait has got it%s", turn, len(waiting), stuck())
	}
	if err := waiting[i].err; err != nil {
		return 0, fmt.Errorf("turn %d: one of %d that wait was refused: %w", turn, len(waiting), err)
	}
	return i, nil
}

// checkClose has nobody wait where nobody can.
func checkClose(e *env) error {
	l := e.limiter(1)
	held, err := e.hold(&l, 1, "at first")
	if err != nil {
		return err
	}
	callers := 10
	if l.Acquire == nil {
		callers = 0
	}
	var waiting []*caller
	for range callers {
		waiting = append(waiting, e.ask(&l, e.ctx))
	}
	e.settle(&l, callers)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.Close()
	}()
	e.settle(nil, 0)
	held[0].release()
	var served atomic.Int64 // in whichever order
	if err := e.together(callers, "those that waited when the limiter was closed", func(i int) {
		if <-waiting[i].done; waiting[i].err == nil {
			served.Add(1)
			waiting[i].release()
		}
	}); err != nil {
		return err
	}
	if err := e.await(closed, "Close, with nobody left"); err != nil {
		return err
	}
	if err := e.shut(&l); err != nil || callers == 0 {
		return err
	}
	if n := served.Load(); n > 0 {
		return note(fmt.Sprintf("%d of the %d that waited are served, one after the other", n, callers))
	}
	return note("who waits is told no")
}

// shut sees that a newcomer is refused by whichever form.
func (e *env) shut(l *Limiter) error {
	for _, form := range l.forms() {
		if err := e.out(start(e.ctx, func() {}, form.take), "a newcomer after Close, by %s", form.name); err != nil {
			return err
		}
	}
	if l.Try != nil {
		if _, ok := l.Try(); ok {
			return errors.New("a newcomer after Close: Try has taken a slot")
		}
	}
	return nil
}

func checkResizeUp(e *env) error {
	const k = 3
	for round := range e.rounds(e.times(20), "rounds") {
		l := e.limiter(1)
		held, err := e.hold(&l, 1, "at first")
		if err != nil {
			return err
		}
		var waiting []*caller
		for range k + 2 {
			waiting = append(waiting, e.ask(&l, e.ctx))
		}
		e.settle(&l, k+2)
		l.Resize(1 + k)
		got, err := e.count(waiting, k, fmt.Sprintf("round %d: the limit went from 1 to %d with %d waiting", round, 1+k, k+2))
		if err != nil {
			return err
		}
		e.settle(&l, 2)
		if n := admitted(waiting); n != k {
			return fmt.Errorf("round %d: the limit grew by %d, and %d got a slot", round, k, n)
		}
		held[0].release()
		for _, c := range got {
			c.release()
		}
		for _, c := range waiting {
			if err := e.in(c, "round %d: the slots are free again", round); err != nil {
				return err
			}
			if !slices.Contains(got, c) {
				c.release()
			}
		}
	}
	return nil
}

func admitted(callers []*caller) (n int) {
	for _, c := range callers {
		if c.admitted() {
			n++
		}
	}
	return n
}

// count waits until n of callers have a slot and returns those.
func (e *env) count(callers []*caller, n int, when string) (got []*caller, err error) {
	if !e.until(func() (int, bool) {
		now := admitted(callers)
		return now, now >= n
	}, e.breathe) {
		return nil, fmt.Errorf("%s: %d of %d got a slot%s", when, admitted(callers), n, stuck())
	}
	for _, c := range callers {
		if c.admitted() {
			got = append(got, c)
		}
	}
	return got, nil
}

// checkResizeDown gives back one slot after the other.
func checkResizeDown(e *env) error {
	const before, after = 4, 2
	l := e.limiter(before)
	held, err := e.hold(&l, before, "at first")
	if err != nil {
		return err
	}
	l.Resize(after)
	if l.InUse != nil && l.InUse() != before {
		return fmt.Errorf("InUse is %d after the limit went from %d to %d with %d running", l.InUse(), before, after, before)
	}
	next := e.ask(&l, e.ctx)
	for i := range before - after + 1 {
		e.settle(&l, 1)
		if next.returned() && next.err != nil {
			return fmt.Errorf("with %d running at a limit of %d who should wait was refused: %w", before-i, after, next.err)
		}
		if next.admitted() {
			return fmt.Errorf("%d run and the limit is %d: one more was admitted", before-i, after)
		}
		held[i].release()
	}
	if err := e.in(next, "%d run and the limit is %d: who waits", after-1, after); err != nil {
		return err
	}
	over := e.ask(&l, e.ctx)
	e.settle(&l, 1)
	if over.admitted() {
		return errors.New("3 run after the limit went from 4 to 2")
	}
	over.cancel()
	held[before-1].release()
	next.release()
	if err := e.await(over.done, "cancelled while it waited after the limit went down"); err != nil {
		return err
	}
	if over.err == nil {
		over.release()
	}
	return e.exactly(&l, after, "after the limit went from 4 to 2")
}
