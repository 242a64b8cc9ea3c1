package report

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
)

// hostile is a name that would run in a page that does not escape it, and would
// colour a terminal that prints it as it is.
const hostile = "</script><script>alert(1)</script>\x1b[31m\"'&`${x}"

// A shape is what a made-up policy does with a load: these tests are about how
// results are shown, so what they show is drawn by hand.
type shape struct {
	name          string
	ratio         func(at float64) float64 // of capacity, at a time in seconds
	median, sigma float64                  // of the latency in seconds, lognormal
	told          float64                  // seconds
	waiting       func(at float64) int
	late          float64 // share of what is not in time that is late, not refused
	ours          bool
}

func steady(x float64) func(float64) float64 { return func(float64) float64 { return x } }

var shapes = []shape{
	{"goodput", func(at float64) float64 {
		if at < 1.5 {
			return 0.93
		}
		return 0.985
	}, 0.055, 0.75, 0.000_2, func(at float64) int { return 40 + int(160*math.Exp(-at/3)) }, 0, true},
	{"fifo", func(at float64) float64 { return max(0, 0.9-at/4) }, 0.436, 0.15, 0.001, func(float64) int { return 480 }, 0.3, false},
	{"unbounded_fifo", func(at float64) float64 { return max(0, 0.95-at/2) }, 14, 0.8, math.NaN(), func(at float64) int { return int(2400 * at) }, 1, false},
	{"codel", steady(0.86), 0.09, 0.5, 0.1, func(float64) int { return 210 }, 0.02, false},
	{"reject", steady(0.98), 0.035, 1, 0.000_001, func(float64) int { return 0 }, 0, false},
	{"lifo", steady(0.96), 0.06, 0.9, 0.2, func(float64) int { return 480 }, 0.01, false},
	{"fifo_doomed_mean", steady(0.71), 0.4, 0.2, 0.3, func(float64) int { return 900 }, 0.1, false},
}

const (
	sampleOffered  = 3600
	sampleCapacity = 1200
	sampleLength   = 60 * time.Second
)

// result is one run of shape: a minute at three times the capacity of 1,200/s.
func (s shape) result(seed uint64) *sim.Result {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &sim.Result{
		Scenario: "overload-3x", Policy: s.name, Seed: seed, Window: sampleLength, Ended: sampleLength + time.Second,
		Capacity: sampleCapacity,
		Classes:  []sim.Tally{{Name: "web"}, {Name: "batch"}},
	}
	const bins = 120
	width := sampleLength / bins
	for i := range bins {
		at := (width * time.Duration(i)).Seconds()
		offered := uint64(sampleOffered*width.Seconds() + 40*rng.NormFloat64())
		in := uint64(max(0, sampleCapacity*width.Seconds()*s.ratio(at)+6*rng.NormFloat64()))
		if s.ratio(at) == 0 {
			in = 0
		}
		late := uint64(float64(offered-in) * s.late)
		waiting := s.waiting(at)
		bin := sim.Bin{
			End: width * time.Duration(i+1), Arrivals: offered, InTime: in, Late: late, Refused: offered - in - late,
			Attempts: offered, Waiting: waiting, InUse: 60 - rng.IntN(3), Limit: 60, Depth: 480,
			Age: time.Duration(float64(waiting) / sampleCapacity * float64(time.Second)),
		}
		if s.ours {
			bin.Derived, bin.Depth = 201, max(waiting, 34)
			bin.Limit = 58 + i%5
		}
		if s.name == "unbounded_fifo" {
			bin.Limit, bin.Depth = 60, sim.Unbounded
		}
		r.Series = append(r.Series, bin)
		s.count(&r.Total, bin, rng)
		s.count(&r.Classes[i%2], bin, rng)
	}
	r.Tiers = []sim.TierResult{{
		Name: "service", PeakQueue: s.waiting(0), PeakBytes: 1 << 20, PeakInUse: 60,
		PeakAge: 180 * time.Millisecond, Arrivals: r.Total.Attempts, Served: r.Total.Served, Refused: r.Total.Refused, Capacity: 1200,
	}}
	r.Groups = []sim.GroupResult{{Name: "database", Units: 60, PeakInUse: 60, Used: 2950}}
	if s.name == "unbounded_fifo" {
		r.Tiers[0].PeakQueue = s.waiting(60)
	}
	if s.ours {
		r.Tiers[0].Stats = sampleStats()
	}
	return r
}

func (s shape) count(t *sim.Tally, b sim.Bin, rng *rand.Rand) {
	t.Requests += b.Arrivals
	t.Attempts += b.Attempts
	t.InTime += b.InTime
	t.Late += b.Late
	t.Refused += b.Refused
	t.Reasons[admission.QueueFull] += b.Refused - b.Refused/5
	t.Reasons[admission.Doomed] += b.Refused / 5
	served := b.InTime + b.Late/2
	t.Served += served
	t.Work += time.Duration(served) * 50 * time.Millisecond
	t.Wasted += time.Duration(b.Late/2) * 50 * time.Millisecond
	for range served / 10 {
		d := time.Duration(s.median * math.Exp(s.sigma*rng.NormFloat64()) * float64(time.Second))
		t.Latency.Add(d)
		t.Wait.Add(d / 2)
		t.Good.Add(d)
	}
	if !math.IsNaN(s.told) {
		for range b.Refused / 10 {
			t.Told.Add(time.Duration(s.told * rng.ExpFloat64() * float64(time.Second)))
		}
	}
	t.Parts += float64(b.InTime)
}

func sampleStats() *admission.Stats {
	return &admission.Stats{
		Limit: 60, Depth: 34, Overload: true, Load: 3, LimitChanges: 7, Order: admission.FIFO,
		Derivation: admission.Derivation{
			Limit: 60, Mean: 50 * time.Millisecond, Rate: 1200, Objective: 400 * time.Millisecond, Percentile: 0.99,
			Service: 230 * time.Millisecond, Depth: 201, Rule: 480, RuleLatency: 628 * time.Millisecond,
			Reachable: true, Samples: 4096, Declared: 50 * time.Millisecond,
		},
	}
}

// sample is a report on the first n shapes with so many runs each.
func sample(n, runs int) *Report {
	r := &Report{
		Scenario: "overload-3x",
		About:    "A service with 60 slots and 50 ms of exponential work is offered three times what it can do for a minute. Clients care for two seconds.",
		Rule:     "1,200/s x 400 ms = 480 may wait, and the p99 is 400 ms.",
		Why:      "480 is the mean wait without the service: with it the p99 is 628 ms. The largest queue with a p99 of 400 ms is 201, and a queue that stands serves nobody.",
		Program:  "goodput v0.2.0", Command: "goodput simulate --builtin overload-3x --seed 1",
		Seed:     1,
		Ceilings: sim.Ceilings{NoQueue: 0.984, Clairvoyant: 0.998, Exact: true, Jobs: 20000, Missing: []string{"No size-aware bound: the sizes are unknown."}},
		Criteria: []Criterion{
			{"goodput at least 99 % of capacity", true, "99.1 %"},
			{"p99 of what got a slot at most 400 ms", false, "412 ms"},
		},
		Notes: []string{"The first second is played and not counted."},
	}
	for _, s := range shapes[:n] {
		p := Policy{Name: s.name}
		for i := range runs {
			p.Runs = append(p.Runs, s.result(uint64(1+i)))
		}
		r.Policies = append(r.Policies, p)
	}
	return r
}
