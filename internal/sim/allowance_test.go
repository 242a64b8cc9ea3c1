package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

func TestProbe(t *testing.T) {
	for _, slotsN := range []int{200, 60, 8, 6, 5, 4} {
		for _, burst := range []float64{1, 20} {
			for _, load := range []float64{1, 1.05, 1.2, 1.5, 3, 10} {
				for _, dl := range []time.Duration{400 * ms, 2 * time.Second} {
					s := Scenario{
						Length: 65 * time.Second, Warmup: 5 * time.Second,
						Tiers: []Tier{{
							Policy:  Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(slotsN), Objective: 400 * ms, Allowance: admission.Quota{Rate: 100, Burst: burst}}},
							Service: exponential50,
						}},
						Classes: []Class{{Arrivals: Arrivals{Rate: load * 100}, Deadlines: []Deadline{{dl, 1}}, Patience: Vanishes}},
					}
					r := play(t, s, 1)
					p99, _ := r.Total.Latency.Quantile(0.99)
					p50, _ := r.Total.Latency.Quantile(0.5)
					t.Logf("slots %d burst %v load %v dl %v: cap %.1f ratio %.4f p50 %v p99 %v refused %.3f", slotsN, burst, load, dl, r.Capacity, r.Ratio(), p50, p99, 1-float64(r.Total.Served)/float64(r.Total.Requests))
				}
			}
		}
	}
}
