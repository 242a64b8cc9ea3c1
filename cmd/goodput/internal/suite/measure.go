package suite

import (
	"math"
	"time"

	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
)

// An outcome is what is kept of a run, or of all runs of one law in one scenario.
type outcome struct {
	seeds  []uint64
	length float64 // seconds that are counted, of all runs

	requests, inTime, refused uint64
	within                    float64 // answered within the objective
	latency                   hist.Histogram

	bin       float64   // seconds
	ends      []float64 // in time, in each bin, of all of the run
	mean, dev float64   // of the limit, in the steady part: sums over the runs

	inFlight     float64 // at the last tier: the mean, summed over the runs
	peak         int
	least, most  float64 // share of an instance over its fair share
	simulated    uint64
	hasInstances bool
}

// bins is how many points a run has: of 50 ms, as long as there are not too many.
func bins(length time.Duration) int {
	return int(min(max(length/(50*time.Millisecond), 1), 2000))
}

// keep takes from r what a row needs.
func (c *Case) keep(r *sim.Result, seed uint64) outcome {
	o := outcome{
		seeds: []uint64{seed}, length: r.Window.Seconds(),
		requests: r.Total.Requests, inTime: r.Total.InTime, refused: r.Total.Refused,
		within: below(&r.Total.Good, c.Scene.Tiers[0].Objective), latency: r.Total.Latency,
		bin:      r.Series[0].End.Seconds(),
		inFlight: r.Tiers[len(r.Tiers)-1].InFlight, peak: r.Tiers[len(r.Tiers)-1].PeakInFlight,
	}
	o.simulated = r.Total.Requests
	if c.Scene.Warmup > 0 {
		o.simulated = 0
		for i := range r.Series {
			o.simulated += r.Series[i].Arrivals
		}
	}
	n, sum, sumsq := 0.0, 0.0, 0.0
	for i := range r.Series {
		b := &r.Series[i]
		o.ends = append(o.ends, float64(b.InTime))
		if b.End > c.steadyFrom() {
			v := float64(b.Limit)
			n, sum, sumsq = n+1, sum+v, sumsq+v*v
		}
	}
	o.mean = sum / n
	o.dev = math.Sqrt(max(sumsq/n-o.mean*o.mean, 0))
	o.shares(c, r)
	return o
}

// steadyFrom is where the limit is looked at: the second half, or what comes after the last
// change of the slots and 5 s more.
func (c *Case) steadyFrom() time.Duration {
	from := c.Scene.Length / 2
	for _, t := range c.Scene.Tiers {
		for _, step := range t.SlotSteps {
			from = max(from, min(step.At+5*time.Second, c.Scene.Length*9/10))
		}
	}
	return from
}

// shares compares the mean limit of each instance with its fair share.
func (o *outcome) shares(c *Case, r *sim.Result) {
	o.least, o.most = math.Inf(1), 0
	for i, fair := range c.Share {
		for _, l := range r.Tiers[i].Limits {
			o.least, o.most = min(o.least, l.Mean/fair), max(o.most, l.Mean/fair)
		}
		o.hasInstances = true
	}
}

// below returns how many durations of h are at most d. Inside a bucket of 9 % they are taken
// to be evenly spread, in the logarithm.
func below(h *hist.Histogram, d time.Duration) float64 {
	at, n := hist.Index(d), 0.0
	for i := range at {
		n += float64(h.Counts[i])
	}
	low, high := hist.Mid(at, 0), hist.Mid(at, 1)
	part := math.Log(d.Seconds()/low) / math.Log(high/low)
	return n + part*float64(h.Counts[at])
}

// together adds up the runs of one law, in the order of their seeds.
func together(runs []outcome) *outcome {
	o := runs[0]
	o.ends = append([]float64(nil), o.ends...)
	for _, r := range runs[1:] {
		o.seeds = append(o.seeds, r.seeds...)
		o.length += r.length
		o.requests += r.requests
		o.inTime += r.inTime
		o.refused += r.refused
		o.within += r.within
		o.latency.Merge(&r.latency)
		for i := range min(len(o.ends), len(r.ends)) {
			o.ends[i] += r.ends[i]
		}
		o.mean += r.mean
		o.dev += r.dev
		o.inFlight += r.inFlight
		o.peak = max(o.peak, r.peak)
		o.least, o.most = min(o.least, r.least), max(o.most, r.most)
		o.simulated += r.simulated
	}
	n := float64(len(runs))
	o.mean /= n
	o.dev /= n
	o.inFlight /= n
	return &o
}

// rolling calls visit for each instant, a bin apart, with what was in time in a window from there:
// of o, and of what it is compared with. The window is 2 s, or longer: until the
// other one has had so many that the ratio of the two is known to within 5 % (three
// standard errors of a ratio of two counts with a coefficient of variation of cv,
// sqrt(2) cv / sqrt(n) each, so n = 7,200 cv^2). Where the run ends before, nothing is said.
func (o *outcome) rolling(reference []float64, cv float64, visit func(at, got, want float64)) {
	least := 7200 * max(cv*cv, 0.25) // latencies of the two differ, even if no work does
	width := int(math.Round(2 / o.bin))
	got, want, to := 0.0, 0.0, 0
	for from := range o.ends {
		for to < len(o.ends) && (to-from < width || want < least) {
			got += o.ends[to]
			want += reference[to]
			to++
		}
		if to-from < width || want < least {
			return
		}
		visit(float64(from)*o.bin, got, want)
		got -= o.ends[from]
		want -= reference[from]
	}
}

// settled returns from when on what is in time stays at 95 % of the reference; NaN if it does
// not, or if the run is too short to tell.
func (o *outcome) settled(reference []float64, cv, after float64) float64 {
	at, last := math.NaN(), -1.0
	o.rolling(reference, cv, func(from, got, want float64) {
		switch {
		case from < after-o.bin/2:
		case got < 0.95*want:
			last, at = from, math.NaN()
		case math.IsNaN(at):
			at = max(last+o.bin, after)
		}
	})
	return math.Round((at-after)*1000) / 1000 // bins are no shorter than a millisecond
}

// level is a reference that is the same at all times: so many a second, of all runs.
func (o *outcome) level(perSecond float64) []float64 {
	r := make([]float64, len(o.ends))
	for i := range r {
		r[i] = perSecond * o.bin * float64(len(o.seeds))
	}
	return r
}

// between returns how many a second were in time from one instant to another, in a run.
func (o *outcome) between(from, to float64) float64 {
	sum := 0.0
	for i := int(math.Round(from / o.bin)); i < int(math.Round(to/o.bin)) && i < len(o.ends); i++ {
		sum += o.ends[i]
	}
	return sum / (to - from) / float64(len(o.seeds))
}
