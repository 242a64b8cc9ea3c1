package admission

import "time"

// A Waiter is the place of one request in the queue. The core makes it, the
// driver keeps it until it is decided.
type Waiter struct {
	// Ref is the driver's: the core never looks at it.
	Ref any

	prev, next   *Waiter // by root arrival, within a priority
	rprev, rnext *Waiter // the same, retries only
	flow         *flow
	keyed        *keyed // under LatestOnly
	seq          uint64
	arrival      time.Duration // root arrival
	offered      time.Duration
	decided      time.Duration
	deadline     time.Duration
	bound        time.Duration // offered + MaxWait without a deadline, else Never
	alarm        time.Duration
	bytes        int64
	cost, size   int32
	heap         int32 // index in the heap under EDF, else -1
	priority     Priority
	retry        bool
	cohort       uint8 // 0 is shed before the others; see rank
	victim       bool  // scratch of makeRoom
	verdict      Verdict
	reason       Reason
	ground       Ground // of one that was Displaced
	share        Share
}

// keyed is what LatestOnly goes by.
type keyed struct{ tenant, key string }

// Verdict is Queued until the request is decided.
func (w *Waiter) Verdict() Verdict { return w.verdict }

// Reason says why it was refused; None while it waits and once it is admitted.
func (w *Waiter) Reason() Reason { return w.reason }

// Cost returns the units of the limit that it holds once admitted.
func (w *Waiter) Cost() int { return int(w.cost) }

// Bytes returns the bytes of body that it holds in memory while it waits.
func (w *Waiter) Bytes() int64 { return w.bytes }

// Priority returns what it waits as.
func (w *Waiter) Priority() Priority { return w.priority }

// Offered returns since when it waits.
func (w *Waiter) Offered() time.Duration { return w.offered }

// Share says whose account it is on: End.Share. It is 0 until it is admitted.
func (w *Waiter) Share() Share { return w.share }

// Waited returns how long it waited, from offer to decision; 0 until then.
func (w *Waiter) Waited() time.Duration {
	if w.verdict == Queued {
		return 0
	}
	return w.decided - w.offered
}

// Alarm returns the instant at which the driver calls Cancel with None: when it
// can no longer be served in time, or has waited its bound.
func (w *Waiter) Alarm() time.Duration { return w.alarm }

// due orders the queue under EDF: the deadline, or the bound of the wait for
// those that have none.
func (w *Waiter) due() time.Duration { return min(w.deadline, w.bound) }

// maxSift bounds the search for the place of a request whose root arrival is
// older than that of others that already wait. Hops differ by milliseconds, so
// a few steps do; whoever is older than 128 others is placed before them all
// the same, just not before everybody.
const maxSift = 128

// A line holds the waiting requests of one flow: a list by root arrival, the retries
// among them, and under EDF a heap.
//
// Push and remove are O(1) plus the search for an older root arrival, and
// O(log n) under EDF.
type line struct {
	head, tail   *Waiter // oldest, newest root arrival
	rhead, rtail *Waiter // retries only
	edf          []*Waiter
	n            int
	cost         int
	cohorts      int // of those that wait, who has a cohort
	schedule     schedule
	planned      bool // Invariant: schedule is everybody; else it is empty
}

func (l *line) push(w *Waiter, edf bool) {
	at := l.tail
	for range maxSift {
		if at == nil || at.arrival <= w.arrival {
			break
		}
		at = at.prev
	}
	w.prev = at
	if at == nil {
		w.next, l.head = l.head, w
	} else {
		w.next, at.next = at.next, w
	}
	if w.next == nil {
		l.tail = w
	} else {
		w.next.prev = w
	}
	if w.retry { // retries keep the order of offer: it only decides who is shed first
		w.rprev = l.rtail
		if l.rtail == nil {
			l.rhead = w
		} else {
			l.rtail.rnext = w
		}
		l.rtail = w
	}
	l.n++
	l.cost += int(w.cost)
	if w.cohort > 0 {
		l.cohorts++
	}
	w.heap = -1
	if edf {
		l.heapPush(w)
	}
}

func (l *line) remove(w *Waiter) {
	unlink(&l.head, w.prev, w.next, func(p *Waiter) **Waiter { return &p.next })
	unlink(&l.tail, w.next, w.prev, func(p *Waiter) **Waiter { return &p.prev })
	if w.retry {
		unlink(&l.rhead, w.rprev, w.rnext, func(p *Waiter) **Waiter { return &p.rnext })
		unlink(&l.rtail, w.rnext, w.rprev, func(p *Waiter) **Waiter { return &p.rprev })
	}
	if w.heap >= 0 {
		l.heapRemove(w)
	}
	l.unplan(w)
	w.prev, w.next, w.rprev, w.rnext = nil, nil, nil, nil
	l.n--
	l.cost -= int(w.cost)
	if w.cohort > 0 {
		l.cohorts--
	}
}

// unlink makes whoever pointed at a removed waiter, its neighbour or the end of
// the list, point past it.
func unlink(end **Waiter, neighbour, past *Waiter, link func(*Waiter) **Waiter) {
	if neighbour == nil {
		*end = past
	} else {
		*link(neighbour) = past
	}
}

// first returns who goes first in the given order, nil if nobody waits.
func (l *line) first(o Order) *Waiter {
	switch {
	case o == NewestFirst:
		return l.tail
	case o == EDF:
		return l.edf[0]
	}
	return l.head
}

// last returns the end of the list that gives up its place first: the newest
// root arrival, the oldest under NewestFirst.
func (l *line) last(o Order) *Waiter {
	if o == NewestFirst {
		return l.head
	}
	return l.tail
}

// inward goes from last towards the other end.
func (w *Waiter) inward(o Order) *Waiter {
	if o == NewestFirst {
		return w.next
	}
	return w.prev
}

// before is the order of the heap: deadline, root arrival, offer.
func before(a, b *Waiter) bool {
	if x, y := a.due(), b.due(); x != y {
		return x < y
	}
	if a.arrival != b.arrival {
		return a.arrival < b.arrival
	}
	return a.seq < b.seq
}

// rank orders those of one tenant and priority by who is shed first: retries before
// first attempts, then the later cohort, those without one before all.
func rank(retry bool, cohort uint8) int {
	n := int(cohort)
	if cohort == 0 {
		n = Cohorts + 1
	}
	if retry {
		n += 2 * Cohorts
	}
	return n
}

// startEDF builds the heap from the list, once when the order becomes EDF.
func (l *line) startEDF() {
	for w := l.head; w != nil; w = w.next {
		w.heap = int32(len(l.edf))
		l.edf = append(l.edf, w)
	}
	for i := len(l.edf)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
}

// stopEDF forgets the heap; the list is always there.
func (l *line) stopEDF() {
	for _, w := range l.edf {
		w.heap = -1
	}
	l.edf = nil
}

func (l *line) heapPush(w *Waiter) {
	w.heap = int32(len(l.edf))
	l.edf = append(l.edf, w)
	l.up(int(w.heap))
}

func (l *line) heapRemove(w *Waiter) {
	i, last := int(w.heap), len(l.edf)-1
	l.swap(i, last)
	l.edf[last] = nil
	l.edf = l.edf[:last]
	w.heap = -1
	if i < last {
		l.down(i)
		l.up(i)
	}
}

func (l *line) swap(i, j int) {
	l.edf[i], l.edf[j] = l.edf[j], l.edf[i]
	l.edf[i].heap, l.edf[j].heap = int32(i), int32(j)
}

func (l *line) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !before(l.edf[i], l.edf[parent]) {
			return
		}
		l.swap(i, parent)
		i = parent
	}
}

func (l *line) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(l.edf) {
			return
		}
		if r := child + 1; r < len(l.edf) && before(l.edf[r], l.edf[child]) {
			child = r
		}
		if !before(l.edf[child], l.edf[i]) {
			return
		}
		l.swap(i, child)
		i = child
	}
}

// maxVisits bounds the search for who is ahead under EDF. Past it everybody is
// taken to be ahead, which errs on the side of an early no.
const maxVisits = 256

// ahead returns the cost that the order serves before a newcomer that is due at
// the given instant. Under NewestFirst that is nothing, under FIFO everything.
func (l *line) ahead(o Order, due time.Duration) int {
	switch {
	case o == NewestFirst:
		return 0
	case o != EDF:
		return l.cost
	}
	cost, visits := 0, 0
	if !l.earlier(0, due, &cost, &visits) {
		return l.cost
	}
	return cost
}

// earlier adds up the cost of those in the heap below i that are due no later;
// it reports false when it gave up. A node that is due later hides only nodes
// that are later still, so it visits the answer and its fringe.
func (l *line) earlier(i int, due time.Duration, cost, visits *int) bool {
	if i >= len(l.edf) || l.edf[i].due() > due {
		return true
	}
	if *visits++; *visits > maxVisits {
		return false
	}
	*cost += int(l.edf[i].cost)
	return l.earlier(2*i+1, due, cost, visits) && l.earlier(2*i+2, due, cost, visits)
}
