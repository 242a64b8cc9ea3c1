package sim

import (
	"fmt"
	"hash/fnv"
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

// A measure is a figure of a result, with what it should be.
type measure struct {
	what     string
	of       func(*Result) float64
	want     float64
	rounding float64 // half a unit of the last figure of want, or what else is off
	most     float64 // the standard error that it may have; 0: points
}

// points is the standard error that a share may have: 0.2 points.
const points = 0.002

// over plays s with n seeds and averages what each of the measures says. The
// seeds come from the test and the scenario, so that no two estimates share their
// draws: with the seeds 1 to 8 everywhere, one unlucky set of arrivals is two
// standard errors off in all of them.
func over(t testing.TB, s Scenario, n int, of ...func(*Result) float64) []estimate {
	t.Helper()
	h := fnv.New32()
	fmt.Fprint(h, t.Name(), s.Name, s.Length, s.Tiers[0].Policy.Name, s.Tiers[0].Service.Kind, s.Classes[0].Arrivals.Rate)
	base := uint64(h.Sum32()) << 16
	values := make([][]float64, len(of))
	for i := range uint64(n) {
		r := play(t, s, base+i)
		for m, f := range of {
			values[m] = append(values[m], f(r))
		}
	}
	all := make([]estimate, len(of))
	for i := range all {
		all[i] = average(values[i])
	}
	t.Logf("seeds %d to %d", base, base+uint64(n)-1)
	return all
}

// compare plays s with n seeds and fails unless each measure is within four
// standard errors of what it should be, and its rounding beside, and unless the
// standard error is as small as it should be.
func compare(t testing.TB, s Scenario, n int, measures ...measure) {
	t.Helper()
	var of []func(*Result) float64
	for _, m := range measures {
		of = append(of, m.of)
	}
	for i, e := range over(t, s, n, of...) {
		m := measures[i]
		e.near(t, m.what, m.want, m.rounding)
		if m.most == 0 {
			m.most = points
		}
		if !(e.se <= m.most) {
			t.Errorf("%s: %v: the standard error is above %.2g, so the test proves too little", m.what, e, m.most)
		}
	}
}

// near fails unless e is within four of its standard errors of want, and the
// rounding beside.
func (e estimate) near(t testing.TB, what string, want, rounding float64) {
	t.Helper()
	t.Logf("%s: %v, want %.5g", what, e, want)
	if math.IsNaN(e.mean) || math.Abs(e.mean-want) > 4*e.se+rounding {
		t.Errorf("%s: %v, want %.5g within 4 standard errors and %.2g", what, e, want, rounding)
	}
}

// sustained is plain under a load that goes on: the first class is counted, from
// the end of the warmup for length, and then a second comes in its place for three
// seconds, so that nobody of the first is served only because the load has ended.
// Without that, the queue that is left at the end is served in peace: newest first
// 480 deep, 0.7 % of a minute, and just those with the longest waits.
func sustained(times float64, service Dist, deadline, length time.Duration) Scenario {
	s := plain(times, service, deadline, length)
	first, then := s.Classes[0], s.Classes[0]
	first.Arrivals.Changes = []Change{{At: s.Length}}
	then.Arrivals = Arrivals{Changes: []Change{{At: s.Length, Rate: first.Arrivals.Rate}}}
	s.Length += 3 * time.Second
	s.Classes = []Class{first, then}
	return s
}

// goodput returns what the first class got in time, as a share of the capacity,
// over a window of length.
func goodput(length time.Duration) func(*Result) float64 {
	return func(r *Result) float64 {
		return float64(r.Classes[0].InTime) / length.Seconds() / capacity
	}
}

// blind is goodput less what is due to the draws of the work having been longer or
// shorter than 50 ms on average. Who does not look at the size of a request serves
// work of 50 ms on average in the long run, so that this control variate has a
// known mean. It takes away most of the noise: at a CV of 2 a minute of 72,000
// requests has a standard error of 0.75 points without it.
func blind(length time.Duration) func(*Result) float64 {
	good := goodput(length)
	return func(r *Result) float64 {
		c := &r.Classes[0]
		return good(r) * c.Work.Seconds() / float64(c.Served) / 0.05
	}
}

// share returns how much of the requests the count is.
func share(count func(*Tally) uint64) func(*Result) float64 {
	return func(r *Result) float64 {
		c := &r.Classes[0]
		return float64(count(c)) / float64(c.Requests)
	}
}

func refusals(t *Tally) uint64 { return t.Refused }
func good(t *Tally) uint64     { return t.InTime }

// mean returns the mean of a histogram in seconds.
func mean(pick func(*Tally) *hist.Histogram) func(*Result) float64 {
	return func(r *Result) float64 {
		h := pick(&r.Classes[0])
		return h.Sum / float64(h.Count)
	}
}

// tail returns the share of a histogram above the upper bound of bucket i: exact,
// where a quantile is interpolated.
func tail(pick func(*Tally) *hist.Histogram, i int) func(*Result) float64 {
	return func(r *Result) float64 {
		h := pick(&r.Classes[0])
		n := uint64(0)
		for _, c := range h.Counts[i+1:] {
			n += c
		}
		return float64(n) / float64(h.Count)
	}
}

// quantile returns a quantile of a histogram in seconds: within 1 % of the exact
// one where the counts are smooth.
func quantile(pick func(*Tally) *hist.Histogram, q float64) func(*Result) float64 {
	return func(r *Result) float64 {
		d, ok := pick(&r.Classes[0]).Quantile(q)
		if !ok {
			return math.NaN()
		}
		return d.Seconds()
	}
}

func waited(t *Tally) *hist.Histogram  { return &t.Wait }
func latency(t *Tally) *hist.Histogram { return &t.Latency }
func inTimes(t *Tally) *hist.Histogram { return &t.Good }
func told(t *Tally) *hist.Histogram    { return &t.Told }
