package live

import (
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/internal/hist"
)

const (
	// interval is how often limiters are looked at.
	interval = time.Second

	// windowLength is how far back quantiles look: ten ticks, so that at 100 requests a second
	// the p99 is of 1000, the tenth largest of them, and a person who waits for the effect of
	// what he did sees it before he does something else.
	windowLength = 10 * time.Second

	// late is by how much a mark may be older than windowLength and count: ticks come a little
	// early and late, and the mark of ten ticks ago is to be the same one each time.
	late = interval / 2

	// marks is how many marks are kept: that of now, those of the ten ticks before, and one more,
	// since after a late tick the next one comes early. If more of them fit a window, it is shorter.
	marks = int(windowLength/interval) + 2
)

// Of what there are quantiles.
const (
	ofLatency = iota
	ofWait
	ofService

	quantities = ofService + 1
)

// A window has the quantiles of a limiter over the last 10 s. The histograms of a limiter are
// of all that ever was; those of two ticks differ by what happened in between. It keeps what
// they were at the last ticks: 12 marks x 3 quantities x 298 buckets x 4 bytes are 43 KB.
type window struct {
	ring [marks]mark
	n    int // ever
}

// A mark is what the histograms were at one tick.
type mark struct {
	at time.Time
	of [quantities]cumulative
}

// A cumulative is the counts of a histogram modulo 2^32. Differences are right nevertheless as
// long as fewer than 4 billion durations come into one bucket in one window; total shows
// whether they are.
type cumulative struct {
	counts [hist.N]uint32
	total  uint64
}

func (c *cumulative) add(h *goodput.Histogram) {
	if h == nil {
		return
	}
	for i, n := range h.Counts {
		c.counts[i] += uint32(n)
	}
	c.total += h.Count
}

// look returns the quantiles since the beginning of the window and its length, and keeps s as
// a mark. In the first tick there is no length, and none is known.
func (w *window) look(now time.Time, s *goodput.Stats) (length time.Duration, q [quantities]*Quantiles) {
	base := w.base(now)
	is := &w.ring[w.n%marks]
	*is = mark{at: now}
	is.of[ofLatency].add(&s.Latency)
	is.of[ofWait].add(&s.Wait[goodput.WaitAdmitted])
	is.of[ofService].add(s.Service[goodput.Completed])
	is.of[ofService].add(s.Service[goodput.Late])
	w.n++
	if base == nil {
		return 0, q
	}
	for i := range q {
		q[i] = between(&base.of[i], &is.of[i], percentileOf(s))
	}
	return now.Sub(base.at), q
}

// base returns the oldest mark in the window, or the latest of all if ticks were dropped for
// longer than a window; nil if there is none.
func (w *window) base(now time.Time) (base *mark) {
	for i := range min(w.n, marks-1) { // the oldest one is what is overwritten
		m := &w.ring[(w.n-1-i)%marks]
		if base != nil && now.Sub(m.at) > windowLength+late {
			break
		}
		base = m
	}
	return base
}

// between returns the quantiles of what came between two marks; nil if nothing did, or if the
// later one is not of the same histogram. target is the percentile of the objective.
func between(was, is *cumulative, target float64) *Quantiles {
	if is.total <= was.total {
		return nil
	}
	h := hist.Histogram{Count: is.total - was.total}
	var sum uint64
	for i := range h.Counts {
		h.Counts[i] = uint64(is.counts[i] - was.counts[i]) // modulo 2^32
		sum += h.Counts[i]
	}
	if sum != h.Count {
		return nil
	}
	q := func(p float64) float64 {
		d, _ := h.Quantile(p)
		return d.Seconds()
	}
	below := h.Count - h.Counts[hist.N-1]
	over := func(p float64) bool { return float64(below) < p*float64(h.Count) }
	return &Quantiles{
		Count: h.Count, P50: q(0.5), P95: q(0.95), P99: q(0.99), Over: over(0.99),
		Target: q(target), TargetOver: over(target),
	}
}

// percentileOf is what part of the requests is to meet the objective.
func percentileOf(s *goodput.Stats) float64 {
	if p := s.Derivation.Percentile; p > 0 && p <= 1 {
		return p
	}
	return 0.99 // as goodput.Config.Percentile has it
}
