package report

import (
	"math/rand/v2"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
)

// layered is a report on two tiers, a gateway with room for all and a database that
// refuses two thirds: they have a slot at the gateway within 2 ms, and have failed.
// The objectives of the two differ, and more waited than the depth at the end is.
func layered(runs int) *Report {
	r := sample(3, runs)
	r.Scenario, r.Criteria, r.Ceilings.NoQueue = "layers", nil, 0
	r.Ceilings.SizeAware, r.Ceilings.Clairvoyant, r.Ceilings.Jobs, r.Ceilings.Missing = 2.086, 2.138, 108_000, nil
	for i := range r.Policies {
		for _, run := range r.Policies[i].Runs {
			back := run.Tiers[0]
			back.Name, back.Arrivals = "database", run.Total.Attempts
			run.Tiers[0].Name = "gateway"
			if back.Stats != nil {
				back.Stats = sampleStats()
				back.Stats.Derivation.Objective = 300 * time.Millisecond
				run.Tiers[0].PeakQueue = 389
			}
			run.Tiers = append(run.Tiers, back)
			if i > 0 {
				continue
			}
			t := &run.Total
			t.Failed, t.Refused, t.Told = t.Refused, 0, hist.Histogram{}
			for range t.Failed / 10 {
				t.Latency.Add(2 * time.Millisecond)
			}
			for k := range run.Series {
				run.Series[k].Failed, run.Series[k].Refused = run.Series[k].Refused, 0
			}
			for k := range run.Classes {
				c := &run.Classes[k]
				c.Failed, c.Refused, c.Told = c.Refused, 0, hist.Histogram{}
			}
		}
	}
	return r
}

// answeredIn is a report on one policy with two in a hundred answers in low, as 0 is
// in many logs, and the others in high.
func answeredIn(low, high time.Duration) *Report {
	r := sample(2, 1)
	for i := range r.Policies {
		t := &r.Policies[i].Runs[0].Total
		t.Latency, t.Good = hist.Histogram{}, hist.Histogram{}
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		for range 3000 {
			d := high
			if rng.Float64() < 0.02 {
				d = low
			}
			t.Latency.Add(d)
			t.Good.Add(d)
		}
	}
	return r
}

// slow is a report whose first policy takes longer than its objective, with service
// as the p99 of the service alone.
func slow(service time.Duration) *Report {
	r := sample(1, 1)
	run := r.Policies[0].Runs[0]
	run.Tiers[0].Stats.Derivation.Service = service
	run.Tiers[0].Stats.Order = admission.FIFO
	run.Total.Latency = hist.Histogram{}
	for i := range 1000 {
		run.Total.Latency.Add(time.Duration(i) * 492 * time.Millisecond / 990)
	}
	return r
}
