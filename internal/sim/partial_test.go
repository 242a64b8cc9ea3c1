package sim

import (
	"math"
	"testing"
	"time"
)

// A page that asks a hundred leaves and needs all of them is as slow as the slowest: with
// leaves that are in time with 0.99, 0.99^100 = 0.366 of the pages are, and 63 % are not
// (Dean and Barroso, "The Tail at Scale", 2013). Who answers with what has come is in
// time, with 0.99 of the parts.
//
// Tolerances: each seed by itself, 2,000 pages, sqrt(0.366 x 0.634 / 2,000) = 1.1 %, four times; of 200,000
// leaves 0.02 %, four times.
func TestFanOutOfAHundred(t *testing.T) {
	lognormal := Dist{Kind: Lognormal, Mean: 20 * ms, CV: 1}
	for _, c := range []struct {
		name     string
		leaf     Dist
		deadline time.Duration
	}{
		{"one in a hundred takes a second", Dist{Kind: Modal, Modes: []Mode{{10 * ms, 99}, {time.Second, 1}}}, 100 * ms},
		{"lognormal", lognormal, lognormal.Quantile(0.99)},
	} {
		wait := c.deadline - 2*ms // a millisecond of work, and one to spare
		for seed := range uint64(3) {
			page := func(wait time.Duration) *Result {
				return play(t, Scenario{
					Length: 100 * time.Second,
					Tiers: []Tier{
						// Its clients are told p99 of a leaf, and the work of the page is beside it.
						{Policy: fifo(1000, 0), Service: Dist{Kind: Fixed, Mean: ms}, Next: &Fan{Tier: 1, N: 100, Wait: wait}},
						{Policy: fifo(10_000, 0), Service: c.leaf},
					},
					Classes: []Class{{Arrivals: Arrivals{Rate: 20}, Patience: Vanishes, Deadlines: []Deadline{{c.deadline + ms, 1}}}},
				}, seed)
			}
			all, some := page(0), page(wait)
			whole := float64(all.Total.InTime) / float64(all.Total.Requests)
			partial := float64(some.Total.InTime) / float64(some.Total.Requests)
			parts := some.Total.Parts / float64(some.Total.InTime)
			t.Logf("%s, seed %d: %.4f of %d pages in time with all parts; %.4f with what has come, %.4f of the parts", c.name, seed, whole, all.Total.Requests, partial, parts)
			if want := math.Pow(0.99, 100); math.Abs(whole-want) > 4*math.Sqrt(want*(1-want)/2000) {
				t.Errorf("%s, seed %d: %.4f of the pages are in time with all parts, want %.4f", c.name, seed, whole, want)
			}
			// The wait is shorter than the p99: of the lognormal leaves, 0.0008 fewer come.
			if partial < 0.99 || parts < 0.988 || parts > 0.991 {
				t.Errorf("%s, seed %d: %.4f of the pages are in time with %.4f of their parts, want 0.99 of both", c.name, seed, partial, parts)
			}
		}
	}
}
