package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// jobs is a trace of requests of 100 ms, one at each of these instants.
func jobsAt(at ...time.Duration) func(*Job) bool {
	i := 0
	return func(j *Job) bool {
		if i == len(at) {
			return false
		}
		*j = Job{At: at[i], Service: 100 * time.Millisecond}
		i++
		return true
	}
}

// What is under way goes on when slots go, and nothing begins until it fits; what waits
// begins when slots come. Worked out by hand, requests of 100 ms at 0.
func TestSlotSteps(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		slots    int
		steps    []SlotStep
		jobs     int
		ended    time.Duration
		inFlight float64 // times a second: the sum of what each was at the resource
	}{
		{"none", 2, nil, 4, 200 * ms, 0.1 + 0.1 + 0.2 + 0.2},
		{"fewer", 2, []SlotStep{{50 * ms, 1}}, 4, 300 * ms, 0.1 + 0.1 + 0.2 + 0.3},
		{"more", 1, []SlotStep{{50 * ms, 2}}, 3, 200 * ms, 0.1 + 0.15 + 0.2},
		{"many more", 1, []SlotStep{{50 * ms, 9}}, 3, 150 * ms, 0.1 + 0.15 + 0.15},
		{"there and back", 2, []SlotStep{{50 * ms, 1}, {150 * ms, 2}}, 4, 250 * ms, 0.1 + 0.1 + 0.2 + 0.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Scenario{
				Length: time.Second, Trace: jobsAt(make([]time.Duration, c.jobs)...), Classes: []Class{{}},
				Tiers: []Tier{{Slots: c.slots, SlotSteps: c.steps, Policy: Policy{Baseline: &Baseline{Limit: Unbounded}}}},
			}
			r, err := Run(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			tier := r.Tiers[0]
			if r.Ended != c.ended {
				t.Errorf("the last request ended at %v, want %v", r.Ended, c.ended)
			}
			if math.Abs(tier.InFlight-c.inFlight) > 1e-9 || tier.PeakInFlight != c.jobs {
				t.Errorf("in flight %v on average and %d at most, want %v and %d", tier.InFlight, tier.PeakInFlight, c.inFlight, c.jobs)
			}
			if l := tier.Limits; len(l) != 1 || l[0] != (Average{Mean: Unbounded}) {
				t.Errorf("limits %v, want one that is Unbounded", l)
			}
		})
	}
}

// The capacity is the mean over the window, of slots times speed, and no policy exceeds the
// ceiling, which is exact where all work is as long and all of it is wanted.
func TestCapacityOfSteps(t *testing.T) {
	s := Scenario{
		Length: 30 * time.Second,
		Tiers: []Tier{{
			Slots: 60, SlotSteps: []SlotStep{{10 * time.Second, 20}, {20 * time.Second, 60}},
			Speed:   Speed{Steps: []SpeedStep{{15 * time.Second, 0.5}}},
			Service: Dist{Kind: Fixed, Mean: 50 * time.Millisecond},
			Policy:  Policy{Core: &admission.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond}},
		}},
		Classes: []Class{{Arrivals: Arrivals{Process: Constant, Rate: 1800}, Deadlines: []Deadline{{After: 2 * time.Second}}}},
	}
	s.Classes[0].Deadlines[0].Share = 1
	const want = (60*10 + 20*5 + 20*.5*5 + 60*.5*10) / 30 / .05
	r, err := Run(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Capacity-want) > 1e-6 {
		t.Errorf("capacity %v, want %v", r.Capacity, want)
	}
	c, err := s.Ceilings(1)
	if err != nil {
		t.Fatal(err)
	}
	// Of the queue that is left at the end some is in time within 2 s: 60 slots at half the
	// speed serve 600/s, so at most 1200 more than the 21,000 of the window, 6 %.
	if c.Clairvoyant < r.Ratio() || c.Clairvoyant < 1 || c.Clairvoyant > 1.06 {
		t.Errorf("clairvoyant %v, policy %v: the ceiling is 1 to 1.06, and above", c.Clairvoyant, r.Ratio())
	}
	if c.NoQueue != 0 {
		t.Errorf("no queue %v, but Erlang's formula is about slots that stay", c.NoQueue)
	}
	// Each phase does what its slots do: the series is in seconds, the last ends are late.
	s.Bins = 30
	if r, err = Run(s, 1); err != nil {
		t.Fatal(err)
	}
	for i, rate := range map[int]float64{5: 1200, 12: 400, 17: 200, 25: 600} {
		if got := float64(r.Series[i].InTime + r.Series[i].Late); math.Abs(got-rate) > 60 { // one round of 60 slots
			t.Errorf("in second %d %v ended, want %v", i, got, rate)
		}
	}
}

// A saw is a law whose limit is 10 and 20 in turn, for a second each.
type saw struct{}

func (saw) Start() (int, error)      { return 10, nil }
func (saw) Begin(uint64) limit.State { return &sawing{} }
func (s *sawing) Why() string        { return "" }

type sawing struct{ at time.Duration }

func (s *sawing) Next(_ int, w *limit.Window) limit.Move {
	s.at += w.Length
	return limit.Move{Limit: 10 + 10*int(s.at/time.Second%2)}
}

// The limit over time: half of it is 10 and half of it 20, 15 on average and 5 away from it.
// What was before the window is not counted, nor what is after the last arrival.
func TestLimitsOverTime(t *testing.T) {
	s := Scenario{
		Length: 24 * time.Second, Warmup: 4 * time.Second, Classes: []Class{{Arrivals: Arrivals{Rate: 100}}},
		Tiers: []Tier{{
			Slots: 60, Instances: 3, Service: Dist{Kind: Exponential, Mean: 50 * time.Millisecond},
			Policy: Policy{Core: &admission.Config{Limit: saw{}, Objective: 400 * time.Millisecond}},
		}},
	}
	r, err := Run(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Tiers[0].Limits); n != 3 {
		t.Fatalf("limits of %d instances, want 3", n)
	}
	for i, l := range r.Tiers[0].Limits {
		// Instances measure out of step, by less than a window of 50 ms in 20 s.
		if tolerance := 20 * 0.05 / 20; math.Abs(l.Mean-15) > tolerance || math.Abs(l.Deviation-5) > tolerance {
			t.Errorf("instance %d: limit %+v, want 15 and 5", i, l)
		}
	}
}

// The work of sub-requests is in range as any other, and of a tier that all who send there say
// it for nothing need be known.
func TestFanServiceIsValidated(t *testing.T) {
	s := Scenario{
		Length: time.Second, Classes: []Class{{Arrivals: Arrivals{Rate: 1}}},
		Tiers: []Tier{
			{Service: Dist{Mean: 1}, Policy: Policy{Baseline: &Baseline{Limit: 1}}, Next: &Fan{Tier: 1}},
			{Policy: Policy{Baseline: &Baseline{Limit: 1}}},
		},
	}
	for _, c := range []struct {
		work Dist
		want string
	}{
		{Dist{}, "tier 2: service: "},
		{Dist{Kind: Exponential, Mean: 1}, ""},
		{Dist{Kind: Lognormal, Mean: 1, CV: 101}, "tier 1: next: service: "},
	} {
		s.Tiers[0].Next.Service = c.work
		err := s.Validate()
		if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("work %+v: says %v, want %q", c.work, err, c.want)
		}
	}
}

func TestSlotStepsAreValidated(t *testing.T) {
	for _, c := range []struct {
		slots int
		steps []SlotStep
		want  string
	}{
		{0, []SlotStep{{0, 1}}, "tier 1: slot steps change slots of which there are none: say how many there are at first"},
		{1, []SlotStep{{0, 0}}, "tier 1: slot step 1: slots 0 is out of range: 1 to 100000; a stall stops everything"},
		{1, []SlotStep{{0, 100_001}}, "tier 1: slot step 1: slots 100001 is out of range: 1 to 100000; a stall stops everything"},
		{1, []SlotStep{{time.Second, 1}, {0, 1}}, "tier 1: slot step 2: at 0s comes before the one before it, 1s"},
		{1, make([]SlotStep, maxParts+1), "tier 1: slot steps are 100001: at most 100000"},
	} {
		s := Scenario{
			Length: time.Second, Classes: []Class{{}},
			Tiers: []Tier{{Slots: c.slots, SlotSteps: c.steps, Service: Dist{Mean: 1}, Policy: Policy{Baseline: &Baseline{Limit: 1}}}},
		}
		if err := s.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("says %v, want %s", err, c.want)
		}
	}
}

// A local class is answered by its tier alone; what the others send on is not their own
// time where it meets a limiter, and it is where nothing limits it.
func TestLocal(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		local bool
		below Baseline
		work  time.Duration // of a sub-request; 0: that of its tier, 30 ms
		sub   uint64        // sub-requests
		hold  time.Duration // of a slot in front
		away  float64       // the share of it that was elsewhere
	}{
		{"local", true, Baseline{Limit: 100}, 0, 0, 10 * ms, 0},
		{"not local", false, Baseline{Limit: 100}, 0, 1000, 40 * ms, 0.75},
		{"nothing limits the other tier", false, Baseline{Limit: Unbounded}, 0, 1000, 40 * ms, 0},
		{"work of their own", false, Baseline{Limit: 100}, 90 * ms, 1000, 100 * ms, 0.9},
	} {
		s := Scenario{
			Length: 10 * time.Second,
			Tiers: []Tier{{
				Slots: 100, Service: Dist{Mean: 10 * ms}, Next: &Fan{Tier: 1, Service: Dist{Mean: c.work}},
				Policy: Policy{Core: &admission.Config{Limit: limit.Fixed(100), Objective: 400 * ms}},
			}, {
				Slots: 100, Service: Dist{Mean: 30 * ms}, Policy: Policy{Baseline: &c.below},
			}},
			Classes: []Class{{Arrivals: Arrivals{Process: Constant, Rate: 100}, Local: c.local}},
		}
		r, err := Run(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		stats := r.Tiers[0].Stats
		want := 100 / max(c.work, 30*ms).Seconds()
		if c.local {
			want = 0 // of what does not come
		}
		if math.Abs(r.Tiers[1].Capacity-want) > 1e-6 {
			t.Errorf("%s: the other tier can do %v/s, want %v", c.name, r.Tiers[1].Capacity, want)
		}
		if r.Tiers[1].Arrivals != c.sub {
			t.Errorf("%s: %d sub-requests, want %d", c.name, r.Tiers[1].Arrivals, c.sub)
		}
		if took, _ := r.Total.Latency.Mean(); (took - c.hold).Abs() > time.Microsecond { // a sum of floats
			t.Errorf("%s: a request takes %v, want %v", c.name, took, c.hold)
		}
		if math.Abs(stats.Elsewhere-c.away) > 1e-9 {
			t.Errorf("%s: %v of a hold is elsewhere, want %v", c.name, stats.Elsewhere, c.away)
		}
	}
}

// A member of a group has what it is granted, not what it would have alone: of 60 units one
// tier that is idle leaves the other all but its minimum.
func TestLimitsOfAGroup(t *testing.T) {
	tier := Tier{
		Slots: 60, Service: Dist{Kind: Exponential, Mean: 50 * time.Millisecond},
		Policy: Policy{Core: &admission.Config{Limit: limit.Fixed(30), Objective: 400 * time.Millisecond}},
	}
	s := Scenario{
		Length: 10 * time.Second, Warmup: 2 * time.Second, Tiers: []Tier{tier, tier},
		Classes: []Class{{Arrivals: Arrivals{Rate: 2400}}, {Tier: 1}},
		Groups:  []Group{{Units: 60, Members: []Member{{Tier: 0, Weight: 1}, {Tier: 1, Weight: 1, Min: 10}}}},
	}
	r, err := Run(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Tiers[0].Limits[0].Mean; math.Abs(got-50) > 1 {
		t.Errorf("the busy tier has %v units on average, want 50", got)
	}
}
