package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// A limit that a law moves. How far one window may take it (I10); what the queue may
// count on while the capacity is not known yet; and whether the short queue of an
// overload still does what it is there for.

// leap is by how many units any limit may rise in one window, however low it is: from 1
// a doubling alone would take four windows to where the fifth unit is.
const leap = 4

// paced returns the limit for the next window, of which the law asks for some. Times two
// up and half down is as fast as anything can be measured: a window whose limit was more
// than twice that of the one before says nothing about what lies between. It is never 0
// if it was not before, for with nothing admitted nothing is measured that leads back. (I10)
func paced(was, asked int) int {
	return min(max(asked, was-was/2), max(2*was, was+leap), limit.Max)
}

// Moves reports whether a law may move its limit by what it measures, as those of a number and of
// a group do not; until it has been asked once, nobody
// knows where to.
func Moves(law limit.Law) bool {
	switch law.(type) {
	case limit.Fixed, Granted:
		return false
	}
	return true
}

// usually takes the limit of the window that has passed into the mean over as long as that of
// the load. The load is what is offered over what can be served; with the limit of a moment
// a law that tries a little more and a little less in turns would be in an overload and
// out of it in each of its turns, and the queue be short at 0.95 of the capacity.
func (c *Core) usually(window time.Duration) {
	switch {
	case c.search || !Moves(c.cfg.Limit):
		c.usual = 0 // a limit that is on its way to the capacity has no mean
	case c.usual == 0:
		c.usual = float64(c.limit)
	default:
		c.usual += (1 - math.Exp(-float64(window)/float64(binsPerConstant*c.load.bin))) * (float64(c.limit) - c.usual)
	}
}

// seek takes from the law whether the capacity is still being searched, and reports
// whether that is news. While it is, the limit may be far below the capacity: what is
// offered beyond the limit is no overload, and once the limit is right the queue has
// as long as any other to drain.
func (c *Core) seek(search bool) (news bool) {
	if search == c.search {
		return false
	}
	if c.search = search; !search {
		c.searched = c.now
	}
	return true
}

// standsFor is for how long the queue has stood before a limit that was right, with something
// to run work on.
func (c *Core) standsFor() time.Duration {
	if c.search || c.absence.is {
		return 0
	}
	return c.now - max(c.stood, c.searched, c.absence.over)
}

// mostDoublings is to 256 times the limit: from 4, and from the default start, past what one
// process has in flight.
const mostDoublings = 8

// foreseen returns by how much more than now the slots will serve, mean over the time
// that the objective leaves for waiting, if the capacity is there: 1 when nothing is being
// searched. The limit then doubles with each window (I10), so after t it is 2^(t/window)
// times as high, of which the mean over [0, t] is (2^x - 1)/(x ln 2), x = t/window. With
// x = 4.3, 400 ms less a p99 of 184 ms, it is 6.4: before 4 slots of 40 ms 138 places.
//
// Without it a limit that starts at 1 refuses 60 requests of the first second at half of a
// capacity of 60 slots, and one that starts at 20 before 500 slots 250. What it costs in an
// overload is a queue that is too deep for an objective or so after the search; those at
// its end are told when their time is over.
func (c *Core) foreseen(spare float64) float64 {
	x := min(spare/c.cfg.Window().Seconds(), mostDoublings)
	if !c.search || x <= 0 {
		return 1
	}
	return (math.Exp2(x) - 1) / (x * math.Ln2)
}

// An idleness is the part of the slots that nobody used, in an overload, while nobody waited
// for them: what a deeper queue would have had used. The short queue of an overload is
// enough for arrivals and services that are independent of one another. Where a process
// stands still for 70 of 100 ms they are not: what comes meanwhile is refused, slots are
// idle afterwards, and as what stood still was held for long, the load looks high
// for as long as that goes on. So what the queue is made deeper by is measured.
//
// Where costs differ much, slots are idle for another reason: a costly request leaves many at
// once, and before that they have waited for it. There a deeper queue would be full of cheap
// ones, and no costly one would find a place.
type idleness struct {
	from, at time.Duration // what is counted
	slots    float64       // idle slots x seconds between
	share    float64       // of all slots, exponentially weighted mean up to from
	factor   float64       // of the depth of an overload: 1 and more
}

const (
	// A short queue that is right leaves a thousandth of the slots idle (idleTolerated). 20
	// times as much, and it is half as deep as it has to be; five times as much or less,
	// and it comes down again. Between the two it is left alone.
	idlenessDeepens  = 20 * idleTolerated
	idlenessShortens = 5 * idleTolerated

	// shortening is the number of objectives in which the factor falls to 1/e: slow enough
	// that looking whether less is enough costs little, and a minute brings 1000 down to 1.
	shortening = 20
)

// count adds so many idle slots since it was last counted.
func (i *idleness) count(now time.Duration, idle float64) {
	if now > i.at {
		i.slots += idle * (now - i.at).Seconds()
		i.at = now
	}
}

// idles counts the slots that have been idle since the last call in an overload.
func (c *Core) idles() {
	idle := 0.0
	if n := c.free(); n > 0 && c.waiting == 0 && c.load.even() && !c.binds() {
		idle = float64(n)
	}
	c.idleness.count(c.now, idle)
}

// weighIdleness takes the mean of what has been counted, over whole service times, since slots
// that have all begun at once are idle for a part of each, and makes the queue deeper or
// shorter. The time constant of the mean is that of the load.
func (c *Core) weighIdleness() {
	i := &c.idleness
	i.count(c.now, 0) // without an overload nobody has
	d := i.at - i.from
	if c.limit == 0 || d < max(c.load.bin, seconds(c.service.hold())) {
		return
	}
	constant := float64(binsPerConstant * c.load.bin)
	w := 1 - math.Exp(-float64(d)/constant)
	i.share += w * (i.slots/(float64(c.limit)*d.Seconds()) - i.share)
	i.from, i.slots = i.at, 0
	switch {
	case !c.overload || i.share < idlenessShortens:
		i.factor = max(i.factor*math.Exp(-float64(d)/(shortening*constant)), 1)
	case i.share > idlenessDeepens && c.depth < c.derivation.Depth:
		i.factor, i.share = 2*i.factor, 0
	}
}

// deepened is a depth that keeps slots busy times what keeps them busy here.
func (c *Core) deepened(depth int) int {
	return int(min(math.Ceil(float64(depth)*c.idleness.factor), maxItems))
}
