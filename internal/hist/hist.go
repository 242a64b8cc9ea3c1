// Package hist is a histogram of durations with buckets that grow by a fixed
// ratio: eight to the octave, so neighbouring bounds differ by 2^(1/8) = 9.1 %.
// A quantile lies in the bucket of the exact one, so it is off by less than that
// whatever was counted, and by less than 1 % where the counts are smooth.
//
// The bounds are 2^(i/8) seconds, which is Prometheus' native schema 3, so a
// histogram is exported as it is. Durations below about 1 µs share the first
// bucket and durations above 36 hours share the last.
//
// A Histogram is a plain value: it is merged by adding, and whoever shares one
// between goroutines brings the lock.
package hist

import (
	"math"
	"math/bits"
	"time"
)

const (
	// octave is the number of buckets between a duration and its double.
	octave = 8
	// low is the exponent of the first bound: 2^-20 s, 0.95 µs. Nobody queues
	// for work that is shorter than the clock that would measure it.
	low = -20
	// high is the exponent of the last bound: 2^17 s, 36 hours. The longest objective is a
	// day, and whoever has it sees what was late apart from what was in time.
	high = 17

	// N is the number of buckets, the overflow bucket included.
	N = (high-low)*octave + 2
)

// mantissa[k] is 2^(k/8) in fixed point with 32 bits behind the point: the
// bounds inside one octave.
var mantissa = func() (m [octave]uint64) {
	for k := range m {
		m[k] = uint64(math.Exp2(float64(k)/octave) * (1 << 32))
	}
	return m
}()

// ticksPerNano is 2^30/10^9 with 32 bits behind the point. A tick is 2^-30 s:
// in ticks, unlike in nanoseconds, the powers of two line up with seconds.
const ticksPerNano = uint64((1<<30)<<32) / 1_000_000_000

// Index returns the bucket of d: the i with Bound(i-1) < d <= Bound(i), up to
// the rounding of a tick. Negative durations count as zero.
func Index(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(d), ticksPerNano)
	// ticks in 32.32 fixed point would overflow; keep the integer part and
	// scale the mantissa to 32 bits behind the point.
	ticks := hi<<32 | lo>>32
	if ticks == 0 {
		return 0
	}
	exp := bits.Len64(ticks) - 1 // 2^exp <= ticks < 2^(exp+1)
	if exp < 30+low {
		return 0
	}
	if exp >= 30+high {
		return N - 1
	}
	var m uint64 // ticks / 2^exp in [1, 2), 32 bits behind the point
	if exp >= 32 {
		m = ticks >> (exp - 32)
	} else {
		m = ticks << (32 - exp)
	}
	i := (exp - 30 - low) * octave
	for k := octave - 1; k >= 0; k-- {
		if m > mantissa[k] {
			return i + k + 1
		}
	}
	return i // exactly a power of two: the bound belongs to the bucket below
}

// bounds holds what Bound returns, computed once.
var bounds = func() (b [N]float64) {
	for i := range b {
		b[i] = math.Exp2(low + float64(i)/octave)
	}
	b[N-1] = math.Inf(1)
	return b
}()

// Bound returns the upper bound of bucket i in seconds: 2^(low + i/8). The last
// bucket has none and returns +Inf.
func Bound(i int) float64 { return bounds[min(i, N-1)] }

// lower returns the lower bound of bucket i in seconds.
func lower(i int) float64 {
	if i <= 0 {
		return 0
	}
	return bounds[i-1]
}

// Mid returns a duration in seconds that stands for bucket i at the fraction f
// of it, 0 <= f <= 1, interpolated geometrically: the shape of a smooth
// distribution inside a bucket that spans a ratio.
func Mid(i int, f float64) float64 {
	switch {
	case i <= 0:
		return f * Bound(0)
	case i >= N-1:
		return lower(N - 1)
	}
	return math.Exp2(low + (float64(i-1)+f)/octave)
}

// A Histogram counts durations. The zero value is empty and ready.
type Histogram struct {
	Counts [N]uint64
	Count  uint64  // the sum of Counts
	Sum    float64 // seconds
}

// Add counts d once. Negative durations count as zero.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.Counts[Index(d)]++
	h.Count++
	h.Sum += float64(d) / 1e9
}

// AddN counts d n times: one that was measured and stands for n.
func (h *Histogram) AddN(d time.Duration, n uint64) {
	d = max(d, 0)
	h.Counts[Index(d)] += n
	h.Count += n
	h.Sum += float64(n) * float64(d) / 1e9
}

// Merge adds all of o to h.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Count += o.Count
	h.Sum += o.Sum
}

// Quantile returns the q-quantile, 0 <= q <= 1, and false when h is empty:
// there is no honest number for it.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	if h.Count == 0 {
		return 0, false
	}
	rank := q * float64(h.Count)
	var seen float64
	for i, n := range h.Counts {
		c := float64(n)
		if n > 0 && seen+c >= rank {
			return seconds(Mid(i, (rank-seen)/c)), true
		}
		seen += c
	}
	return seconds(lower(N - 1)), true
}

// Mean returns the mean, and false when h is empty.
func (h *Histogram) Mean() (time.Duration, bool) {
	if h.Count == 0 {
		return 0, false
	}
	return seconds(h.Sum / float64(h.Count)), true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
