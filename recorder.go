package goodput

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
)

// A recorder keeps what was measured until the window is over; then whoever
// notices hands it to the core. Nothing ticks: a timed end on the fast path, any
// slow operation and Stats look at the clock anyway, and one of them notices.
type recorder struct {
	mask    atomic.Uint32 // k-1 where one request in k is timed, a power of two
	late    atomic.Bool   // whether the last timed end of work without a deadline was
	start   atomic.Int64  // of the window
	turn    atomic.Uint64 // the hour by the wall clock, for cohorts
	stripes []stripe
	spare   atomic.Pointer[admission.Batch] // what the last window was gathered in
	epochs  atomic.Pointer[epochs]          // of the core
	ended   atomic.Int64                    // when something timed last did

	// What was granted before this instant and ends from now on ran beside more than the limit, and
	// the core is not told how long it took: math.MaxInt64 while that is so. See watched.crowd.
	crowded atomic.Int64

	admitted uint64 // in this window; guarded by the lock of the limiter
}

// A stripe counts a part of the ends, chosen at random, under a lock of its own
// that is held for about 30 ns and never together with another.
type stripe struct {
	mu    sync.Mutex
	batch admission.Batch // since the window began
	ended [admission.Outcomes]*hist.Histogram
	whole hist.Histogram // from arrival to end
	_     [64]byte       // the next stripe begins on another cache line
}

// maxStripes bounds the memory: a stripe is 10 KiB, and 2.4 KiB per outcome that
// occurs. Four bear 100 million ends per second; the timed ones are far fewer.
const maxStripes = 4

func (r *recorder) init() {
	n := min(runtime.GOMAXPROCS(0), maxStripes)
	r.stripes = make([]stripe, 1<<bits.Len(uint(n-1)))
	r.turn.Store(turnAt(time.Now()))
	r.epochs.Store(&epochs{every: 1, was: 1})
}

// epochs is since when the current epoch of the core has been, and the one before it. What
// started in between is of the latter: so a slot need not carry the tag. Likewise one in how
// many requests is timed.
type epochs struct {
	tag           uint32
	since, before time.Duration
	every, was    uint32        // one request in so many is timed, and was before that
	changed       time.Duration // the instant since which it is every
}

// at returns the tag of the epoch in which something started. All that is older than both
// has the tag of one that nobody asks about any more.
func (e *epochs) at(start time.Duration) uint32 {
	switch {
	case start >= e.since:
		return e.tag
	case start >= e.before:
		return e.tag - 1
	}
	return e.tag - 2
}

// of returns for how many of its kind a slot stands that is timed.
func (e *epochs) of(s *Slot) int {
	switch {
	case s.due != sampled:
		return 1
	case s.start >= e.changed:
		return int(e.every)
	}
	return int(e.was)
}

// follow notes that the core has begun another epoch at now, if it has. The caller holds the
// lock of the limiter.
func (r *recorder) follow(tag uint32, now time.Duration) {
	if old := r.epochs.Load(); old.tag != tag {
		e := *old
		e.tag, e.since, e.before = tag, now, old.since
		r.epochs.Store(&e)
	}
}

// time has one request in k timed from now on. The caller holds the lock of the limiter.
func (r *recorder) time(k uint32, now time.Duration) {
	if old := r.epochs.Load(); old.every != k {
		e := *old
		e.every, e.was, e.changed = k, old.every, now
		r.epochs.Store(&e)
		r.mask.Store(k - 1)
	}
}

// skips reports whether the request that follows n admissions is not timed.
func (r *recorder) skips(n uint64) bool { return uint32(n)&r.mask.Load() != 0 }

// note counts the end of a slot with outcome o at now. All work that is limited
// counts in the time that slots are held; only completed and late work gives a
// service sample. Without sample it gives neither, and an unsampled slot only if it was refused;
// nor are they in the durations that Stats has.
//
// What the resource refused is counted whether it is timed or not. A refusal comes soon, so
// one that is not timed is taken to have begun in the current epoch.
func (rec *recorder) note(s *Slot, o Outcome, now time.Duration, sample bool) {
	r := s.get()
	if s.start == 0 {
		if r.kind&(dropped|exempt) == dropped {
			rec.noteDrop(int(r.cost))
		}
		return
	}
	var elsewhere time.Duration
	if r.absence != nil {
		elsewhere = r.absence.close(now) // before the lock of the stripe: no two are held
	}
	if r.kind&exempt != 0 {
		return
	}
	hold := max(now-s.start, 0)
	var service time.Duration // none
	if o == Completed || o == Late {
		service = max(hold, 1)
		if r.served != 0 {
			service = max(r.served-s.start, 1)
		}
	}
	quiet := rec.quiet(s.start, now)
	if r.kind&unsampled != 0 {
		sample, quiet = sample && r.kind&dropped != 0, 0
	}
	e := rec.epochs.Load()
	p := rec.anyStripe()
	p.mu.Lock()
	p.batch.Quiet = max(p.batch.Quiet, quiet)
	if sample && (s.start >= time.Duration(rec.crowded.Load()) || r.kind&dropped != 0) {
		size := r.size
		if r.sized != 0 {
			size = r.sized
		}
		p.batch.AddSample(admission.Sample{
			Service: service, Hold: hold, Elsewhere: elsewhere, Cost: int(r.cost), Offered: r.size, Size: size,
			Epoch: e.at(s.start), Of: e.of(s), Dropped: r.kind&dropped != 0, Abandoned: o == Abandoned,
		})
	}
	if sample && r.kind&unsampled == 0 {
		of := uint64(e.of(s))
		p.whole.AddN(hold+r.waited, of)
		if p.ended[o] == nil {
			p.ended[o] = new(hist.Histogram)
		}
		p.ended[o].AddN(hold, of)
	}
	p.mu.Unlock()
}

// quietStep is how far off the longest time without an end may be: a hundredth of the shortest
// window.
const quietStep = 50 * time.Microsecond

// quiet notes that what started then has ended at now, and returns for how long nothing timed
// had ended while it was in flight. Ends that follow soon write nothing that others read.
func (rec *recorder) quiet(start, now time.Duration) time.Duration {
	last := time.Duration(rec.ended.Load())
	if now-last > quietStep {
		rec.ended.Store(int64(now))
	}
	return now - max(last, start)
}

// noteDrop counts work of so many units that the resource refused and that was not timed.
func (rec *recorder) noteDrop(cost int) {
	p := rec.anyStripe()
	p.mu.Lock()
	p.batch.AddSample(admission.Sample{Cost: cost, Epoch: rec.epochs.Load().tag, Dropped: true})
	p.mu.Unlock()
}

func (rec *recorder) anyStripe() *stripe {
	return &rec.stripes[rand.Uint32()&uint32(len(rec.stripes)-1)]
}

// gather moves the batches of the stripes to b.
func (r *recorder) gather(b *admission.Batch) {
	for i := range r.stripes {
		p := &r.stripes[i]
		p.mu.Lock()
		b.Merge(&p.batch)
		p.batch.Reset()
		p.mu.Unlock()
	}
}

// histogram returns the time from slot to end of all that ended with o, nil if
// none did.
func (r *recorder) histogram(o Outcome) (h *hist.Histogram) {
	for i := range r.stripes {
		p := &r.stripes[i]
		p.mu.Lock()
		if p.ended[o] != nil {
			if h == nil {
				h = new(hist.Histogram)
			}
			h.Merge(p.ended[o])
		}
		p.mu.Unlock()
	}
	return h
}

// latency adds to h the time from arrival to end of all that got a slot.
func (r *recorder) latency(h *hist.Histogram) {
	for i := range r.stripes {
		p := &r.stripes[i]
		p.mu.Lock()
		h.Merge(&p.whole)
		p.mu.Unlock()
	}
}

const (
	// sampleRate is how many requests per second are timed at least. A timed
	// request reads the clock twice, 25-50 ns each, and records, 40 ns: at
	// 10,000/s that is 0.1 % of a core, and a window of 50 ms still has 500
	// samples, so that its p99 rests on five.
	sampleRate = 10_000
	// maxSkip caps k: at 64 the clock costs a request about 1 ns, and after a
	// fall of the rate it takes 64 requests at most to notice.
	maxSkip = 64
)

// every returns k for a rate of requests per second: the least power of two
// that keeps the timed ones within sampleRate.
func every(rate float64) uint32 {
	k := uint32(1)
	for k < maxSkip && rate > float64(k)*sampleRate {
		k *= 2
	}
	return k
}

// endWindow hands the core what was measured, if the window is over at now and
// nobody else is about it, and sets k for the next one.
func (l *Limiter) endWindow(now time.Duration) {
	r := &l.rec
	start := r.start.Load()
	length := now - time.Duration(start)
	if length < l.settings.Load().window || !r.start.CompareAndSwap(start, int64(now)) {
		return
	}
	pressure := 0.0
	if g := l.settings.Load().pressure; g != nil {
		pressure = g.read() // no lock is held, and nothing is gathered yet
		// Should it have taken longer than a window, the next one begins only now: leave
		// would find that over as well, and ask again, and again.
		now = l.now()
		length = now - time.Duration(start)
		r.start.Store(int64(now))
	}
	b := r.spare.Swap(nil)
	if b == nil {
		b = new(admission.Batch)
	}
	r.gather(b)
	b.Pressure = pressure
	r.turn.Store(turnAt(time.Now()))
	now = l.enter()
	l.observeCall(now, b)
	l.letLawGoOn(now)
	r.time(every(float64(r.admitted)/length.Seconds()), now)
	r.admitted = 0
	l.leave(now)
	b.Reset()
	r.spare.Store(b)
}
