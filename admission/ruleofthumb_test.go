package admission

import (
	"math"
	"testing"
	"time"
)

// What becomes of the rule of thumb, rate x deadline, when the queue is FIFO and
// knows no deadlines: the baseline that everything else is measured against. The
// core plays it with a fixed depth and requests that do not tell their deadline.
func TestRuleOfThumbCollapses(t *testing.T) {
	far := Config{Order: FIFO, Overflow: RefuseNewest, MaxWait: time.Hour}
	deep := func(n int) Config { c := far; c.Depth = n; return c }
	for _, c := range []struct {
		name      string
		shape     shape
		depth     int
		deadline  time.Duration
		goodput   float64 // share of the capacity
		tolerance float64
		p50, p99  time.Duration // 0: not asserted
	}{
		// 2,400 departures take 2 s, and then the work itself is left. Of
		// exponential services some 2,400 are shorter: 21.7 % in time by a longer
		// simulation. The whole queue is early or late together, for about 2 s,
		// so 100 s are 50 draws: a standard error of 6 %, three of them allowed.
		{"2,400 deep for 2 s", fixed, 2400, 2 * time.Second, 0, 0.001, 0, 0},
		{"2,400 deep for 2 s", exponential, 2400, 2 * time.Second, 0.217, 0.18, 0, 0},
		// 2,097 keep 99 % in time, 2,340 with a fixed service.
		{"2,340 deep for 2 s", fixed, 2340, 2 * time.Second, 1, 0.01, 0, 0},
		{"2,097 deep for 2 s", exponential, 2097, 2 * time.Second, 0.99, 0.01, 0, 0},
		// 480 is the mean wait of an objective of 400 ms, not its p99. The
		// standard error of a p99 of 24,000, in runs of a correlation time of
		// half a second, is about 2 %.
		{"480 deep for 400 ms", exponential, 480, 2 * time.Second, 1, 0.01, 436 * ms, 633 * ms},
		{"480 deep for 400 ms", fixed, 480, 2 * time.Second, 1, 0.01, 450 * ms, 450 * ms},
		// 201 and 420 are right.
		{"201 deep for 400 ms", exponential, 201, 400 * ms, 0.985, 0.01, 202 * ms, 398 * ms},
		{"420 deep for 400 ms", fixed, 420, 400 * ms, 1, 0.01, 400 * ms, 400 * ms},
	} {
		for _, seed := range runsOf() {
			l := flagship(3, c.deadline, seed)
			l.shape, l.blind, l.config = c.shape, true, deep(c.depth)
			l.skip = 3 * time.Second // it takes a second to fill
			if c.depth == 2400 {
				l.length = 100 * time.Second
			}
			r := l.run(t)
			t.Logf("%s, %s, seed %d: %s", c.name, c.shape.name, seed, r.row())
			good := float64(r.good) / float64(r.served) * r.busy / r.capacity
			if math.Abs(good-c.goodput) > c.tolerance {
				t.Errorf("%s, %s, seed %d: goodput %.4f, want %v", c.name, c.shape.name, seed, good, c.goodput)
			}
			for _, q := range []struct {
				q    float64
				want time.Duration
			}{{0.5, c.p50}, {0.99, c.p99}} {
				if got := p(q.q, r.latency); q.want > 0 && math.Abs(float64(got-q.want)) > 0.03*float64(q.want) {
					t.Errorf("%s, %s, seed %d: p%g %v, want %v", c.name, c.shape.name, seed, 100*q.q, got, q.want)
				}
			}
		}
	}
}

// One server of 100/s, offered 150/s for a minute, deadline 2 s. 200 in
// all is rate x deadline: all of it served, and a good part late. 160 is right.
func TestDepthTwoHundred(t *testing.T) {
	for _, c := range []struct {
		shape            shape
		depth            int
		goodLo, goodHi   int
		refusedLo, refHi int
	}{
		{fixed, 199, 5990, 6210, 2600, 3050},
		{exponential, 199, 3000, 4400, 2600, 3050}, // exactly, once full: 56.4 % of those admitted
		{exponential, 159, 5700, 6250, 2600, 3050}, // 99.9 %
		{fixed, 1 << 20, 430, 760, 0, 0},           // unbounded: 150/s x 4 s, and the rest for nobody
		{exponential, 1 << 20, 430, 760, 0, 0},
	} {
		for _, seed := range runsOf() {
			l := load{slots: 1, mean: 10 * ms, shape: c.shape, times: 1.5, deadline: 2 * time.Second, blind: true, length: time.Minute, seed: seed}
			l.config = Config{Order: FIFO, Overflow: RefuseNewest, MaxWait: time.Hour, Depth: min(c.depth, maxItems)}
			r := l.run(t)
			refused := r.offered - r.served
			t.Logf("%s, depth %d, seed %d: %d offered, %d in time, %d refused, p50 of the latency %v",
				c.shape.name, c.depth, seed, r.offered, r.good, refused, p(.5, r.latency).Round(10*ms))
			// Three standard deviations: 95 of 9,000 arrivals, 77 of 6,000 services, 60
			// of when the backlog of 200 is reached.
			if r.good < c.goodLo || r.good > c.goodHi {
				t.Errorf("%s, depth %d, seed %d: %d in time, want %d to %d", c.shape.name, c.depth, seed, r.good, c.goodLo, c.goodHi)
			}
			if refused < c.refusedLo || c.refHi > 0 && refused > c.refHi {
				t.Errorf("%s, depth %d, seed %d: %d refused, want %d to %d", c.shape.name, c.depth, seed, refused, c.refusedLo, c.refHi)
			}
		}
	}
}
