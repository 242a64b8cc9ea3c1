package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// Work that takes always the same, on few slots: the last place does not wait for one round
// more than there is time for. With the variance of renewal theory alone, which is none, the
// p99 of these is up to 761 ms.
func TestFixedWorkOnFewSlots(t *testing.T) {
	for _, c := range []struct {
		slots int
		mean  time.Duration
		load  float64
	}{{4, 120 * ms, 0.95}, {4, 120 * ms, 1.5}, {8, 120 * ms, 0.95}, {8, 180 * ms, 0.95}, {8, 180 * ms, 1.5}, {16, 180 * ms, 0.95}, {16, 190 * ms, 0.95}} {
		over := 0
		for seed := uint64(1); seed <= 5; seed++ {
			s := Scenario{
				Length: 65 * time.Second, Warmup: 5 * time.Second,
				Tiers: []Tier{{
					Slots:   c.slots,
					Policy:  Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(c.slots), Objective: 400 * ms}},
					Service: Dist{Kind: Fixed, Mean: c.mean},
				}},
				Classes: []Class{{
					Arrivals: Arrivals{Rate: c.load * float64(c.slots) / c.mean.Seconds()},
					Patience: Leaves, Deadlines: []Deadline{{2 * time.Second, 1}},
				}},
			}
			r := play(t, s, seed)
			p99, _ := r.Total.Latency.Quantile(0.99)
			if p99 > 400*ms {
				over++
			}
			if least := min(c.load, 0.95); p99 > 450*ms || r.Ratio() < least {
				t.Errorf("%d slots of %v at %vx, seed %d: p99 %v, goodput %.4f", c.slots, c.mean, c.load, seed, p99, r.Ratio())
			}
		}
		if over > 1 {
			t.Errorf("%d slots of %v at %vx: the p99 of %d of 5 seeds is over the objective", c.slots, c.mean, c.load, over)
		}
	}
}
