package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The forms of a limiter, which must be one limiter: a function run in a slot is held to the
// limit as the slot is, and all that take slots take them from the same ones.

// A form takes one slot below a context.
type form struct {
	name string
	take func(ctx context.Context) (release func(), err error)
}

// forms are those that have a context. Do has its slot until its function returns, which is at
// once, and is admitted if that runs.
func (l *Limiter) forms() (all []form) {
	if l.Acquire != nil {
		all = append(all, form{"Acquire", l.Acquire})
	}
	if l.AcquireCost != nil {
		all = append(all, form{"AcquireCost", func(ctx context.Context) (func(), error) { return l.AcquireCost(ctx, 1) }})
	}
	if l.Do != nil {
		all = append(all, form{"Do", func(ctx context.Context) (func(), error) {
			ran := false
			err := l.Do(ctx, func(context.Context) error { ran = true; return nil })
			if ran {
				return func() {}, nil
			}
			if err == nil {
				err = errors.New("nil, and the function was not run")
			}
			return nil, err
		}})
	}
	return all
}

func checkDo(e *env) error {
	const limit = 2
	l := e.limiter(limit)
	if err := e.doContext(&l); err != nil {
		return err
	}
	errOwn := errors.New("what the function of a check returns")
	for i := range e.rounds(max(e.times(200), 4*limit), "calls") {
		var want error
		if i%2 == 1 {
			want = errOwn
		}
		ran, got := false, error(nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			got = l.Do(e.ctx, func(context.Context) error { ran = true; return want })
		}()
		if err := e.await(done, "call %d of Do, one after the other at a limit of %d, every other with an error", i+1, limit); err != nil {
			return err
		}
		switch {
		case !ran:
			return fmt.Errorf("call %d of Do, one after the other at a limit of %d, did not run its function: the slots of those that returned an error are gone (%w)", i+1, limit, got)
		case !errors.Is(got, want):
			return fmt.Errorf("the function of Do returned %v, and Do %v", want, got)
		}
	}
	return e.doAtOnce(&l, limit)
}

// doContext sees that the function has the context of the caller: its values, and its end.
func (e *env) doContext(l *Limiter) error {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(e.ctx, key{}, "of the caller"))
	defer cancel()
	var value any
	told := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Do(ctx, func(ctx context.Context) error {
			value = ctx.Value(key{})
			cancel()
			t := time.NewTimer(e.patience / 2)
			defer t.Stop()
			select {
			case <-ctx.Done():
				told = true
			case <-t.C:
			}
			return nil
		})
	}()
	if err := e.await(done, "Do, whose caller leaves while its function runs"); err != nil {
		return err
	}
	switch {
	case value == nil:
		return errors.New("the function of Do has not the context of its caller: a value of that is not in it")
	case !told:
		return errors.New("the function of Do is not told that its caller has left: its context did not end")
	}
	return nil
}

// doAtOnce sees that as many functions run at once as the limit says, and not one more.
func (e *env) doAtOnce(l *Limiter, limit int) error {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var running atomic.Int64
	var all sync.WaitGroup
	for range limit + 1 {
		all.Go(func() {
			_ = l.Do(ctx, func(context.Context) error {
				running.Add(1)
				<-ctx.Done()
				return nil
			})
		})
	}
	e.until(func() (int, bool) {
		n := int(running.Load())
		return n, n >= limit
	}, e.breathe)
	e.settle(l, 1)
	n := running.Load()
	cancel()
	left := make(chan struct{})
	go func() { defer close(left); all.Wait() }()
	if err := e.await(left, "Do, whose callers have left"); err != nil {
		return err
	}
	if n != int64(limit) {
		return fmt.Errorf("%d functions of Do run at once at a limit of %d", n, limit)
	}
	return e.rest(l, "after Do")
}

// checkCounts has two hold a slot and three wait, and each leave in turn.
func checkCounts(e *env) error {
	const limit, more = 2, 3
	l := e.limiter(limit)
	var holding []*caller
	for i := range limit {
		c, err := e.hold(&l, 1, fmt.Sprintf("slot %d of %d", i+1, limit))
		if err != nil {
			return err
		}
		holding = append(holding, c...)
		if err := e.shows(&l, i+1, 0); err != nil {
			return err
		}
	}
	var waiting []*caller
	for range more {
		c := e.ask(&l, e.ctx)
		e.settle(&l, len(waiting)+1)
		if c.admitted() {
			return fmt.Errorf("%d run at a limit of %d", limit+1, limit)
		}
		if c.returned() { // nobody waits
			continue
		}
		waiting = append(waiting, c)
		if err := e.shows(&l, limit, len(waiting)); err != nil {
			return err
		}
	}
	for i, c := range waiting {
		c.cancel()
		if err := e.out(c, "cancelled while it waited"); err != nil {
			return err
		}
		if err := e.shows(&l, limit, len(waiting)-i-1); err != nil {
			return err
		}
	}
	for i, c := range holding {
		c.release()
		if err := e.shows(&l, limit-i-1, 0); err != nil {
			return err
		}
	}
	return nil
}

// checkOneLimit takes all slots by one form, and asks by each of them.
func checkOneLimit(e *env) error {
	const limit = 3
	l := e.limiter(limit)
	held, err := e.hold(&l, limit, "by Acquire")
	if err != nil {
		return err
	}
	if err := e.taken(&l, "all slots are taken by Acquire"); err != nil {
		return err
	}
	for _, c := range held {
		c.release()
	}
	if l.AcquireCost != nil {
		c := e.askFor(&l, e.ctx, limit)
		if err := e.in(c, "AcquireCost of all %d units, which should be free", limit); err != nil {
			return err
		}
		if err := e.taken(&l, "all units are taken by AcquireCost"); err != nil {
			return err
		}
		c.release()
	}
	if l.Try != nil {
		var releases []func()
		for i := range limit {
			release, ok := l.Try()
			if !ok {
				return fmt.Errorf("all slots are free, and Try says no with %d of %d taken", i, limit)
			}
			releases = append(releases, release)
		}
		if err := e.taken(&l, "all slots are taken by Try"); err != nil {
			return err
		}
		for _, release := range releases {
			release()
		}
	}
	return e.exactly(&l, limit, "after slots were taken by each form")
}

// taken sees that no form admits anybody more.
func (e *env) taken(l *Limiter, when string) error {
	if l.Try != nil {
		if _, ok := l.Try(); ok {
			return fmt.Errorf("%s, and Try takes one more", when)
		}
	}
	c := e.ask(l, e.ctx)
	one := c
	if l.AcquireCost != nil {
		one = e.askFor(l, e.ctx, 1)
	}
	e.settle(l, 1)
	switch {
	case c.admitted():
		return fmt.Errorf("%s, and Acquire takes one more", when)
	case one.admitted():
		return fmt.Errorf("%s, and AcquireCost takes one more", when)
	}
	for _, c := range []*caller{c, one} {
		c.cancel()
		if err := e.out(c, "%s: cancelled while it waited for one more", when); err != nil {
			return err
		}
	}
	return nil
}
