package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Histogram counts durations to three digits, 1 µs to twice the longest
// deadline of a Plan; what lies outside counts as the bound. It takes 196 KiB:
// 1,024 counts of 8 bytes for each of the 24 powers of two from 1,024 µs to 2 h.
type Histogram struct {
	h   *hdrhistogram.Histogram
	max time.Duration // exact: a quantile, which is the end of a bucket, may not exceed it
}

const maxMicros = int64(2 * maxDuration / time.Microsecond)

func newHistogram() *Histogram {
	return &Histogram{h: hdrhistogram.New(1, maxMicros, 3)}
}

func (h *Histogram) add(d time.Duration) {
	h.max = max(h.max, d)
	// In range by construction, so there is no error to look at.
	_ = h.h.RecordValue(min(max(d.Microseconds(), 1), maxMicros))
}

// Count returns how many durations there are.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Quantile returns the q-quantile, 0 <= q <= 1, and false if there is none.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	return min(time.Duration(h.h.ValueAtQuantile(100*q))*time.Microsecond, h.max), true
}

// Mean returns the mean, and false if there is none.
func (h *Histogram) Mean() (time.Duration, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	return time.Duration(h.h.Mean() * float64(time.Microsecond)), true
}
