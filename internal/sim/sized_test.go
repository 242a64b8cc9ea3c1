package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// Sizes are worth goodput in an overload, at any number of slots and with deadlines that
// are the objective, longer or not there: who knows each serves 0.58 to 0.70 of the requests
// at three times the capacity, for 0.33, and who knows them up to a factor of e^0.7 0.54 to
// 0.63. They cost nothing below it, and neither does it cost anything to be told
// nonsense. Whatever they are, whoever gets a slot has an answer within the objective.
//
// One seed of 17,000 requests at the least: the standard error of a share is at most 0.4
// points were they independent, and twice that is assumed, since near the capacity they
// are late together.
func TestSizesInAnyLimiter(t *testing.T) {
	const se = 0.0075
	nothing := func(float64, *rand.Rand) int { return 0 }
	kinds := []struct {
		name string
		size func(ms float64, r *rand.Rand) int
		gain float64 // least, of the in-time share at three times the capacity
	}{
		{"known", func(ms float64, _ *rand.Rand) int { return 1 + int(1000*ms) }, 0.2},
		{"noisy", func(ms float64, r *rand.Rand) int { return 1 + int(1000*ms*math.Exp(0.7*r.NormFloat64())) }, 0.15},
		{"useless", func(_ float64, r *rand.Rand) int { return 1 + r.IntN(1000) }, -3 * se},
	}
	for _, slots := range []int{4, 60} {
		for _, deadline := range []time.Duration{0, 400 * ms, 2 * time.Second} {
			for _, load := range []float64{0.9, 3} {
				blind, worst := sizedRun(t, slots, load, deadline, nothing)
				for _, k := range kinds {
					got, p99 := sizedRun(t, slots, load, deadline, k.size)
					least := -3 * se
					if load > 1 {
						least = k.gain
					}
					if got < blind+least {
						t.Errorf("%d slots at %v, deadline %v: with %s sizes %.3f are in time, without %.3f", slots, load, deadline, k.name, got, blind)
					}
					// A bucket of the histogram is 9 % wide.
					if p99 > 436*ms {
						t.Errorf("%d slots at %v, deadline %v: with %s sizes the p99 is %v, without %v", slots, load, deadline, k.name, p99, worst)
					}
				}
			}
		}
	}
}

// sizedRun returns the share in time and the p99 of who got a slot: exponential work of 50 ms,
// an objective of 400 ms.
func sizedRun(t *testing.T, slots int, load float64, deadline time.Duration, size func(ms float64, r *rand.Rand) int) (inTime float64, p99 time.Duration) {
	t.Helper()
	work, noise := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, 2))
	s := plain(load, exponential50, 5*time.Second, 1000*time.Second/time.Duration(slots))
	if slots == 60 {
		s.Length = 25 * time.Second
	}
	policy := *s.Tiers[0].Policy.Core
	policy.Limit, policy.Objective = limit.Fixed(slots), 400*ms
	s.Tiers[0].Policy.Core, s.Tiers[0].Slots = &policy, slots
	s.Classes = []Class{{}}
	if deadline > 0 {
		s.Classes[0].Deadlines = []Deadline{{After: deadline, Share: 1}}
	}
	at := 0.0
	s.Trace = func(j *Job) bool {
		at += work.ExpFloat64() * 0.05 / float64(slots) / load
		w := 50 * work.ExpFloat64()
		*j = Job{At: time.Duration(at * 1e9), Service: time.Duration(w*1e6) + 1, Size: size(w, noise)}
		return true
	}
	r := play(t, s, 1)
	p99, _ = r.Total.Latency.Quantile(0.99)
	return float64(r.Total.InTime) / float64(r.Total.Requests), p99
}
