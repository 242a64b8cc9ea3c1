package pressure

import (
	"fmt"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"
)

// A Scheduler is the signal of the Go scheduler: how long goroutines that could run wait
// for a processor, by the histogram that the runtime keeps (runtime/metrics,
// /sched/latencies:seconds). The runtime notes one wait in eight.
//
// The level is the quantile of those waits over TooMuch. It is about the last 1/(1-Quantile)
// waits, 100 for the p99, or the last second where there are fewer: of ten waits
// there is no p99. One wait alone is never a pressure, as long as it may be.
//
// The zero Scheduler is ready. Use it by pointer, share it, and do not change its fields
// once it is in use. It is safe for concurrent use.
type Scheduler struct {
	// Quantile of the waits: 0.5 to 0.999, default 0.99. Of a request that passes through
	// ten waits, one in ten has met the p99.
	Quantile float64

	// TooMuch is the wait that is too much: 100 µs to 10 s, default 10 ms. That is the time
	// slice of the Go scheduler (forcePreemptNS in runtime/proc.go): who waits longer than
	// that had at least one goroutine before it that computed for a whole slice, so that
	// more of them compute than there are processors.
	TooMuch time.Duration

	mu      sync.Mutex
	samples []metrics.Sample // one, which the runtime fills again and again
	readAt  time.Time
	waits   waits
}

const (
	latencies = "/sched/latencies:seconds"

	defaultQuantile = 0.99
	defaultWait     = 10 * time.Millisecond

	// fresh is the shortest window of a limiter. Whoever asks sooner is another limiter,
	// and has the same answer.
	fresh = 5 * time.Millisecond
)

// Validate returns a sentence about the first field that is out of range, or nil.
func (s *Scheduler) Validate() error {
	if q := s.Quantile; q != 0 && !(q >= 0.5 && q <= 0.999) {
		return fmt.Errorf("the quantile %v of goroutine waits is out of range: 0.5 to 0.999", q)
	}
	if d := s.TooMuch; d != 0 && (d < 100*time.Microsecond || d > 10*time.Second) {
		return fmt.Errorf("a goroutine wait of %v as too much is out of range: 100µs to 10s", d)
	}
	return nil
}

func (s *Scheduler) quantile() float64 {
	if s.Quantile == 0 {
		return defaultQuantile
	}
	return s.Quantile
}

func (s *Scheduler) tooMuch() time.Duration {
	if s.TooMuch == 0 {
		return defaultWait
	}
	return s.TooMuch
}

// Level returns how long goroutines wait, over what is too much. ok is false until there
// have been enough waits, or a second has passed.
func (s *Scheduler) Level() (level float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.readAt.IsZero() || now.Sub(s.readAt) >= fresh {
		s.read(now)
	}
	return s.waits.level.Seconds() / s.tooMuch().Seconds(), s.waits.known
}

// read takes in what the runtime has counted. The caller holds the lock.
func (s *Scheduler) read(now time.Time) {
	if s.samples == nil {
		s.samples = []metrics.Sample{{Name: latencies}}
	}
	s.readAt = now
	metrics.Read(s.samples)
	if v := s.samples[0].Value; v.Kind() == metrics.KindFloat64Histogram {
		s.waits.add(now, v.Float64Histogram(), s.quantile())
	}
}

// String returns "goroutines wait 3ms, p99 of 812; too much is 10ms".
func (s *Scheduler) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.readAt.IsZero():
		return "goroutine waits have not been read yet"
	case s.samples[0].Value.Kind() != metrics.KindFloat64Histogram:
		return "this Go runtime does not count goroutine waits (" + latencies + ")"
	case !s.waits.known:
		return "too few goroutines have waited yet"
	}
	return fmt.Sprintf("goroutines wait %v, p%s of %d; too much is %v",
		short(s.waits.level), strconv.FormatFloat(100*s.quantile(), 'g', 4, 64), s.waits.n, s.tooMuch())
}

// short rounds d to two or three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
