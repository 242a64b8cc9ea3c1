package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/theory"
)

// What is published of each baseline (papers and a benchmark of the real
// programs), reproduced. A published figure has noise of its own, of one run that
// did not tell its length: "no queue" is published as 99.6 and 97.3 % of the
// capacity with exponential and lognormal service, where Erlang's formula, which
// knows no distribution, says 99.2 for both; and 100.5 % in time of a capacity
// that is 100. Where a figure is therefore not met, right says what is, and why is
// said beside it.

// discipline is a limit of c with an unbounded queue in that order, which drops
// who has less than margin left.
func discipline(name string, c int, order Discipline, margin time.Duration) Policy {
	return Policy{Name: name, Baseline: &Baseline{Limit: c, Depth: Unbounded, Order: order, Expire: true, Margin: margin}}
}

// 60 slots of 50 ms, deadline 2 s, three times the capacity: goodput in percent of
// it, for fixed, exponential and lognormal service.
func TestBaselinesAtThreeTimes(t *testing.T) {
	lossless := 100 * theory.LossCeiling(slots, 3) // 99.17
	for _, c := range []struct {
		policy    string
		published [3]float64
		right     [3]float64 // where published is not met; 0: it is
	}{
		{"none", [3]float64{0, 0, 0}, [3]float64{}},
		{"unbounded_fifo", [3]float64{0, 0, 0}, [3]float64{}},
		// 480 wait all the time, so no slot idles and nobody is late: exactly all.
		{"fifo", [3]float64{100, 100.5, 99.7}, [3]float64{0, 100, 100}},
		{"fifo_expiry", [3]float64{0, 0.8, 0.2}, [3]float64{}},
		{"fifo_doomed_mean", [3]float64{100, 63.6, 73.4}, [3]float64{0, 0, 73.9}}, // noise, as above
		// By this simulation; one run of a minute has a standard error of 0.4 points.
		{"fifo_doomed_p95", [3]float64{100, 95.4, 95.1}, [3]float64{0, 95.1, 0}},
		{"fifo_doomed_p99", [3]float64{100, 99.0, 98.6}, [3]float64{0, 0, 99.05}},
		// Whoever starts has waited some milliseconds: late is only work of 2 s, 0.03 %
		// of lognormal work. That run, like those of CoDel and of no queue, drew
		// longer work than 50 ms on average.
		{"lifo", [3]float64{100, 100, 98.5}, [3]float64{0, 0, 99.93}},
		{"codel", [3]float64{100, 99.9, 99.1}, [3]float64{0, 0, 99.9}},
		{"edf_expiry", [3]float64{0, 0.8, 0.2}, [3]float64{}},
		{"reject", [3]float64{99.2, 99.6, 97.3}, [3]float64{0, lossless, lossless}},
	} {
		for i, d := range shapes {
			n, length := 4, 15*time.Second
			switch {
			case c.published[i] == 0:
				n, length = 3, 5*time.Second // it is 0 in each
			case d.Kind == Fixed:
				n = 3 // they hardly differ
			case d.Kind == Lognormal:
				length = 30 * time.Second // they differ more
			}
			s := sustained(3, d, 2*time.Second, length).With(named(t, c.policy, 480, d))
			want := c.published[i]
			if c.right[i] != 0 {
				want = c.right[i]
			}
			compare(t, s, n, measure{
				what: fmt.Sprintf("%s, %s", c.policy, d.name()), of: blind(length),
				want: want / 100, rounding: 0.0005,
			})
		}
	}
}

// The median and the 99th percentile of what is in time, exponential service.
func TestBaselinesLatency(t *testing.T) {
	const length = 25 * time.Second
	// Its own rounding, half a millisecond, and 1 % of the histogram.
	within := func(seconds float64) float64 { return 0.0005 + 0.01*seconds }
	full := theory.MMcK{Servers: slots, Depth: 480, Rate: 3600, Mean: 0.05}
	for _, c := range []struct {
		policy   string
		p50, p99 float64 // seconds; 0: the histogram cannot tell, since it ends at 2 s
	}{
		// Published as .435 and .628; the benchmark has 436 and 633 ms, which is exact.
		{"fifo", full.ResponseQuantile(0.5), full.ResponseQuantile(0.99)},
		{"reject", 0.035, 0.230}, // published .035 and .228; ln 100 x 50 ms = 230
		{"lifo", 0.035, 0.230},
		{"codel", 0.039, 0.240},
		{"fifo_doomed_p99", 1.80, 0},
	} {
		s := sustained(3, exponential50, 2*time.Second, length).With(named(t, c.policy, 480, exponential50))
		measures := []measure{{what: c.policy + ": p50, s", of: quantile(inTimes, 0.5), want: c.p50, rounding: within(c.p50), most: 0.005 * c.p50}}
		if c.p99 > 0 {
			measures = append(measures, measure{what: c.policy + ": p99, s", of: quantile(inTimes, 0.99), want: c.p99, rounding: within(c.p99), most: 0.01 * c.p99})
		}
		compare(t, s, 6, measures...)
	}
}

// Queues that are rate x deadline deep: all of the queue is early or late
// together, for about the two seconds that it takes through. A run of a minute is
// some thirty draws, with a standard deviation of 3 to 6 points: 0.2 points would
// take an hour of simulated time. The closed form is exact where there is one, and
// the simulation must agree with it.
func TestDeepQueues(t *testing.T) {
	const length = 60 * time.Second
	exact := func(depth int) float64 {
		return 1 - theory.MMcK{Servers: slots, Depth: depth, Rate: 3600, Mean: 0.05}.ResponseTail(2)
	}
	expire := fifo(slots, 2400)
	expire.Baseline.Expire, expire.Name = true, "fifo 2400 expire"
	for _, c := range []struct {
		policy Policy
		want   [3]float64
	}{
		// Published: 100, 84.8, 71.2. 84.8 is 3 points, or one standard deviation of a
		// minute, above the exact 81.7.
		{fifo(slots, 2280), [3]float64{1, exact(2280), 0.712}},
		// Published: 0, 21.7, 37.8. Exactly 21.4.
		{fifo(slots, 2400), [3]float64{0, exact(2400), 0.378}},
		{expire, [3]float64{0, 0.457, 0.594}},
	} {
		for i, d := range shapes {
			s := sustained(3, d, 2*time.Second, length).With(c.policy)
			n := 8
			if d.Kind == Fixed {
				n = 2
			}
			e := over(t, s, n, blind(length))[0]
			if !(e.se <= 0.025) {
				t.Errorf("%s, %s: the standard error of %v is above 2.5 points", c.policy.Name, d.name(), e)
			}
			if d.Kind == Lognormal || c.policy.Baseline.Expire && d.Kind == Exponential {
				// No closed form: the published figure is of one run, and has the error of one.
				e.se = math.Hypot(e.se, e.se*math.Sqrt(float64(n)))
			}
			e.near(t, c.policy.Name+", "+d.name(), c.want[i], 0.0005)
		}
	}
}

// Deadlines of 0.1, 0.4 and 2 s in equal shares.
func TestMixedDeadlines(t *testing.T) {
	p95 := exponential50.Quantile(0.95)
	for _, c := range []struct {
		load     float64
		shape    Dist
		policy   Policy
		want     float64
		rounding float64 // half a unit of the last published figure
		runs     int
	}{
		{1.5, exponential50, fifo(slots, 480), 0.37, 0.005, 5},
		{1.5, exponential50, discipline("edf expiry", slots, EDF, 0), 0.03, 0.005, 5},
		{1.5, exponential50, discipline("edf doomed mean", slots, EDF, 50*ms), 0.64, 0.005, 5},
		{1.5, exponential50, discipline("edf doomed p95", slots, EDF, p95), 0.998, 0.0005, 10},
		{1.5, exponential50, discipline("lifo expiry", slots, LIFO, 0), 0.95, 0.005, 5},
		// CoDel is published as 93 here, and as 96.3 below: see TestFewSlots.
		{1.5, exponential50, named(t, "codel", 0, exponential50), 0.941, 0.0005, 5},
		{1, exponential50, discipline("edf expiry", slots, EDF, 0), 0.953, 0.0005, 5},
		{1, exponential50, discipline("lifo expiry", slots, LIFO, 0), 0.929, 0.0005, 5},
		{1, exponential50, fifo(slots, 0), (1 - theory.ErlangB(slots, slots)) * (1 - (math.Exp(-2)+math.Exp(-8)+math.Exp(-40))/3), 0.0005, 5},
		{1, fixed50, discipline("edf expiry", slots, EDF, 0), 0.998, 0.0005, 5},
		{1, fixed50, discipline("lifo expiry", slots, LIFO, 0), 0.979, 0.0005, 5},
		{1, fixed50, named(t, "codel", 0, fixed50), 0.967, 0.0005, 5},
		{1, fixed50, fifo(slots, 0), 1 - theory.ErlangB(slots, slots), 0.0005, 5},
	} {
		const length = 25 * time.Second
		s := sustained(c.load, c.shape, 0, length)
		// The queue of those who have 2 s fills slowly.
		s = later(s, 15*time.Second).With(c.policy)
		for i := range s.Classes {
			s.Classes[i].Deadlines = []Deadline{{100 * ms, 1}, {400 * ms, 1}, {2 * time.Second, 1}}
		}
		compare(t, s, c.runs, measure{
			what: fmt.Sprintf("%s, %s at %v", c.policy.Name, c.shape.name(), c.load),
			of:   blind(length), want: c.want, rounding: c.rounding,
			// At a load of 1 what comes in 25 s alone has a deviation of 0.6 points.
			most: 2 * points,
		})
	}
}

// later makes the warmup of s longer.
func later(s Scenario, by time.Duration) Scenario {
	s.Length += by
	s.Warmup += by
	s.Classes[0].Arrivals.Changes[0].At += by
	s.Classes[1].Arrivals.Changes[0].At += by
	return s
}

// Few slots, 1.5 times the capacity, exponential service of 50 ms, deadline 2 s.
func TestFewSlots(t *testing.T) {
	codel := Baseline{Depth: Unbounded, Order: Adaptive, CoDel: CoDel{5 * ms, 100 * ms}}
	for _, c := range []struct {
		slots int
		want  map[string]float64
	}{
		// Without a queue: published 59.5 and 79.6, exactly 60.0 and 79.5. FIFO of
		// 400 ms, 8 a slot: 99.0 and 98.9; exactly 99.2 and 100.0. LIFO with expiry:
		// 99.0 and 99.2; it never idles, and is late with work of two seconds only.
		//
		// CoDel: published 75.3 and 92.3. 5 ms while the queue has not been empty for
		// 100 ms, 100 ms otherwise, gives 79.9 and 94.6; to take the queue for standing
		// from when it was last taken empty, however long it then stayed so, 78.1 and
		// 94.2; 5 ms always, 63.2 and 84.4. Theirs must count a queue as standing more
		// often. The lesson is the same: 5 ms is a wrong target where service takes
		// longer and slots are few.
		{1, map[string]float64{"reject": theory.LossCeiling(1, 1.5), "codel": 0.799, "lifo": 0.9986}},
		{4, map[string]float64{"reject": theory.LossCeiling(4, 1.5), "codel": 0.9465, "lifo": 1}},
		{60, map[string]float64{"reject": theory.LossCeiling(60, 1.5), "codel": 1, "lifo": 1}},
	} {
		most := float64(c.slots) / 0.05
		length := time.Duration(20_000 / most * 1e9)
		codel := codel
		codel.Limit = c.slots
		full := theory.MMcK{Servers: c.slots, Depth: 8 * c.slots, Rate: 1.5 * most, Mean: 0.05}
		c.want["fifo"] = full.Throughput() / most * (1 - full.ResponseTail(2))
		for _, p := range []Policy{
			{Name: "reject", Baseline: &Baseline{Limit: c.slots}},
			{Name: "codel", Baseline: &codel},
			discipline("lifo", c.slots, LIFO, 0),
			{Name: "fifo", Baseline: &Baseline{Limit: c.slots, Depth: 8 * c.slots}},
		} {
			s := sustained(1.5*float64(c.slots)/slots, exponential50, 2*time.Second, length).With(p)
			s.Tiers[0].Slots = c.slots
			share := func(r *Result) float64 { return blind(length)(r) * capacity / most }
			compare(t, s, 8, measure{what: fmt.Sprintf("%s, %d slots", p.Name, c.slots), of: share, want: c.want[p.Name], rounding: 0.0005})
		}
	}
}

// 960 a second; after 10 s everything is half as fast, for a minute. Goodput in percent of
// the 600 a second that are left.
func TestCapacityStep(t *testing.T) {
	for _, c := range []struct {
		policy          string
		depth           int
		published, most float64
		right           float64
	}{
		{"fifo", 480, 100, points, 0},
		{"lifo", 480, 99.9, points, 0},
		{"codel", 0, 99.5, points, 0},
		// 60 slots offered 1.6 times what they do: Erlang.
		{"reject", 0, 97.1, points, 100 * theory.LossCeiling(slots, 1.6)},
		{"fifo", 2400, 8.5, points, 0},
		{"fifo_expiry", 0, 11.0, points, 0},
	} {
		s := plain(0.8, exponential50, 2*time.Second, 0).With(named(t, c.policy, c.depth, exponential50))
		s.Length, s.Warmup = 70*time.Second, 0
		s.Bins = 70
		s.Tiers[0].Speed.Steps = []SpeedStep{{10 * time.Second, 0.5}}
		// By the completions of the minute, and without the noise of the draws.
		after := func(r *Result) float64 {
			n := uint64(0)
			for _, b := range r.Series[10:] {
				n += b.InTime
			}
			return float64(n) / 60 / 600
		}
		want := c.published / 100
		if c.right != 0 {
			want = c.right / 100
		}
		compare(t, s, 12, measure{what: fmt.Sprintf("%s %d", c.policy, c.depth), of: after, want: want, rounding: 0.0005, most: c.most})
	}
}
