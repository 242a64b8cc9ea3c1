package admission

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// timeline counts who was in time, by the window in which its work ended.
type timeline struct {
	window time.Duration
	good   map[int]int
}

func (l *timeline) add(j *job) {
	if j.inTime(400 * ms) {
		l.good[int(j.end/l.window)]++
	}
}

// between returns who was in time per second, from one instant to another.
func (l *timeline) between(from, to time.Duration) float64 {
	n := 0
	for at := from; at < to; at += l.window {
		n += l.good[int(at/l.window)]
	}
	return float64(n) / (to - from).Seconds()
}

// Capacity halves after 20 s and comes back 20 s later: every service that starts
// in between takes twice as long. 960 a second are offered, 1,200 can be served,
// and 600 in between.
func TestCapacityHalvesAndReturns(t *testing.T) {
	for _, seed := range runsOf() {
		for _, deadline := range []time.Duration{2 * time.Second, 400 * ms} {
			l := flagship(0.8, deadline, seed)
			l.length = 60 * time.Second
			line := timeline{100 * ms, map[int]int{}}
			l.tune = func(w *world) {
				w.ends = func(start, service time.Duration) time.Duration {
					if start >= 20*time.Second && start < 40*time.Second {
						service *= 2
					}
					return start + service
				}
				done := w.done
				w.done = func(j *job) { line.add(j); done(j) }
			}
			r := l.run(t)
			half := line.between(20*time.Second, 30*time.Second) / 600
			back := line.between(44*time.Second, 58*time.Second) / 960
			t.Logf("deadline %v, seed %d: %.3f of half the capacity in the first 10 s, %.3f in the first second; %.3f of what is offered 4 s after it is back; %s",
				deadline, seed, half, line.between(20*time.Second, 21*time.Second)/600, back, r.row())
			// 10 s are 6,000 services; the standard error of their mean is 1.3 %.
			if want := 0.97 - 0.013; deadline == 2*time.Second && half < want {
				t.Errorf("deadline %v, seed %d: %.3f of half the capacity, want %.3f", deadline, seed, half, want)
			}
			if back < 0.95 {
				t.Errorf("deadline %v, seed %d: %.3f of what is offered, 4 s after the capacity is back", deadline, seed, back)
			}
		}
	}
}

// The resource stops for 5 s at a load of 0.9. Clients try three times, each with
// a deadline of 2 s and full jitter between: the retries of what was lost come on
// top. Without the doomed test such a queue never recovers.
func TestStallWithRetriesRecovers(t *testing.T) {
	const from, to = 10 * time.Second, 15 * time.Second
	for _, seed := range runsOf() {
		l := flagship(0.9, 2*time.Second, seed)
		l.length = 25 * time.Second
		line := timeline{100 * ms, map[int]int{}}
		l.tune = func(w *world) {
			jitter := rand.New(rand.NewPCG(seed, 3))
			w.ends = func(start, service time.Duration) time.Duration {
				end := start + service
				if end > from && start < to { // what runs during the stall goes on after it
					end += to - max(start, from)
				}
				return end
			}
			done := w.done
			w.done = func(j *job) {
				line.add(j)
				if !j.inTime(400*ms) && j.attempt < 3 {
					at := w.now + time.Duration(jitter.Float64()*float64(200*ms)*float64(int(1)<<j.attempt))
					w.arrive(&job{
						root: at, arrival: at, deadline: at + 2*time.Second, cost: 1, attempt: j.attempt + 1, service: j.service,
					})
				}
				done(j)
			}
		}
		l.run(t)
		first := line.between(to, to+time.Second) / 1080
		second := line.between(to+time.Second, to+2*time.Second) / 1080
		t.Logf("seed %d: %.3f of what is offered in the first second after the stall, %.3f in the next", seed, first, second)
		if second < 0.95 {
			t.Errorf("seed %d: %.3f of what is offered a second after the stall", seed, second)
		}
	}
}

// A day: 60 slots of 5 s at 3x, 3.1 million requests. Nothing is left at its end;
// run checks that.
func TestADay(t *testing.T) {
	l := load{
		slots: 60, mean: 5 * time.Second, shape: exponential, times: 3, deadline: time.Minute,
		objective: 40 * time.Second, length: 24 * time.Hour, seed: 1,
	}
	if raceEnabled || testing.Short() {
		l.length = time.Hour
	}
	r := l.run(t)
	t.Logf("%d offered, %d served, %s", r.offered, r.served, r.row())
	if g := r.goodput(); g < 0.99 {
		t.Errorf("goodput %.4f", g)
	}
	s := r.core.Stats(0)
	var sum uint64
	for _, n := range s.Outcomes {
		sum += n
	}
	if s.Arrivals != uint64(r.offered) || sum != s.Arrivals {
		t.Errorf("%d offered, %d arrivals, %d outcomes", r.offered, s.Arrivals, sum)
	}
}

// The load rises from half of the capacity to twice as much and falls again, in
// half a minute each: the depth shrinks and comes back on the way, and nobody
// notices when.
func TestRamp(t *testing.T) {
	for _, seed := range runsOf() {
		l := flagship(2, 2*time.Second, seed)
		l.length = time.Minute
		l.rate = func(at time.Duration) float64 {
			return 0.5 + 1.5*(1-math.Abs(at.Seconds()/30-1))
		}
		r := l.run(t)
		// Offered beyond the capacity: the area of a triangle of height 1 and of
		// a base of 40 s, of 60 s at 1.25 on average.
		least := 1 - 20/(60*1.25)
		t.Logf("seed %d: %s, at least %.4f must be refused", seed, r.row(), 1-least)
		// The standard error of 90,000 arrivals and their services is 0.5 %.
		if good := float64(r.good) / float64(r.offered); good < 0.985*least {
			t.Errorf("seed %d: %.4f in time, %.4f possible", seed, good, least)
		}
		if q := p(.99, r.latency); q > 400*ms {
			t.Errorf("seed %d: p99 %v", seed, q)
		}
	}
}
