package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
)

// Who obeys does not send again what cannot win.
func TestObeyOfNoHint(t *testing.T) {
	for _, c := range []struct {
		why admission.Reason
		job Job
	}{
		{admission.TooCostly, Job{Class: 1, At: 10 * ms, Cost: 2}},
		{admission.NoBudget, Job{Class: 1, At: 10 * ms, Deadline: 20 * ms}},
		{admission.TooLarge, Job{Class: 1, At: 10 * ms}},
	} {
		for _, obey := range []bool{true, false} {
			s := Scenario{Length: time.Second, Tiers: []Tier{tens(1, func(c *admission.Config) { c.Depth = 9 })}, Classes: []Class{{}, {Retry: Retry{Attempts: 3, Obey: obey}}}}
			if c.why == admission.TooLarge {
				s.Tiers[0].Policy.Core.MaxBytes, s.Classes[1].Bytes = 1, 2
			}
			s.Trace = handed(Job{}, c.job)
			want := uint64(3)
			if obey {
				want = 1
			}
			if r := play(t, s, 1); r.Classes[1].Attempts != want || r.Classes[1].Reasons[c.why] != want {
				t.Errorf("%v, obey %v: %d attempts, %d refused for it, want %d", c.why, obey, r.Classes[1].Attempts, r.Classes[1].Reasons[c.why], want)
			}
		}
	}
}

// Who obeys a hint comes back not before it, and not later than half as long again;
// anywhere between, so that not all come back at once.
func TestObeyOfAHint(t *testing.T) {
	for _, c := range []struct {
		name    string
		waiting int // of a second of work each, before one slot
		retry   Retry
		lo, hi  time.Duration // after the refusal
	}{
		{"at least a second", 0, Retry{Attempts: 2, Obey: true}, time.Second, 1500 * ms},
		{"what it takes to drain", 4, Retry{Attempts: 2, Obey: true}, 4 * time.Second, 6 * time.Second},
		{"a longer backoff", 0, Retry{Attempts: 2, Obey: true, Backoff: 7 * time.Second, NoJitter: true}, 7 * time.Second, 7 * time.Second},
		{"not obeyed", 4, Retry{Attempts: 2, Backoff: ms, NoJitter: true}, ms, ms},
	} {
		least, most := time.Hour, time.Duration(0)
		for seed := range uint64(200) {
			s := Scenario{
				Length: 100 * ms, Classes: []Class{{}, {Retry: c.retry}},
				Tiers: []Tier{tens(1, func(cfg *admission.Config) {
					cfg.Service, cfg.Depth = time.Second, max(c.waiting, 1)
					if c.waiting == 0 {
						cfg.Depth = admission.NoQueue
					}
				})},
			}
			jobs := make([]Job, c.waiting+2)
			for i := range jobs {
				jobs[i].Service = 200 * ms
			}
			jobs[c.waiting+1] = Job{At: 10 * ms, Class: 1}
			s.Trace = handed(jobs...)
			got := moments(t, s, seed, retries)
			if len(got) != 1 {
				t.Fatalf("%s, seed %d: retries at %v, want one", c.name, seed, got)
			}
			least, most = min(least, got[0]-10*ms), max(most, got[0]-10*ms)
		}
		if least < c.lo || most > c.hi {
			t.Errorf("%s: the next attempt comes after %v to %v, want %v to %v", c.name, least, most, c.lo, c.hi)
		}
		// 200 draws miss a tenth at one end with the probability 0.9^200 = 7e-10.
		if spread := (c.hi - c.lo) / 10; least > c.lo+spread || most < c.hi-spread {
			t.Errorf("%s: the next attempt comes after %v to %v, want all of %v to %v", c.name, least, most, c.lo, c.hi)
		}
	}
}
