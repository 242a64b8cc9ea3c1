package demo

import (
	"container/list"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// serviceStream keeps the service times apart from the arrivals, which are drawn
// from the same seed.
const serviceStream = 2

// A Backend is a service with a fixed number of slots, as a database with a pool
// of connections is: a request holds one for an exponentially distributed time,
// and who finds none waits, first come, first served, in a queue without a
// bound. That queue is what an overload fills.
//
// It is kinder than most: who left while waiting leaves the queue, so nothing is
// served that nobody waits for any more at its start. Work that has started is
// finished, as a query of a database is.
//
// Capacity is exact. A timer rings late, by up to 1 ms here, and a slot that is
// held that much longer than it says would offer 2 % less than Slots / Mean. So
// a slot remembers by how much it was late and takes it off its next service.
type Backend struct {
	Slots int
	Mean  time.Duration

	// Begun, if not nil, is called when a request has got its slot.
	Begun func(*http.Request)

	mu    sync.Mutex
	rng   *rand.Rand
	free  []*slot
	queue list.List // of *waiting
	peak  int
	done  int64
}

// A slot serves one request at a time.
type slot struct {
	since time.Time     // it is held since
	late  time.Duration // by which its last service took too long
}

// maxLate bounds what a slot makes up for: timers and the scheduler of a busy
// machine. A process that was stopped for longer does not catch up.
const maxLate = 20 * time.Millisecond

// A waiting request is given its slot by whoever ends: nobody overtakes.
type waiting struct{ granted chan *slot }

// NewBackend returns a Backend whose service times are drawn from seed.
func NewBackend(slots int, mean time.Duration, seed uint64) *Backend {
	b := &Backend{
		Slots: slots, Mean: mean,
		rng:  rand.New(rand.NewPCG(seed, serviceStream)),
		free: make([]*slot, slots),
	}
	for i := range b.free {
		b.free[i] = new(slot)
	}
	return b
}

// Capacity is what it serves in a second when it never idles.
func (b *Backend) Capacity() float64 { return float64(b.Slots) / b.Mean.Seconds() }

// Waiting returns how many requests wait for a slot, and the most that did since it was
// last asked.
func (b *Backend) Waiting() (now, peak int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, peak = b.queue.Len(), b.peak
	b.peak = now
	return now, peak
}

// Served returns how many requests it has served, whether or not
// somebody still waited for them.
func (b *Backend) Served() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done
}

// ServeHTTP holds a slot for one service time.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := b.acquire(r.Context())
	if s == nil {
		return // nobody reads an answer
	}
	if b.Begun != nil {
		b.Begun(r)
	}
	b.hold(s)
	w.Header()["Content-Length"] = contentLength
	_, _ = w.Write(body) // a client that left after the start is no concern of ours
}

var (
	body          = []byte("ok\n")
	contentLength = []string{"3"}
)

// serve waits for a slot and holds it for one service time. It returns false if
// ctx was done before there was one.
func (b *Backend) serve(ctx context.Context) bool {
	s := b.acquire(ctx)
	if s == nil {
		return false
	}
	b.hold(s)
	return true
}

// hold holds a slot for one service time.
func (b *Backend) hold(s *slot) {
	b.mu.Lock()
	service := time.Duration(b.rng.ExpFloat64() * float64(b.Mean))
	b.mu.Unlock()
	due := s.since.Add(service - s.late)
	time.Sleep(time.Until(due))
	b.release(s, due)
}

// acquire returns a slot that is held from slot.since on, or nil if ctx was done
// before there was one.
func (b *Backend) acquire(ctx context.Context) *slot {
	b.mu.Lock()
	if n := len(b.free); n > 0 {
		s := b.free[n-1]
		b.free = b.free[:n-1]
		b.mu.Unlock()
		s.since = time.Now()
		return s
	}
	w := &waiting{granted: make(chan *slot, 1)}
	place := b.queue.PushBack(w)
	b.peak = max(b.peak, b.queue.Len())
	b.mu.Unlock()

	select {
	case s := <-w.granted:
		return s
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case s := <-w.granted: // just before it left: it has started
		return s
	default:
		b.queue.Remove(place)
		return nil
	}
}

// release passes on a slot whose service was due to end at due. Whoever is next
// holds it from now on, however long it takes to wake up.
func (b *Backend) release(s *slot, due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	s.since = time.Now()
	s.late = min(s.since.Sub(due), maxLate)
	if next := b.queue.Front(); next != nil {
		b.queue.Remove(next).(*waiting).granted <- s
		return
	}
	b.free = append(b.free, s)
}
