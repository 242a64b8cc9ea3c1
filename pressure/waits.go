package pressure

import (
	"math"
	"runtime/metrics"
	"time"
)

// waits turns a histogram that only grows into the quantile of what was added to it. The
// difference to a base is taken until there are enough waits in it, then the base moves.
type waits struct {
	base  []uint64 // counts at since; empty before the first
	since time.Time

	known bool
	level time.Duration // the quantile of the last difference that was large enough
	n     uint64        // waits in that
}

// span is the longest time that a difference is gathered over. A pressure that is older
// than a second is no reason to refuse anybody now.
const span = time.Second

// add takes in the counts at now. It allocates only where the buckets are new ones.
func (w *waits) add(now time.Time, h *metrics.Float64Histogram, q float64) {
	n, ok := w.gained(h.Counts)
	if !ok {
		w.base, w.since = append(w.base[:0], h.Counts...), now
		return
	}
	if float64(n) < 1/(1-q) && now.Sub(w.since) < span {
		return
	}
	w.level, w.n, w.known = w.quantile(h, q, n), n, true
	copy(w.base, h.Counts)
	w.since = now
}

// gained returns how many waits counts has more than the base. A bucket that has lost some
// belongs to another histogram than the base, and ok is false; one that has wrapped has
// not, since the difference of unsigned numbers wraps with it.
func (w *waits) gained(counts []uint64) (n uint64, ok bool) {
	if len(w.base) != len(counts) {
		return 0, false
	}
	for i, c := range counts {
		d := c - w.base[i]
		if d >= 1<<48 { // at a wait per ns that is three days between two readings
			return 0, false
		}
		n += d
	}
	return n, true
}

// quantile returns the q-quantile of the n waits since the base, to within a bucket, which
// is a quarter of an octave wide; and at most the second longest, so that one
// wait alone is no pressure.
func (w *waits) quantile(h *metrics.Float64Histogram, q float64, n uint64) time.Duration {
	if n < 2 {
		return 0
	}
	rank := min(q*float64(n), float64(n-1))
	seen := 0.0
	for i, c := range h.Counts {
		d := float64(c - w.base[i])
		if d == 0 || seen+d < rank {
			seen += d
			continue
		}
		lo, hi := h.Buckets[i], h.Buckets[i+1]
		if math.IsInf(hi, 1) {
			hi = lo
		}
		if math.IsInf(lo, -1) {
			lo = hi
		}
		at := lo + (hi-lo)*(rank-seen)/d
		return time.Duration(max(at, 0) * float64(time.Second))
	}
	return 0
}
