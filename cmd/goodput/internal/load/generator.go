package load

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Send performs one request to its end, the body of the answer included, or
// until ctx is cancelled. It is called from many goroutines at once.
type Send func(ctx context.Context) Answer

// An Answer is what a request ended with.
type Answer struct {
	Status int    // of HTTP
	Reason string // why it was refused; "" if it was not
	Err    error  // there was no answer
}

// Refused reports whether the request was told no, and not executed.
func (a Answer) Refused() bool { return a.Err == nil && a.Reason != "" }

// Failed reports whether there was no answer, or one of a service that could not.
func (a Answer) Failed() bool { return a.Err != nil || a.Reason == "" && a.Status >= 500 }

// ending says who ended a request.
type ending uint8

const (
	answered ending = iota // the service, or its connection
	gaveUp                 // the caller, at its deadline
	aborted                // whoever interrupted the run
)

// errGaveUp is the cause of a call that was cancelled at its deadline. The run
// itself may be cancelled by a deadline, too.
var errGaveUp = errors.New("the caller gave up at its deadline")

// A Generator runs a Plan once.
//
// One goroutine, the pacer, launches what is due; one request is one goroutine
// of a pool, so that their stacks grow once; and one goroutine cancels whoever
// reaches its deadline. Deadlines pass in the order of the arrivals, since all
// are equally long, so a queue and one timer do what 7,200 timers would.
type Generator struct {
	plan Plan
	send Send

	// wait sleeps for d or until ctx is done. A field for tests, which are
	// late on purpose.
	wait func(ctx context.Context, d time.Duration)

	start time.Time
	idle  chan *call     // hands a call to a worker that has nothing to do
	calls sync.WaitGroup // calls in flight

	mu       sync.Mutex
	res      *Result
	inFlight int
	open     expiries
}

// A call is one request in flight.
type call struct {
	due    time.Duration // since the start of the run
	ctx    context.Context
	cancel context.CancelCauseFunc // nil once the call has ended
}

// New returns a Generator, or the sentence of Plan.Validate.
func New(plan Plan, send Send) (*Generator, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	plan = plan.withDefaults()
	return &Generator{
		plan: plan, send: send, wait: sleep,
		idle: make(chan *call), res: newResult(plan),
	}, nil
}

// Run offers the load and returns when the last request has ended, at most a
// deadline after the window. If ctx is done before, it aborts what is in flight
// and returns at once. It must be called once.
func (g *Generator) Run(ctx context.Context) *Result {
	g.mu.Lock()
	g.start = time.Now()
	g.mu.Unlock()
	ended := make(chan struct{})
	var reaper sync.WaitGroup
	reaper.Go(func() { g.reap(ended) })

	for due := range g.plan.Arrivals() {
		if d := due - time.Since(g.start); d > 0 {
			g.wait(ctx, d)
		}
		if ctx.Err() != nil {
			break
		}
		g.launch(ctx, due)
	}
	g.calls.Wait()
	close(ended)
	close(g.idle)
	reaper.Wait()

	g.mu.Lock()
	defer g.mu.Unlock()
	g.res.Interrupted = ctx.Err() != nil
	return g.res
}

// launch sends what is due, or counts that it could not.
func (g *Generator) launch(ctx context.Context, due time.Duration) {
	g.mu.Lock()
	g.res.Offered++
	if g.inFlight >= g.plan.MaxInFlight {
		g.res.Dropped++
		g.mu.Unlock()
		return
	}
	g.res.Sent++
	g.inFlight++
	c := &call{due: due}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	g.open.push(c)
	g.mu.Unlock()

	g.calls.Add(1)
	select {
	case g.idle <- c:
	default:
		go g.work(c)
	}
}

// work performs c, and then whatever else it is handed.
func (g *Generator) work(c *call) {
	for ok := true; ok; c, ok = <-g.idle {
		late := time.Since(g.start) - c.due
		g.finish(c, late, g.send(c.ctx))
	}
}

// finish counts the end of a call.
func (g *Generator) finish(c *call, late time.Duration, a Answer) {
	g.mu.Lock()
	how := answered
	if a.Err != nil && c.ctx.Err() != nil {
		how = aborted
		if context.Cause(c.ctx) == errGaveUp {
			how = gaveUp
		}
	}
	g.res.count(late, time.Since(g.start)-c.due, how, a)
	g.inFlight--
	cancel := c.cancel
	c.cancel, c.ctx = nil, nil // the queue of deadlines may keep c for long
	g.mu.Unlock()

	cancel(nil)
	g.calls.Done()
}

// Live is how far a run is.
type Live struct {
	Elapsed  time.Duration
	Offered  int64
	InTime   int64
	Refused  int64
	TimedOut int64
	InFlight int
}

// Live returns how far the run is. It may be called at any time.
func (g *Generator) Live() Live {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := Live{
		Offered: g.res.Offered, InTime: g.res.InTime, Refused: g.res.Refused,
		TimedOut: g.res.TimedOut, InFlight: g.inFlight,
	}
	if !g.start.IsZero() {
		l.Elapsed = time.Since(g.start)
	}
	return l
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
