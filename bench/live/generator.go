package live

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxInFlight bounds the requests in flight; one beyond it is dropped and counted.
// 12,000/s x 2 s = 24,000, and a third more.
const maxInFlight = 1 << 15

// A generator sends the requests of a plan when they are due. One goroutine, the pacer,
// launches them; a request is one goroutine of a pool, so that stacks grow once.
type generator struct {
	plan  Plan
	send  func(context.Context, time.Duration) answer
	start time.Time
	idle  chan due
	open  sync.WaitGroup

	mu       sync.Mutex
	tally    *tally
	inFlight int
}

// A due is a request to be sent.
type due struct {
	Request
	ctx    context.Context
	cancel context.CancelFunc
}

// offer sends all requests of plan, counted from start, and returns when the last has
// ended.
func offer(ctx context.Context, plan Plan, start time.Time, send func(context.Context, time.Duration) answer) *tally {
	g := &generator{plan: plan, send: send, start: start, idle: make(chan due), tally: newTally(plan)}
	for r := range plan.Requests() {
		if d := r.Due - time.Since(start); d > 0 {
			wait(ctx, d)
		}
		if ctx.Err() != nil {
			break
		}
		g.launch(ctx, r)
	}
	g.open.Wait()
	close(g.idle)
	g.tally.interrupted = ctx.Err() != nil
	return g.tally
}

func (g *generator) launch(ctx context.Context, r Request) {
	g.mu.Lock()
	g.tally.arrive(r)
	if g.inFlight >= maxInFlight {
		g.tally.dropped++
		g.mu.Unlock()
		return
	}
	g.inFlight++
	g.mu.Unlock()

	d := due{Request: r}
	d.ctx, d.cancel = context.WithDeadline(ctx, g.start.Add(r.Due+g.plan.patience()))
	g.open.Add(1)
	select {
	case g.idle <- d:
	default:
		go g.work(d)
	}
}

// work performs d, and then whatever else it is handed.
func (g *generator) work(d due) {
	for ok := true; ok; d, ok = <-g.idle {
		late := time.Since(g.start) - d.Due
		a := g.attempts(d)
		now := time.Since(g.start)
		if a.err != nil && errors.Is(d.ctx.Err(), context.DeadlineExceeded) {
			a = answer{status: gaveUp}
		}
		d.cancel()
		g.mu.Lock()
		g.inFlight--
		g.tally.end(d.Request, late, now, a)
		g.mu.Unlock()
		g.open.Done()
	}
}

// attempts asks for d as often as its caller does.
func (g *generator) attempts(d due) (a answer) {
	if g.plan.Attempts <= 1 {
		return g.send(d.ctx, d.Work)
	}
	for n := range g.plan.Attempts {
		if n > 0 {
			wait(d.ctx, pause)
		}
		ctx, cancel := context.WithTimeout(d.ctx, g.plan.Deadline)
		a = g.send(ctx, d.Work)
		gone := errors.Is(ctx.Err(), context.DeadlineExceeded)
		cancel()
		switch {
		case a.err != nil && gone:
			a = answer{status: gaveUp}
		case a.err != nil || !refused(a.status):
			return a
		}
	}
	return a
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
