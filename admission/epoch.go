package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// What the law of the limit is told: sums over the window since it was last asked, and over
// the two latest epochs. An epoch begins when the law says so, every request carries the
// one in which it was admitted, and so its service time is compared with the limit that
// was in force then. The sums of the ends come with a Batch, those of the arrivals and
// grants are kept here.

// taken is what the requests of one epoch took.
type taken struct {
	tag            uint32  // of the epoch
	ended, dropped float64 // units of cost
	n, sum, sumsq  float64 // service times, their own part, seconds
	cost, weighted float64 // their units of cost, and the sum of time x cost
	lost, lostSum  float64 // the units of cost of those that were abandoned, and the sum of time x cost
}

func (t *taken) add(o *taken) {
	t.ended += o.ended
	t.dropped += o.dropped
	t.n += o.n
	t.sum += o.sum
	t.sumsq += o.sumsq
	t.cost += o.cost
	t.weighted += o.weighted
	t.lost += o.lost
	t.lostSum += o.lostSum
}

// of returns the one of two that is of an epoch, in the place of an older one, or nil if both
// are of later ones.
func of(two *[2]taken, tag uint32) *taken {
	t := &two[tag&1]
	switch since := int32(tag - t.tag); {
	case since > 0:
		*t = taken{tag: tag}
	case since < 0:
		return nil
	}
	return t
}

// An epoch is what arrived and was granted in one.
type epoch struct {
	begun, over       time.Duration
	admitted, current float64 // units of cost, and the sum of units in use at each of them
	arrived, delayed  float64 // units of cost
	taken             taken
}

// A tide is what is measured for the law.
type tide struct {
	open      [2]epoch // the current one and the one before
	peak      int      // units in use at once since the law was asked
	arrived   float64
	delayed   float64
	costliest [2]int        // the largest cost offered in this minute and the one before
	minute    time.Duration // when this one began
	endedAt   time.Duration // when something last ended, or nothing was in flight
	quiet     time.Duration
	ended     float64 // requests that ended since the law was asked
	gone      float64 // units of cost that ended, less those of which it is known in which epoch they began
}

// Epoch returns the tag of the current epoch: a driver keeps it with each request that is
// admitted and hands it back in Sample.Epoch. It changes in Observe, SetLimit and Reconfigure.
func (c *Core) Epoch() uint32 { return c.tide.open[0].taken.tag }

// arrive counts what is offered, and what of it is not admitted at once.
func (t *tide) arrive(cost float64) {
	t.arrived += cost
	t.open[0].arrived += cost
}

func (t *tide) delay(cost float64) {
	t.delayed += cost
	t.open[0].delayed += cost
}

// offer remembers the largest cost that was offered lately: of two minutes, the one that is
// counted and the one before.
func (t *tide) offer(now time.Duration, cost int) {
	if now-t.minute > time.Minute {
		t.costliest[1], t.costliest[0], t.minute = t.costliest[0], 0, now
	}
	t.costliest[0] = max(t.costliest[0], cost)
}

// admit counts cost units that were granted while inUse were in use, those included.
func (t *tide) admit(cost, inUse float64) {
	e := &t.open[0]
	e.admitted += cost
	e.current += cost * inUse
}

// end counts that a request ended at now.
func (t *tide) end(now time.Duration, cost int) {
	t.ended++
	t.gone += float64(cost)
	t.quiet = max(t.quiet, now-t.endedAt)
	t.endedAt = now
}

// settle counts what became of lent slots, of which was units were in use before and is
// are now: in between it went from one to the other in a way that nobody has seen.
func (t *tide) settle(now time.Duration, was, is int, admitted, ended int64) {
	t.arrive(float64(admitted))
	t.admit(float64(admitted), max(float64(was+is)/2, 1))
	t.peak = max(t.peak, is)
	t.ended += float64(ended)
	t.gone += float64(ended)
	if ended > 0 || was == 0 {
		t.endedAt = now // when in between, nobody knows
	}
}

// mark begins another epoch.
func (t *tide) mark(now time.Duration) {
	t.open[0].over = now
	t.open[1] = t.open[0]
	t.open[0] = epoch{begun: now, taken: taken{tag: t.open[1].taken.tag + 1}}
}

// weight returns how many ends there were for each that the samples in b stand for. A driver
// that times one request in k hands in one sample of k, while the ends themselves are all
// counted: so their number is known, and how they fall into epochs is what the samples say.
// What the resource refused is in b one by one.
//
// It is 1 where each request is timed. A sample may come before its end is counted, if another
// caller ends the window in between: what is attributed too early is owed. What gives no
// sample at all, work that was detached, goes the way of the others, or into no epoch where
// there are none.
func (t *tide) weight(b *Batch) float64 {
	t.gone -= b.refused
	if b.units == 0 {
		t.gone = min(t.gone, 0)
		return 1
	}
	k := max(t.gone, b.units) / b.meant // each stands for itself at the least
	t.gone = max(t.gone-k*b.meant, -b.units)
	return k
}

// window returns what the law is told, and begins the next window.
func (c *Core) window(b *Batch) limit.Window {
	t := &c.tide
	if c.inUse == 0 {
		t.endedAt = c.now
	}
	w := limit.Window{
		Length: c.now - c.lawAt, Objective: c.cfg.Objective,
		Arrived: t.arrived, Delayed: t.delayed, Peak: t.peak, Running: c.inUse,
		Costliest: max(t.costliest[0], t.costliest[1], 1),
		Ended:     int(max(t.ended, b.dropped)), Dropped: int(b.dropped), Samples: b.Samples(), Mean: seconds(b.served.mean(0, 0)),
		Quiet: max(t.quiet, c.now-t.endedAt, b.Quiet), Pressure: b.Pressure,
	}
	if c.free() <= 0 { // else it is not the limit that they wait for
		w.Waiting = c.cost - c.parkedCost
	}
	w.Own = seconds(w.Mean.Seconds() * (1 - b.served.away()))
	if c.batch = b; b.samples > 0 {
		w.Times = c.times
	}
	k := t.weight(b)
	for i := range t.open {
		e := &t.open[i]
		for j := range b.epochs {
			if o := b.epochs[j]; o.ended > 0 && o.tag == e.taken.tag {
				o.ended = o.dropped + k*(o.ended-o.dropped)
				o.lost, o.lostSum = k*o.lost, k*o.lostSum
				e.taken.add(&o)
			}
		}
		w.Epochs[i] = e.show(c.now, i == 0)
	}
	c.lawAt = c.now
	t.arrived, t.delayed, t.peak, t.quiet, t.ended = 0, 0, c.inUse, 0, 0
	return w
}

// show is e in the words of the law.
func (e *epoch) show(now time.Duration, current bool) limit.Epoch {
	over := e.over
	if current {
		over = now
	}
	k := &e.taken
	s := limit.Epoch{
		Length: over - e.begun, Age: now - (e.begun+over)/2,
		Admitted: e.admitted, Arrived: e.arrived, Delayed: e.delayed,
		Ended: k.ended, Dropped: k.dropped, Samples: k.n, Served: k.cost, Abandoned: k.lost,
	}
	if k.lost > 0 {
		s.Under = seconds(k.lostSum / k.lost)
	}
	if e.admitted > 0 {
		s.InFlight = e.current / e.admitted
	}
	if k.n > 0 {
		s.Mean = seconds(k.weighted / k.cost)
		mean := k.sum / k.n
		s.Spread = seconds(math.Sqrt(max(k.sumsq/k.n-mean*mean, 0)))
	}
	return s
}

// each yields the mean and the number of the service times of each bucket of the batch at
// hand.
func (c *Core) each(yield func(time.Duration, float64) bool) {
	b := c.batch
	for i := b.lo; i < b.hi; i++ {
		if c := &b.cells[i]; c.n > 0 && !yield(seconds(c.sum/c.n), c.n) {
			return
		}
	}
}
