package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// The short queue of an overload, where services are not independent of one another.

// throttled stands still for 70 of each 100 ms, as a process does that has used up its
// share of the processors. A part of what the slots could do if it did not is offered, in the
// first 3 s three times that.
func throttled(n int, service Dist, part float64) Scenario {
	rate := part * float64(n) / service.Mean.Seconds()
	s := Scenario{
		Length: 20 * time.Second, Warmup: 5 * time.Second, Bins: 2000,
		Tiers: []Tier{{
			Policy:  Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(n), Objective: 400 * ms}},
			Service: service,
		}},
		Classes: []Class{{
			Arrivals: Arrivals{Rate: 3 * rate, Changes: []Change{{At: 3 * time.Second, Rate: rate}}},
			Patience: Vanishes, Deadlines: []Deadline{{2 * time.Second, 1}},
		}},
	}
	for at := 30 * ms; at < s.Length; at += 100 * ms {
		s.Tiers[0].Speed.Stalls = append(s.Tiers[0].Speed.Stalls, Stall{at, 70 * ms})
	}
	return s
}

// shrinks counts how often a minute the depth in force has become less than half of the
// derived one, and returns the mean of the one over the other besides.
func shrinks(r *Result) (perMinute, mean float64) {
	n, short := 0.0, false
	for _, b := range r.Series {
		if now := b.Depth < b.Derived/2; now != short {
			if short = now; now {
				n++
			}
		}
		mean += float64(b.Depth) / max(float64(b.Derived), 1)
	}
	return n / r.Series[len(r.Series)-1].End.Minutes(), mean / float64(len(r.Series))
}

// What is refused in a standstill is what the slots lack after it, and what stood still makes the
// load look high: a queue that is short by a formula for independent arrivals keeps itself
// short, with 0.45 of what is offered in time at a load of 0.9 (27 of 30 %), and 0.54
// at one of 1.5. It is made deeper by what is idle, and stays so: left and entered again
// it would shrink 36 times a minute, with 0.86 in time. About half of the derived depth,
// which is where 8 slots are, some up and down is not seen.
func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		slots int
		mean  time.Duration
		part  float64
		least float64
	}{
		{60, 5 * ms, 0.27, 0.99},
		{60, 5 * ms, 0.45, 0.96},
		{20, 5 * ms, 0.29, 0.99},
		{20, 5 * ms, 0.45, 0.96},
		{8, 5 * ms, 0.45, 0.96},
		{60, 20 * ms, 0.45, 0.96},
	} {
		for _, kind := range []Kind{Fixed, Exponential} {
			for seed := range uint64(3) {
				r := play(t, throttled(c.slots, Dist{Kind: kind, Mean: c.mean}, c.part), seed)
				n, depth := shrinks(r)
				p50, _ := r.Total.Latency.Quantile(0.5)
				p99, _ := r.Total.Latency.Quantile(0.99)
				what := fmt.Sprintf("%d slots of %v %s, %v offered, seed %d", c.slots, c.mean, Dist{Kind: kind}.name(), c.part, seed)
				t.Logf("%s: goodput ratio %.4f, p50 %v, p99 %v, shrinks %.0f times a minute, mean depth %.2f of the derived", what, r.Ratio(), p50.Round(ms), p99.Round(ms), n, depth)
				if r.Ratio() < c.least {
					t.Errorf("%s: goodput ratio %.4f, want %v", what, r.Ratio(), c.least)
				}
				if p99 > 400*ms {
					t.Errorf("%s: p99 %v", what, p99)
				}
				if n > 30 {
					t.Errorf("%s: shrinks %.0f times a minute", what, n)
				}
			}
		}
	}
}

// Slots that have all begun at once, after a standstill, end at once, and are idle for a part of
// each service of 50 ms until they have dispersed. The queue does not become deep for that:
// who is served waits for what is left of a service and the standstill, 92 ms, not 240 and
// more as behind one of the derived depth.
func TestLockStep(t *testing.T) {
	for _, times := range []float64{1.5, 3} {
		for seed := range uint64(3) {
			s := plain(times, fixed50, 2*time.Second, 15*time.Second)
			s.Bins = 2000
			for at := 6 * time.Second; at < s.Length; at += 3 * time.Second {
				s.Tiers[0].Speed.Stalls = append(s.Tiers[0].Speed.Stalls, Stall{at, 20 * ms}, Stall{at + 100*ms, 40 * ms})
			}
			r := play(t, s, seed)
			n, depth := shrinks(r)
			p50, _ := r.Total.Latency.Quantile(0.5)
			p99, _ := r.Total.Latency.Quantile(0.99)
			t.Logf("%vx, seed %d: goodput ratio %.4f, p50 %v, p99 %v, shrinks %.0f times a minute, mean depth %.3f of the derived", times, seed, r.Ratio(), p50.Round(ms), p99.Round(ms), n, depth)
			if r.Ratio() < 0.99 || p99 > 120*ms || n > 6 || depth > 0.1 {
				t.Errorf("%vx, seed %d: goodput ratio %.4f, p99 %v, shrinks %.0f times a minute, mean depth %.3f of the derived", times, seed, r.Ratio(), p99, n, depth)
			}
		}
	}
}
