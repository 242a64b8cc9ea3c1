package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/limit"
)

const ms = time.Millisecond

// The service that most published figures are about: 60 slots of 50 ms, 1,200
// requests per second.
const (
	slots    = 60
	capacity = 1200.0
)

var (
	fixed50       = Dist{Kind: Fixed, Mean: 50 * ms}
	exponential50 = Dist{Kind: Exponential, Mean: 50 * ms}
	lognormal50   = Dist{Kind: Lognormal, Mean: 50 * ms, CV: 2}
	shapes        = []Dist{fixed50, exponential50, lognormal50}
)

func (d Dist) name() string { return []string{"fixed", "exponential", "lognormal"}[d.Kind] }

// plain is that service, offered so many times its capacity for length, after
// five seconds that do not count. Its clients stop caring after deadline and tell
// nobody.
func plain(times float64, service Dist, deadline, length time.Duration) Scenario {
	c := Class{Arrivals: Arrivals{Rate: times * capacity}, Patience: Vanishes}
	if deadline > 0 {
		c.Deadlines = []Deadline{{deadline, 1}}
	}
	return Scenario{
		Length: 5*time.Second + length, Warmup: 5 * time.Second,
		Tiers: []Tier{{
			Policy:  Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(slots), Objective: 400 * ms}},
			Service: service,
		}},
		Classes: []Class{c},
	}
}

// fifo is a bounded queue that knows no deadlines.
func fifo(limit, depth int) Policy {
	return Policy{Name: fmt.Sprint("fifo ", depth), Baseline: &Baseline{Limit: limit, Depth: depth}}
}

func named(t testing.TB, name string, depth int, service Dist) Policy {
	t.Helper()
	p, err := Named(name, slots, depth, service)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func play(t testing.TB, s Scenario, seed uint64) *Result {
	t.Helper()
	r, err := Run(s, seed)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return r
}

// An estimate is the mean over independent seeds, with its standard error: the
// standard deviation between them over the square root of their number.
type estimate struct {
	mean, se float64
	n        int
}

func (e estimate) String() string { return fmt.Sprintf("%.4f ± %.4f (n %d)", e.mean, e.se, e.n) }

func average(values []float64) estimate {
	n := float64(len(values))
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		squares += (v - sum/n) * (v - sum/n)
	}
	return estimate{sum / n, math.Sqrt(squares / (n - 1) / n), len(values)}
}

// over plays s with the seeds 1 to n and averages what each of the measures says.
func over(t testing.TB, s Scenario, n int, measures ...func(*Result) float64) []estimate {
	t.Helper()
	values := make([][]float64, len(measures))
	for seed := range uint64(n) {
		r := play(t, s, seed+1)
		for i, m := range measures {
			values[i] = append(values[i], m(r))
		}
	}
	all := make([]estimate, len(measures))
	for i := range all {
		all[i] = average(values[i])
	}
	return all
}

// near fails unless e is within four of its standard errors of want, and the
// rounding of want beside: half a unit of its last figure, or what the histogram
// adds.
func (e estimate) near(t testing.TB, what string, want, rounding float64) {
	t.Helper()
	t.Logf("%s: %v, want %.5g", what, e, want)
	if math.IsNaN(e.mean) || math.Abs(e.mean-want) > 4*e.se+rounding {
		t.Errorf("%s: %v, want %.5g within 4 standard errors and %.2g", what, e, want, rounding)
	}
}

// sharp fails unless the standard error is at most most.
func (e estimate) sharp(t testing.TB, what string, most float64) {
	t.Helper()
	if !(e.se <= most) {
		t.Errorf("%s: %v: the standard error is above %v, so the test proves too little", what, e, most)
	}
}

// points is the standard error that a share may have: 0.2 points.
const points = 0.002

func ratio(r *Result) float64 { return r.Ratio() }

// share returns how much of the requests the count is.
func share(count func(*Tally) uint64) func(*Result) float64 {
	return func(r *Result) float64 { return float64(count(&r.Total)) / float64(r.Total.Requests) }
}

func refusals(t *Tally) uint64 { return t.Refused }
func good(t *Tally) uint64     { return t.InTime }
func lates(t *Tally) uint64    { return t.Late }

// mean returns the mean of a histogram in seconds.
func meanOf(pick func(*Tally) *hist.Histogram) func(*Result) float64 {
	return func(r *Result) float64 {
		h := pick(&r.Total)
		return h.Sum / float64(h.Count)
	}
}

// tail returns the share of a histogram above the upper bound of bucket i: exact,
// where a quantile is interpolated.
func tail(pick func(*Tally) *hist.Histogram, i int) func(*Result) float64 {
	return func(r *Result) float64 {
		h := pick(&r.Total)
		n := uint64(0)
		for _, c := range h.Counts[i+1:] {
			n += c
		}
		return float64(n) / float64(h.Count)
	}
}

func quantileOf(pick func(*Tally) *hist.Histogram, q float64) func(*Result) float64 {
	return func(r *Result) float64 {
		d, ok := pick(&r.Total).Quantile(q)
		if !ok {
			return math.NaN()
		}
		return d.Seconds()
	}
}

func waiting(t *Tally) *hist.Histogram  { return &t.Wait }
func latency(t *Tally) *hist.Histogram { return &t.Latency }
func inTimes(t *Tally) *hist.Histogram { return &t.Good }
func told(t *Tally) *hist.Histogram    { return &t.Told }
