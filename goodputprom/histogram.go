package goodputprom

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/internal/hist"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A durations is a metric of limiters with a histogram per series.
type durations struct {
	labelled
	of func(s *goodput.Stats, row int) *goodput.Histogram // nil: nothing yet
}

// waits are the rows of Stats.Wait: coarser than the outcomes of requests_total,
// since the waits of those that were told no answer one question (how long does
// it take to be refused), and why is counted there.
var waits = [][]string{
	goodput.WaitAdmitted:  {"admitted"},
	goodput.WaitRefused:   {"refused"},
	goodput.WaitCancelled: {"cancelled"},
}

// ran are the outcomes of requests that started.
var ran = []goodput.Outcome{goodput.Completed, goodput.Late, goodput.Failed, goodput.Abandoned}

var histograms = []durations{
	{
		label("limiter", "request_duration_seconds", "Time from arrival to end, the wait included, of requests that got a slot, whatever their outcome: what the objective is about. "+
			"One in so many is timed where they are many, and counts for all. Streams and upgraded connections, which last as long as they like, are not in it.", nil, single),
		func(s *goodput.Stats, _ int) *goodput.Histogram { return &s.Latency },
	},
	{
		label("limiter", "queue_duration_seconds", "Time in the queue, of requests that were in it, by what became of them: admitted; refused, "+
			"which is every end but the caller's doing, expired and doomed ones included; cancelled, because the caller left.", []string{"outcome"}, waits),
		func(s *goodput.Stats, row int) *goodput.Histogram { return &s.Wait[row] },
	},
	{
		label("limiter", "service_duration_seconds", "Time from slot to end of the requests that were timed, by outcome. Streams and upgraded connections are not in it.",
			[]string{"outcome"}, words(ran)),
		func(s *goodput.Stats, row int) *goodput.Histogram { return s.Service[ran[row]] },
	},
}

// A bound is the end of a classic bucket, and where that lies among ours.
type bound struct {
	seconds float64
	within  int     // the bucket of ours that it lies in: those before are below it
	part    float64 // of that bucket, below the bound
}

// boundsOf finds the ends of classic buckets among ours.
func boundsOf(seconds []float64) []bound {
	all := make([]bound, len(seconds))
	for i, end := range seconds {
		b := bound{seconds: end}
		b.within = sort.Search(hist.N-1, func(i int) bool { return hist.Bound(i) > end })
		if b.within > 0 && b.within < hist.N-1 { // the first has no beginning, and the last no end
			b.part = math.Log2(end/hist.Bound(b.within-1)) * (1 << schema)
		}
		all[i] = b
	}
	return all
}

// classic are the classic buckets of limiters: those of OpenTelemetry's HTTP
// durations, two finer ones below, and coarse ones above for long objectives.
var classic = boundsOf([]float64{
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
	30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600,
})

// boundsPast returns the bounds up to 10 s, or to the first one at or past
// longest: a bucket that ends before the deadline cannot show who missed it.
func boundsPast(longest time.Duration) []bound {
	last := slices.IndexFunc(classic, func(b bound) bool { return b.seconds >= max(longest.Seconds(), 10) })
	if last < 0 {
		return classic
	}
	return classic[:last+1]
}

// A histogram shows a goodput.Histogram as it is: its bounds are those of
// schema 3 of Prometheus' native histograms. Classic buckets are derived from
// it for those who scrape text.
type histogram struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	counts *goodput.Histogram
	bounds []bound
}

// NewHistogram shows any histogram of package goodput: as a native one, and with classic buckets
// that end at seconds, which are sorted. It must not change any more; nil is an empty one. labels are
// the values of those of desc, as in prometheus.MustNewConstMetric.
func NewHistogram(desc *prometheus.Desc, h *goodput.Histogram, seconds []float64, labels ...string) prometheus.Metric {
	return &histogram{desc, prometheus.MakeLabelPairs(desc, labels), h, boundsOf(seconds)}
}

var none goodput.Histogram

// Desc is for prometheus.Metric.
func (h *histogram) Desc() *prometheus.Desc { return h.desc }

// Write is for prometheus.Metric.
func (h *histogram) Write(out *dto.Metric) error {
	counts := h.counts
	if counts == nil {
		counts = &none
	}
	m := &dto.Histogram{
		SampleCount:   new(counts.Count),
		SampleSum:     new(counts.Sum),
		Bucket:        buckets(counts, h.bounds),
		Schema:        new(int32(schema)),
		ZeroThreshold: new(hist.Bound(0)),
		ZeroCount:     new(counts.Counts[0]),
	}
	m.PositiveSpan, m.PositiveDelta = spans(counts)
	out.Label, out.Histogram = h.labels, m
	return nil
}

// schema 3 has 2^3 buckets to the octave.
const schema = 3

// first is the native index of the first positive bucket: bucket i of schema 3
// ends at 2^(i/8) seconds.
var first = int32(math.Round(math.Log2(hist.Bound(1)) * (1 << schema)))

// buckets estimates how many durations are at most as long as each bound. Only the
// bucket of ours that the bound lies in is a guess, interpolated as hist does. An estimate never
// falls while the counts grow, and never exceeds Count.
func buckets(h *goodput.Histogram, bounds []bound) []*dto.Bucket {
	all := make([]dto.Bucket, len(bounds))
	below := make([]uint64, len(bounds))
	out := make([]*dto.Bucket, len(bounds))
	var sum uint64
	next := 0 // the first bucket of ours that is not in sum
	for i := range bounds {
		b := &bounds[i]
		if h.Count > 0 {
			for ; next < b.within; next++ {
				sum += h.Counts[next]
			}
			below[i] = sum + uint64(b.part*float64(h.Counts[b.within]))
		}
		all[i].UpperBound, all[i].CumulativeCount = &b.seconds, &below[i]
		out[i] = &all[i]
	}
	return out
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
