package load

import "time"

// HistogramOf returns a histogram of so many each of some durations, for a Result that is
// written by hand: reports and verdicts are tested on those.
func HistogramOf(counts map[time.Duration]int64) *Histogram {
	h := newHistogram()
	for d, n := range counts {
		h.max = max(h.max, d)
		// In range by construction, so there is no error to look at.
		_ = h.h.RecordValues(min(max(d.Microseconds(), 1), maxMicros), n)
	}
	return h
}
