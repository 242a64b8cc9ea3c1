package goodputprom

import (
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/internal/hist"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// bounds are the classic buckets, in seconds: those of OpenTelemetry's HTTP
// durations, two finer ones below, and coarse ones above for long objectives.
var bounds = []float64{
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
	30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600,
}

// boundsPast returns the bounds up to 10 s, or to the first one at or past
// longest: a bucket that ends before the deadline cannot show who missed it.
func boundsPast(longest time.Duration) []float64 {
	ten := slices.Index(bounds, 10)
	i, _ := slices.BinarySearch(bounds, longest.Seconds())
	return bounds[:min(max(ten, i)+1, len(bounds))]
}

// A histogram shows a goodput.Histogram as it is: its bounds are those of
// schema 3 of Prometheus' native histograms. Classic buckets are derived from
// it for those who scrape text.
type histogram struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	counts *goodput.Histogram
	bounds []float64
}

var none goodput.Histogram

func newHistogram(desc *prometheus.Desc, h *goodput.Histogram, bounds []float64, labels ...string) histogram {
	if h == nil {
		h = &none
	}
	return histogram{desc, prometheus.MakeLabelPairs(desc, labels), h, bounds}
}

// Desc is for prometheus.Metric.
func (h histogram) Desc() *prometheus.Desc { return h.desc }

// Write is for prometheus.Metric.
func (h histogram) Write(out *dto.Metric) error {
	m := &dto.Histogram{
		SampleCount:   new(h.counts.Count),
		SampleSum:     new(h.counts.Sum),
		Schema:        new(int32(schema)),
		ZeroThreshold: new(hist.Bound(0)),
		ZeroCount:     new(h.counts.Counts[0]),
	}
	for _, b := range h.bounds {
		m.Bucket = append(m.Bucket, &dto.Bucket{
			UpperBound:      new(b),
			CumulativeCount: new(atMost(h.counts, b)),
		})
	}
	m.PositiveSpan, m.PositiveDelta = spans(h.counts)
	out.Label, out.Histogram = h.labels, m
	return nil
}

// schema 3 has 2^3 buckets to the octave.
const schema = 3

// first is the native index of the first positive bucket: bucket i of schema 3
// ends at 2^(i/8) seconds.
var first = int32(math.Round(math.Log2(hist.Bound(1)) * (1 << schema)))

// atMost estimates how many durations are at most bound seconds. Only the
// bucket that bound lies in is a guess, interpolated as hist does. It never
// falls while the counts grow, and never exceeds Count.
func atMost(h *goodput.Histogram, bound float64) uint64 {
	var n uint64
	for i, c := range h.Counts {
		if hist.Bound(i) <= bound {
			n += c
			continue
		}
		if i > 0 && i < hist.N-1 && hist.Bound(i-1) < bound {
			f := math.Log2(bound/hist.Bound(i-1)) * (1 << schema)
			n += uint64(f * float64(c))
		}
		break
	}
	return n
}

// spans encodes the positive buckets: runs of neighbours that are not empty,
// and in them each count as its difference from the one before.
func spans(h *goodput.Histogram) (runs []*dto.BucketSpan, deltas []int64) {
	if h.Count == h.Counts[0] {
		// A span of length 0 says that this is a native histogram all the same.
		return []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}, nil
	}
	var before int64
	next := int32(0) // native index that follows the last one written
	for i, c := range h.Counts[1:] {
		if c == 0 {
			continue
		}
		index := first + int32(i)
		if len(runs) == 0 || index != next {
			runs = append(runs, &dto.BucketSpan{Offset: new(index - next), Length: new(uint32(0))})
		}
		*runs[len(runs)-1].Length++
		deltas = append(deltas, int64(c)-before)
		before, next = int64(c), index+1
	}
	return runs, deltas
}
