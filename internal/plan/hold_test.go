package plan

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// tiers is the topology of a gateway, an api and a database that each hold a slot
// while they call the next.
func tiers(gateway, api, database int) Topology {
	return Topology{
		Deadline: 2 * time.Second,
		Layers: []Layer{
			{Name: "gateway", Limit: gateway, Service: Service{Mean: 2 * ms}},
			{Name: "api", Limit: api, Service: Service{Mean: 10 * ms}},
			{Name: "database", Limit: database, Service: Service{Mean: 40 * ms}},
		},
	}
}

// overloaded returns the requests a second that the simulator completes of a
// topology at three times what the plan says.
func overloaded(t *testing.T, top Topology, a *Layers, core bool) float64 {
	t.Helper()
	s := sim.Scenario{
		Name: "overload", Warmup: 5 * time.Second, Length: 25 * time.Second, Bins: 1,
		Classes: []sim.Class{{Name: "all", Arrivals: sim.Arrivals{Rate: 3 * a.Rate}, Deadlines: []sim.Deadline{{After: time.Hour, Share: 1}}}},
	}
	for i, l := range top.Layers {
		depth := sim.Unbounded
		if i == 0 {
			depth = 50
		}
		tier := sim.Tier{
			Name: l.Name, Instances: max(l.Replicas.Min, 1), Service: l.input(time.Second).own().dist,
			Policy: sim.Policy{Name: "fifo", Baseline: &sim.Baseline{Limit: l.Limit, Depth: depth}},
		}
		if core {
			tier.Policy = sim.Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(l.Limit), Objective: top.Deadline / 5}}
		}
		if i+1 < len(top.Layers) {
			tier.Next = &sim.Fan{Tier: i + 1, N: l.fanOut()}
		}
		s.Tiers = append(s.Tiers, tier)
	}
	r, err := sim.Run(s, Seed)
	if err != nil {
		t.Fatal(err)
	}
	// Those that had a slot at the door and an answer in the end: what is left in the
	// first queue after the end of arrivals is at most 50 of tens of thousands.
	return float64(r.Total.InTime+r.Total.Late) / r.Window.Seconds()
}

// What the plan says of the whole is what the simulator completes in an overload:
// within 3 %, and mostly 1 %. At 1,000/s for 20 s the standard error of a count is
// 1/sqrt(20,000) = 0.7 %.
func TestRateIsThatOfTheSimulator(t *testing.T) {
	fan := func(front, calls, shard int, s Service) Topology {
		return Topology{Deadline: 2 * time.Second, Layers: []Layer{
			{Name: "front", Limit: front, Service: Service{Mean: 5 * ms}, FanOut: calls},
			{Name: "shard", Limit: shard, Service: s},
		}}
	}
	deep := tiers(50, 80, 160)
	deep.Layers[1].FanOut = 3
	copies := tiers(10, 20, 40)
	for i := range copies.Layers {
		copies.Layers[i].Replicas = Range{4, 4}
	}
	for _, c := range []struct {
		name      string
		top       Topology
		narrowest string
		core      bool
	}{
		{"the gateway, with goodput everywhere", tiers(60, 120, 120), "gateway", true},
		{"a gateway of ten", tiers(10, 120, 120), "gateway", false},
		{"the api", tiers(400, 50, 120), "api", false},
		{"the database", tiers(200, 150, 60), "database", false},
		{"all alike", tiers(156, 150, 120), "", false},
		{"replicas", copies, "gateway", false},
		{"five calls", fan(40, 5, 100, Service{Mean: 20 * ms}), "front", false},
		{"five calls of a fixed time", fan(40, 5, 400, Service{Mean: 20 * ms, Shape: Fixed}), "front", false},
		{"twenty calls to narrow shards", fan(100, 20, 100, Service{Mean: 20 * ms}), "shard", false},
		{"five calls, all alike", fan(50, 5, 100, Service{Mean: 20 * ms}), "", false},
		{"three calls in the middle", deep, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := check(t, c.top)
			got := overloaded(t, c.top, a, c.core)
			t.Logf("plan %.1f/s, simulator %.1f/s: %+.2f %%; narrowest %s", a.Rate, got, 100*(a.Rate/got-1), a.Narrowest)
			near(t, c.name, a.Rate, got, 0.03)
			if c.narrowest != "" && a.Narrowest != c.narrowest {
				t.Errorf("narrowest is %s", a.Narrowest)
			}
		})
	}
}
