package virtual

import (
	"slices"
	"time"

	"github.com/goodput/goodput/bench/live"
)

// An ending is what became of an attempt, and at last of a request.
type ending uint8

const (
	inTime  ending = iota
	late           // it got a slot and ended after the deadline
	refused        // it got none
)

// binLength of the series: 120 answers at 1,200/s.
const binLength = 100 * time.Millisecond

// A bin is what arrived in a tenth of a second, and what was answered in it.
type bin struct {
	arrived  int
	good     int // answered in it, within the deadline
	quick    int // of those, within the objective
	goodHere int // of those that arrived in it
	quickly  int // likewise, within the objective
	limit    int
}

// work is what was to do and what was done in a stretch of time.
type work struct {
	came   time.Duration // of the requests that arrived in it
	done   time.Duration // in it
	served int           // attempts with a slot that ended in it, and in the window
	good   int           // of those, in time
}

// even is Figures.Even of what was done in slots of so much time.
func (w work) even(slotTime float64) float64 {
	could := min(slotTime, float64(w.came))
	if could == 0 || w.served == 0 {
		return 0
	}
	return float64(w.done) / could * float64(w.good) / float64(w.served)
}

// A tally counts what becomes of the requests of a scene. It is not safe for concurrent
// use.
type tally struct {
	scene   Scene
	bins    []bin // of the window
	counts  [refused + 1]int
	offered int
	quick   int
	most    int // waiting

	halves [2]work // of the window

	latency []time.Duration // of attempts that got a slot
	told    []time.Duration // of those that got none
}

func newTally(s Scene) *tally {
	return &tally{scene: s, bins: make([]bin, int((s.length()+binLength-1)/binLength))}
}

// at returns the bin of an instant; of one after the window, a bin that nobody reads.
func (t *tally) at(now time.Duration) *bin {
	if i := int(now / binLength); i < len(t.bins) {
		return &t.bins[i]
	}
	return new(bin)
}

func (t *tally) arrive(q live.Request, waiting int) {
	t.offered++
	t.at(q.Due).arrived++
	t.halves[t.half(q.Due)].came += q.Work
	t.most = max(t.most, waiting)
}

func (t *tally) limit(at time.Duration, n int) { t.at(at).limit = n }

// attempt counts the end at now of one that took so long, or until it knew that it got no
// slot. Its work was the last thing that happened to it.
func (t *tally) attempt(e ending, now, took, done time.Duration) {
	if e == refused {
		t.told = append(t.told, took)
		return
	}
	t.latency = append(t.latency, took)
	middle, length := t.scene.length()/2, t.scene.length()
	t.halves[0].done += max(0, min(now, middle)-(now-done))
	t.halves[1].done += max(0, min(now, length)-max(now-done, middle))
	if now > length {
		return // what a queue holds when the window ends is worked after it, as done is not
	}
	h := &t.halves[t.half(now)]
	h.served++
	if e == inTime {
		h.good++
	}
}

// half returns 0 in the first half of the window and 1 in the second.
func (t *tally) half(at time.Duration) int {
	if at < t.scene.length()/2 {
		return 0
	}
	return 1
}

// end counts the end at now of a request that was due at an instant, and whose last attempt
// began at another.
func (t *tally) end(due, began, now time.Duration, e ending) {
	t.counts[e]++
	if e != inTime {
		return
	}
	t.at(now).good++
	t.at(due).goodHere++
	if now-began <= live.Objective {
		t.quick++
		t.at(now).quick++
		t.at(due).quickly++
	}
}

// could returns what could be answered from one bin to another.
func (t *tally) could(from, to int) float64 {
	arrived := 0
	for _, b := range t.bins[from:to] {
		arrived += b.arrived
	}
	capacity, begin := 0.0, 0
	for _, st := range t.scene.Phases {
		end := begin + int(time.Duration(st.Length)/binLength)
		if n := min(to, end) - max(from, begin); n > 0 {
			capacity += float64(n) * binLength.Seconds() * t.scene.capacity(st.Slots)
		}
		begin = end
	}
	return min(capacity, float64(arrived))
}

// ratio returns a sum over bins as a part of what could be.
func (t *tally) ratio(from, to int, of func(b *bin) int) float64 {
	n := 0
	for i := from; i < to; i++ {
		n += of(&t.bins[i])
	}
	if could := t.could(from, to); could > 0 {
		return float64(n) / could
	}
	return 0
}

func (t *tally) result() *Result {
	n := len(t.bins)
	goodHere, quickly := func(b *bin) int { return b.goodHere }, func(b *bin) int { return b.quickly }
	whole, second := t.halves[0], t.halves[1]
	whole = work{whole.came + second.came, whole.done + second.done, whole.served + second.served, whole.good + second.good}
	r := &Result{
		Scene: t.scene.Name, Offered: t.offered,
		InTime: t.counts[inTime], TooLate: t.counts[late], Rejected: t.counts[refused],
		Figures: Figures{
			Even: whole.even(t.slotTime(0)), EvenSteady: second.even(t.slotTime(t.scene.length() / 2)),
			Ratio: t.ratio(0, n, goodHere), Quick: t.ratio(0, n, quickly),
			Steady: t.ratio(n/2, n, goodHere),
			P50:    quantile(t.latency, 0.5), P99: quantile(t.latency, 0.99), P999: quantile(t.latency, 0.999),
			No50: quantile(t.told, 0.5), No99: quantile(t.told, 0.99),
			Late:    float64(t.counts[late]) / t.scene.length().Seconds(),
			Refused: float64(t.counts[refused]) / float64(max(t.offered, 1)),
			Waiting: float64(t.most), Limit: t.meanLimit(0, n),
		},
	}
	if len(t.scene.Phases) > 1 {
		r.Phases = t.phases()
	}
	if s := t.scene.Stall; s != nil {
		r.Recovered = t.recovered(int(time.Duration(s.At+s.For) / binLength))
	}
	return r
}

// slotTime is that of all slots from an instant to the end of the window.
func (t *tally) slotTime(from time.Duration) float64 {
	sum, begin := 0.0, time.Duration(0)
	for _, st := range t.scene.Phases {
		end := begin + time.Duration(st.Length)
		sum += float64(st.Slots) * float64(max(0, end-max(begin, from)))
		begin = end
	}
	return sum
}

func (t *tally) meanLimit(from, to int) float64 {
	sum := 0
	for _, b := range t.bins[from:to] {
		sum += b.limit
	}
	return float64(sum) / float64(max(to-from, 1))
}

// phases sums up each by what was answered in it.
func (t *tally) phases() []Phase {
	const (
		first = int(10 * time.Second / binLength)
		// 2,400 answers at 1,200/s, which vary by 2 %, so that noise alone seldom hides
		// 95 % of what could be.
		steady  = int(2 * time.Second / binLength)
		settled = 0.95
	)
	good, quick := func(b *bin) int { return b.good }, func(b *bin) int { return b.quick }
	var all []Phase
	begin := 0
	for _, st := range t.scene.Phases {
		end := min(begin+int(time.Duration(st.Length)/binLength), len(t.bins))
		p := Phase{
			Slots: st.Slots, Ratio: t.ratio(begin, end, good), Quick: t.ratio(begin, end, quick),
			First: t.ratio(begin, min(begin+first, end), good), Limit: t.meanLimit(begin, end),
		}
		for at := begin; at+steady <= end; at++ {
			if t.ratio(at, at+steady, good) >= settled {
				s := (time.Duration(at-begin) * binLength).Seconds()
				p.Settle = &s
				break
			}
		}
		all = append(all, p)
		begin = end
	}
	return all
}

// recovered returns how long after the bin the answers in time are back for good: from
// where on each second has 0.95 of its arrivals, less what the two may differ by because
// requests are under way. Those are 54 +- 7 at 0.9 of 60 slots, so the difference of the
// two ends has a standard deviation of 10, 1 % of 1,080: four of them are 0.04. nil if the
// last second has not.
func (t *tally) recovered(after int) *float64 {
	const whole = int(time.Second / binLength)
	for i := len(t.bins) - whole; i >= after; i-- {
		good, arrived := 0, 0
		for _, b := range t.bins[i : i+whole] {
			good += b.good
			arrived += b.arrived
		}
		if float64(good) >= (0.95-0.04)*float64(arrived) {
			continue
		}
		if i == len(t.bins)-whole {
			return nil
		}
		s := (time.Duration(i+1-after) * binLength).Seconds()
		return &s
	}
	return new(float64)
}

// quantile returns the q-quantile of v in milliseconds, 0 without values. It sorts v.
func quantile(v []time.Duration, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(int(q*float64(len(v))), len(v)-1)].Seconds() * 1e3
}
