package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// An auto is an Auto at work. An epoch of its limiter is a block: what is admitted under one
// limit. When a block has ended the one before it is judged, because only then has nearly all of it
// ended.
type auto struct {
	Auto          // with its defaults
	name   string // as it was said
	rand   *rand.Rand
	belief belief
	brake  brake
	drops  ceiling // what the resource refuses
	leave  ceiling // callers that leave
	press  ceiling // what a signal of pressure says

	floor    int      // Min, or the largest cost that is asked for: the limit is not less
	blocks   int      // judged so far
	took     float64  // mean time of a block, seconds, smoothed
	rate     float64  // ends per second, of the latest block
	cvSum    float64  // for the coefficient of variation: a decayed sum of its square
	cvN      float64  // and of the samples
	home     float64  // the part of the time in flight that is the service's own, smoothed
	held     float64  // the time in flight, of what is not refused: seconds, smoothed
	served   float64  // units that do not end refused, a second, smoothed
	quiet    float64  // the longest time of a window without an end, seconds, smoothed
	pressure float64  // the most of the current block
	judged   float64  // the limit of the latest full block that was judged; 0: none
	open     [2]block // the current one and the one before
	arms     [2]int   // the limits of a pair
	left     int      // of those, how many have not been run
	pairs    int      // so far
	alert    int      // blocks for which the arms stay wide
	search   bool     // the limit is clipped by growth
	latest   sight    // the latest block that was judged
	moved    move     // the latest
}

// A block is what is known of an epoch beside what its limiter counts.
type block struct {
	limit float64
	arm   bool // of a pair
	void  bool // a standstill has spoilt it
	full  bool // the limit bounded what was in flight: see saturated
}

const (
	// saturated is the part of what arrives in a block that was not admitted at once from which on
	// the limit bounds what is in flight. That in flight and limit are equal says less: behind
	// a short queue completions come in batches, and slots are empty for moments in an overload.
	saturated = 0.3

	// A block is judged when so much of it has ended: with less the mean would be that of the
	// short ones, and the limit would run away.
	whole = 0.95

	fewest     = 6 // admissions of a block
	fewestWarm = 8 // and in the first warm blocks
	warm       = 16
	mostNeeded = 400 // admissions, however much service times vary
	patience   = 20  // mean times after which a block ends even if that before it has not

	servedFor = 0.5 // seconds over which the rate that is served is averaged: some blocks

	// A block of n samples has a relative standard error of CV / sqrt(n); more than 40 % says
	// nothing.
	needed = 0.4

	// The lower arm is what the capacity is below with a probability of 70 %, plus half the
	// standard deviation of a Poisson number of that mean: a limit that is too low costs goodput
	// in proportion, one that is too high some latency only. Where work is a part of its time
	// downstream, how much of it is there varies like that too, and adds a whole one.
	lowArm  = 0.7
	room    = 0.5
	highArm = 0.9

	narrow   = 1.12 // ratio of the arms, at the least
	wide     = 1.6  // and at the most
	unsure   = 1.2  // at the least while it is not proven that the resource is the limiter's own
	probe    = 1.35 // of each twelfth pair: more is tried above than below, since it costs less
	every    = 12
	alarm    = 16  // squared standard errors of a surprise that makes the arms wide
	alarmed  = 1.4 // ratio of the arms then
	alarmFor = 8   // blocks

	// Where the mean time is more than a third of the objective the p99 is hardly within it, and to
	// double the limit may be what makes it late. So if the belief leaves 30 % for a
	// capacity below the limit, what is tried first is half of it.
	slow  = 3
	doubt = 0.3

	// mostLeave is the part of what ends that is abandoned, from which on the limit is cut.
	mostLeave = 0.5

	// growth is how far the limit is above the largest that has been judged in an overload: it is
	// a doubling ahead of what is known, and below 16 two, because blocks of few take long.
	growth       = 2
	growthSmall  = 4
	growthShared = 1.25
	small        = 16
)

// Begin returns the state of one limiter.
func (a Auto) Begin(seed uint64) State {
	name := a.String()
	a = a.withDefaults()
	from := block{limit: float64(a.From)}
	return &auto{
		Auto: a, name: name, rand: rand.New(rand.NewPCG(seed, 0x6175_746f)),
		brake: brake{shared: a.Shared, cap: math.Inf(1)},
		drops: ceiling{at: math.Inf(1), since: dropsEvery}, press: ceiling{at: math.Inf(1)},
		leave: ceiling{at: math.Inf(1), since: dropsEvery}, floor: a.Min,
		cvSum: 20, cvN: 20, // as if 20 samples of an exponential service had been seen
		home: 1, belief: belief{home: 1}, search: true, open: [2]block{from, from},
	}
}

// Next ends the current block if it is long enough, judges the one before, and chooses the limit of
// the next.
func (s *auto) Next(current int, w *Window) Move {
	s.watch(w)
	s.open[0].limit = float64(current) // the core may not have gone all of the way
	if s.moved.fresh {
		s.moved.to, s.moved.fresh = current, false
	}
	s.brake.add(w, float64(current), s.cv(), s.took)
	if !s.over(w) {
		return Move{Limit: s.clamp(current), Search: s.search}
	}
	cur, prev := &w.Epochs[0], &w.Epochs[1]
	// A backlog as large as the limit says it too, where nothing arrives any more.
	s.open[0].full = cur.Delayed > saturated*cur.Arrived || w.Waiting >= max(current, 1)
	s.floor = min(max(s.Min, w.Costliest), s.Max)
	s.refused(prev)
	s.abandoned(prev)
	s.judge(prev)
	s.press.pressed(s.pressure, float64(current))
	s.open[1], s.open[0], s.pressure = s.open[0], block{}, 0
	n := s.clamp(s.choose(current, w.Objective.Seconds()))
	s.open[0].limit = float64(n)
	return Move{Limit: n, Mark: true, Search: s.search}
}

// watch looks for a standstill: a collection of garbage, a suspended process. Of what was in flight
// then nothing can be learnt. One that comes with every window is how the resource works.
func (s *auto) watch(w *Window) {
	if w.Samples > 0 && w.Mean > 0 {
		s.home += 0.1 * (w.Own.Seconds()/w.Mean.Seconds() - s.home)
		s.home = min(max(s.home, 0), 1)
		s.belief.home = max(s.home, 0.05)
		if s.held == 0 {
			s.held = w.Mean.Seconds()
		}
		s.held += 0.1 * (w.Mean.Seconds() - s.held)
	}
	s.pressure = max(s.pressure, w.Pressure)
	if s.took == 0 {
		return
	}
	quiet := w.Quiet.Seconds()
	if quiet > max(2*s.took, 8/s.rate, 4*s.quiet) {
		s.open[0].void, s.open[1].void = true, true
	}
	s.quiet += 0.1 * (quiet - s.quiet)
}

// cv is the coefficient of variation of the service time.
func (s *auto) cv() float64 { return math.Sqrt(s.cvSum / s.cvN) }

// over reports whether the current block may end.
func (s *auto) over(w *Window) bool {
	cur, prev := &w.Epochs[0], &w.Epochs[1]
	few := float64(fewest)
	if s.blocks < warm {
		few = fewestWarm
	}
	few = max(few, min(mostNeeded, sq(s.cv()/needed)))
	length := cur.Length.Seconds()
	switch {
	case cur.Admitted < few || length < s.took:
		return false
	case prev.Ended >= whole*prev.Admitted:
		return true
	}
	return s.took > 0 && length >= patience*s.took || length > 10*w.Objective.Seconds()
}

// refused looks at what the resource refused of a block. Who is refused has the slot for a
// moment: so it is not that part of what ends that was too many in use, but what is
// left of the limit beside those that were served, the rate of them times the time of each.
func (s *auto) refused(b *Epoch) {
	if !(b.Ended > 0 && b.Admitted > 0 && b.Length > 0 && b.Dropped >= 0) {
		return
	}
	dropped, length, n := b.Dropped/b.Ended, b.Length.Seconds(), s.open[1].limit
	rate := max(b.Admitted-b.Dropped, 0) / length
	s.served += (1 - math.Exp(-length/servedFor)) * (rate - s.served) // 20 in a block vary by 22 %
	s.drops.refused(dropped, min(dropped, max(1-s.served*s.held/n, 0)), n, length)
}

// abandoned looks at how many callers left, after work that should have been done by then. Where
// that is most of them hardly anything is served, and there is no service time that would say
// why: the limit is too high, or the resource hangs, and either way less should be under way. Callers
// that leave at once say nothing, and a few that do not wait are not many.
func (s *auto) abandoned(b *Epoch) {
	if !(b.Ended > 0 && b.Admitted > 0 && b.Length > 0 && b.Abandoned >= 0) {
		return
	}
	part := min(b.Abandoned/b.Ended, 1)
	if part <= mostLeave || b.Under.Seconds() < s.took || s.open[1].void { // in a standstill everybody leaves
		part = 0
	}
	s.leave.refused(part, part, s.open[1].limit, b.Length.Seconds())
}

// judge takes what a block shows.
func (s *auto) judge(b *Epoch) {
	if s.open[1].void || !(b.Samples >= 3 && b.InFlight > 0 && b.Served > 0 && b.Ended > 0 && b.Mean > 0) {
		return
	}
	// What has not ended counts with its age, in as many samples as it would give.
	left := b.Left() * b.Served / b.Ended
	sum, units := b.Mean.Seconds()*b.Served+left*s.home*b.Age.Seconds(), b.Served+left
	if b.Under > b.Mean { // and so does who left, if it had been there for longer than the others
		gone := b.Abandoned * b.Served / b.Ended
		sum, units = sum+gone*b.Under.Seconds(), units+gone
	}
	mean, n := sum/units, b.Samples*units/b.Served
	if !(mean > 0 && mean < 1e6 && n < 1e12 && b.InFlight <= Max) {
		return // nothing that a limiter measures
	}
	cv := b.Spread.Seconds() / b.Mean.Seconds()
	keep := math.Exp(-n / 1000)
	s.cvSum = s.cvSum*keep + n*cv*cv
	s.cvN = s.cvN*keep + n
	if s.took == 0 {
		s.took = mean
	}
	s.took += 0.3 * (mean - s.took)
	s.rate = b.Ended / max(b.Length.Seconds(), 1e-3)
	se := math.Hypot(max(s.cv(), cv)/math.Sqrt(n), 0.01) * math.Sqrt(max(1, s.belief.noise))
	x, y, dt := math.Log(b.InFlight), math.Log(mean), b.Length.Seconds()
	full := s.open[1].full
	s.belief.observe(x, y, se, dt, full)
	s.latest = sight{b.InFlight, mean}
	s.blocks++
	if !full {
		return
	}
	s.judged = s.open[1].limit
	s.brake.proof.pair(x, y, se, dt, s.open[1].arm, s.judged)
	s.alert--
	if s.belief.surprise > alarm {
		s.alert = alarmFor
	}
}

// choose returns the limit of the next block.
func (s *auto) choose(current int, objective float64) int {
	bound, why := s.bound()
	if last := s.open[1]; last.void || !last.full || !s.belief.begun {
		return s.move(current, min(current, bound), why)
	}
	if s.left > 0 {
		return s.arm(current, bound, why)
	}
	lo := s.belief.quantile(lowArm)
	lo = min(lo+room*math.Sqrt(lo)+math.Sqrt(lo*(1-s.home)), float64(bound))
	top := s.top()
	s.search = lo > top/1.2
	low, high := 0, 0
	switch {
	case s.search && s.latest.mean > objective/slow && s.belief.quantile(doubt) < s.judged:
		low, high = int(s.judged/2), int(s.judged)
	case s.search:
		return s.move(current, min(max(int(top), current), bound), "searching")
	default:
		lo = max(lo, 1)
		low, high = int(lo+0.25), int(s.above(lo)+0.25)
	}
	low = max(low, 1)
	s.arms, s.left = [2]int{low, max(high, low+1)}, 2
	if s.rand.IntN(2) == 0 {
		s.arms = [2]int{s.arms[1], s.arms[0]}
	}
	return s.arm(current, bound, why)
}

// bound is what the limit may be at the most for another reason than the capacity, and that.
func (s *auto) bound() (n int, why string) {
	at, why := s.brake.cap, "a queue in the resource"
	if s.drops.at < at {
		at, why = s.drops.at, "the resource refused work"
	}
	if s.leave.at < at {
		at, why = s.leave.at, "most callers left"
	}
	if s.press.at < at {
		at, why = s.press.at, "pressure"
	}
	return max(1, int(min(at, Max))), why
}

// top is how far the search may go.
func (s *auto) top() float64 {
	known := max(s.judged, 1)
	switch {
	case s.Shared:
		return growthShared*known + 1
	case known < small:
		return growthSmall * known
	}
	return growth * known
}

// arm returns the next limit of a pair.
func (s *auto) arm(current, bound int, why string) int {
	s.left--
	s.open[0].arm = true
	if n := s.arms[s.left]; n < bound {
		return s.move(current, n, "comparing")
	}
	return s.move(current, bound, why)
}

func (s *auto) clamp(n int) int { return min(max(n, s.floor), s.Max) }

// above returns the upper arm for a lower one.
func (s *auto) above(lo float64) float64 {
	if s.Shared {
		return narrow * lo
	}
	hi := min(max(s.belief.quantile(highArm), narrow*lo), wide*lo)
	if !s.brake.proof.sole {
		hi = max(hi, unsure*lo)
	}
	if s.alert > 0 {
		hi = max(hi, alarmed*lo)
	}
	if s.pairs++; s.pairs%every == 0 {
		hi = max(hi, probe*lo)
	}
	return hi
}

// A move is why the limit last moved.
type move struct {
	from, to         int
	what             string
	low, middle, top float64 // 10 %, 50 % and 90 % of the belief
	service          float64 // seconds
	seen             sight   // the latest block that had been judged
	fresh            bool    // the core has not answered yet: it may not go all of the way at once
}

// A sight is a block that was judged: units in flight, and the mean time in seconds.
type sight struct{ inFlight, mean float64 }

// move notes why the limit is to be another one.
func (s *auto) move(from, to int, what string) int {
	to = s.clamp(to)
	if to == from {
		return to
	}
	m := &s.moved
	m.from, m.to, m.what, m.seen, m.fresh = from, to, what, s.latest, true
	if b := &s.belief; b.begun {
		m.low, m.middle, m.top, m.service = b.quantile(0.1), b.quantile(0.5), b.quantile(0.9), b.service()
	}
	return to
}

// Why says why the limit last moved, such as
//
//	auto: 62 to 66, comparing: capacity 59 slots (52 to 66), service 49ms; before that 55ms at 66 in flight
//
// The range is that of 80 % of the belief.
func (s *auto) Why() string {
	m := &s.moved
	if m.what == "" {
		return ""
	}
	why := fmt.Sprintf("%s: %d to %d, %s", s.name, m.from, m.to, m.what)
	if m.middle > 0 {
		why += fmt.Sprintf(": capacity %s slots (%s to %s), service %v", slots(m.middle), slots(m.low), slots(m.top), figure(m.service))
	}
	if m.seen.mean > 0 {
		why += fmt.Sprintf("; before that %v at %s in flight", figure(m.seen.mean), slots(m.seen.inFlight))
	}
	return why
}

// slots is a number of slots to two or three figures, without an exponent.
func slots(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

// figure is a time of so many seconds, to three figures.
func figure(seconds float64) time.Duration {
	d := time.Duration(seconds * 1e9)
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
