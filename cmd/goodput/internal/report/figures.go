package report

import (
	"math"
	"strconv"
	"time"

	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
)

// A Figure is one number of a policy over its runs.
type Figure struct {
	Mean  float64
	Error float64 // standard error of Mean; 0 with one run, which has none
	Runs  int     // those that have the number; 0: there is none, as no p99 of nothing
}

// Figures are what the table shows of a policy. Rates are per second of the
// window, shares are 0 to 1, durations are seconds.
type Figures struct {
	Offered   Figure // requests that clients wanted, a request counted once however often it is tried
	Capacity  Figure
	Goodput   Figure // requests answered in time
	Ratio     Figure // goodput / min(offered, capacity); none where nothing bounds the capacity
	Refused   Figure // share of requests whose last attempt was refused
	Late      Figure // share of requests that were answered too late, or given up at their deadline
	Failed    Figure // share of requests that were lost
	Kept      Figure // share of requests that their clients kept at home, told no without a call
	Attempts  Figure // per request
	Wasted    Figure // share of the work that was done for answers that came too late
	P50, P99  Figure // from arrival to answer, of all attempts that got a slot
	GoodP50   Figure // from arrival to answer, of the requests that were answered in time
	Told      Figure // from arrival to refusal, median; none of fewer refusals than are shown
	PeakQueue Figure // requests that waited in one limiter, the fullest of all tiers
}

// Figures sums up the runs of p.
func (p Policy) Figures() Figures {
	f := p.count(func(r *sim.Result) *sim.Tally { return &r.Total })
	f.Capacity = p.over(func(r *sim.Result) float64 { return r.Capacity })
	f.Ratio = p.over(ratio)
	f.PeakQueue = p.over(peakQueue)
	return f
}

// Class sums up what became of class i. It has no capacity and no queue of its own:
// its Ratio is the share of its own requests that were answered in time.
func (p Policy) Class(i int) Figures {
	f := p.count(func(r *sim.Result) *sim.Tally { return &r.Classes[i] })
	f.Ratio = p.over(func(r *sim.Result) float64 { return share(r.Classes[i].InTime, r.Classes[i].Requests) })
	return f
}

// classes are those that are told apart: none if there is but one.
func (p Policy) classes() []sim.Tally {
	if c := p.Runs[0].Classes; len(c) > 1 {
		return c
	}
	return nil
}

// count is what a tally alone says.
func (p Policy) count(of func(*sim.Result) *sim.Tally) Figures {
	over := func(f func(t *sim.Tally, window time.Duration) float64) Figure {
		return p.over(func(r *sim.Result) float64 { return f(of(r), r.Window) })
	}
	return Figures{
		Offered:  over(func(t *sim.Tally, window time.Duration) float64 { return perSecond(t.Requests, window) }),
		Goodput:  over(func(t *sim.Tally, window time.Duration) float64 { return perSecond(t.InTime, window) }),
		Refused:  over(func(t *sim.Tally, _ time.Duration) float64 { return share(t.Refused, t.Requests) }),
		Late:     over(func(t *sim.Tally, _ time.Duration) float64 { return share(t.Late, t.Requests) }),
		Failed:   over(func(t *sim.Tally, _ time.Duration) float64 { return share(t.Failed, t.Requests) }),
		Kept:     over(func(t *sim.Tally, _ time.Duration) float64 { return share(t.Kept, t.Requests) }),
		Attempts: over(func(t *sim.Tally, _ time.Duration) float64 { return share(t.Attempts, t.Requests) }),
		Wasted:   over(func(t *sim.Tally, _ time.Duration) float64 { return t.Wasted.Seconds() / t.Work.Seconds() }),
		P50:      over(func(t *sim.Tally, _ time.Duration) float64 { return quantile(&t.Latency, 0.50) }),
		P99:      over(func(t *sim.Tally, _ time.Duration) float64 { return quantile(&t.Latency, 0.99) }),
		GoodP50:  over(func(t *sim.Tally, _ time.Duration) float64 { return quantile(&t.Good, 0.50) }),
		Told:     over(told),
	}
}

// told is NaN where no request was refused, as far as a table shows it. The histogram
// also has those whose clients gave up while they waited: with hardly a refusal it is
// about them alone, and says seconds where nobody was told anything.
func told(t *sim.Tally, _ time.Duration) float64 {
	if !seen(share(t.Refused, t.Requests)) {
		return math.NaN()
	}
	return quantile(&t.Told, 0.50)
}

// seen reports whether a share is shown as more than 0.0 %.
func seen(share float64) bool { return share >= 0.0005 }

// over is the mean of f over the runs of p for which it is a number.
func (p Policy) over(f func(*sim.Result) float64) (out Figure) {
	var sum, square float64
	for _, r := range p.Runs {
		x := f(r)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		out.Runs++
		// Welford's sum of squares: the difference of two large sums would lose the
		// spread of 3600.1 and 3600.2.
		d := x - sum
		sum += d / float64(out.Runs)
		square += d * (x - sum)
	}
	out.Mean = sum
	if n := float64(out.Runs); n > 1 {
		out.Error = math.Sqrt(square / (n - 1) / n)
	}
	return out
}

func perSecond(n uint64, window time.Duration) float64 { return float64(n) / window.Seconds() }

// share is NaN, no number, of nothing.
func share(n, of uint64) float64 { return float64(n) / float64(of) }

// ratio is NaN where nothing bounds the resource: there is no capacity to be a share of.
func ratio(r *sim.Result) float64 {
	if r.Capacity == 0 {
		return math.NaN()
	}
	return r.Ratio()
}

func quantile(h *hist.Histogram, q float64) float64 {
	d, ok := h.Quantile(q)
	if !ok {
		return math.NaN()
	}
	return d.Seconds()
}

func peakQueue(r *sim.Result) float64 {
	peak := 0
	for _, t := range r.Tiers {
		peak = max(peak, t.PeakQueue)
	}
	return float64(peak)
}

// A unit is how a number is shown: times what, with how many decimals.
type unit struct {
	scale    float64
	decimals func(x float64) int // of the scaled number
}

var (
	rate    = unit{1, three}
	percent = unit{100, func(float64) int { return 1 }}
	millis  = unit{1000, three}
	times   = unit{1, func(float64) int { return 2 }}
	count   = unit{1, func(float64) int { return 0 }}
)

// three decimals leave three figures, and at most two: 436, 60.1, 0.53. More is
// more than a histogram with buckets of 9 % knows, and less than 10 µs is not what
// anybody is refused in.
func three(x float64) int {
	switch {
	case math.Abs(x) >= 99.95:
		return 0
	case math.Abs(x) >= 9.995:
		return 1
	}
	return 2
}

func (u unit) show(x float64) string {
	x *= u.scale
	return strconv.FormatFloat(x, 'f', u.decimals(x), 64)
}

// plain is the mean alone, or a dash where there is none.
func (f Figure) plain(u unit) string {
	if f.Runs == 0 {
		return "–"
	}
	return u.show(f.Mean)
}

// spread is "±0.3", or nothing where one run has none. It has the decimals of the
// mean that it belongs to, or one more if that is what it takes to be seen.
func (f Figure) spread(u unit) string {
	if f.Runs < 2 {
		return ""
	}
	decimals := u.decimals(f.Mean * u.scale)
	x := f.Error * u.scale
	if half := 0.5 * math.Pow(10, -float64(decimals)); x < half && x >= half/10 {
		decimals++
	}
	return "±" + strconv.FormatFloat(x, 'f', decimals, 64)
}
