package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing/synctest"
	"time"
)

// An env is what one run of one check works with. Nothing of it is shared with the next.
type env struct {
	settings
	ctx    context.Context // ends with the check, and with it whoever still waits
	bubble bool            // in one of testing/synctest: time is not real
	timed  bool            // a check may take its time only, in a bubble as well

	factory func(limit int) Limiter // see limiter
	noQueue func(limit int) Limiter // see refuser

	web *web // of a check of handlers

	calls
	pace
}

// rng returns numbers that depend on the seed and on who asks only.
func (e *env) rng(who int) *rand.Rand { return rand.New(rand.NewPCG(e.seed, uint64(who))) }

// settle returns when everybody who was started has most likely got as far as it gets:
// for certain in a bubble, and once n wait if the limiter says how many do. Where a slot takes
// time, so does getting to wait for one.
func (e *env) settle(l *Limiter, n int) {
	switch {
	case e.bubble:
		time.Sleep(e.slack())
		synctest.Wait()
	case l != nil && l.Waiting != nil:
		for end := time.Now().Add(e.grace + e.slack()); l.Waiting() < n && time.Now().Before(end); {
			runtime.Gosched()
		}
	default:
		time.Sleep(e.grace + e.slack())
	}
}

// soon is settle for what happens a thousand times: without a bubble or a count of those
// that wait, it is often too short, and then another interleaving is tried.
func (e *env) soon(l *Limiter, n int) {
	if slack := e.slack(); slack > 0 {
		time.Sleep(slack)
	}
	if e.bubble {
		synctest.Wait()
		return
	}
	for i := 0; i < 20 || i < 1000 && l != nil && l.Waiting != nil && l.Waiting() < n; i++ {
		runtime.Gosched()
	}
}

// breathe lets others go on in a loop that looks for something.
func (e *env) breathe() {
	if e.bubble {
		time.Sleep(100 * time.Microsecond) // time that is not real stands still for a loop without it
		return
	}
	runtime.Gosched()
}

// await returns an error if done is not closed in time, as whatever should have closed it
// hangs, or if the check has failed meanwhile.
func (e *env) await(done <-chan struct{}, what string, args ...any) error {
	t := time.NewTimer(e.patience)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-e.broken:
		return e.faulty()
	case <-t.C:
		return fmt.Errorf("%s: nothing for %v%s", fmt.Sprintf(what, args...), e.patience, stuck())
	}
}

// A caller is one Acquire in a goroutine of its own.
type caller struct {
	cancel  context.CancelFunc
	done    chan struct{} // closed when Acquire has returned; what follows is valid then
	release func()
	err     error
}

// ask starts a caller whose context is below ctx.
func (e *env) ask(l *Limiter, ctx context.Context) *caller {
	ctx, cancel := context.WithCancel(ctx)
	return start(ctx, cancel, l.take)
}

// askFor is ask for several units.
func (e *env) askFor(l *Limiter, ctx context.Context, cost int) *caller {
	ctx, cancel := context.WithCancel(ctx)
	return start(ctx, cancel, func(ctx context.Context) (func(), error) { return l.AcquireCost(ctx, cost) })
}

func start(ctx context.Context, cancel context.CancelFunc, acquire func(context.Context) (func(), error)) *caller {
	c := &caller{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = errors.New("no return from Acquire")
		c.release, c.err = acquire(ctx)
	}()
	return c
}

func (c *caller) returned() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// admitted reports whether it has a slot by now.
func (c *caller) admitted() bool { return c.returned() && c.err == nil }

// in waits until c has a slot.
func (e *env) in(c *caller, what string, args ...any) error {
	if err := e.await(c.done, what, args...); err != nil {
		return err
	}
	if c.err != nil {
		return fmt.Errorf("%s: refused: %w", fmt.Sprintf(what, args...), c.err)
	}
	return nil
}

// out waits until c has been told no.
func (e *env) out(c *caller, what string, args ...any) error {
	if err := e.await(c.done, what, args...); err != nil {
		return err
	}
	if c.err == nil {
		return fmt.Errorf("%s: it was admitted", fmt.Sprintf(what, args...))
	}
	return nil
}

// atDeadline starts n callers below a context with a deadline, half of them ahead of it and
// the others just before it, so that they are still on their way when it passes. It returns
// in that instant: it does not wait for a timer, which would be late behind those that it
// has started, but ends the context itself once the clock has passed the deadline.
func atDeadline(ctx context.Context, n int, start func(ctx context.Context, i int)) {
	const ahead, before = 200 * time.Microsecond, 5 * time.Microsecond
	at := time.Now().Add(ahead)
	ctx, cancel := context.WithDeadline(ctx, at)
	for i := range n {
		for i == n/2 && time.Until(at) > before {
			runtime.Gosched() // those that were started get to wait
		}
		start(ctx, i)
	}
	for time.Until(at) > 0 { // and nobody else is let run
	}
	cancel() // it returns when all contexts below have ended as well
}

// hold takes n slots, which must be free.
func (e *env) hold(l *Limiter, n int, when string) ([]*caller, error) {
	var held []*caller
	for i := range n {
		asked := time.Now()
		c := e.ask(l, e.ctx)
		if err := e.in(c, "%s: slot %d of %d, which should be free", when, i+1, n); err != nil {
			return nil, err
		}
		e.took(asked)
		held = append(held, c)
	}
	return held, nil
}

// exactly takes n slots, sees that there is not one more, and gives them back.
func (e *env) exactly(l *Limiter, n int, when string) error {
	held, err := e.hold(l, n, when)
	if err != nil {
		return err
	}
	over := e.ask(l, e.ctx)
	e.settle(l, 1)
	if over.admitted() {
		return fmt.Errorf("%s: %d slots could be taken where there are %d", when, n+1, n)
	}
	over.cancel()
	if err := e.out(over, "%s: cancelled while it waited for a slot", when); err != nil {
		return err
	}
	for _, c := range held {
		c.release()
	}
	return e.rest(l, when)
}

// rest sees that nothing is counted while nothing runs.
func (e *env) rest(l *Limiter, when string) error {
	if err := e.shows(l, 0, 0); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	return nil
}

// shows sees that the counts that there are come to be what they are.
func (e *env) shows(l *Limiter, inUse, waiting int) error {
	for _, count := range []struct {
		name string
		of   func() int
		want int
	}{{"InUse", l.InUse, inUse}, {"Waiting", l.Waiting, waiting}} {
		n := 0
		if count.of != nil && !e.until(func() (int, bool) {
			n = count.of()
			return n, n == count.want
		}, func() { time.Sleep(time.Millisecond) }) {
			return fmt.Errorf("%s is %d where %d run and %d wait", count.name, n, inUse, waiting)
		}
	}
	return nil
}

// run runs a check under a watch of its own. What hangs is left behind.
func (e *env) run(c Check) Result {
	if why, ok := e.skip[c.Name]; ok {
		return Result{c, Skipped, why}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.ctx = ctx
	e.broken = make(chan struct{})
	if !e.bubble || e.timed { // time costs nothing in a bubble
		e.end = time.Now().Add(e.whole)
	}
	ended := make(chan error, 1)
	go e.steps(c, ended)
	err := e.watch(ended)
	if fault := e.faulty(); fault != nil {
		err = fault // whatever else was seen comes from it
	}
	cancel()
	e.closed()
	if fault := e.faulty(); fault != nil && passed(err) {
		err = fault
	}
	return e.verdict(c, err)
}

// watch waits for the end of a check. A step that hangs in one of its own waits says so after
// patience: that is the better sentence. This is for one that hangs in a call of the limiter.
func (e *env) watch(ended <-chan error) error {
	const quiet = 3 // times patience
	t := time.NewTicker(e.patience)
	defer t.Stop()
	for last, n := e.beats.Load(), 0; n < quiet; {
		select {
		case err := <-ended:
			return err
		case <-e.broken:
			select { // it ends where it waits, unless it hangs
			case <-ended:
			case <-time.After(lingering):
			}
			return e.faulty()
		case <-t.C:
			now := e.beats.Load()
			if n++; now != last {
				last, n = now, 0
			}
		}
	}
	return fmt.Errorf("no end after %v in which nothing came back%s", quiet*e.patience, stuck())
}

// steps runs the check, or finds that it does not apply. It may be ended by what it calls.
func (e *env) steps(c Check, ended chan<- error) {
	returned, err := false, error(nil)
	defer func() {
		if !returned {
			v := recover()
			if err = e.faulty(); err == nil {
				err = ending("what the check called", v)
			}
		}
		ended <- err
	}()
	if why := c.missing(e); why != "" {
		err = skip(why)
	} else {
		err = c.run(e)
	}
	returned = true
}

// passed reports whether a check with that end has passed.
func passed(err error) bool {
	var n note
	return err == nil || errors.As(err, &n)
}

func (e *env) verdict(c Check, err error) Result {
	var s skip
	var n note
	short := e.short()
	switch {
	case err == nil:
		return Result{c, Passed, short}
	case errors.As(err, &s):
		return Result{c, Skipped, string(s)}
	case errors.As(err, &n) && short != "":
		return Result{c, Passed, string(n) + "; " + short}
	case errors.As(err, &n):
		return Result{c, Passed, string(n)}
	}
	return e.failed(c, err.Error())
}

func (e *env) failed(c Check, what string) Result {
	return Result{c, Failed, fmt.Sprintf("seed %d: %s", e.seed, what)}
}

// maxStacks is what is looked through: 10,000 goroutines of a dozen frames.
const maxStacks = 16 << 20

// maxDump is how much of the goroutines a failure shows: a dozen of them.
const maxDump = 8 << 10

// stuck returns those goroutines that have this package on their stack: first those that run
// a check, then the callers that hang, those that an earlier check has left behind included.
func stuck() string {
	buf := make([]byte, maxStacks)
	buf = buf[:runtime.Stack(buf, true)]
	var checks, callers []string
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		switch {
		case strings.Contains(g, "conformance.stuck("), !strings.Contains(g, "/conformance."):
		case strings.Contains(g, "/conformance.check"):
			checks = append(checks, g)
		default:
			callers = append(callers, g)
		}
	}
	var b strings.Builder
	for _, g := range append(checks, callers...) {
		if b.Len()+len(g) > maxDump {
			b.WriteString("\n\n(and more)")
			break
		}
		b.WriteString("\n\n" + g)
	}
	return b.String()
}
