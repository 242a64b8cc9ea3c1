package sim

import (
	"math"
	"testing"
	"time"
)

// A sub-request that fails or is refused is sent again by its sender, while that waits
// for it: a request of 10 ms sends its sub-requests of 20 ms at 10 ms.
func TestFanRetry(t *testing.T) {
	again := Retry{Attempts: 3, Backoff: 5 * ms, NoJitter: true}
	with := func(change func(*Retry)) Retry {
		r := again
		change(&r)
		return r
	}
	until := func(at time.Duration) []Fault { return []Fault{{0, at, 1}} }
	for _, c := range []struct {
		name   string
		fan    Fan
		slots  int // of the second tier, which has no queue
		faults []Fault
		class  Class
		fate   string
		sent   uint64 // to the second tier, retries included
		again  uint64
		ended  time.Duration // the last call
	}{
		{"never", Fan{}, 1, until(time.Second), Class{}, "failed", 1, 0, 30 * ms},
		{"again", Fan{Retry: again}, 1, until(31 * ms), Class{}, "ok", 2, 1, 55 * ms},
		{"a fault ends at its end", Fan{Retry: again}, 1, until(30 * ms), Class{}, "ok", 1, 0, 30 * ms},
		{"and begins at its beginning", Fan{Retry: again}, 1, []Fault{{30 * ms, ms, 1}}, Class{}, "ok", 2, 1, 55 * ms},
		{"not before", Fan{Retry: again}, 1, []Fault{{30*ms + 1, ms, 1}}, Class{}, "ok", 1, 0, 30 * ms},
		{"and again, after twice the time", Fan{Retry: again}, 1, until(56 * ms), Class{}, "ok", 3, 2, 85 * ms},
		{"not a fourth time", Fan{Retry: again}, 1, until(86 * ms), Class{}, "failed", 3, 2, 85 * ms},
		{"a refusal too", Fan{N: 2, Retry: with(func(r *Retry) { r.Backoff = 20 * ms })}, 1, nil, Class{}, "ok", 3, 1, 50 * ms},
		{"whose sender has what it needs", Fan{N: 2, Need: 1, Retry: with(func(r *Retry) { r.Backoff = 20*ms + 1 })}, 1, nil, Class{}, "ok", 2, 0, 30*ms + 1},
		{"or has answered", Fan{Wait: 24 * ms, Retry: again}, 1, until(31 * ms), Class{}, "failed", 1, 0, 35 * ms},
		{"within", Fan{Retry: with(func(r *Retry) { r.Within = 25 * ms })}, 1, until(31 * ms), Class{}, "failed", 1, 0, 30 * ms},
		{"just within", Fan{Retry: with(func(r *Retry) { r.Within = 25*ms + 1 })}, 1, until(31 * ms), Class{}, "ok", 2, 1, 55 * ms},
		{"not at the deadline", Fan{Retry: again}, 1, until(31 * ms), Class{Deadlines: []Deadline{{35 * ms, 1}}, Patience: Stays}, "failed", 1, 0, 30 * ms},
		{"which is not known", Fan{Retry: again}, 1, until(31 * ms), Class{Untold: true, Deadlines: []Deadline{{35 * ms, 1}}, Patience: Stays}, "late", 2, 1, 55 * ms},
		{"a budget for one", Fan{Retry: with(func(r *Retry) { r.Budget = Budget{Ratio: 0.1, Reserve: 1} })}, 1, until(time.Second), Class{}, "failed", 2, 1, 55 * ms},
		{"and the request fails without the other", Fan{N: 2, Retry: with(func(r *Retry) { r.Budget = Budget{Ratio: 0.1, Reserve: 1} })}, 2, until(time.Second), Class{}, "failed", 2, 0, 35 * ms},
	} {
		s := Scenario{
			Length: time.Second, Classes: []Class{c.class},
			Tiers: []Tier{
				{Policy: fifo(1, 0), Service: Dist{Kind: Fixed, Mean: 10 * ms}, Next: &c.fan},
				{Policy: fifo(c.slots, 0), Service: Dist{Kind: Fixed, Mean: 20 * ms}, Faults: c.faults},
			},
			Trace: handed(Job{}),
		}
		c.fan.Tier = 1
		r := play(t, s, 1)
		fate := map[bool]string{r.Total.InTime == 1: "ok", r.Total.Failed == 1: "failed", r.Total.Late == 1: "late"}[true]
		below := r.Tiers[1]
		if fate != c.fate || below.Arrivals != c.sent || below.Again != c.again || r.Ended != c.ended {
			t.Errorf("%s: %s, %d sent, %d of them again, ended %v; want %s, %d, %d, %v", c.name, fate, below.Arrivals, below.Again, r.Ended, c.fate, c.sent, c.again, c.ended)
		}
	}
}

// A fault lets the share of the work fail that it says, all of its own time and no other;
// it draws from a stream of its own, and so what arrives is what it was.
func TestFaults(t *testing.T) {
	s := plain(0.5, exponential50, 0, 0)
	s.Warmup, s.Length = 0, 30*time.Second
	without := play(t, s, 3)
	s.Tiers[0].Faults = []Fault{{5 * time.Second, 10 * time.Second, 0.3}, {15 * time.Second, 10 * time.Second, 1}}
	r := play(t, s, 3)
	if r.Total.Requests != without.Total.Requests {
		t.Errorf("%d requests come, %d without the faults", r.Total.Requests, without.Total.Requests)
	}
	for i, b := range r.Series { // of 250 ms
		share := float64(b.Failed) / float64(b.Failed+b.InTime)
		switch at := b.End; {
		case at <= 5*time.Second || at > 25*time.Second:
			if b.Failed != 0 {
				t.Errorf("to %v %d fail", at, b.Failed)
			}
		case at > 15*time.Second && share != 1:
			t.Errorf("to %v %.2f fail, want all", at, share)
		case at <= 15*time.Second && i%4 == 0:
			// One bin is 150: sqrt(0.3 x 0.7 / 150) = 3.7 %, four times.
			if math.Abs(share-0.3) > 0.15 {
				t.Errorf("to %v %.2f fail, want 0.3", at, share)
			}
		}
	}
}

// A call that is kept at home ends its request: nobody listens, so that the first calls
// are refused, and then nine in ten are kept. No call is both.
func TestKeptAtHome(t *testing.T) {
	s := plain(1, fixed50, 0, 0)
	s.Warmup, s.Length = 0, 10*time.Second
	s.Tiers[0].Restarts = []Restart{{At: 0, Down: time.Hour}}
	s.Classes[0].Retry = Retry{Attempts: 3, Throttle: Throttle{K: 2}}
	r := play(t, s, 1)
	all := r.Total
	if all.Requests != all.Refused+all.Kept || all.Kept != r.Tiers[0].Kept || all.Attempts != r.Tiers[0].Arrivals || all.Attempts < all.Refused {
		t.Errorf("%d requests, %d refused and %d kept; %d attempts, the tier has %d and %d kept", all.Requests, all.Refused, all.Kept, all.Attempts, r.Tiers[0].Arrivals, r.Tiers[0].Kept)
	}
	// Of N calls that anybody wanted to send, kept ones included, one in ten goes out:
	// sqrt(0.1 x 0.9 / 13,000) = 0.26 %, four times, and the first ten at the start.
	calls := float64(all.Attempts + all.Kept)
	if sent := float64(all.Attempts) / calls; math.Abs(sent-0.1) > 0.012 {
		t.Errorf("%.4f of %.0f calls are sent, want 0.1", sent, calls)
	}
}

// Both ends of each bound of a retry and of a fault, with the sentence.
func TestRetryOutOfRange(t *testing.T) {
	const month = 720 * time.Hour
	for want, change := range map[string]func(*Scenario){
		"class 1: retry: attempts -1 is out of range: 1 to 100, or 0 for 1":  func(s *Scenario) { s.Classes[0].Retry.Attempts = -1 },
		"class 1: retry: attempts 101 is out of range: 1 to 100, or 0 for 1": func(s *Scenario) { s.Classes[0].Retry.Attempts = 101 },
		"class 1: retry: backoff 1h0m0.000000001s, max 0s, within 0s are out of range: backoff 0 to 1h, the others 0 to 720h0m0s": func(s *Scenario) {
			s.Classes[0].Retry.Backoff = time.Hour + 1
		},
		"class 1: retry: backoff 0s, max -1ns, within 0s are out of range: backoff 0 to 1h, the others 0 to 720h0m0s": func(s *Scenario) {
			s.Classes[0].Retry.Max = -1
		},
		"class 1: retry: budget: ratio 1.001 is out of range: above 0, to 1 retry per first attempt, or 0 for as many as attempts says": func(s *Scenario) {
			s.Classes[0].Retry.Budget.Ratio = 1.001
		},
		"class 1: retry: budget: ratio NaN is out of range: above 0, to 1 retry per first attempt, or 0 for as many as attempts says": func(s *Scenario) {
			s.Classes[0].Retry.Budget.Ratio = math.NaN()
		},
		"class 1: retry: budget: reserve 5, window 0s are those of a budget, and there is none: ratio is 0": func(s *Scenario) {
			s.Classes[0].Retry.Budget.Reserve = 5
		},
		"class 1: retry: budget: reserve -1 is out of range: 1 to 1000, or 0 for 10":   func(s *Scenario) { s.Classes[0].Retry.Budget = Budget{0.1, -1, 0} },
		"class 1: retry: budget: reserve 1001 is out of range: 1 to 1000, or 0 for 10": func(s *Scenario) { s.Classes[0].Retry.Budget = Budget{0.1, 1001, 0} },
		"class 1: retry: budget: window 999.999999ms is out of range: 1s to 10m, or 0 for 10s": func(s *Scenario) {
			s.Classes[0].Retry.Budget = Budget{0.1, 0, time.Second - 1}
		},
		"class 1: retry: budget: window 10m0.000000001s is out of range: 1s to 10m, or 0 for 10s": func(s *Scenario) {
			s.Classes[0].Retry.Budget = Budget{0.1, 0, 10*time.Minute + 1}
		},
		"class 1: retry: throttle: k 1.099 is out of range: 1.1 to 100 calls for each that is taken, or 0 for no throttle": func(s *Scenario) {
			s.Classes[0].Retry.Throttle.K = 1.099
		},
		"class 1: retry: throttle: k 100.1 is out of range: 1.1 to 100 calls for each that is taken, or 0 for no throttle": func(s *Scenario) {
			s.Classes[0].Retry.Throttle.K = 100.1
		},
		"class 1: retry: throttle: window 1s is that of a throttle, and there is none: k is 0": func(s *Scenario) { s.Classes[0].Retry.Throttle.Window = time.Second },
		"class 1: retry: throttle: window 1ns is out of range: 1s to 10m, or 0 for 10s":        func(s *Scenario) { s.Classes[0].Retry.Throttle = Throttle{2, 1} },
		"class 1: retry: throttle: window 1h0m0s is out of range: 1s to 10m, or 0 for 10s":     func(s *Scenario) { s.Classes[0].Retry.Throttle = Throttle{2, time.Hour} },
		"tier 1: next: retry: attempts 101 is out of range: 1 to 100, or 0 for 1": func(s *Scenario) {
			s.Tiers = append(s.Tiers, s.Tiers[0])
			s.Tiers[0].Next = &Fan{Tier: 1, Retry: Retry{Attempts: 101}}
		},
		"tier 1: fault 1: at -1s is out of range: 0 to 720h0m0s":                        func(s *Scenario) { s.Tiers[0].Faults = []Fault{{-time.Second, 1, 1}} },
		"tier 1: fault 2: at 1s comes before the end of the one before it, 2s":          func(s *Scenario) { s.Tiers[0].Faults = []Fault{{time.Second, time.Second, 1}, {time.Second, 1, 1}} },
		"tier 1: fault 1: for 0s is out of range: above 0, to 720h0m0s":                 func(s *Scenario) { s.Tiers[0].Faults = []Fault{{0, 0, 1}} },
		"tier 1: fault 1: for 720h0m0.000000001s is out of range: above 0, to 720h0m0s": func(s *Scenario) { s.Tiers[0].Faults = []Fault{{0, month + 1, 1}} },
		"tier 1: fault 1: share 0 is out of range: above 0, to 1":                       func(s *Scenario) { s.Tiers[0].Faults = []Fault{{0, 1, 0}} },
		"tier 1: fault 1: share 1.1 is out of range: above 0, to 1":                     func(s *Scenario) { s.Tiers[0].Faults = []Fault{{0, 1, 1.1}} },
		"tier 1: faults are 100001: at most 100000":                                     func(s *Scenario) { s.Tiers[0].Faults = make([]Fault, 100_001) },
	} {
		s := plain(1, fixed50, 0, time.Second)
		change(&s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := plain(1, fixed50, 0, time.Second)
	s.Tiers[0].Faults = []Fault{{0, month, 1}}
	for _, r := range []Retry{
		{Attempts: 100, Backoff: time.Hour, Max: month, Within: month, Budget: Budget{1, 1000, 10 * time.Minute}, Throttle: Throttle{100, 10 * time.Minute}},
		{Budget: Budget{1e-9, 1, time.Second}, Throttle: Throttle{1.1, time.Second}},
	} {
		if s.Classes[0].Retry = r; s.Validate() != nil {
			t.Errorf("%+v: %v", r, s.Validate())
		}
	}
}
