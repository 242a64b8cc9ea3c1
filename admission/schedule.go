package admission

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Where sizes say how long a request takes, a queue is a schedule, and who gives way
// to a newcomer is whoever saves most.
//
// The rule is that of Moore and Hodgson (Moore, "An n job, one machine sequencing
// algorithm for minimizing the number of late jobs", Management Science 15, 1968),
// taken at each arrival: those that wait are served in the order of their deadlines;
// if with a newcomer somebody would be late, the longest of those up to the first
// late one gives way, the newcomer included. For one server and requests that
// are all there it serves the most that can be served in time. In front of two slots
// and a real trace of bursts, knowing every size, it serves 95 to 97 % of what
// somebody could who knew the future as well (TestAzureSizes). Shortest first among
// those that are kept serves 3 % less.
//
// A request is predicted to be served when the work before it is done, at the speed of
// all slots together, after those whose turn is before that of its tenant, or at the
// speed of the part that its tenant gets: sum of cost x predicted hold / slots; where there
// is an allowance, also not before that has come to the cost of all of them. What is left of the work that runs is left out. It ends while the
// queue is served, and on the trace to know it changed nothing.
//
// Rank is stronger than length: nobody gives way to a request of a lower priority, of
// another tenant, of a later cohort, or to a retry if it is none. What they are told is
// what others are told: who waited is displaced, and a newcomer has no budget.

// A schedule is who waits in a line, in the order of EDF.
type schedule []scheduled

type scheduled struct {
	due        time.Duration
	w          *Waiter
	size, cost int32
	rank       int16
	chosen     bool // to give way to a newcomer
}

// planning is what foresee needs in a Core.
type planning struct {
	planned  bool      // the newcomer at hand is decided about by a schedule
	newcomer scheduled // scratch of foresee
	most     float64   // quantile of all service times, seconds; while sizes are trusted. +Inf in an overload
}

// maxScheduled bounds the work of an offer: a walk over so many takes 4 µs. A line
// that is longer is one as without sizes, until it is half as long.
const maxScheduled = 1024

// keptSchedule is how many places of a line that is empty are kept: of thousands of
// tenants, each of which has waited once, that is 320 bytes each.
const keptSchedule = 8

func (w *Waiter) scheduled() scheduled {
	return scheduled{due: w.due(), w: w, size: w.size, cost: w.cost, rank: int16(rank(w.retry, w.cohort))}
}

// at returns the place of w, or where it belongs.
func (s schedule) at(w *Waiter) int {
	i, _ := slices.BinarySearchFunc(s, w, func(e scheduled, w *Waiter) int {
		switch {
		case e.w == w:
			return 0
		case before(e.w, w):
			return -1
		}
		return 1
	})
	return i
}

// plan notes a waiter that was just pushed. trusted: there is a use for it.
func (l *line) plan(w *Waiter, trusted bool) {
	switch {
	case !trusted || l.n > maxScheduled:
		clear(l.schedule)
		l.schedule, l.planned = l.schedule[:0], false
	case l.n == 1:
		l.planned = true
	}
	if l.planned {
		l.schedule = slices.Insert(l.schedule, l.schedule.at(w), w.scheduled())
	}
}

// unplan forgets a waiter that has left.
func (l *line) unplan(w *Waiter) {
	if l.planned {
		i := l.schedule.at(w)
		l.schedule = slices.Delete(l.schedule, i, i+1)
		if len(l.schedule) == 0 && cap(l.schedule) > keptSchedule {
			l.schedule = nil
		}
	}
}

// replan makes the schedule of a line that has none, and reports whether there is one
// now.
func (l *line) replan() bool {
	if l.planned || l.n > maxScheduled/2 {
		return l.planned
	}
	for w := l.head; w != nil; w = w.next {
		l.schedule = append(l.schedule, w.scheduled())
	}
	slices.SortFunc(l.schedule, func(a, b scheduled) int {
		if before(a.w, b.w) {
			return -1
		}
		return 1
	})
	l.planned = true
	return true
}

// choose notes whether a waiter gives way to the newcomer at hand.
func (l *line) choose(w *Waiter, chosen bool) {
	if l.planned {
		l.schedule[l.schedule.at(w)].chosen = chosen
	}
}

// check compares the schedule with the line.
func (l *line) check() error {
	if l.planned && len(l.schedule) != l.n || !l.planned && len(l.schedule) > 0 {
		return fmt.Errorf("I18: %d wait, the schedule has %d, planned %v", l.n, len(l.schedule), l.planned)
	}
	for i, e := range l.schedule {
		switch {
		case e != e.w.scheduled():
			return fmt.Errorf("I18: the schedule has %+v for %+v", e, e.w.scheduled())
		case e.w.verdict != Queued || i > 0 && !before(l.schedule[i-1].w, e.w):
			return fmt.Errorf("I18: the order of the schedule is broken at %d", i)
		}
	}
	return nil
}

// foresees reports whether newcomers to a flow are decided about by its schedule. Those
// whose deadline is within the objective are then bound by nothing else: see depthFor.
// Under Auto the order is EDF as soon as somebody waits.
func (c *Core) foresees(f *flow) bool { return c.service.sizes.trusted() && c.plans(f) }

func (c *Core) plans(f *flow) bool {
	displaces := c.cfg.Overflow == Displace || c.cfg.Overflow == LatestOnly
	edf := c.cfg.Order == EDF || c.cfg.Order == Auto
	return displaces && edf && c.limit > 0 && !c.absence.is && f.line.replan()
}

// foresee chooses who gives way so that everybody in the flow is predicted to be in
// time, and reports whether the newcomer may stay; if not, nobody need have been
// chosen. It walks over the line once for each that is chosen, and once more; as
// a rule that is one walk or two, since one that is longer than the newcomer makes up
// for it.
func (c *Core) foresee(r *Request, f *flow, d *Decision, g *gone) bool {
	s := f.line.schedule
	n := &c.newcomer
	*n = scheduled{due: min(r.Deadline, c.bound(r)), size: int32(r.Size), cost: int32(r.Cost), rank: int16(rank(r.Attempt > 1, uint8(r.Cohort)))}
	k, _ := slices.BinarySearchFunc(s, n.due, func(e scheduled, due time.Duration) int {
		if e.due < due || e.due == due && e.w.arrival <= r.Arrival {
			return -1
		}
		return 1
	})
	for {
		w := c.walk(r, f)
		late := w.past(s[:k])
		d.PredictedWait = seconds(max(w.wait(), w.spaced(float64(n.cost))))
		late = late || w.pass(n) || w.past(s[k:])
		switch {
		case !late:
			return true
		case w.longest == n:
			return false
		}
		c.mark(w.longest.w, f, g)
	}
}

// A walk is how far somebody has come who goes over a schedule.
type walk struct {
	sizes   *sizing
	now     time.Duration
	ahead   float64 // seconds until the slots are there for the line
	all     float64 // slots there are
	own     float64 // slots that the tenant gets
	work    float64 // slots x seconds before the next
	cost    float64 // units of cost before the next, less what the allowance has for them
	spacing float64 // seconds in which the allowance grants a unit; 0 without one
	rank    int16   // of the newcomer: who ranks above it stays
	longest *scheduled
	most    float64 // what that takes, slots x seconds
}

func (c *Core) walk(r *Request, f *flow) walk {
	z, all, rate := &c.service.sizes, float64(c.limit)*c.growth, c.rate()
	cost := c.before(f.whole(), 0)
	ahead := float64(cost) / (c.slotRate() * c.growth)
	for i := range c.lanes[:r.Priority-1] {
		if l := &c.lanes[i]; l.cost > l.parked {
			ahead += (z.base*float64(l.cost) + z.each*l.sized) * z.held / all * (1 - float64(l.parked)/float64(l.cost))
			cost += l.cost - l.parked
		}
	}
	spacing, left := 0.0, 0.0
	if c.allowance.Rate > 0 {
		spacing, left = 1/c.allowance.Rate, c.allowance.level(c.now)
	}
	return walk{
		sizes: z, now: c.now, ahead: ahead, cost: float64(cost) - left, spacing: spacing,
		all: all, own: all * min(c.entitled(f)/rate, 1), rank: c.newcomer.rank,
	}
}

// wait is how long the next one waits, in seconds, for slots.
func (w *walk) wait() float64 { return max(w.ahead+w.work/w.all, w.work/w.own) }

// spaced is how long the next one waits for its allowance, in seconds.
func (w *walk) spaced(cost float64) float64 { return (w.cost + cost) * w.spacing }

// past goes on over those that are not chosen, to the first late one.
func (w *walk) past(s schedule) (late bool) {
	for i := range s {
		if e := &s[i]; !e.chosen && w.pass(e) {
			return true
		}
	}
	return false
}

// pass serves one and reports whether it is late, if there is anybody to do something
// about it. Of equal ones the last is the longest.
func (w *walk) pass(e *scheduled) (late bool) {
	service, cost := w.sizes.predict(int(e.size)), float64(e.cost)
	work := service * cost
	if e.rank >= w.rank && work >= w.most {
		w.longest, w.most = e, work
	}
	wait := w.wait()
	if w.spacing > 0 {
		wait = max(wait, w.spaced(cost))
		w.cost += cost
	}
	late = w.longest != nil && w.now+seconds(wait+service) > e.due
	w.work += work * w.sizes.held
	return late
}

// longestOf returns who of a flow gives way first: of the highest rank, who is predicted
// to take the most slots for the longest; of equal ones the last in the order. If there
// is a newcomer to the flow, only who ranks below it, or takes more.
func (c *Core) longestOf(f *flow, r *Request) *Waiter {
	least, most := int16(-1), math.Inf(-1)
	if r != nil {
		least = int16(rank(r.Attempt > 1, uint8(r.Cohort)))
		most = math.Nextafter(c.service.sizes.predict(r.Size)*float64(r.Cost), math.Inf(1))
	}
	var longest *Waiter
	for i := range f.line.schedule {
		e := &f.line.schedule[i]
		work := c.service.sizes.predict(int(e.size)) * float64(e.cost)
		if !e.chosen && (e.rank > least || e.rank == least && work >= most) {
			longest, least, most = e.w, e.rank, work
		}
	}
	return longest
}

// judgeSizes puts in force what is known of sizes, the need being the q-quantile.
func (c *Core) judgeSizes(d *Derivation, q float64) {
	z := &c.service.sizes
	if d.Sizes = z.use; d.Sizes == SizeScales {
		return
	}
	d.Explained = z.explained
	if z.trusted() {
		c.quantile, c.most = quantile(z.ratios, q), quantile(z.times, d.Percentile)
		if c.overload {
			c.most = math.Inf(1)
		}
		d.SizeBase, d.SizeEach = seconds(z.base), seconds(z.each)
	}
}
