package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/theory"
	"github.com/goodput/goodput/limit"
)

// textbook is a queue of the textbooks: c servers, Poisson arrivals at a load of
// rho, clients that wait for ever; so many arrivals after a warmup of a tenth.
func textbook(c int, rho float64, service Dist, p Policy, arrivals float64) (s Scenario, rate float64) {
	rate = rho * float64(c) / service.Mean.Seconds()
	length := time.Duration(arrivals / rate * 1e9)
	return Scenario{
		Length: length + length/10, Warmup: length / 10,
		Tiers:   []Tier{{Policy: p, Slots: c, Service: service, Objective: time.Hour}},
		Classes: []Class{{Arrivals: Arrivals{Rate: rate}}},
	}, rate
}

// tails are some ten points of the distribution of a time, at bounds of the
// histogram, where it is exact, compared with its closed form.
func tails(what string, pick func(*Tally) *hist.Histogram, want func(seconds float64) float64) []measure {
	var all []measure
	for i := hist.Index(time.Millisecond); i < hist.N-1; i++ {
		if p := want(hist.Bound(i)); p > 0.005 && p < 0.98 {
			all = append(all, measure{what: fmt.Sprintf("%s: P(more than %.4g s)", what, hist.Bound(i)), of: tail(pick, i), want: p})
		}
	}
	var some []measure
	for i := 0; i < len(all); i += 1 + len(all)/10 {
		some = append(some, all[i])
	}
	return some
}

// M/M/c: the wait, who waits at all, and the whole distribution of the response.
func TestMMc(t *testing.T) {
	for _, c := range []struct {
		servers  int
		rho      float64
		arrivals float64
	}{{1, 0.5, 60_000}, {8, 0.8, 400_000}, {60, 0.8, 200_000}} {
		what := fmt.Sprintf("M/M/%d at %v", c.servers, c.rho)
		s, rate := textbook(c.servers, c.rho, exponential50, fifo(c.servers, Unbounded), c.arrivals)
		q := theory.MMc{Servers: c.servers, Rate: rate, Mean: 0.05}
		queued := func(r *Result) float64 { return 1 - float64(r.Total.Wait.Counts[0])/float64(r.Total.Wait.Count) }
		compare(t, s, 10, append(tails(what+": response", latency, q.ResponseTail),
			// Waits below a microsecond share the first bucket: some 1e-5 of them.
			measure{what: what + ": P(wait)", of: queued, want: theory.ErlangC(c.servers, c.rho*float64(c.servers)), rounding: 1e-4},
			measure{what: what + ": mean wait, s", of: mean(waited), want: q.MeanWait(), most: 0.05 * q.MeanWait()},
			measure{what: what + ": mean response, s", of: mean(latency), want: q.MeanResponse(), most: 0.01 * q.MeanResponse()},
		)...)
	}
}

// M/D/1, by Crommelin's distribution, and M/G/1 by Pollaczek's mean.
func TestMG1(t *testing.T) {
	s, rate := textbook(1, 0.7, fixed50, fifo(1, Unbounded), 100_000)
	q := theory.MD1{Rate: rate, Time: 0.05}
	compare(t, s, 10, append(tails("M/D/1 at 0.7: wait", waited, q.WaitTail),
		measure{what: "M/D/1 at 0.7: mean wait, s", of: mean(waited), want: q.MeanWait(), most: 0.01 * q.MeanWait()})...)

	s, rate = textbook(1, 0.5, lognormal50, fifo(1, Unbounded), 200_000)
	want := theory.MG1Wait(rate, 0.05, 4)
	compare(t, s, 10, measure{what: "M/G/1 at 0.5, CV 2: mean wait, s", of: mean(waited), want: want, most: 0.02 * want})
}

// M/M/c/K: who is refused, and what those wait who are not. Our own core, with
// the same depth in the same order, decides about each request alike.
func TestMMcK(t *testing.T) {
	for _, c := range []struct {
		servers, depth int
		rho            float64
		arrivals       float64
	}{{1, 5, 0.9, 100_000}, {10, 20, 1.2, 200_000}, {60, 30, 1, 200_000}, {60, 100, 3, 200_000}} {
		what := fmt.Sprintf("M/M/%d/%d at %v", c.servers, c.servers+c.depth, c.rho)
		s, rate := textbook(c.servers, c.rho, exponential50, fifo(c.servers, c.depth), c.arrivals)
		q := theory.MMcK{Servers: c.servers, Depth: c.depth, Rate: rate, Mean: 0.05}
		compare(t, s, 8, append(tails(what+": response", latency, q.ResponseTail),
			measure{what: what + ": loss", of: share(refusals), want: q.Loss()},
			measure{what: what + ": mean wait, s", of: mean(waited), want: q.MeanWait(), most: 0.02 * q.MeanWait()})...)

		core := Policy{Name: "core", Core: &admission.Config{
			Limit: limit.Fixed(c.servers), Depth: c.depth, Objective: time.Hour,
			Order: admission.FIFO, Overflow: admission.RefuseNewest, MaxWait: 24 * time.Hour,
		}}
		a, b := play(t, s, 1), play(t, s.With(core), 1)
		if a.Total.Refused != b.Total.Refused || a.Total.Latency != b.Total.Latency || a.Total.Wait != b.Total.Wait {
			t.Errorf("%s: the core refuses %d, the baseline %d, or they wait otherwise", what, b.Total.Refused, a.Total.Refused)
		}
	}
}

// M/M/c+M: patience is a set of deadlines with shares, here the 2,000 middles of
// equal parts of an exponential distribution, which differ from it by less than
// one part: 0.05 points.
func TestErlangA(t *testing.T) {
	for _, c := range []struct {
		servers  int
		rho      float64
		patience time.Duration
	}{{1, 0.9, 50 * ms}, {10, 1.2, 100 * ms}, {60, 1.5, 200 * ms}} {
		what := fmt.Sprintf("M/M/%d+M at %v, patience %v", c.servers, c.rho, c.patience)
		s, rate := textbook(c.servers, c.rho, exponential50, fifo(c.servers, Unbounded), 60_000)
		const parts = 2000
		for i := range parts {
			after := -math.Log1p(-(float64(i) + 0.5) / parts)
			s.Classes[0].Deadlines = append(s.Classes[0].Deadlines, Deadline{time.Duration(after * float64(c.patience)), 1})
		}
		q := theory.ErlangA{Servers: c.servers, Rate: rate, Mean: 0.05, Patience: c.patience.Seconds()}
		left := func(t *Tally) uint64 { return t.Reasons[admission.Client] }
		// The mean wait of all: of those who were served and those who left.
		wait := func(r *Result) float64 {
			return (r.Total.Wait.Sum + r.Total.Told.Sum) / float64(r.Total.Requests)
		}
		compare(t, s, 8,
			measure{what: what + ": who leaves", of: share(left), want: q.Abandon(), rounding: 1.0 / parts},
			measure{what: what + ": mean wait, s", of: wait, want: q.MeanWait(), rounding: q.MeanWait() / parts, most: 0.02 * q.MeanWait()})
	}
}

// Erlang's loss formula holds whatever the service is: 9.6 % at 60 slots.
func TestErlangB(t *testing.T) {
	for _, c := range []struct {
		servers int
		rho     float64
		want    float64 // as published, to a tenth of a point
	}{{60, 1, 0.096}, {8, 1, 0.236}, {1, 1, 0.5}, {6, 2, 0.556}} {
		exact := theory.ErlangB(c.servers, c.rho*float64(c.servers))
		if math.Abs(exact-c.want) > 0.0005 {
			t.Errorf("Erlang-B(%d, %v) is %v, published as %v", c.servers, c.rho, exact, c.want)
		}
		for _, d := range shapes {
			s, _ := textbook(c.servers, c.rho, d, fifo(c.servers, 0), 100_000)
			compare(t, s, 8, measure{what: fmt.Sprintf("%d slots at %v, %s: refused", c.servers, c.rho, d.name()), of: share(refusals), want: exact})
		}
	}
}
