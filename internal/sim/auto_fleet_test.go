package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// fifty are instances that start together, over a resource of 200 slots that they share, at 1.5 times what
// it serves.
func fifty(length time.Duration, law limit.Law) Scenario {
	return Scenario{
		Length: length, Bins: int(length / (30 * time.Second)),
		Tiers: []Tier{{
			Name: "database", Instances: 50, Slots: 200, Service: Dist{Kind: Exponential, Mean: 200 * ms},
			Policy: Policy{Name: "auto", Core: &admission.Config{Limit: law, Objective: 1600 * ms}},
		}},
		Classes: []Class{{Name: "all", Arrivals: Arrivals{Rate: 1500}}},
	}
}

// C034: 50 instances that are started together lower their limits at moments of their own. In each second
// some do, in none more than two of five, and the fleet serves what the resource can do: in each half minute
// but the first minute, in which the limits rise from 4, 0.9 of it at least. That many lower in a second is
// 50 times a probability p, give or take sqrt(50 p): for p = 0.2, 10 +- 3.2, and 20 are three of these.
func TestInstancesAreOutOfPhase_C034(t *testing.T) {
	length := 8 * time.Minute // an hour of it is no different
	if testing.Short() {
		length = 3 * time.Minute
	}
	d := &diary{}
	r := play(t, fifty(length, heard{limit.Auto{Shared: true}, d}), 1)
	lower := make([]map[int]bool, int(length/time.Second)+1)
	for _, l := range d.lines {
		if l.is < l.was && l.at >= time.Minute {
			at := int(l.at / time.Second)
			if lower[at] == nil {
				lower[at] = map[int]bool{}
			}
			lower[at][l.instance] = true
		}
	}
	most, sum := 0, 0
	for _, in := range lower {
		most = max(most, len(in))
		sum += len(in)
	}
	each := float64(sum) / (length - time.Minute).Seconds()
	worst := 1.0
	for _, b := range r.Series[2:] {
		worst = min(worst, float64(b.InTime)/(1000*30))
	}
	t.Logf("in a second %.1f of 50 lower their limits, %d at the most; the worst half minute serves %.3f; %.0f in flight", each, most, worst, r.Tiers[0].InFlight)
	if d.begun != 50 || most > 20 || each < 0.5 {
		t.Errorf("in a second %.1f of %d lower their limits, %d at the most", each, d.begun, most)
	}
	if worst < 0.9 {
		t.Errorf("in the worst half minute the fleet serves %.3f of what it could", worst)
	}
}

// Between them they keep the resource busy and no more than twice full: what waits for it waits in
// the limiters, where it can be refused. Without Shared they do not see their own effect.
func TestSharedFleet(t *testing.T) {
	inFlight := func(law limit.Law) float64 {
		s := fifty(2*time.Minute, law)
		s.Warmup = time.Minute
		return play(t, s, 2).Tiers[0].InFlight
	}
	shared := inFlight(limit.Auto{Shared: true})
	t.Logf("%.0f in flight at the 200 slots", shared)
	if shared < 190 || shared > 400 {
		t.Errorf("%.0f in flight at the 200 slots, want 200 to 400", shared)
	}
}

// A collection that stops all for 100 ms every two seconds is no reason to lower the limit, nor is a
// standstill of 5 s with clients that come back.
func TestStandstillsUnderAuto(t *testing.T) {
	for name, change := range map[string]func(*Scenario){
		"collections": func(s *Scenario) {
			for at := 2 * time.Second; at < s.Length; at += 2 * time.Second {
				s.Tiers[0].Speed.Stalls = append(s.Tiers[0].Speed.Stalls, Stall{at, 100 * ms})
			}
		},
		"pauses": func(s *Scenario) { s.Tiers[0].Speed.Pauses = Pauses{Every: time.Second, For: 50 * ms} },
		"stall": func(s *Scenario) {
			s.Tiers[0].Speed.Stalls = []Stall{{20 * time.Second, 5 * time.Second}}
			s.Classes[0].Retry = Retry{Attempts: 3, Backoff: 100 * ms, Max: 100 * ms, NoJitter: true}
			s.Classes[0].Deadlines = []Deadline{{2 * time.Second, 1}}
		},
	} {
		r, d := tried(t, limit.Auto{}, 1, 60, exponential50, 1.5*capacity, 40*time.Second, change)
		mean, deviation, least, most := spread(d.within(10*time.Second, 40*time.Second))
		inTime := uint64(0)
		for _, b := range r.Series[300:] { // from 30 s on
			inTime += b.InTime
		}
		t.Logf("%s: limit %.1f with a deviation of %.1f, %v to %v; %.3f of the capacity in the last 10 s", name, mean, deviation, least, most, float64(inTime)/(10*capacity))
		if mean < 57 || mean > 85 || least < 40 || deviation > 0.2*mean {
			t.Errorf("%s: limit %.1f with a deviation of %.1f, %v to %v", name, mean, deviation, least, most)
		}
		// 12,000 services are +- 0.9 %, and collections take a twentieth.
		if float64(inTime)/(10*capacity) < 0.95-0.036 {
			t.Errorf("%s: %.3f of the capacity in the last 10 s", name, float64(inTime)/(10*capacity))
		}
	}
}

// F32: what was learnt is kept while there is little to do, and a burst after idle finds it.
func TestBurstAfterIdleUnderAuto(t *testing.T) {
	_, d := tried(t, limit.Auto{}, 1, 60, exponential50, 1.5*capacity, 60*time.Second, func(s *Scenario) {
		s.Classes[0].Arrivals.Changes = []Change{{At: 20 * time.Second, Rate: 30}, {At: 50 * time.Second, Rate: 1.5 * capacity}}
	})
	idle := d.within(22*time.Second, 50*time.Second)
	if _, _, least, most := spread(idle); least != most || least < 55 {
		t.Errorf("while idle the limit is %v to %v", least, most)
	}
	if mean, _, least, most := spread(d.within(50*time.Second, 55*time.Second)); least < 50 || most > 100 || mean < 57 {
		t.Errorf("in the burst it is %.1f, %v to %v", mean, least, most)
	}
}

// Whatever happens, the limit moves at the end of a block alone, stays within its bounds, and the core follows by a
// doubling, or four, and a half a window at the most (I10).
func FuzzAuto(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(seed)
	}
	f.Add(uint64(87)) // with a restart
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 10))
		law := limit.Auto{Min: 1 + r.IntN(5), Max: 20 + r.IntN(500), Shared: r.IntN(3) == 0}
		law.From = law.Min + r.IntN(law.Max-law.Min+1)
		slots := 1 + r.IntN(100)
		mean := time.Duration(float64(20*ms) * (0.2 + r.ExpFloat64()))
		service := []Dist{
			{Kind: Fixed, Mean: mean}, {Kind: Exponential, Mean: mean}, {Kind: Lognormal, Mean: mean, CV: 0.2 + 3*r.Float64()},
		}[r.IntN(3)]
		rate := min((0.2+4*r.Float64())*float64(slots)/mean.Seconds(), 4000)
		_, d := tried(t, law, seed, slots, service, rate, 5*time.Second, func(s *Scenario) { s.disturb(r) })
		last := d.lines[0].was
		for i, l := range d.lines {
			if l.is < law.Min || l.is > law.Max {
				t.Fatalf("seed %d, %v: at %v it wants %d", seed, law, l.at, l.is)
			}
			anew := l.was == law.From // after a restart
			if i > 0 && !anew && (l.was > max(2*last, last+4) || l.was < last-last/2) {
				t.Fatalf("seed %d, %v: at %v from %d to %d in a window", seed, law, l.at, last, l.was)
			}
			last = l.was
		}
		if d.unmarked > 0 {
			t.Errorf("seed %d, %v: %d moves in the middle of a block", seed, law, d.unmarked)
		}
	})
}

// disturb lets something happen to the resource.
func (s *Scenario) disturb(r *rand.Rand) {
	t := &s.Tiers[0]
	at := time.Second + time.Duration(r.IntN(2000))*ms
	switch r.IntN(6) {
	case 0:
		t.SlotSteps = []SlotStep{{at, 1 + r.IntN(2*t.Slots)}}
	case 1:
		t.Speed.Steps = []SpeedStep{{at, 0.01 + 3*r.Float64()}}
	case 2:
		t.Speed.Stalls = []Stall{{at, time.Duration(1+r.IntN(1500)) * ms}}
	case 3:
		t.Faults = []Fault{{at, time.Second, 0.1 + 0.9*r.Float64()}}
	case 4:
		t.Restarts = []Restart{{At: at, Down: 200 * ms, Cold: 4, Warm: time.Second}}
	default:
		s.Classes[0].Arrivals.Changes = []Change{{At: at, Rate: 1}, {At: at + time.Second, Rate: s.Classes[0].Arrivals.Rate}}
	}
	if r.IntN(2) == 0 {
		s.Classes[0].Deadlines = []Deadline{{time.Duration(50+r.IntN(1000)) * ms, 1}}
		s.Classes[0].Retry = Retry{Attempts: 1 + r.IntN(3), Backoff: 50 * ms}
	}
	s.Name = fmt.Sprint("disturbed at ", at)
}
