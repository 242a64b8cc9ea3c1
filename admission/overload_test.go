package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// seeds of every run below. A run is named by its seed in what fails.
var seeds = []uint64{1, 2, 3}

// runsOf returns the seeds to play: all of them, or one where the tests are slow.
func runsOf() []uint64 {
	if raceEnabled || testing.Short() {
		return seeds[:1]
	}
	return seeds
}

// flagship is 60 slots of 50 ms, exponential, and an objective of 400 ms.
func flagship(times float64, deadline time.Duration, seed uint64) load {
	return load{slots: 60, mean: 50 * ms, shape: exponential, times: times, deadline: deadline, length: 20 * time.Second, seed: seed}
}

// row is what a run shows, in one line.
func (r *result) row() string {
	return fmt.Sprintf("goodput %.4f, refused %.4f, p50 %v, p99 %v; told no after p50 %v, p99 %v",
		r.goodput(), r.refused(), p(.5, r.latency).Round(ms), p(.99, r.latency).Round(ms),
		p(.5, r.told).Round(10*time.Microsecond), p(.99, r.told).Round(ms))
}

// At capacity next to nobody is refused. Erlang-B says that a limit without a
// queue refuses 9.6 %.
func TestAtCapacityFewAreRefused(t *testing.T) {
	for _, seed := range runsOf() {
		for _, deadline := range []time.Duration{2 * time.Second, 400 * ms, 0} {
			r := flagship(1, deadline, seed).run(t)
			t.Logf("1x, deadline %v, seed %d: %s", deadline, seed, r.row())
			if r.refused() > 0.02 {
				t.Errorf("seed %d: %.2f %% refused at 1x", seed, 100*r.refused())
			}
			if q := p(.99, r.latency); q > 400*ms {
				t.Errorf("seed %d: p99 %v", seed, q)
			}
		}
	}
}

// In a sustained overload all of it at once: goodput, young answers, the
// objective, and an immediate no.
func TestOverloadAllAtOnce(t *testing.T) {
	for _, seed := range runsOf() {
		for _, times := range []float64{3, 10} {
			for _, deadline := range []time.Duration{2 * time.Second, 400 * ms, 0} {
				r := flagship(times, deadline, seed).run(t)
				what := fmt.Sprintf("%vx, deadline %v, seed %d", times, deadline, seed)
				t.Logf("%s: %s", what, r.row())
				if g := r.goodput(); g < 0.99 {
					t.Errorf("%s: goodput %.4f", what, g)
				}
				if q := p(.5, r.latency); q > 60*ms {
					t.Errorf("%s: p50 %v", what, q)
				}
				if q := p(.99, r.latency); q > 400*ms {
					t.Errorf("%s: p99 %v", what, q)
				}
				if q := p(.5, r.told); q > ms {
					t.Errorf("%s: half of the refused waited %v for it", what, q)
				}
			}
		}
	}
}

// Without tuning, wherever the service p99 is within half of the objective: 20 ms
// of mean have a p99 of 20, 92 and 127 ms.
func TestGoodputWithoutTuning(t *testing.T) {
	for _, s := range []shape{fixed, exponential, lognormal14} {
		for _, slots := range []int{8, 60, 200} {
			for _, times := range []float64{1.5, 3, 10} {
				for _, seed := range runsOf() {
					// Long enough that the first second, at full depth, is not
					// most of it; 12,000 served or more.
					length := max(6*time.Second, time.Duration(12_000/slots)*20*ms)
					r := load{slots: slots, mean: 20 * ms, shape: s, times: times, deadline: 400 * ms, length: length, seed: seed}.run(t)
					what := fmt.Sprintf("%s, %d slots, %vx, seed %d", s.name, slots, times, seed)
					if seed == 1 {
						t.Logf("%s: %s", what, r.row())
					}
					if g := r.goodput(); g < 0.99 {
						t.Errorf("%s: goodput %.4f", what, g)
					}
					if q := p(.99, r.latency); q > 400*ms {
						t.Errorf("%s: p99 %v", what, q)
					}
				}
			}
		}
	}
}

// Few slots are hard: a queue short enough for the objective is empty now and
// then. A change for the worse fails.
func TestFewSlots(t *testing.T) {
	for _, c := range []struct {
		slots       int
		mean        time.Duration
		times, want float64
	}{
		// The objective leaves room for one who waits, and M/M/1/2 serves 0.789
		// and 0.923. Newest-first with room for 4 would serve 0.946 and 0.996.
		{1, 50 * ms, 1.5, 0.78},
		{1, 50 * ms, 3, 0.915},
		{4, 50 * ms, 1.5, 0.975},
		{1, 20 * ms, 1, 0.87}, // Erlang-B without a queue: 0.5
		{1, 5 * ms, 1.5, 0.99},
	} {
		for _, seed := range runsOf() {
			r := load{
				slots: c.slots, mean: c.mean, shape: exponential, times: c.times,
				deadline: 2 * time.Second, length: 6_000 * c.mean, seed: seed,
			}.run(t)
			t.Logf("%d slots of %v, %vx, seed %d: %s", c.slots, c.mean, c.times, seed, r.row())
			if g := r.goodput(); g < c.want {
				t.Errorf("%d slots of %v, %vx, seed %d: goodput %.4f, want %v", c.slots, c.mean, c.times, seed, g, c.want)
			}
		}
	}
}

// With deadlines of .1, .4 and 2 s at 1.5x, earliest deadline first and the doomed
// test keep the slots for who can still be served. A free slot takes whoever
// comes, so some of those with 100 ms run and are late: of an exponential service
// of 50 ms, 13.5 %.
func TestMixedDeadlines(t *testing.T) {
	for _, seed := range runsOf() {
		l := flagship(1.5, 0, seed)
		l.deadlines = []time.Duration{100 * ms, 400 * ms, 2 * time.Second}
		r := l.run(t)
		t.Logf("seed %d: %s", seed, r.row())
		if r.goodput() < 0.975 {
			t.Errorf("seed %d: goodput %.4f", seed, r.goodput())
		}
	}
}

// Bursts of twice the capacity over a base of 0.7 are absorbed by the derived
// depth, which a standing overload would have taken away: what is refused is
// (burst - capacity) x length - depth, if that is positive.
func TestBursts(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		most   float64 // refused
	}{
		{100 * ms, 0}, {200 * ms, 0.02}, {400 * ms, 0.08}, {time.Second, 0.25},
	} {
		for _, seed := range runsOf() {
			l := flagship(2, 2*time.Second, seed)
			l.length, l.skip = 40*time.Second, 4*time.Second
			l.rate = func(at time.Duration) float64 {
				if at%(5*time.Second) >= 5*time.Second-c.length {
					return 2
				}
				return 0.7
			}
			two := l.run(t)
			l.config.Depth = 201
			full := l.run(t)
			t.Logf("bursts of %v, seed %d: refused %.4f, with the full depth always %.4f", c.length, seed, two.refused(), full.refused())
			if two.refused() > c.most {
				t.Errorf("bursts of %v, seed %d: %.4f refused", c.length, seed, two.refused())
			}
		}
	}
}

// With few slots, deadlines within the objective keep it, and the queue may be as
// deep as there is a chance. At 1.5 times the capacity of one slot the best of 80
// disciplines reaches 0.96; a queue of the derived depth, 1, reaches 0.80, and what
// has no deadline still gets no more.
func TestFewSlotsWithDeadlines(t *testing.T) {
	for _, c := range []struct {
		slots    int
		deadline time.Duration
		least    float64
		most     float64
	}{
		{1, 400 * ms, 0.95, 1},
		{2, 400 * ms, 0.965, 1},
		{3, 400 * ms, 0.975, 1},
		{4, 400 * ms, 0.985, 1},
		{1, 0, 0.75, 0.85},
	} {
		for _, seed := range runsOf() {
			// 30,000 arrivals: the standard error of the share that is late is 0.1 points.
			l := flagship(1.5, c.deadline, seed)
			l.slots, l.length = c.slots, time.Duration(1000/c.slots)*time.Second
			r := l.run(t)
			t.Logf("%d slots, deadline %v, seed %d: %s", c.slots, c.deadline, seed, r.row())
			if g := r.goodput(); g < c.least || g > c.most {
				t.Errorf("%d slots, deadline %v, seed %d: goodput %.4f, want %v to %v", c.slots, c.deadline, seed, g, c.least, c.most)
			}
			// The p95 of the service fits what was left of the budget at the start.
			if late := 1 - float64(r.good)/float64(r.served); late > 0.05 {
				t.Errorf("%d slots, deadline %v, seed %d: %.3f of what was served is late", c.slots, c.deadline, seed, late)
			}
		}
	}
}

// With few slots, who has no deadline, or one beyond the objective, is not crowded out
// by those whose deadlines let them queue further: all are served alike.
func TestFewSlotsAreShared(t *testing.T) {
	for _, others := range []time.Duration{Never, 2 * time.Second} {
		l := flagship(3.4, 0, 1)
		l.slots, l.length = 1, 1000*time.Second
		l.deadlines = slices.Repeat([]time.Duration{400 * ms}, 16)
		l.deadlines = append(l.deadlines, others) // one in 17
		served, offered := map[bool]float64{}, map[bool]float64{}
		l.tune = func(w *world) {
			done := w.done
			w.done = func(j *job) {
				short := j.deadline-j.root == 400*ms
				offered[short]++
				if j.refused == None {
					served[short]++
				}
				done(j)
			}
		}
		l.run(t)
		a, b := served[true]/offered[true], served[false]/offered[false]
		t.Logf("the others have %v: served %.3f of those with 400ms, %.3f of the others", others, a, b)
		// 4,000 others: a standard error of 0.7 points.
		if b < a-0.05 {
			t.Errorf("the others have %v: served %.3f of those with 400ms and only %.3f of the others", others, a, b)
		}
	}
}
