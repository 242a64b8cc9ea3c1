package sim

import (
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
)

// A queue is the limiter of a baseline. It does what its Baseline says and no
// more: no alarm, no estimate, no priority.
type queue struct {
	Baseline
	begun   Baseline // as it was at first, for a restart
	inUse   int
	waiting int
	oldest  *call // of a list by arrival; EDF has its heap beside it
	newest  *call
	edf     []*call
	empty   time.Duration // when nobody waited last

	shortest time.Duration // service time ever seen, of AIMD; 0: none yet
	exact    float64       // the limit of AIMD before it is rounded down
}

// offer answers for c: it runs, it waits, or it is refused. With PushOut it may
// wait in the place of another, which is then the victim.
func (q *queue) offer(now time.Duration, c *call) (v admission.Verdict, victim *call) {
	if q.waiting == 0 && q.fits(c) {
		c.width = q.width(c)
		q.inUse += c.width
		return admission.Admitted, nil
	}
	if q.Depth != Unbounded && q.waiting >= q.Depth {
		if !q.PushOut || q.waiting == 0 {
			return admission.Refused, nil
		}
		victim = q.oldest
		q.remove(now, victim)
	}
	c.patience = never
	if q.CoDel.Target > 0 {
		if c.patience = q.CoDel.Interval; q.stands(now) {
			c.patience = q.CoDel.Target
		}
	}
	q.push(now, c)
	return admission.Queued, victim
}

// width is how many units of the limit c holds: its cost, or all there are.
func (q *queue) width(c *call) int {
	if q.Limit == Unbounded {
		return c.toldCost
	}
	return min(c.toldCost, q.Limit)
}

func (q *queue) fits(c *call) bool {
	return q.Limit == Unbounded || q.inUse+q.width(c) <= q.Limit
}

// stands reports whether the queue has not been empty for CoDel.Interval.
func (q *queue) stands(now time.Duration) bool {
	return q.waiting > 0 && now-q.empty > q.CoDel.Interval
}

// next takes out whoever is to be decided next, and why it is refused rather than
// admitted; nil if the slots are full or nobody waits.
func (q *queue) next(now time.Duration) (c *call, why admission.Reason) {
	if q.waiting == 0 || q.Limit != Unbounded && q.inUse >= q.Limit {
		return nil, admission.None
	}
	switch {
	case q.Order == EDF:
		c = q.edf[0]
	case q.Order == LIFO, q.Order == Adaptive && q.stands(now):
		c = q.newest
	default:
		c = q.oldest
	}
	if !q.fits(c) {
		return nil, admission.None
	}
	q.remove(now, c)
	switch {
	case q.Expire && c.told <= now:
		return c, admission.Deadline
	case q.Expire && c.told != never && c.told-now < q.Margin:
		return c, admission.Doomed
	case now-c.arrival > c.patience:
		return c, admission.WaitBound
	}
	c.width = q.width(c)
	q.inUse += c.width
	return c, admission.None
}

func (q *queue) push(now time.Duration, c *call) {
	if q.waiting == 0 {
		q.empty = now
	}
	q.waiting++
	c.next, c.prev = nil, q.newest
	if q.newest != nil {
		q.newest.next = c
	} else {
		q.oldest = c
	}
	q.newest = c
	if q.Order == EDF {
		c.heap = int32(len(q.edf))
		q.edf = append(q.edf, c)
		q.up(len(q.edf) - 1)
	}
}

func (q *queue) remove(now time.Duration, c *call) {
	q.waiting--
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.oldest = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.newest = c.prev
	}
	c.next, c.prev = nil, nil
	if q.Order == EDF {
		i, last := int(c.heap), len(q.edf)-1
		q.swap(i, last)
		q.edf[last] = nil
		q.edf = q.edf[:last]
		if i < last {
			q.down(i)
			q.up(i)
		}
	}
	if q.waiting == 0 {
		q.empty = now
	}
}

func (q *queue) earlier(i, j int) bool {
	a, b := q.edf[i], q.edf[j]
	return a.told < b.told || a.told == b.told && a.arrival < b.arrival
}

func (q *queue) swap(i, j int) {
	q.edf[i], q.edf[j] = q.edf[j], q.edf[i]
	q.edf[i].heap, q.edf[j].heap = int32(i), int32(j)
}

func (q *queue) up(i int) {
	for i > 0 && q.earlier(i, (i-1)/2) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q *queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.edf) {
			return
		}
		if child+1 < len(q.edf) && q.earlier(child+1, child) {
			child++
		}
		if !q.earlier(child, i) {
			return
		}
		q.swap(i, child)
		i = child
	}
}

// ended takes the time for which a slot was held, and whether the answer was in
// time, and moves the limit of an AIMD.
func (q *queue) ended(c *call, held time.Duration, inTime bool) {
	a := &q.AIMD
	saturated := q.inUse >= q.Limit
	q.inUse -= c.width
	if a.Floor == 0 {
		return
	}
	if q.exact == 0 {
		q.exact = float64(q.Limit)
	}
	if q.shortest == 0 || held < q.shortest {
		q.shortest = max(held, 1)
	}
	switch ratio := float64(held) / float64(q.shortest); {
	case !inTime:
		q.exact *= a.Drop
	case ratio > a.High:
		q.exact *= a.Decrease
	case saturated && ratio < a.Low:
		q.exact++
	}
	q.exact = min(max(q.exact, float64(a.Floor)), maxParts)
	q.Limit = int(q.exact)
}

// age returns how long the one that arrived first has waited.
func (q *queue) age(now time.Duration) time.Duration {
	if q.oldest == nil {
		return 0
	}
	return now - q.oldest.arrival
}

// reset forgets everybody: the process has ended.
func (q *queue) reset(now time.Duration) {
	*q = queue{Baseline: q.begun, begun: q.begun, edf: slices.Delete(q.edf, 0, len(q.edf)), empty: now}
}
