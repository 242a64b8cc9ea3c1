package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// lending is two classes of equal shares before one resource of 60 slots. B wants all of
// it for the whole time; A wants twice its share from 20 s to 40 s.
func lending(service Dist) Scenario {
	tier := func(name string) Tier {
		return Tier{Name: name, Slots: 60, Service: service, Policy: Policy{Core: &admission.Config{Limit: limit.Fixed(30), Objective: 400 * ms}}}
	}
	class := func(name string, tier int, rate float64, changes ...Change) Class {
		return Class{Name: name, Tier: tier, Arrivals: Arrivals{Rate: rate, Changes: changes}, Deadlines: []Deadline{{2 * time.Second, 1}}}
	}
	return Scenario{
		Length:  60 * time.Second,
		Tiers:   []Tier{tier("a"), tier("b")},
		Classes: []Class{class("a", 0, 0.001, Change{At: 20 * time.Second, Rate: 1200}, Change{At: 40 * time.Second, Rate: 0.001}), class("b", 1, 2400)},
		Groups:  []Group{{Name: "both", Units: 60, Members: []Member{{Tier: 0}, {Tier: 1}}}},
	}
}

// checkGroups asserts what is true at every instant: the invariants of budget and cores,
// and that the requests which really hold a slot are within the units.
func checkGroups(t *testing.T, w *world) {
	t.Helper()
	seen := map[*group]bool{}
	for _, tier := range w.tiers {
		m := tier.instances[0].member
		if m == nil || seen[m.group] {
			continue
		}
		seen[m.group] = true
		if err := m.budget.Check(); err != nil {
			t.Fatalf("at %v: %v", w.now, err)
		}
		sum := 0
		for _, in := range m.members {
			if err := in.core.Check(); err != nil {
				t.Fatalf("at %v: %v", w.now, err)
			}
			s := in.stats(w.now)
			sum += max(s.Limit, in.tier.taken)
			if s.InUse != in.tier.taken || in.tier.behind > 0 {
				t.Fatalf("at %v: %d in use, the core of %q says %d", w.now, in.tier.taken, in.tier.Name, s.InUse)
			}
		}
		if sum > m.budget.Units() {
			t.Fatalf("at %v: %d in use or allowed, of %d", w.now, sum, m.budget.Units())
		}
	}
}

// Must hold: A idle, B uses at least 0.98 of the parent; A returns and has its share within
// one service time, the longest of what B runs at that instant. And once A has gone, B
// uses all of it again.
func TestGroupLendsAndTakesBack(t *testing.T) {
	for _, service := range []Dist{{Kind: Fixed, Mean: 50 * ms}, {Kind: Exponential, Mean: 50 * ms}, {Kind: Lognormal, Mean: 50 * ms, CV: 2}} {
		for seed := uint64(1); seed <= 3; seed++ {
			t.Run(fmt.Sprintf("kind %d seed %d", service.Kind, seed), func(t *testing.T) {
				lendsAndTakesBack(t, lending(service), seed)
			})
		}
	}
}

func lendsAndTakesBack(t *testing.T, s Scenario, seed uint64) {
	w, err := newWorld(&s, seed)
	if err != nil {
		t.Fatal(err)
	}
	var used [2]usage // of b, while a is idle: before it comes, and from a second after it has gone
	used[0].from, used[0].to = 5*time.Second, 20*time.Second
	used[1].from, used[1].to = 41*time.Second, 60*time.Second
	a, b := w.tiers[0], w.tiers[1]
	wants, due := never, never // when a first wants its share, and when it has it at the latest
	for n := 0; ; n++ {
		before := w.now
		if !w.step() {
			break
		}
		for i := range used {
			used[i].add(before, w.now, b.inUse)
		}
		if n%97 == 0 { // a prime: any state; the whole run would take 20 s
			checkGroups(t, w)
		}
		m := a.instances[0].member
		claim := m.stake.Look(w.now, a.instances[0].core)
		if wants == never && claim.Wanted >= 30 {
			wants, due = w.now, w.now+w.longest(b)
			if limit := b.instances[0].stats(w.now).Limit; limit != 30 {
				t.Errorf("a wants its share at %v, and b may still use %d", w.now, limit)
			}
		}
		if w.now > due {
			if a.inUse < 30 || m.stake.Terms().Limit < 30 {
				t.Errorf("a wants its share since %v, and at %v has %d of %d", wants, w.now, a.inUse, m.stake.Terms().Limit)
			}
			due = never
		}
	}
	if wants == never {
		t.Fatal("a has never wanted its share")
	}
	for _, u := range used {
		// Of 60: b wants twice what there is, so nothing but lending can leave a slot idle.
		if part := u.slots / (u.to - u.from).Seconds() / 60; part < 0.98 {
			t.Errorf("b used %.3f of the units from %v to %v, want 0.98", part, u.from, u.to)
		}
	}
	w.finish()
	g := &w.result.Groups[0]
	if part, ok := g.Share(w.result.Window); !ok || part < 0.98 || part > 1 || g.PeakInUse != 60 {
		t.Errorf("both used %.3f of the units, %d at once", part, g.PeakInUse)
	}
	t.Logf("b used %.4f and %.4f; a wanted its share at %v", used[0].slots/15/60, used[1].slots/19/60, wants)
}

// A usage is slots in use times seconds within a stretch of the run.
type usage struct {
	from, to time.Duration
	slots    float64
}

func (u *usage) add(before, now time.Duration, inUse int) {
	if d := min(now, u.to) - max(before, u.from); d > 0 {
		u.slots += float64(inUse) * d.Seconds()
	}
}

// longest returns the longest service time of what a tier works on.
func (w *world) longest(t *tier) (longest time.Duration) {
	for i := range w.events.list {
		if e := &w.events.list[i]; e.call != nil && e.call.gen == e.gen && e.what == ends && e.call.tier == t {
			longest = max(longest, e.call.service)
		}
	}
	return longest
}

// In an overload of all each has its share; with weights, by them, to within three
// standard errors of a count.
func TestGroupShares(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		s := lending(Dist{Kind: Exponential, Mean: 50 * ms})
		s.Classes[0].Arrivals = Arrivals{Rate: 3600}
		s.Groups[0].Members[0].Weight = 3
		s.Warmup = 5 * time.Second
		r, err := Run(s, seed)
		if err != nil {
			t.Fatal(err)
		}
		for i, share := range []float64{0.75, 0.25} {
			want := share * 1200 * r.Window.Seconds()
			if got := float64(r.Classes[i].Served); math.Abs(got-want) > 3*math.Sqrt(want) {
				t.Errorf("seed %d: %q served %v, want %v", seed, r.Classes[i].Name, got, want)
			}
		}
	}
}

// Members of every kind, costs, deadlines too short to wait, and bursts of all of them at
// once: more is never in use than there is, and all that was asked for is accounted for.
func TestGroupOfAnything(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		s := lending(Dist{Kind: Lognormal, Mean: 50 * ms, CV: 2})
		s.Length = 20 * time.Second
		third := s.Tiers[1]
		third.Name, third.Policy.Core = "c", &admission.Config{Limit: limit.Fixed(10), Depth: admission.NoQueue}
		s.Tiers = append(s.Tiers, third)
		bursts := func(rate float64) Arrivals {
			return Arrivals{Rate: rate / 4, Bursts: Bursts{Rate: 4 * rate, On: 300 * ms, Off: 700 * ms}}
		}
		s.Classes = []Class{
			{Tier: 0, Arrivals: bursts(300), Cost: 4, Deadlines: []Deadline{{60 * ms, 1}, {time.Second, 1}}},
			{Tier: 0, Arrivals: bursts(300), Patience: Vanishes, Deadlines: []Deadline{{400 * ms, 1}}},
			{Tier: 1, Arrivals: bursts(600), Retry: Retry{Attempts: 3}, Deadlines: []Deadline{{time.Second, 1}}},
			{Tier: 2, Arrivals: bursts(400), Cost: 2, Told: Hearsay{CV: 1}},
		}
		s.Groups[0].Members = []Member{{Tier: 0, Weight: 2, Max: 50}, {Tier: 1, Min: 3}, {Tier: 2}}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		w, err := newWorld(&s, seed)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; w.step(); n++ {
			if n%13 == 0 { // a prime: any state
				checkGroups(t, w)
			}
		}
		w.finish()
		r := w.result
		if g := r.Groups[0]; g.PeakInUse != 60 {
			t.Errorf("seed %d: %d units at most, want all 60 at once sometimes", seed, g.PeakInUse)
		}
		for i := range r.Classes {
			c := &r.Classes[i]
			if c.Requests == 0 || c.InTime == 0 || c.InTime+c.Late+c.Refused+c.Failed != c.Requests {
				t.Errorf("seed %d: class %d: %d requests, %d in time, %d late, %d refused", seed, i, c.Requests, c.InTime, c.Late, c.Refused)
			}
		}
	}
}

// A group is one as long as all are ours.
func TestGroupOfABaseline(t *testing.T) {
	s := lending(Dist{Kind: Fixed, Mean: 50 * ms})
	s.Length = 10 * time.Second
	s = s.With(Policy{Name: "fifo", Baseline: &Baseline{Limit: 30, Depth: 240}})
	r, err := Run(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Groups[0].Share(r.Window); ok {
		t.Error("it is said to be a group")
	}
	if n := r.Tiers[1].PeakInUse; n != 30 {
		t.Errorf("a baseline of 30 has run %d", n)
	}
}

func TestGroupSaysWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Scenario){
		`group "both": tier 3 is out of range: 1 to 2`:    func(s *Scenario) { s.Groups[0].Members[0].Tier = 2 },
		`group "both": tier "b" is a member already`:      func(s *Scenario) { s.Groups[0].Members[0].Tier = 1 },
		`group "both": tier "a" has 2 instances`:          func(s *Scenario) { s.Tiers[0].Instances = 2 },
		`group "both": tier "a" restarts`:                 func(s *Scenario) { s.Tiers[0].Memory = 1 << 30 },
		`group "both": tier "a" has no slots`:             func(s *Scenario) { s.Tiers[0].Slots = 0 },
		`group "both": units 1 are fewer than the member`: func(s *Scenario) { s.Groups[0].Units = 1 },
		`group "both": weight -1 of member "a"`:           func(s *Scenario) { s.Groups[0].Members[0].Weight = -1 },
		`group "both": members are 0`:                     func(s *Scenario) { s.Groups[0].Members = nil },
	} {
		s := lending(Dist{Kind: Fixed, Mean: 50 * ms})
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
