package plan

import (
	"strings"
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

// Every number of a layer is made with the time that its slots are held.
func TestHeld(t *testing.T) {
	a := check(t, tiers(60, 120, 120))
	for i, want := range []float64{60 / 0.052, 120 / 0.050, 120 / 0.040} {
		near(t, a.Layers[i].Name, a.Layers[i].Rate, want, 1e-9)
		near(t, a.Layers[i].Name+" by its limiter", a.Layers[i].Limiter.CompletionRate, want, 1e-9)
	}
	near(t, "the whole", a.Rate, 60/0.052, 1e-4)
	near(t, "ten slots", check(t, tiers(10, 120, 120)).Rate, 10/0.052, 1e-4)
	door := a.Layers[0].Limiter
	if door.CeilingDepth != 2307 || door.Depth >= 2307 {
		t.Errorf("the ceiling of the door is %d, its depth %d: want 1154/s x 2s = 2307, and less", door.CeilingDepth, door.Depth)
	}
	for i, l := range a.Layers[1:] {
		if l.Wait != 0 {
			t.Errorf("%s: 60 come at once for 120 slots, and somebody waits %v", a.Layers[i+1].Name, l.Wait)
		}
	}
	said(t, a.Text(), "NARROWEST 1154/s gateway: 60 slots / 52ms held", "held for 2ms of its own + 50ms in api = 52ms",
		"Nobody waits here: at most 60 come at once for its 120 slots")

	// A narrower layer further in makes slots wait: 200 of them at 1,500/s.
	a = check(t, tiers(200, 150, 60))
	near(t, "held in an overload", a.Layers[0].Limiter.ServiceMean, 200/1500.0, 1e-3)
	near(t, "the longest wait at the database", a.Layers[2].Wait, (150-60)/1500.0, 1e-3)
	said(t, a.Text(), "+ 81.3ms of waits there = 133ms", "database: at most 150 come at once for 60 slots: 90 / 1500/s")

	// The slowest of five exponential times is 1 + 1/2 + ... + 1/5 of them.
	a = check(t, Topology{Deadline: 2 * time.Second, Layers: []Layer{
		{Name: "front", Limit: 40, Service: Service{Mean: 5 * ms}, FanOut: 5},
		{Name: "shard", Limit: 1000, Service: Service{Mean: 20 * ms}},
	}})
	near(t, "a fan-out", a.Layers[0].Hold.Held, 0.005+0.020*(1+1./2+1./3+1./4+1./5), 1e-3)
	said(t, a.Text(), "45.7ms in the slowest of 5 calls of shard")
}

// A layer that is narrower than what it calls is an error; each fix ends its own.
func TestDoorNarrower(t *testing.T) {
	a := check(t, tiers(60, 120, 120))
	if OK(a.Findings) || len(a.Findings) != 2 {
		t.Fatalf("%+v", a.Findings)
	}
	said(t, a.Findings[0].Text, "2ms of its own + 50ms in api = 52ms", "60 slots / 52ms = 1154/s", "could do 3000/s", "api uses 58 of its 120 slots")
	said(t, a.Findings[0].Fix, "the limit of gateway from 60 to 156")
	said(t, a.Findings[1].Fix, "the limit of api from 120 to 150")
	if a := check(t, tiers(156, 150, 120)); len(a.Findings) != 0 {
		t.Errorf("with both fixes: %+v", a.Findings)
	}
	if a := check(t, tiers(60, 58, 47)); len(a.Findings) != 0 {
		t.Errorf("with everything as narrow as the door: %+v", a.Findings)
	}
	// Within a tenth nobody has forgotten anything; and a layer that is busy with its
	// own work is not narrow because of what it waits for.
	if a := check(t, tiers(156, 136, 120)); find(a.Findings, "door_narrower") != nil {
		t.Errorf("2720/s before 3000/s: %+v", a.Findings)
	}
	top := tiers(156, 150, 120)
	top.Layers[0].Service, top.Layers[0].Limit = Service{Mean: 900 * ms}, 300
	if a := check(t, top); find(a.Findings, "door_narrower") != nil {
		t.Errorf("900ms of own work: %+v", a.Findings)
	}
	// Replicas share the slots that are needed.
	top = tiers(10, 150, 120)
	top.Layers[0].Replicas = Range{4, 4}
	said(t, find(check(t, top).Findings, "door_narrower").Fix, "the limit of gateway from 10 to 39", "over 4 limits")
	// Nothing is known of the database, whose time the slots of the api are held for too.
	top = tiers(60, 58, 1)
	top.Layers[2] = Layer{Name: "database", Wait: 100 * ms}
	if f := find(check(t, top).Findings, "service_unknown"); f == nil || f.Where != "gateway" {
		t.Errorf("%+v", check(t, top).Findings)
	}
}

// The promise of a layer includes the waits behind it.
func TestWaitsAgainstObjective(t *testing.T) {
	top := tiers(200, 150, 60)
	top.Layers[0].Objective, top.Layers[0].Depth = 800*ms, 1100
	f := find(check(t, top).Findings, "waits_exceed_objective")
	if f == nil {
		t.Fatal("733 ms here and more further in fit 800 ms")
	}
	said(t, f.Text, "its objective is 800ms", "733ms here and 93.3ms further in")
	top.Layers[0].Depth = 0
	if f := find(check(t, top).Findings, "waits_exceed_objective"); f != nil {
		t.Errorf("with the derived depth: %+v", f)
	}
}

// The agreement on a topology: what is of a replica says so, and nothing promises
// more than the whole can do.
func TestSheetOfLayers(t *testing.T) {
	top := Topology{Deadline: 2 * time.Second, Layers: []Layer{
		{Name: "gateway", Limit: 2000, Replicas: Range{3, 3}, Service: Service{Mean: 20 * ms}, Objective: 900 * ms, Attempts: 3},
		{Name: "database", Limit: 240, Service: Service{Mean: 40 * ms}, Objective: 800 * ms, Attempts: 2},
	}}
	a := check(t, top)
	sheet := a.Markdown("goodput plan x.yaml")
	near(t, "the whole", a.Rate, 6000, 1e-6)
	said(t, sheet, "The whole does 6000/s at the door, as much as its narrowest layer: database: 240 slots / 40ms held",
		"Up to 6000/s at the door, for all replicas together, nothing is refused", "| 3x | 18000/s | 6000/s | 12000/s, 66.7 % |",
		"## gateway: each of its 3 limiters", "## database: its only limiter", "It gets no more than 2000/s done: database bounds the whole",
		"becomes 3 x 2 = 6 calls", "gateway tries at most 3 times in all", "## Still open")
	if n := strings.Count(sheet, "nothing is refused but"); n != 1 {
		t.Errorf("%d promises of what is not refused:\n%s", n, sheet)
	}
	if strings.Contains(sheet, "Up to 100000/s") || strings.Contains(sheet, "| 1.5x | 150000/s") {
		t.Errorf("an overload that cannot come is promised:\n%s", sheet)
	}
	sheet = check(t, tiers(156, 150, 120)).Markdown("x")
	said(t, sheet, "No overload gets here: at most 150 requests come at once for 120 slots, and the other 30 fit the queue",
		"No overload gets here: at most 156 requests come at once for 150 slots, and the other 6 fit")
}
