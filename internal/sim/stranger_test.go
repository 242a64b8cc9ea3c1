package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A quiet id without a row is served beside one that floods, whose hand it shares with
// a probability of 2e-10: 12,000 ids in ten minutes would be expected to meet it once in
// a thousand years. It sends 120/s for 30 s, so that one request is 0.03 %.
func TestQuietStranger(t *testing.T) {
	for seed := range uint64(3) {
		cfg := admission.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Tenants: &admission.Tenants{}}
		class := func(id string, rate float64) Class {
			return Class{Name: id, Tenant: id, Arrivals: Arrivals{Rate: rate}, Deadlines: []Deadline{{After: 2 * time.Second, Share: 1}}}
		}
		r, err := Run(Scenario{
			Length: 35 * time.Second, Warmup: 5 * time.Second,
			Tiers: []Tier{{
				Policy:  Policy{Name: "goodput", Core: &cfg},
				Service: Dist{Kind: Exponential, Mean: 50 * time.Millisecond},
			}},
			Classes: []Class{class("flood", 12000), class("quiet", 120)},
		}, 20261130+seed)
		if err != nil {
			t.Fatal(err)
		}
		flood, quiet := &r.Classes[0], &r.Classes[1]
		if got := float64(quiet.InTime) / float64(quiet.Requests); got < 0.98 {
			t.Errorf("seed %d: %.4f of the quiet one are in time, beside %d of %d of the flood", seed, got, flood.InTime, flood.Requests)
		}
		if got := float64(flood.InTime+quiet.InTime) / 30 / 1200; got < 0.98 {
			t.Errorf("seed %d: the slots are used for %.3f", seed, got)
		}
	}
}
