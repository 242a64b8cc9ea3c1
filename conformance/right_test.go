package conformance

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"testing"
)

// A channel is what everybody writes first, with the two lines that are often missing: the
// context is asked before and after.
func channel(limit int) Limiter {
	c := make(chan struct{}, limit)
	acquire := func(ctx context.Context) (func(), error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			<-c
			return nil, err
		}
		return sync.OnceFunc(func() { <-c }), nil
	}
	return Limiter{
		Acquire: acquire,
		Try: func() (func(), bool) {
			select {
			case c <- struct{}{}:
				return sync.OnceFunc(func() { <-c }), true
			default:
				return nil, false
			}
		},
		Do: func(ctx context.Context, fn func(context.Context) error) error {
			release, err := acquire(ctx)
			if err != nil {
				return err
			}
			defer release()
			return fn(ctx)
		},
		InUse: func() int { return len(c) },
	}
}

// channelOnly has the form that never waits and no other.
func channelOnly(limit int) Limiter {
	l := channel(limit)
	return Limiter{Try: l.Try}
}

// A queue has everything that a Limiter may have: units, a limit that changes, an end. Its
// faults are the bugs that the checks are for.
type queue struct {
	mu      sync.Mutex
	limit   int
	used    int
	closed  bool
	waiting list.List // of *place, the first in front

	faults

	seen   map[*place]bool
	wakeUp int
	alone  int
	lost   int
	began  int    // the limit at first
	maker  string // the goroutine that made it
	end    chan struct{}
}

// faults are bugs to switch on. Each is what somebody has shipped; where the bug is one of
// timing it is made to happen each time, so that a test of a check needs no luck.
type faults struct {
	overAdmits    bool // 12 of 10: the last two in a burst are not counted
	zeroUnlimited bool // a limit of 0 is no limit
	tryWaits      bool // Try is an Acquire
	tryNever      bool // Try never finds anything
	panicLoses    bool // no defer around the function
	doubleFrees   bool // a second release takes the slot of another
	ownerOnly     bool // releases in another goroutine are ignored
	toldLate      bool // from the 50th on, who leaves an empty queue is told when the slot comes free
	ignoresBefore bool // a context that is over already takes what is free
	servesDead    bool // a context that ends by its deadline is not looked at
	losesOnCancel bool // at a limit of 2 a slot is lost with one who leaves as he gets it, not with the first few
	frontSleeps   bool // who leaves as he gets the slot does not wake the next
	largeBlocks   bool // one who wanted more than was free wakes nobody as he leaves
	forgets       bool // one wake-up in 3,000 is lost
	newestFirst   bool
	remembers     bool // a map of everybody who ever waited
	leavesGo      bool // a goroutine for each who has left, until Close
	upWakesOne    bool // a limit that grows wakes one
	downForgets   bool // a limit that shrinks starts to count anew
	closeLeaves   bool // Close forgets those that wait
	closeOpen     bool // Close refuses nobody
	closeTries    bool // Close refuses nobody who does not wait
	countsNobody  bool // at a limit of 2 Waiting is 0
	countsAll     bool // InUse counts those that wait too
	doUnbounded   bool // Do runs its function without a slot if nobody is free
	doKeeps       bool // a function that fails keeps its slot
	doIgnores     bool // Do takes what is free whatever its context
	doAlone       bool // a function gets a context of its own
	tryCounts     bool // Try has a count of its own, of as many
	costCounts    bool // AcquireCost has
}

type place struct {
	cost  int
	ready chan struct{}
	err   error
	at    *list.Element
}

// few leave as they get a slot in checks that are not about that.
const few = 5

var errClosed = errors.New("closed")

func broken(f faults) func(limit int) Limiter {
	return func(limit int) Limiter {
		q := &queue{limit: limit, began: limit, maker: goid(), faults: f, end: make(chan struct{})}
		q.seen = map[*place]bool{}
		if f.zeroUnlimited && limit == 0 {
			q.limit = 1 << 20
		}
		l := Limiter{
			Acquire:     func(ctx context.Context) (func(), error) { return q.acquire(ctx, 1) },
			AcquireCost: q.acquire,
			Try:         q.try,
			Do:          q.do,
			Resize:      q.resize,
			InUse:       func() int { q.mu.Lock(); defer q.mu.Unlock(); return q.used },
			Waiting:     func() int { q.mu.Lock(); defer q.mu.Unlock(); return q.waiting.Len() },
			Close:       q.close,
		}
		if f.countsNobody && limit == 2 {
			l.Waiting = func() int { return 0 }
		}
		if f.countsAll {
			l.InUse = func() int { q.mu.Lock(); defer q.mu.Unlock(); return q.used + q.waiting.Len() }
		}
		other := &queue{limit: q.limit, began: limit, maker: q.maker}
		if f.tryCounts {
			l.Try = other.try
		}
		if f.costCounts {
			l.AcquireCost = other.acquire
		}
		return l
	}
}

func (q *queue) do(ctx context.Context, fn func(context.Context) error) error {
	if q.doUnbounded {
		release, ok := q.try()
		if ok {
			defer release()
		}
		return fn(ctx)
	}
	if q.doIgnores {
		if release, ok := q.try(); ok {
			defer release()
			return fn(ctx)
		}
	}
	release, err := q.acquire(ctx, 1)
	if err != nil {
		return err
	}
	if q.doAlone {
		ctx = context.Background()
	}
	if q.doKeeps {
		if err = fn(ctx); err == nil {
			release()
		}
		return err
	}
	if q.panicLoses {
		err = fn(ctx)
		release()
		return err
	}
	defer release()
	return fn(ctx)
}

func (q *queue) try() (func(), bool) {
	if q.tryWaits && q.began > 0 {
		release, err := q.acquire(context.Background(), 1)
		return release, err == nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tryNever || q.used >= q.limit || q.waiting.Len() > 0 || q.closed && !q.closeTries {
		return nil, false
	}
	q.used++
	return q.releaser(1), true
}

func (q *queue) acquire(ctx context.Context, cost int) (func(), error) {
	if err := ctx.Err(); err != nil && !q.ignoresBefore {
		return nil, err
	}
	q.mu.Lock()
	if q.closed && !q.closeOpen {
		q.mu.Unlock()
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil && !q.ignoresBefore { // on the way here
		q.mu.Unlock()
		return nil, err
	}
	limit := q.limit
	if q.overAdmits && limit == 10 && cost == 1 {
		limit = 11
	}
	if q.used+cost <= limit && q.waiting.Len() == 0 {
		q.used += cost
		q.mu.Unlock()
		return q.releaser(cost), nil
	}
	p := &place{cost: cost, ready: make(chan struct{})}
	if q.newestFirst && q.began == 1 {
		p.at = q.waiting.PushFront(p)
	} else {
		p.at = q.waiting.PushBack(p)
	}
	if q.remembers {
		q.seen[p] = true
	}
	q.mu.Unlock()
	select {
	case <-p.ready:
	case <-q.gone(ctx):
	}
	return q.outcome(ctx, p)
}

// gone is the Done of ctx, but for faults that do not look at it.
func (q *queue) gone(ctx context.Context) <-chan struct{} {
	if _, deadline := ctx.Deadline(); q.servesDead && deadline {
		return nil
	}
	return ctx.Done()
}

// outcome is of one that was decided or has left.
func (q *queue) outcome(ctx context.Context, p *place) (func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, deadline := ctx.Deadline()
	left := ctx.Err() != nil && (!q.servesDead || !deadline)
	select {
	case <-p.ready:
		if p.err != nil {
			return nil, p.err
		}
		if !left {
			return q.releaser(p.cost), nil
		}
		if q.losesOnCancel && q.began == 2 {
			if q.lost++; q.lost > few {
				return nil, ctx.Err()
			}
		}
		q.used -= p.cost
		if !q.frontSleeps || q.waiting.Len() != 1 || q.began != 1 {
			q.grant()
		}
		return nil, ctx.Err()
	default:
	}
	first := q.waiting.Front() == p.at
	if q.toldLate && q.began == 1 && !deadline && q.waiting.Len() == 1 {
		if q.alone++; q.alone >= 50 {
			q.mu.Unlock()
			<-p.ready
			q.mu.Lock()
			q.used -= p.cost
			return nil, ctx.Err()
		}
	}
	q.waiting.Remove(p.at)
	if q.leavesGo {
		go func() { <-q.end }()
	}
	if first && (!q.largeBlocks || p.cost == 1) {
		q.grant()
	}
	return nil, ctx.Err()
}

// grant serves who is first as long as it fits. Under the lock.
func (q *queue) grant() {
	for q.waiting.Len() > 0 {
		p := q.waiting.Front().Value.(*place)
		if q.used+p.cost > q.limit {
			return
		}
		if q.wakeUp++; q.forgets && q.wakeUp%3000 == 0 {
			return
		}
		q.waiting.Remove(p.at)
		q.used += p.cost
		close(p.ready)
	}
}

func (q *queue) releaser(cost int) func() {
	var once sync.Once
	owner := ""
	if q.ownerOnly {
		owner = goid()
	}
	return func() {
		if q.ownerOnly {
			if id := goid(); id != owner && id != q.maker {
				return
			}
		}
		back := func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.used -= cost
			q.grant()
		}
		if q.doubleFrees {
			back()
			return
		}
		once.Do(back)
	}
}

func (q *queue) resize(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	up := limit > q.limit
	if q.downForgets && !up {
		q.used = 0
	}
	if q.upWakesOne && up {
		q.limit = q.used + 1
		q.grant()
		q.limit = limit
		return
	}
	q.limit = limit
	q.grant()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	close(q.end) // nobody calls it twice
	for q.waiting.Len() > 0 {
		p := q.waiting.Remove(q.waiting.Front()).(*place)
		if q.closeLeaves {
			continue
		}
		p.err = errClosed
		close(p.ready)
	}
}

func noQueue(limit int) Limiter {
	l := channel(limit)
	return Limiter{Acquire: func(context.Context) (func(), error) {
		release, ok := l.Try()
		if !ok {
			return nil, errFull
		}
		return release, nil
	}}
}

func TestRightLimitersPass(t *testing.T) {
	for name, limiters := range map[string]func(int) Limiter{
		"channel": channel, "channel that never waits": channelOnly, "queue": broken(faults{}),
	} {
		t.Run(name, func(t *testing.T) {
			TestLimiter(t, limiters, LimiterOptions{NoQueue: noQueue, Part: 8})
		})
	}
	t.Run("channel in a bubble", func(t *testing.T) {
		TestLimiter(t, channel, LimiterOptions{NoQueue: noQueue, Bubble: true, Part: 4})
	})
}
