package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A crowd is the clients of the live demo: an open loop whose rate may be changed at any time.
// Package load has the loop of a Plan, which is fixed before it begins and ends.
//
// Arrivals are Poisson. That process has no memory, so a change of the rate is exact if the next
// arrival is drawn again from the instant of the change on: nobody waits for a gap of the rate
// before, however long that was, and at a rate of 0 nobody is due. What was due before the change
// is sent at the rate, and the way, before.
//
// A client has its latency from the instant at which it was due, leaves at its deadline, and ends
// where it was sent: the switch is for those who come after it.
type crowd struct {
	capacity float64         // arrivals per second at a load of 1
	ways     [2]load.Send    // without protection and with it
	ctx      context.Context // of all requests; done when the demo ends
	changed  chan struct{}   // wakes the loop; holds one
	open     sync.WaitGroup  // calls under way

	mu      sync.Mutex
	rng     *rand.Rand
	load    float64
	protect bool
	next    time.Time        // the next arrival is due; zero: nobody is
	skipped bool             // since the last look: arrivals that were due too long ago were left out
	last    uint64           // call
	calls   map[uint64]*call // under way, at most MaxUnderWay
	count   tally            // offered = its ends + len(calls), whenever mu is free
	window  window
}

// A call is one client that waits.
type call struct {
	due   time.Time
	begun bool // the service has
}

// A tally counts requests by their ends, which exclude each other but dropped, which is a part of
// failed.
type tally struct {
	offered, inTime, late, refused, gone, failed, dropped int64
}

// A window is what was measured since the last look, bounded by windowSize.
type window struct {
	latency []time.Duration // of those in time, and of those who left
	late    []time.Duration // sent - due, of all that ended
}

const (
	// webDeadline is when a client leaves: after ten service times, and a bit more than the
	// objective. A viewer sees what a change does when the queue that was before it is gone, which
	// takes so long, in the tick after that: within 3 s.
	webDeadline = 500 * time.Millisecond

	// MaxUnderWay bounds the requests under way: twice what 10 x 200/s x 500ms are, for those whose
	// end takes time on a busy machine. Beyond it an arrival is never sent, and has failed.
	MaxUnderWay = 2048

	// windowSize is enough for five seconds at 10x, and a look is every second. What comes
	// beyond it is counted, and is in no percentile.
	windowSize = 10_000

	// clientStream keeps the arrivals apart from other draws of the same seed.
	clientStream = 3
)

func newCrowd(ctx context.Context, capacity float64, seed uint64, ways [2]load.Send) *crowd {
	return &crowd{
		capacity: capacity, ways: ways, ctx: ctx, changed: make(chan struct{}, 1),
		rng: rand.New(rand.NewPCG(seed, clientStream)), calls: map[uint64]*call{},
	}
}

// run sends what is due until the context of the crowd is done and all calls have ended.
func (c *crowd) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c.ctx.Err() == nil {
		c.mu.Lock()
		c.send(time.Now())
		next := c.next
		c.mu.Unlock()
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
		case <-c.changed:
		case <-c.ctx.Done():
		}
	}
	c.open.Wait()
}

// set changes what is said, from now on.
func (c *crowd) set(to Controls) {
	c.mu.Lock()
	now := time.Now()
	c.send(now) // what was due before
	if to.Protect != nil {
		c.protect = *to.Protect
	}
	if to.Load != nil {
		c.load, c.next = *to.Load, time.Time{}
		if c.load > 0 {
			c.next = now.Add(c.gap())
		}
	}
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // the loop has yet to wake up for the change before, and will see this one too
	}
}

// controls are those in force.
func (c *crowd) controls() Controls {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Controls{Load: new(c.load), Protect: new(c.protect)}
}

// maxGap is the longest time to the next arrival: a load that comes to less is one an hour. The
// smallest number above 0 would overflow a duration.
const maxGap = time.Hour

// gap draws the time to the next arrival. The caller holds mu, and the load is not 0.
func (c *crowd) gap() time.Duration {
	gap := c.rng.ExpFloat64() / (c.load * c.capacity) * float64(time.Second)
	return time.Duration(min(gap, float64(maxGap)))
}

// send sends what is due by now. The caller holds mu.
//
// A process that stood still for longer than a deadline leaves out what was due before: those
// clients would have left before they were sent, and hours of them are no burst that anybody asked
// for.
func (c *crowd) send(now time.Time) {
	if c.next.IsZero() || c.ctx.Err() != nil {
		return
	}
	if oldest := now.Add(-webDeadline); c.next.Before(oldest) {
		c.skipped = true
		c.next = oldest.Add(c.gap())
	}
	way := c.ways[0]
	if c.protect {
		way = c.ways[1]
	}
	for ; !c.next.After(now); c.next = c.next.Add(c.gap()) {
		c.count.offered++
		if len(c.calls) >= MaxUnderWay {
			c.count.failed++
			c.count.dropped++
			continue
		}
		c.last++
		n, due := c.last, c.next
		c.calls[n] = &call{due: due}
		c.open.Go(func() { c.perform(n, due, way) })
	}
}

// perform is one client from its start to its end.
func (c *crowd) perform(n uint64, due time.Time, way load.Send) {
	late := time.Since(due)
	ctx, cancel := context.WithDeadline(context.WithValue(c.ctx, callKey{}, n), due.Add(webDeadline))
	answer := way(ctx)
	left := answer.Err != nil && ctx.Err() != nil
	cancel()
	c.end(n, late, time.Since(due), left, answer)
}

// end counts the end of a call, which was sent late and took so long in total.
func (c *crowd) end(n uint64, late, total time.Duration, left bool, answer load.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := c.calls[n].begun
	delete(c.calls, n)
	c.window.late = appendBounded(c.window.late, late)
	switch {
	case left || total > webDeadline: // an answer after the deadline finds nobody
		if begun {
			c.count.late++
		} else {
			c.count.gone++
		}
	case answer.Failed():
		c.count.failed++
		return
	case answer.Refused():
		c.count.refused++
		return
	default:
		c.count.inTime++
	}
	c.window.latency = appendBounded(c.window.latency, min(total, webDeadline))
}

func appendBounded(all []time.Duration, d time.Duration) []time.Duration {
	if len(all) >= windowSize {
		return all
	}
	return append(all, d)
}

// begin says that the service has begun with a call; one that has ended is nobody's.
func (c *crowd) begin(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[n]; call != nil {
		call.begun = true
	}
}

// callKey is the key of the number of a call in the context of its request.
type callKey struct{}

// callHeader carries that number to the service, which is in this process but behind a network: a
// client that leaves cannot see whether its service had begun, and the demo is to say so.
const callHeader = "Demo-Call"

func stamp(ctx context.Context, h http.Header) {
	h[callHeader] = []string{strconv.FormatUint(ctx.Value(callKey{}).(uint64), 10)}
}

func (c *crowd) beginRequest(r *http.Request) {
	if n, err := strconv.ParseUint(r.Header.Get(callHeader), 10, 64); err == nil {
		c.begin(n)
	}
}
