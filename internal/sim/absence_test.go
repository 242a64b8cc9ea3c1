package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// away is 60 slots of 50 ms at a load, with nothing to run work on from 10 s on for a while.
func away(times float64, gap time.Duration, change func(*admission.Config)) Scenario {
	s := plain(times, exponential50, 2*time.Second, 15*time.Second)
	s.Bins = 200
	core := &admission.Config{Limit: limit.Fixed(slots), Objective: time.Second}
	if change != nil {
		change(core)
	}
	s.Tiers[0].Policy = Policy{Name: "goodput", Core: core}
	s.Tiers[0].Absences = []Absence{{10 * time.Second, gap}}
	return s
}

// F34: with a MaxAbsence of 1 s a gap of 0.5 s loses nothing at half of the capacity: who came
// waits, and is served within its deadline of 2 s.
func TestShortGapLosesNothing(t *testing.T) {
	for seed := range uint64(3) {
		r := play(t, away(0.5, 500*ms, nil), seed)
		t.Logf("seed %d: %d of %d in time, %d refused, %d waited at most", seed, r.Total.InTime, r.Total.Requests, r.Total.Refused, r.Tiers[0].PeakQueue)
		// 300 come in the gap; the derived depth is about 800.
		if r.Total.InTime != r.Total.Requests || r.Tiers[0].PeakQueue < 200 {
			t.Errorf("seed %d: %d of %d in time, %d waited at most", seed, r.Total.InTime, r.Total.Requests, r.Tiers[0].PeakQueue)
		}
	}
}

// A gap of 5 s is told to each within 1 s, and what comes after it is served as if there had
// been none: at half of the capacity all of it, in an overload of three times with the goodput of
// the capacity, and the law of a limit that adapts has learned nothing from it.
func TestLongGapIsToldSoon(t *testing.T) {
	for name, c := range map[string]struct {
		times float64
		law   limit.Law
	}{"half": {0.5, limit.Fixed(slots)}, "three times": {3, limit.Fixed(slots)}, "half, auto": {0.5, limit.Auto{}}, "three times, auto": {3, limit.Auto{}}} {
		for seed := range uint64(2) {
			s := away(c.times, 5*time.Second, func(a *admission.Config) { a.Limit = c.law })
			s.Tiers[0].Slots = slots
			r := play(t, s, seed)
			before := during(r, 8*time.Second, 10*time.Second, func(b *Bin) uint64 { return b.InTime }) / 2
			inside := during(r, 11*time.Second, 15*time.Second, func(b *Bin) uint64 { return b.InTime })
			after := during(r, 15*time.Second, 18*time.Second, func(b *Bin) uint64 { return b.InTime }) / 3
			told, _ := r.Total.Told.Quantile(1)
			at := map[time.Duration]int{}
			for _, b := range r.Series {
				at[b.End.Round(100*ms)] = b.Limit
			}
			t.Logf("%s, seed %d: %.0f/s before, %.0f inside, %.0f/s after; told within %v; limit %d and %d; reasons %v", name, seed, before, inside, after, told, at[9900*ms], at[15100*ms], r.Total.Reasons)
			if inside != 0 {
				t.Errorf("%s, seed %d: %.0f were served by nobody", name, seed, inside)
			}
			if c.times < 1 && r.Total.Reasons[admission.Doomed] != 0 {
				t.Errorf("%s, seed %d: %d were doomed by the order of a queue that the gap has left", name, seed, r.Total.Reasons[admission.Doomed])
			}
			// A bucket of the histogram is 9.1 % wide.
			if told > time.Second*1091/1000 || r.Total.Reasons[admission.Unavailable] == 0 {
				t.Errorf("%s, seed %d: told within %v: %v", name, seed, told, r.Total.Reasons)
			}
			// Four standard errors of 3 s at 600/s, and of 2 s: 0.094 and 0.116.
			if after < 0.88*before {
				t.Errorf("%s, seed %d: %.0f/s in time after the gap, %.0f/s before", name, seed, after, before)
			}
			if was, is := at[9900*ms], at[15100*ms]; is != was && c.law == limit.Fixed(slots) || float64(is) < 0.8*float64(was) {
				t.Errorf("%s, seed %d: a limit of %d before, %d after", name, seed, was, is)
			}
		}
	}
}
