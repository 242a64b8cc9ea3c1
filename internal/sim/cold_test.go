package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
)

// restarted is a service of fixed 100 ms that is down from 1 to 1.1 s, takes three
// times as long then, and as long as ever after another two seconds.
func restarted(instances int) Scenario {
	t := tens(60, nil)
	t.Instances = instances
	t.Restarts = []Restart{{At: time.Second, Down: 100 * ms, Cold: 3, Warm: 2 * time.Second}}
	return Scenario{Length: 5 * time.Second, Tiers: []Tier{t}, Classes: []Class{{}}}
}

// What starts cold takes Cold times as long, and less in a straight line until Warm is
// over: the instants at which work ends are exact.
func TestColdStart(t *testing.T) {
	back := 1100 * ms
	for _, c := range []struct {
		at, work time.Duration
	}{
		{800 * ms, 100 * ms},           // before it
		{back + 20, 300*ms - 2},        // 20 ns of 2 s are 2e-8 of the 200 ms more
		{back + 500*ms, 250 * ms},      // a quarter of the way
		{back + time.Second, 200 * ms}, // half of it
		{back + 1500*ms, 150 * ms},
		{back + 2*time.Second, 100 * ms},
		{back + 3*time.Second, 100 * ms},
	} {
		for _, instances := range []int{1, 5} {
			s := restarted(instances)
			s.Trace = handed(Job{At: c.at})
			got := moments(t, s, 1, ends)
			if len(got) != 1 || (got[0]-c.at-c.work).Abs() > 1 { // rounded down to a nanosecond
				t.Errorf("%d instances, from %v: ends %v, want after %v", instances, c.at, got, c.work)
			}
		}
	}
	for _, cold := range []float64{0, 1} {
		s := restarted(1)
		s.Tiers[0].Restarts[0].Cold = cold
		s.Trace = handed(Job{At: back + 20})
		if got := moments(t, s, 1, ends); len(got) != 1 || got[0] != back+20+100*ms {
			t.Errorf("cold %v: ends at %v", cold, got)
		}
	}
}

// A restart is one of every instance: what is in each is lost, nobody listens, and each
// comes back cold, with a core that knows nothing. Who is killed goes alone.
func TestRestartsOfInstances(t *testing.T) {
	const n = 5
	s := restarted(n)
	crowd := func(at time.Duration) []Job {
		return slices.Repeat([]Job{{At: at}}, 40)
	}
	s.Trace = handed(slices.Concat(crowd(950*ms), crowd(1050*ms), crowd(2100*ms))...)
	r := play(t, s, 1)
	c := &r.Classes[0]
	if c.Failed != 40 || c.Reasons[admission.Unavailable] != 40 || c.InTime != 40 || r.Tiers[0].Restarts != n {
		t.Errorf("%d failed, %d unavailable, %d in time, %d restarts; want 40 each, of %d instances", c.Failed, c.Reasons[admission.Unavailable], c.InTime, r.Tiers[0].Restarts, n)
	}
	// 40 of 100 ms at first, which a restart cut short, then 40 of twice as long.
	if got, want := c.Good.Sum, 40*0.2; got < want-1e-6 || got > want+1e-6 {
		t.Errorf("after the restart all take %v s, want %v", got, want)
	}
	if a := r.Tiers[0].Stats; a.Arrivals == 0 || a.Arrivals > 30 || a.InUse != 0 {
		t.Errorf("the first core knows of %d arrivals, %d in use; want its part of the last 40, which have ended", a.Arrivals, a.InUse)
	}

	// A body that is too large kills one. Another takes what comes, as fast as ever.
	s = restarted(2)
	s.Tiers[0].Restarts, s.Tiers[0].Memory = nil, 10
	s.Tiers[0].Killed = Restart{Down: time.Second, Cold: 3, Warm: time.Hour}
	s.Classes = []Class{{}, {Bytes: 11}}
	s.Trace = handed(slices.Concat([]Job{{Class: 1, At: 10 * ms}}, crowd(20*ms), crowd(1200*ms))...)
	r = play(t, s, 1)
	if r.Tiers[0].Restarts != 1 || r.Classes[1].Failed != 1 || r.Classes[0].InTime != 80 {
		t.Errorf("%d restarts, %d lost, %d in time; want 1, 1 and 80", r.Tiers[0].Restarts, r.Classes[1].Failed, r.Classes[0].InTime)
	}
	slow := moments(t, func() Scenario {
		s.Trace = handed(slices.Concat([]Job{{Class: 1, At: 10 * ms}}, crowd(20*ms), crowd(1200*ms))...)
		return s
	}(), 1, ends)
	for i, at := range slow {
		switch {
		case i < 40 && at != 120*ms, i >= 40 && at != 1300*ms && at < 1499*ms:
			t.Errorf("the %d-th ends at %v", i+1, at)
		}
	}
	if len(slow) != 80 || slow[40] != 1300*ms || slow[79] < 1499*ms {
		t.Errorf("%d end, from %v to %v: want the later half at one and three times the work", len(slow), slow[0], slow[len(slow)-1])
	}
}
