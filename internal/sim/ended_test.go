package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// stepTo lets happen what happens before at, and returns the world then.
func stepTo(t *testing.T, s Scenario, at time.Duration) *world {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(&s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, next := w.soonest()
		if len(w.events.list) > 0 {
			next = min(next, w.events.list[0].at)
		}
		if next >= at || !w.step() {
			return w
		}
	}
}

// How a request ended, and what was measured of it: the core learns each of them once,
// with its cost and its size, and a service time only of work that was done and wanted
// or late, not of what failed or was given up.
func TestWhatTheCoreLearns(t *testing.T) {
	core := Policy{Name: "core", Core: &admission.Config{Limit: limit.Fixed(100), Objective: time.Second}}
	in30 := []Deadline{{30 * ms, 1}}
	type ended struct {
		service, held time.Duration
		cost, size    int
		elsewhere     time.Duration
	}
	for _, c := range []struct {
		name    string
		class   Class
		job     Job
		next    int // slots of another tier, of 20 ms; below 0: there is none
		outcome admission.Outcome
		want    ended
	}{
		{"in time", Class{Deadlines: in30}, Job{Service: 30 * ms}, -1, admission.Completed, ended{30 * ms, 30 * ms, 1, 1, 0}},
		{"within the objective", Class{Cost: 2}, Job{Service: 60 * ms, Size: 3}, -1, admission.Completed, ended{60 * ms, 60 * ms, 2, 3, 0}},
		{"beyond the objective", Class{Cost: 2}, Job{Service: 60*ms + 1}, -1, admission.Late, ended{60*ms + 1, 60*ms + 1, 2, 1, 0}},
		{"late, and nobody was told", Class{Deadlines: in30, Patience: Vanishes}, Job{Service: 30*ms + 1, Cost: 3}, -1, admission.Late, ended{30*ms + 1, 30*ms + 1, 3, 1, 0}},
		{"late, and waited for", Class{Deadlines: in30, Patience: Stays}, Job{Service: 40 * ms}, -1, admission.Late, ended{40 * ms, 40 * ms, 1, 1, 0}},
		{"late, of an untold deadline", Class{Deadlines: in30, Patience: Stays, Untold: true}, Job{Service: 40 * ms}, -1, admission.Late, ended{40 * ms, 40 * ms, 1, 1, 0}},
		{"given up", Class{Deadlines: in30, Cost: 2}, Job{Service: 40 * ms, Size: 5}, -1, admission.Abandoned, ended{0, 40 * ms, 2, 5, 0}},
		{"with what is further in", Class{Cost: 2}, Job{Service: 10 * ms}, 1, admission.Completed, ended{30 * ms, 30 * ms, 2, 1, 20 * ms}},
		{"refused further in", Class{Cost: 2}, Job{Service: 10 * ms, Size: 4}, 0, admission.Failed, ended{0, 10 * ms, 2, 4, 0}},
	} {
		s := Scenario{
			Length: 200 * ms, Tiers: []Tier{{Policy: core, Slots: 100, Service: fixed50, Objective: 60 * ms}},
			Classes: []Class{c.class}, Trace: handed(c.job),
		}
		if c.next >= 0 {
			s.Tiers[0].Next = &Fan{Tier: 1}
			s.Tiers = append(s.Tiers, Tier{Policy: fifo(1, 0), Service: Dist{Kind: Fixed, Mean: 20 * ms}})
		}
		if c.next == 0 {
			s.Tiers[1].Restarts = []Restart{{At: 0, Down: time.Second}}
		}
		w := stepTo(t, s, 100*ms) // then the core learns it
		in := w.tiers[0].instances[0]
		var want admission.Batch
		want.AddSample(admission.Sample{
			Service: c.want.service, Hold: c.want.held, Elsewhere: c.want.elsewhere,
			Cost: c.want.cost, Offered: c.want.size, Size: c.want.size,
			Abandoned: c.outcome == admission.Abandoned, Dropped: c.outcome == admission.Failed,
		})
		if in.batch != want {
			t.Errorf("%s: the batch is not %+v", c.name, c.want)
		}
		var outcomes [admission.Outcomes]uint64
		outcomes[c.outcome] = 1
		if stats := in.core.Stats(w.now); stats.Outcomes != outcomes || stats.InUse != 0 || stats.Arrivals != 1 {
			t.Errorf("%s: outcomes %v, %d units in use; want one %v", c.name, stats.Outcomes, stats.InUse, c.outcome)
		}
		for w.now < 100*ms && w.step() {
		}
		if got := in.core.Stats(w.now).Derivation.Samples; got != want.Samples() || !in.batch.Empty() {
			t.Errorf("%s: after the window the core has %d samples, want %d, and the batch empty", c.name, got, want.Samples())
		}
	}
}

// moments returns when things of that kind happen, in the order of time.
func moments(t *testing.T, s Scenario, seed uint64, kind what) []time.Duration {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(&s, seed)
	if err != nil {
		t.Fatal(err)
	}
	var at []time.Duration
	for {
		_, arrives := w.soonest()
		if len(w.events.list) > 0 && w.events.list[0].at < arrives {
			if e := w.events.list[0]; e.what == kind && (e.call == nil || e.call.gen == e.gen) {
				at = append(at, e.at)
			}
		}
		if !w.step() {
			return at
		}
	}
}

// The core looks every eighth of its objective, from 5 to 100 ms, and no two instances
// at one instant.
func TestWhenTheCoreLooks(t *testing.T) {
	for _, c := range []struct {
		objective time.Duration
		instances int
		want      []time.Duration // the first
	}{
		{400 * ms, 1, []time.Duration{50 * ms, 100 * ms, 150 * ms}},
		{400 * ms, 4, []time.Duration{50 * ms, 62500 * time.Microsecond, 75 * ms, 87500 * time.Microsecond, 100 * ms}},
		{10 * ms, 1, []time.Duration{5 * ms, 10 * ms}},
		{time.Minute, 2, []time.Duration{100 * ms, 150 * ms, 200 * ms, 250 * ms}},
	} {
		s := Scenario{
			Length:  300 * ms,
			Tiers:   []Tier{{Instances: c.instances, Service: fixed50, Policy: Policy{Core: &admission.Config{Limit: limit.Fixed(1), Objective: c.objective}}}},
			Classes: []Class{{}},
		}
		got := moments(t, s, 1, observes)
		if len(got) < len(c.want) {
			t.Errorf("objective %v, %d instances: only %v", c.objective, c.instances, got)
			continue
		}
		for i, at := range c.want {
			if got[i] != at {
				t.Errorf("objective %v, %d instances: the core looks at %v, want %v", c.objective, c.instances, got[:len(c.want)], c.want)
				break
			}
		}
	}
}

// widens is a law that lets one run at first, and two once it has been asked.
type widens struct{}

func (widens) Start() (int, error)                { return 1, nil }
func (widens) Begin(uint64) limit.State           { return widens{} }
func (widens) Next(int, *limit.Window) limit.Move { return limit.Move{Limit: 2} }
func (widens) Why() string                        { return "" }

// Whom the core lets in when it looks has its slot at that instant.
func TestDecidedByTheLaw(t *testing.T) {
	s := Scenario{Length: time.Second, Tiers: []Tier{tens(1, func(c *admission.Config) { c.Limit = widens{} })}, Classes: []Class{{}, {}}}
	s.Trace = handed(Job{Service: 500 * ms}, Job{At: 10 * ms, Class: 1})
	if got := fates(play(t, s, 1)); got != "ok 500; ok 190; " { // from 100 to 200 ms
		t.Errorf("a limit of two from 100 ms on: %s", got)
	}
}
