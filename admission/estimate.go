package admission

import (
	"math"
	"sort"
	"time"

	"github.com/goodput/goodput/internal/hist"
)

const (
	// priorSamples is what the prior is worth: each real sample replaces one.
	// Below 100 samples a 99th percentile is the largest of them.
	priorSamples = 100

	// keepSamples is how many samples the estimator never forgets below, so
	// that a service of one request a minute keeps an estimate.
	keepSamples = 500

	// An estimate forgets half of its samples in halfLives objectives, at least
	// in two seconds: at 1200/s and an objective of 400 ms that leaves about
	// 3,500 samples, and a standard error of the p99 of an exponential service
	// of sqrt(.01*.99/3500)/.01 = 17 % of its mean, 3.7 % of itself.
	halfLives   = 5
	minHalfLife = 2 * time.Second
)

// A Batch is what a driver measured in a window: service times, and how long
// slots were held, and for how much of it
// the work was elsewhere. The zero value is empty and ready. Batches are merged by
// adding, so a driver may keep several and spare its callers a shared one.
type Batch struct {
	cells   [hist.N]cell
	lo, hi  int      // cells[lo:hi] may be in use
	samples float64  // service times in cells
	size    float64  // sum of their sizes
	served  held     // by requests that gave a service time
	ended   held     // by all that ended, failed ones included
	pairs   pairs    // some of the requests that gave a service time, with the size they offered
	dropped float64  // requests that the resource refused
	refused float64  // units of cost of those
	units   float64  // of the others
	meant   float64  // units of cost that those stand for: see Sample.Of
	epochs  [2]taken // of the two latest epochs, by the parity of their tags

	// Pressure is how short of processors the process was in the window: see
	// limit.Window. Merge keeps the largest.
	Pressure float64

	// Quiet is the longest time between two ends in which the work that ended with the second
	// was in flight, where a driver has seen more of the ends than it told the core: those of
	// lent slots. 0 if it has not looked. Merge keeps the largest.
	Quiet time.Duration
}

// held is what requests held: their number, their cost, cost x seconds, and how much of
// those the work was elsewhere.
type held struct{ n, cost, costSeconds, elsewhere float64 }

func (h *held) add(o held) {
	h.n += o.n
	h.cost += o.cost
	h.costSeconds += o.costSeconds
	h.elsewhere += o.elsewhere
}

func (h *held) scale(keep float64) {
	h.n, h.cost, h.costSeconds, h.elsewhere = h.n*keep, h.cost*keep, h.costSeconds*keep, h.elsewhere*keep
}

// away returns the part of the time for which slots were held that the work was elsewhere.
func (h *held) away() float64 {
	if h.costSeconds == 0 {
		return 0
	}
	return h.elsewhere / h.costSeconds
}

// mean returns how long a unit of cost was held, in seconds, with a prior that
// counts like weight requests of the same cost.
func (h *held) mean(prior, weight float64) float64 {
	if h.n == 0 {
		return prior
	}
	weight *= h.cost / h.n
	return (h.costSeconds + weight*prior) / (h.cost + weight)
}

// A cell is what the samples of one bucket leave: enough for a spread inside
// the bucket, so that a service time that never varies is known exactly and not
// to within the width of a bucket.
type cell struct{ n, sum, sumsq float64 }

// A Sample is one request that ended.
type Sample struct {
	// Service is the time from slot to response. 0 or less is no sample of it: the
	// work failed or was abandoned. It still held its slot.
	Service time.Duration

	// Hold is how long it held the slot, at least Service.
	Hold time.Duration

	// Elsewhere is how much of Hold the work waited for, or was in, something that has a
	// limit of its own: 0 to Hold, clamped. It counts in all that is derived from Service
	// and Hold, since the slot was held; the law is told without it, since fewer
	// slots here would not make it shorter.
	Elsewhere time.Duration

	Cost    int // units of the limit; less than 1 counts as 1
	Offered int // what was said to be its size; 0 or less: Cost

	// Size is what it turned out to be; 0 or less: Cost. The time per unit is that of
	// Size, and how well sizes predict is judged by Offered, since the next requests are
	// decided by theirs.
	Size int

	// Epoch is what Core.Epoch was when it was admitted.
	Epoch uint32

	// Of is one in how many requests was timed when it was admitted, where that is not each:
	// the law is told of as many ends. 0 counts as 1.
	Of int

	// Dropped says that the resource refused it, being over a limit of its own: it is no
	// service time, whatever Service is, and tells the law to ask for less. Each of them is
	// handed in, also by a driver that times one request in k; Hold is 0 where it was not
	// timed.
	Dropped bool

	// Abandoned says that its caller left before it ended: with Hold, that it would have taken
	// longer than that.
	Abandoned bool
}

// Add counts a request whose size is what was offered and that was nowhere else: see
// Sample.
func (b *Batch) Add(service, hold time.Duration, cost, size int) {
	b.AddSample(Sample{Service: service, Hold: hold, Cost: cost, Offered: size, Size: size})
}

// AddSample counts one request that ended.
func (b *Batch) AddSample(s Sample) {
	cost := max(s.Cost, 1)
	if s.Offered <= 0 {
		s.Offered = cost
	}
	if s.Size <= 0 {
		s.Size = cost
	}
	if s.Hold = max(s.Hold, s.Service); s.Hold <= 0 && !s.Dropped {
		return
	}
	elsewhere := min(max(s.Elsewhere, 0), s.Hold)
	one := held{n: 1, cost: float64(cost), costSeconds: float64(s.Hold) / 1e9 * float64(cost)}
	if elsewhere > 0 {
		one.elsewhere = elsewhere.Seconds() * one.cost
	}
	if s.Hold > 0 {
		b.ended.add(one)
	}
	e := of(&b.epochs, s.Epoch)
	if e == nil {
		e = new(taken) // of one that nobody asks about
	}
	if s.Dropped {
		b.dropped++
		b.refused += one.cost
		e.ended += one.cost
		e.dropped += one.cost
		return
	}
	meant := one.cost * float64(max(s.Of, 1))
	b.units += one.cost
	b.meant += meant
	e.ended += meant
	if s.Service <= 0 {
		if s.Abandoned {
			e.lost += one.cost
			e.lostSum += (s.Hold - elsewhere).Seconds() * one.cost
		}
		return
	}
	own := float64(max(s.Service-elsewhere, 1)) / 1e9
	e.n++
	e.sum += own
	e.sumsq += own * own
	e.cost += one.cost
	e.weighted += own * one.cost
	b.served.add(one)
	b.size += float64(s.Size)
	unit := float64(s.Service) / 1e9 / float64(s.Size)
	i := hist.Index(seconds(unit))
	if b.hi == 0 {
		b.lo, b.hi = i, i+1
	}
	b.lo, b.hi = min(b.lo, i), max(b.hi, i+1)
	c := &b.cells[i]
	c.n++
	c.sum += unit
	c.sumsq += unit * unit
	b.samples++
	if s.Offered != cost { // else nobody has said one
		b.pairs.add(s.Offered, s.Service, s.Hold)
	}
}

// Merge adds all of o.
func (b *Batch) Merge(o *Batch) {
	b.merge(o)
	b.pairs.merge(&o.pairs)
	b.dropped += o.dropped
	b.refused += o.refused
	b.units += o.units
	b.meant += o.meant
	for i := range o.epochs {
		from := &o.epochs[i]
		if from.ended == 0 {
			continue
		}
		if to := of(&b.epochs, from.tag); to != nil {
			to.add(from)
		}
	}
	b.Pressure = max(b.Pressure, o.Pressure)
	b.Quiet = max(b.Quiet, o.Quiet)
}

func (b *Batch) merge(o *Batch) {
	if o.hi > 0 {
		if b.hi == 0 {
			b.lo, b.hi = o.lo, o.hi
		}
		b.lo, b.hi = min(b.lo, o.lo), max(b.hi, o.hi)
	}
	for i := o.lo; i < o.hi; i++ {
		b.cells[i].n += o.cells[i].n
		b.cells[i].sum += o.cells[i].sum
		b.cells[i].sumsq += o.cells[i].sumsq
	}
	b.samples += o.samples
	b.size += o.size
	b.served.add(o.served)
	b.ended.add(o.ended)
}

// Reset empties b.
func (b *Batch) Reset() {
	clear(b.cells[b.lo:b.hi])
	b.lo, b.hi, b.samples, b.size = 0, 0, 0, 0
	b.served, b.ended = held{}, held{}
	b.pairs.reset()
	b.dropped, b.refused, b.units, b.meant = 0, 0, 0, 0
	b.epochs, b.Pressure, b.Quiet = [2]taken{}, 0, 0
}

// Empty reports whether b holds nothing.
func (b *Batch) Empty() bool { return b.units == 0 && b.dropped == 0 }

// Samples returns the number of service times in b.
func (b *Batch) Samples() int { return int(b.samples) }

// An estimate is what is believed about the service: the distribution of the
// service time per unit of size, or of a request where sizes are known to say more
// than that or nothing, and the mean time that a unit of cost is held.
// It forgets, and starts from a prior that its owner states.
type estimate struct {
	Batch                  // decayed
	halfLife time.Duration // of a sample
	last     time.Duration // of the last decay
	settle   time.Duration // how long the prior counts at least as much as the samples
	settled  time.Duration // when that is over; 0 until there are samples
	prior    [hist.N]cell  // an exponential service, worth one sample in all
	mean     float64       // of the prior, seconds a request
	shaped   float64       // for which the prior was made, seconds a unit of size
	points   []point       // the distribution in force, rising; see refresh
	total    float64       // weight of points
	longer   float64       // see hold; as of refresh
	sizes    sizing        // what the offered sizes say
}

// A point is a service time, in seconds, that stands for the samples of one
// bucket: their mean, number and standard deviation. Taken as uniform they lie
// within reach of the mean, which never goes into another bucket. Below is the weight of
// those before.
type point struct{ at, weight, spread, reach, below float64 }

// setPrior states what is believed before samples: an exponential service of
// the given mean, which is what a service of unknown variance is priced as.
//
// The samples of the first moments are short ones: 100 ms after the start nobody
// has seen a service of 200 ms, whatever the service is. So for settle, the
// objective, since the first sample the prior weighs at least as much as they
// do. Without that, 60 slots of 50 ms at 3x derive 440 to 710 deep instead of
// 201 in their first 100 ms, and the last to get a place waits 450 ms.
func (e *estimate) setPrior(mean, halfLife, settle time.Duration) {
	e.mean, e.halfLife, e.settle = mean.Seconds(), halfLife, settle
	e.shaped = 0
	e.refresh()
}

// shape makes the prior one of the given mean per unit of size.
func (e *estimate) shape(mean float64) {
	e.shaped = mean
	below := 0.0
	for i := range e.prior {
		upper := 1 - math.Exp(-hist.Bound(i)/mean) // +Inf gives 1
		n := upper - below
		at := hist.Mid(i, 0.5)
		// A bucket spans a ratio r = 2^(1/8) about at: as wide as a uniform
		// density of that support, (r - 1)/sqrt(12) = 2.6 % of it.
		spread := 0.026 * at
		e.prior[i] = cell{n: n, sum: n * at, sumsq: n * (at*at + spread*spread)}
		below = upper
	}
}

// observe adds a batch and forgets what is old.
func (e *estimate) observe(now time.Duration, b *Batch) {
	dt := now - e.last
	e.last = now
	if e.settled == 0 && b.samples > 0 {
		e.settled = now + e.settle
	}
	keep := math.Exp2(-float64(dt) / float64(e.halfLife))
	if k := forget(e.samples, keep); k < 1 {
		for i := e.lo; i < e.hi; i++ {
			c := &e.cells[i]
			c.n, c.sum, c.sumsq = c.n*k, c.sum*k, c.sumsq*k
		}
		e.samples *= k
		e.size *= k
		e.served.scale(k)
	}
	e.ended.scale(forget(e.ended.n, keep))
	e.merge(b)
	e.sizes.observe(&b.pairs)
	e.refresh()
}

// anew forgets all samples, and begins with the prior.
func (e *estimate) anew() {
	e.Reset()
	e.sizes, e.settled = sizing{}, 0
	e.refresh()
}

// forget returns which part of n to keep: never fewer than keepSamples, if there
// were as many.
func forget(n, keep float64) float64 {
	if n*keep < keepSamples {
		return min(1, keepSamples/max(n, 1))
	}
	return keep
}

// priorWeight returns how many samples the prior is worth.
func (e *estimate) priorWeight() float64 {
	if e.last < e.settled {
		return max(priorSamples-e.samples, e.samples)
	}
	return max(0, priorSamples-e.samples)
}

// negligible is the squared spread inside a bucket, relative to its mean, that is
// taken for none: what rounding leaves of a service time that never varies, and
// less than a clock can tell (0.5 µs of 50 ms).
const negligible = 1e-10

// refresh rebuilds the points: the samples, and the part of the prior that they
// have not yet replaced. A bucket that holds less than a millionth of the weight
// is left out; it could not move a percentile.
func (e *estimate) refresh() {
	pw := e.priorWeight()
	e.longer = max(e.served.mean(e.mean, pw), e.ended.mean(e.mean, pw))
	if pw > 0 {
		// The prior is about a request, the samples about a unit of its size.
		size, _ := e.request()
		if mean := e.mean / size; math.Abs(mean-e.shaped) > 0.01*mean {
			e.shape(mean)
		}
	}
	e.points, e.total = e.points[:0], 0
	cells, n := &e.cells, e.samples
	if e.sizes.use != SizeScales {
		cells, n = e.sizes.cells, float64(len(e.sizes.last))
	}
	floor := (pw + n) * 1e-6
	for i := range cells {
		c := cells[i]
		if pw > 0 {
			c.n += pw * e.prior[i].n
			c.sum += pw * e.prior[i].sum
			c.sumsq += pw * e.prior[i].sumsq
		}
		if c.n <= floor {
			continue
		}
		at := c.sum / c.n
		variance := c.sumsq/c.n - at*at
		if variance < negligible*at*at {
			variance = 0
		}
		spread := math.Sqrt(variance)
		reach := math.Sqrt(3) * spread
		lower := 0.0 // of the first bucket
		if i > 0 {
			lower = hist.Bound(i - 1)
		}
		reach = max(0, min(reach, hist.Bound(i)-at, at-lower))
		e.points = append(e.points, point{at, c.n, spread, reach, e.total})
		e.total += c.n
	}
}

// quantile returns the q-quantile of the service time per unit of size, in
// seconds.
func (e *estimate) quantile(q float64) float64 {
	rank := q * e.total
	i := sort.Search(len(e.points), func(i int) bool { return e.points[i].below+e.points[i].weight >= rank })
	if i == len(e.points) {
		return e.points[i-1].at
	}
	p := &e.points[i]
	f := (rank - p.below) / p.weight // 0..1 inside the bucket
	return p.at + p.reach*(2*f-1)
}

// moments returns the mean, in seconds, and the squared coefficient of variation.
func (e *estimate) moments() (mean, cv2 float64) {
	var sum, sumsq float64
	for _, p := range e.points {
		sum += p.weight * p.at
		sumsq += p.weight * (p.at*p.at + p.spread*p.spread)
	}
	mean = sum / e.total
	return mean, max(0, sumsq/e.total/(mean*mean)-1)
}

// hold returns the mean time, in seconds, for which a unit of cost is held,
// weighted by cost: what the departure of cost units follows. The prior counts
// here as in the service times.
//
// Work that fails slowly, at a timeout, holds its slot and counts. Work that
// fails fast does not make the service faster: an upstream that refuses
// connections for a minute leaves a mean of a millisecond, and a queue derived
// from that is 50 times too deep when the upstream is back. So the longer of the
// two means is believed.
func (e *estimate) hold() float64 { return e.longer }

// request returns the mean size and the mean cost of a request.
func (e *estimate) request() (size, cost float64) {
	if e.samples == 0 {
		return 1, 1
	}
	size = e.size / e.samples
	if e.sizes.use != SizeScales {
		size = 1 // the distribution is that of requests
	}
	return size, e.served.cost / e.served.n
}
