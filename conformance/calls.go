package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Whatever is called of those that are checked is called through here, on any goroutine: its
// panic, or the end of the goroutine, is the failure of one check and not the end of the
// process.

// Calls are what one run of one check has seen of what it calls.
type calls struct {
	beats atomic.Int64 // calls that have come back: as long as it grows, somebody gets on

	mu     sync.Mutex
	fault  error         // the first
	broken chan struct{} // closed with it
	made   []*closing
}

// fail sets the fault of the check, which ends it where it waits. What follows from it is not
// kept.
func (e *env) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fault == nil {
		e.fault = err
		close(e.broken)
	}
}

// faulty returns the fault, or nil.
func (e *env) faulty() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fault
}

// caught calls f and reports whether it has returned; if not, that is the fault. excused may
// be nil, or return true if a panic is no fault.
func (e *env) caught(what string, excused func() bool, f func()) (ok bool) {
	defer func() {
		switch v := recover(); {
		case ok, v != nil && excused != nil && excused():
		default:
			e.fail(ending(what, v))
		}
	}()
	f()
	return true
}

// must calls f, and ends the goroutine if f does not return.
func (e *env) must(what string, f func()) {
	if !e.caught(what, nil, f) {
		runtime.Goexit()
	}
	e.beats.Add(1)
}

// maxValue is how much of the value of a panic is shown: some are whole requests.
const maxValue = 500

// ending says how a call ended that did not return: with what recover gave, nil for the end
// of its goroutine. It is for the deferred function that recovers.
func ending(what string, v any) error {
	if v == nil {
		return fmt.Errorf("%s ended its goroutine with runtime.Goexit, as t.FailNow, t.Fatal and t.Skip do, at %s: the checks call it on goroutines of their own, where only t.Error and a panic are right", what, where())
	}
	return fmt.Errorf("%s panicked at %s: %.*s", what, where(), maxValue, fmt.Sprint(v))
}

// where is the line that panicked, or that ended its goroutine.
func where() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for below := false; ; {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			below = below || f.Function == "runtime.gopanic" || f.Function == "runtime.Goexit"
		case below && !strings.HasPrefix(f.Function, "testing."):
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown line"
		}
	}
}

// A closing is the Close of one limiter.
type closing struct {
	close  func()
	called atomic.Bool
}

// limiter makes one that is guarded.
func (e *env) limiter(limit int) Limiter { return e.guarded(e.factory, limit) }

// refuser makes one in which nobody waits.
func (e *env) refuser(limit int) Limiter { return e.guarded(e.noQueue, limit) }

func (e *env) guarded(of func(limit int) Limiter, limit int) Limiter {
	var l Limiter
	e.must(fmt.Sprintf("making a limiter of %d", limit), func() { l = of(limit) })
	return e.wrap(l)
}

// wrap returns l with a guard around each of its functions.
func (e *env) wrap(l Limiter) Limiter {
	if l.Acquire == nil && l.Try == nil {
		e.fail(errors.New("a Limiter needs Acquire or Try, and this one has neither"))
		runtime.Goexit()
	}
	g := Limiter{InUse: e.counter("InUse", l.InUse), Waiting: e.counter("Waiting", l.Waiting)}
	if l.Acquire != nil {
		g.Acquire = func(ctx context.Context) (func(), error) {
			return e.slot("Acquire", func() (func(), error) { return l.Acquire(ctx) })
		}
	}
	if l.AcquireCost != nil {
		g.AcquireCost = func(ctx context.Context, cost int) (func(), error) {
			return e.slot("AcquireCost", func() (func(), error) { return l.AcquireCost(ctx, cost) })
		}
	}
	if l.Try != nil {
		g.Try = func() (func(), bool) {
			release, err := e.slot("Try", func() (func(), error) {
				if release, ok := l.Try(); ok {
					return release, nil
				}
				return nil, errFull
			})
			return release, err == nil
		}
	}
	if l.Do != nil {
		g.Do = e.doer(l.Do)
	}
	if l.Resize != nil {
		g.Resize = func(limit int) { e.must(fmt.Sprintf("Resize(%d)", limit), func() { l.Resize(limit) }) }
	}
	if l.Close != nil {
		c := &closing{close: l.Close}
		e.mu.Lock()
		e.made = append(e.made, c)
		e.mu.Unlock()
		g.Close = func() {
			c.called.Store(true)
			e.must("Close", l.Close)
		}
	}
	return g
}

// slot takes a slot, and guards its release when that is called the first time. A second
// time is a misuse, and what becomes of it the business of the caller.
func (e *env) slot(what string, take func() (func(), error)) (func(), error) {
	var release func()
	var err error
	e.must(what, func() { release, err = take() })
	if err != nil {
		return nil, err
	}
	if release == nil {
		e.fail(fmt.Errorf("%s gave a slot and no function to release it", what))
		runtime.Goexit()
	}
	var again atomic.Bool
	return func() {
		if again.Swap(true) {
			release()
			return
		}
		e.must("release", release)
	}, nil
}

// doer lets a panic of the function go on as Do has it.
func (e *env) doer(do func(context.Context, func(context.Context) error) error) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, fn func(context.Context) error) (err error) {
		var own atomic.Bool // fn has panicked
		if !e.caught("Do", own.Load, func() {
			err = do(ctx, func(ctx context.Context) error {
				own.Store(true)
				err := fn(ctx)
				own.Store(false)
				return err
			})
		}) {
			runtime.Goexit()
		}
		e.beats.Add(1)
		return err
	}
}

// counter guards one that may be nil. It is no beat: a check that waits asks it all the time.
func (e *env) counter(what string, of func() int) func() int {
	if of == nil {
		return nil
	}
	return func() (n int) {
		if !e.caught(what, nil, func() { n = of() }) {
			runtime.Goexit()
		}
		return n
	}
}

// closed closes what the check has made and not closed, when nobody is left in it. One that
// does not come back is left behind: check close is for that.
func (e *env) closed() {
	e.mu.Lock()
	made := e.made
	e.made = nil
	e.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range made {
		if !c.called.Load() {
			all.Go(func() { e.caught("Close, at the end of the check,", nil, c.close) })
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); all.Wait() }()
	t := time.NewTimer(lingering)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// lingering is how long the end of a check waits for what should end with it.
const lingering = time.Second

// callbacks guards those functions of a server that net/http calls where nobody recovers.
func (e *env) callbacks(srv *http.Server) {
	if f := srv.BaseContext; f != nil {
		srv.BaseContext = func(l net.Listener) context.Context {
			ctx := context.Background()
			e.caught("BaseContext", nil, func() { ctx = f(l) })
			return e.some(ctx, "BaseContext")
		}
	}
	if f := srv.ConnContext; f != nil {
		srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			e.caught("ConnContext", nil, func() { ctx = f(ctx, c) })
			return e.some(ctx, "ConnContext")
		}
	}
	if f := srv.ConnState; f != nil {
		srv.ConnState = func(c net.Conn, s http.ConnState) {
			e.caught("ConnState", nil, func() { f(c, s) })
		}
	}
}

func (e *env) some(ctx context.Context, of string) context.Context {
	if ctx == nil {
		e.fail(fmt.Errorf("%s returned a nil context", of))
		return context.Background()
	}
	return ctx
}
