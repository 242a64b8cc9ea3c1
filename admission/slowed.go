package admission

import (
	"math"
	"time"
)

// A slowed tells whether what the work depends on has become slower: the same slots then
// complete less, and the queue grows though no more is offered than before. Who is called at
// night needs to know that it is this and not more traffic. It is for people: nothing is
// decided by it. That a fifth of the requests have become ten times as long looks the same from
// here, unless they say their sizes: so whoever puts it in words names both.
//
// What is compared is for how long a unit of cost is held, of a block of ends with the
// last minutes. A block is long enough to mean something, blockEnds and blockTime at the
// least: a second from 16 a second on, 16 s at one. Three things that make it longer are no
// slow dependency, and what they may account for is taken out first, each at the most that it
// can be:
//
//   - more work in flight, because more is offered or the limit has been raised: where all
//     of it shares one resource, twice as much takes twice as long (processor sharing), and never
//     more. It accounts for no more than there really is in flight. Where a limit that
//     adapts makes up for a slow dependency with more slots, this ends with it: as many
//     are completed as before. And where a resource can do less at once, as when a half of its
//     servers is gone, such a limit falls to what it can within a second or two, and no unit is held for
//     longer: that is not this, and Stats.LimitWhy says it.
//   - larger requests, where sizes are given and not found to say nothing: in proportion.
//   - a queue inside a resource of fewer slots than the limit, as of ten connections behind 100
//     slots: with twice as much offered its wait has no bound. Where busierBy times as much is
//     offered and no less is completed, that accounts for all of it. Where less is completed,
//     as when callers try again, it does not. Of a resource that was nearly full before, a
//     smaller rise is enough, and is called slow: OfferedBefore shows it.
//   - chance. The logarithm of a block mean varies from block to block, by .47 for blocks of
//     16 of a lognormal service with a CV of 2, and that is measured as well.
//
// What is left is summed up over blocks, less the tolerated factor (CUSUM: Page, "Continuous
// inspection schemes", Biometrika 41, 1954): a large change is told after four blocks, a
// small one once it has lasted, and one below slowedFrom never. The same sum the other way,
// from slowedUntil, says that it is over; between the two nothing changes.
//
// Before 60 slots of 50 ms under limit.Auto, which are the resource's own, fixed, exponential
// and lognormal with a CV of 2, for 200 s each in internal/sim: at loads of 0.7 and 3, from 0.3 to
// 3 and back twice, and in bursts of 2 s at twice the capacity nothing is called slow; half the speed is,
// by each, and over after its end.
//
// While the law is held, everything runs at once, and a unit may take any time because of that:
// nothing is called slow, and nothing is learnt. Afterwards it is compared with what was before.
//
// Two that are slow are missed. Three times as long with three times the retries, where slots
// were free: as much is completed as before, and it looks like load. And what becomes slower in
// more than the time constant of the base, as threefold in 20 minutes: the base goes along.
//
// Where nothing runs and nothing has ended for quietFor, nothing is slow any more.
//
// Work that fails holds its slot too: a dependency that hangs until a timeout is slow. One
// that fails at once is not fast: such blocks are compared and not learnt.
type slowed struct {
	is       bool
	block    span    // the one at hand
	recent   span    // the last few, decayed: what is shown
	base     usual   // the last minutes, decayed
	doubted  usual   // blocks that are learnt once it is clear that they are none of something slow
	up, down float64 // what has been summed up, in standard deviations
}

// A usual is what there is to compare with.
type usual struct {
	span
	blocks        float64
	logs, squares float64 // sums of the logarithms of their means, and of the squares of those
}

func (u *usual) learn(o *usual) {
	u.span.add(&o.span)
	u.blocks, u.logs, u.squares = u.blocks+o.blocks, u.logs+o.logs, u.squares+o.squares
}

func (u *usual) scale(k float64) {
	u.span.scale(k)
	u.blocks, u.logs, u.squares = u.blocks*k, u.logs*k, u.squares*k
}

// A span is what a number of windows in a row had, in sum.
type span struct {
	seconds  float64
	ended    held    // by all that ended and were timed
	served   held    // by those of them that completed, late ones included
	inFlight float64 // unit seconds: of those that were not timed too
	offered  float64 // units of cost, refused ones included
	limit    float64 // x seconds
	size     float64 // of those in served
}

const (
	// blockEnds and blockTime make a block. With 16 its mean is within a factor of 1.6 (one standard
	// deviation) for a CV of 2 and 1.28 for an exponential service.
	blockEnds = 16
	blockTime = time.Second

	// usualFor is the time constant of the base: long beside what a block takes at a request a
	// second, 16 s, and short beside what traffic takes to change by a factor in a day,
	// so that the mix of requests is still the same one.
	usualFor = 5 * time.Minute

	// slowLearning is by how much slower it learns while it is slowed: an hour. So an outage
	// that lasts for one is called so until its end, and a release that has made the service three
	// times as slow for good, until somebody looks or for 70 minutes (3 / (3 - 2 exp(-t/60)) = 1.25).
	slowLearning = 12

	// baseBlocks and baseTime are the least that is called a base.
	baseBlocks = 8
	baseTime   = time.Minute

	// slowedFrom is the least factor that is told: below, a mix of requests may be why.
	// slowedUntil is that below which it is over.
	slowedFrom  = 1.5
	slowedUntil = 1.25

	// busierBy is from where on more is offered: what changes by less in the minutes of the base
	// is an hour's change of a day's traffic. The same factor is the room for "no less is
	// completed": between 1 and the 1/1.5 that is left, where all slots were busy, of the least that is told.
	busierBy = 1.25

	// quietFor is a time without an end after which it is not known how anything is. A base takes
	// 8 blocks of 16 in 5 minutes, .43 ends a second: at that rate a gap of a minute has a
	// probability of exp(-26).
	quietFor = time.Minute

	// enough is how many standard deviations it takes, and atOnce what one block counts at
	// the most: four blocks, so that no standstill of a second is a slow dependency. While
	// nothing has changed the sum falls by ln(1.5)/.47 = .86 a block, so it gets to 7 once in
	// some exp(2 x .86 x (7 + 1.17)) = 1.3 million blocks (Siegmund, "Sequential Analysis", 1985, II.6, for normal
	// logarithms). TestSlowedFalseAlarms -slowed.days 3 looks at a CV of 2: two in 300 days of 1/s, none in 30
	// days of 10/s, where blocks are the most and have the fewest ends, in 3 days of 100/s and in 7
	// hours of 1000/s. With 6 there were four in the 30 days of 10/s.
	enough = 7.0
	atOnce = 2.0

	// The standard deviation is at least leastSpread, however many there are in a block: what
	// drifts without meaning anything does so by a tenth. And it counts as if there had been
	// priorBlocks of priorSpread, a CV of 2, since that of a few blocks is not known.
	leastSpread = 0.1
	priorBlocks = 8
	priorSpread = 0.47
)

// add takes in what a window of so many seconds had, in which so many units a second were
// offered and so many might run.
func (s *slowed) add(b *Batch, sec, offered, slots float64) {
	t := &s.block
	t.seconds += sec
	t.offered += offered * sec
	t.limit += slots * sec
	t.ended.add(b.ended)
	t.served.add(b.served)
	t.size += b.size
	if of := b.ended.costSeconds; b.units > 0 {
		t.inFlight += of * b.meant / b.units
	} else {
		t.inFlight += of
	}
}

// hold is for how long a unit was held, in seconds: the longer of two means, as in estimate.hold.
func (t *span) hold() float64 { return max(t.ended.mean(0, 0), t.served.mean(0, 0)) }

func (t *span) add(o *span) {
	t.seconds += o.seconds
	t.ended.add(o.ended)
	t.served.add(o.served)
	t.inFlight += o.inFlight
	t.offered += o.offered
	t.limit += o.limit
	t.size += o.size
}

func (t *span) scale(k float64) {
	t.seconds *= k
	t.ended.scale(k)
	t.served.scale(k)
	t.inFlight *= k
	t.offered *= k
	t.limit *= k
	t.size *= k
}

// known reports whether there is anything to compare with.
func (u *usual) known() bool { return u.blocks >= baseBlocks && u.seconds >= baseTime.Seconds() }

// close compares a block with the base, and learns it. sized says that sizes mean something.
func (s *slowed) close(sized bool) {
	t := s.block
	s.block = span{}
	s.recent.scale(2.0 / 3) // 3 blocks in all
	s.recent.add(&t)
	y := math.Log(t.hold())
	if s.base.known() {
		longer := y - math.Log(s.base.hold()) - math.Log(t.explained(&s.base.span, sized))
		if !s.is && t.busier(&s.base.span) { // callers who try again do not end it
			longer = min(longer, 0)
		}
		s.judge(longer)
	}
	if 2*t.served.n >= t.ended.n { // else most have failed
		s.doubted.learn(&usual{t, 1, y, y * y})
	}
	switch {
	case s.is:
		s.doubted.scale(1.0 / slowLearning)
	case s.up > 0:
		return
	}
	s.base.scale(math.Exp(-s.doubted.seconds / usualFor.Seconds())) // as much is forgotten as is learnt
	s.base.learn(&s.doubted)
	s.doubted = usual{}
}

// quit forgets what is not in the base yet, and that anything is slow.
func (s *slowed) quit() {
	s.is, s.up, s.down = false, 0, 0
	s.block, s.doubted = span{}, usual{}
}

// explained is by what factor the units of a block would be held longer than those of base
// for reasons that are no slow dependency: at least 1.
func (t *span) explained(base *span, sized bool) float64 {
	perSecond := func(v, b float64) float64 { return v / t.seconds * base.seconds / b }
	factor := max(perSecond(t.offered, base.offered), perSecond(t.limit, base.limit))
	factor = max(min(factor, perSecond(t.inFlight, base.inFlight)), 1)
	if was := base.size / base.served.cost; sized && t.served.cost > 0 {
		factor *= max(t.size/t.served.cost/was, 1)
	}
	return factor
}

// busier reports whether more is offered than in base, and no less completed.
func (t *span) busier(base *span) bool {
	return t.offered*base.seconds >= busierBy*base.offered*t.seconds && busierBy*t.completed() >= base.completed()
}

// completed is how much is, in units of cost per second.
func (t *span) completed() float64 {
	if t.seconds <= 0 {
		return 0
	}
	return t.served.cost / t.seconds
}

// judge sums up how much longer a block was held, as a logarithm.
func (s *slowed) judge(longer float64) {
	if math.IsNaN(longer) || math.IsInf(longer, 0) { // a base of nothing
		return
	}
	spread := s.base.spread()
	step := func(v float64) float64 { return min(v/spread, atOnce) }
	if !s.is {
		s.up = max(s.up+step(longer-math.Log(slowedFrom)), 0)
		if s.up >= enough {
			s.is, s.down = true, 0
		}
		return
	}
	s.down = max(s.down+step(math.Log(slowedUntil)-longer), 0)
	if s.down >= enough {
		s.is, s.up = false, 0
	}
}

// spread is the standard deviation of the logarithm of a block mean.
func (u *usual) spread() float64 {
	mean := u.logs / u.blocks
	v := max(u.squares-u.blocks*mean*mean, 0)
	v = (v + priorBlocks*priorSpread*priorSpread) / (u.blocks + priorBlocks)
	return max(math.Sqrt(v), leastSpread)
}

// tell puts what is known in the Stats of its core. Of one that is quiet only the base is.
func (s *slowed) tell(st *Stats, quiet bool) {
	base := s.base.hold()
	if st.Slowed = s.is && !quiet; !s.base.known() || base <= 0 {
		return
	}
	st.Baseline = seconds(base)
	if quiet || s.recent.ended.n == 0 {
		return
	}
	st.SlowedBy = s.recent.hold() / base
	st.OfferedBefore = s.base.offered / s.base.seconds
	st.CompletedBefore, st.CompletedNow = s.base.completed(), s.recent.completed()
}
