package load

import (
	"context"
	"errors"
	"sync"
	"time"
)

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
	open     expiries // by their deadline
	followed expiries // counted as timed out, by the end of Plan.Follow
	expired  int64    // calls that reached their deadline
	asked    int      // of the followed ones, those that have not ended
}

// A call is one request in flight.
type call struct {
	due    time.Duration // since the start of the run
	ctx    context.Context
	cancel context.CancelCauseFunc // nil once the call has ended
	spent  time.Duration           // from due to the start of a second or later attempt; only its worker touches it

	// Both under the lock of the Generator.
	paused bool // between two attempts: nothing is on the wire
	follow bool // counted as timed out, and left on the wire
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

// Run offers the load from now on. See RunAt.
func (g *Generator) Run(ctx context.Context) *Result { return g.RunAt(ctx, time.Now()) }

// RunAt offers the load from start on and returns when the last request has ended, at most
// a deadline after the window, and Plan.Follow after that. If ctx is done before, it aborts
// what is in flight and returns at once. A Generator runs once.
//
// Start comes from time.Now and what is added to it. What is due before the call is late. A
// load that follows another one without a pause begins at its start plus its duration, and is
// called before that.
func (g *Generator) RunAt(ctx context.Context, start time.Time) *Result {
	g.mu.Lock()
	g.start = start
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
	room := g.inFlight < g.plan.MaxInFlight
	g.res.offer(due, room)
	if !room {
		g.mu.Unlock()
		return
	}
	g.inFlight++
	c := &call{due: due}
	if g.plan.Attempts > 1 { // nobody else asks, and a value is 48 bytes for each request
		ctx = context.WithValue(ctx, spentKey{}, c)
	}
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
		g.finish(c, late, g.attempt(c))
	}
}

// attempt sends a request, and again as the Plan says, and returns the last answer.
func (g *Generator) attempt(c *call) Answer {
	for next := 2; ; next++ {
		a := g.send(c.ctx)
		if next > g.plan.Attempts || !a.Refused() && !a.Failed() || !g.pause(c, a, g.plan.Backoff(next, a)) {
			return a
		}
	}
}

// pause waits for d after the answer a and reports whether there is time for another attempt
// then. Whoever sees that there will be none does not wait: the caller has its answer.
func (g *Generator) pause(c *call, a Answer, d time.Duration) bool {
	g.mu.Lock()
	left := c.due + g.plan.Deadline - time.Since(g.start)
	if d >= left-g.plan.Least || c.ctx.Err() != nil {
		g.mu.Unlock()
		return false
	}
	c.paused = true
	g.mu.Unlock()

	sleep(c.ctx, d)

	g.mu.Lock()
	defer g.mu.Unlock()
	c.paused = false
	if c.ctx.Err() != nil || time.Since(g.start) >= c.due+g.plan.Deadline {
		return false
	}
	g.res.retry(a)
	c.spent = time.Since(g.start) - c.due
	return true
}

type spentKey struct{}

// Spent returns what a caller has waited since its request was due when the attempt began that
// was sent with ctx: 0 at the first one, whose lateness is of the generator and not of the
// caller. What is left of its deadline is that less.
func Spent(ctx context.Context) time.Duration {
	if c, ok := ctx.Value(spentKey{}).(*call); ok {
		return c.spent
	}
	return 0
}

// finish counts the end of a call.
func (g *Generator) finish(c *call, late time.Duration, a Answer) {
	e := end{due: c.due, spent: c.spent, answer: a}
	e.unlike = g.plan.Like != nil && !a.Refused() && !a.Failed() && !g.plan.Like(a)
	g.mu.Lock()
	e.total = time.Since(g.start) - c.due
	if a.Err != nil && c.ctx.Err() != nil {
		e.how = aborted
		if context.Cause(c.ctx) == errGaveUp {
			e.how = gaveUp
		}
	}
	g.res.Late.add(late)
	if c.follow {
		g.asked--
		g.res.Followed.count(a)
	} else {
		g.inFlight--
		g.res.count(e)
	}
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
	P99      time.Duration // of Result.Latency; 0: nobody got a slot
}

// Live returns how far the run is. It may be called at any time.
func (g *Generator) Live() Live {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := Live{
		Offered: g.res.Offered, InTime: g.res.InTime, Refused: g.res.Refused,
		TimedOut: g.res.TimedOut, InFlight: g.inFlight,
	}
	l.P99, _ = g.res.Latency.Quantile(0.99)
	if !g.start.IsZero() {
		l.Elapsed = max(time.Since(g.start), 0) // RunAt may wait for its start
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
