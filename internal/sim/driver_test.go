package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// What the driver says to the core, read from what the core then does: a field that
// is told wrongly changes who is served, and in which order.

// tens is a core of n slots, told that work takes 10 ms, before work of 100 ms.
func tens(n int, change func(*admission.Config)) Tier {
	c := &admission.Config{Limit: limit.Fixed(n), Objective: 10 * time.Second, Service: 10 * ms}
	if change != nil {
		change(c)
	}
	return Tier{Slots: 100, Policy: Policy{Name: "core", Core: c}, Service: Dist{Kind: Fixed, Mean: 100 * ms}}
}

// behindAnother puts a tier before t that lets everybody in, to work as long as its
// job says.
func behindAnother(t Tier) []Tier {
	return []Tier{{Policy: fifo(Unbounded, 0), Slots: 100, Service: fixed50, Next: &Fan{Tier: 1}}, t}
}

// fates says how the requests of each class ended, and when, of one each: "ok 110"
// is an answer in time after so many ms, "late", "lost" and the word of a refusal.
func fates(r *Result) string {
	s := ""
	for i := range r.Classes {
		c := &r.Classes[i]
		for why, n := range c.Reasons {
			if n > 0 {
				s += fmt.Sprintf("%s ", admission.Reason(why))
			}
		}
		switch {
		case c.InTime > 0:
			s += fmt.Sprintf("ok %.0f; ", c.Good.Sum*1000)
		case c.Late > 0:
			s += "late; "
		case c.Failed > 0:
			s += "lost; "
		default:
			s += "no; "
		}
	}
	return s
}

// oneAtOnce lets the tenant a have one slot.
func oneAtOnce(c *admission.Config) {
	c.Tenants = &admission.Tenants{Rows: []admission.Tenant{{ID: "a", MaxInUse: 1}, {ID: "b"}}}
}

// Every field of a request. One class is one request; the first holds the slot.
func TestWhatTheCoreIsTold(t *testing.T) {
	const fair, dear = admission.Default, admission.Critical
	depth := func(n int) func(*admission.Config) { return func(c *admission.Config) { c.Depth = n } }
	order := func(o admission.Order) func(*admission.Config) {
		return func(c *admission.Config) { c.Order, c.Depth = o, 10 }
	}
	again := Retry{Attempts: 2, Backoff: 10 * ms, NoJitter: true}
	for _, c := range []struct {
		name    string
		tiers   []Tier
		classes []Class
		jobs    []Job // the i-th of the i-th class
		want    string
	}{
		{
			"cost: three units of four",
			[]Tier{tens(4, nil)},
			[]Class{{Cost: 3}, {Cost: 2}, {Cost: 1}},
			[]Job{{}, {At: 10 * ms}, {At: 20 * ms, Service: 200 * ms}},
			"ok 100; ok 190; ok 280; ",
		},
		{
			"cost: of the job",
			[]Tier{tens(4, nil)},
			[]Class{{}, {}},
			[]Job{{Cost: 4}, {At: 10 * ms}},
			"ok 100; ok 190; ",
		},
		{"cost: as it is told, twice the true one", []Tier{tens(4, nil)}, []Class{{Cost: 2, Told: Hearsay{Cost: 2}}, {}}, []Job{{}, {At: 10 * ms}}, "ok 100; ok 190; "},
		{"cost: as it is told, beyond the limit", []Tier{tens(4, nil)}, []Class{{Cost: 3, Told: Hearsay{Cost: 2}}}, []Job{{}}, "too_costly no; "},
		{"cost: as it is told, half", []Tier{tens(1, nil)}, []Class{{Cost: 2, Told: Hearsay{Cost: 0.5}}}, []Job{{}}, "ok 100; "},
		{"cost: beyond the limit", []Tier{tens(4, nil)}, []Class{{Cost: 5}}, []Job{{}}, "too_costly no; "},
		{
			"cost: of a sub-request, one", behindAnother(tens(2, nil)),
			[]Class{{Cost: 2}, {Cost: 2}},
			[]Job{{Service: ms}, {Service: ms}},
			"ok 101; ok 101; ",
		},
		{
			"bytes: of those that wait",
			[]Tier{tens(1, func(c *admission.Config) { c.MaxBytes = 1000 })},
			[]Class{{Bytes: 1000}, {Bytes: 600}, {Bytes: 401}, {Bytes: 400}},
			[]Job{{}, {At: 10 * ms}, {At: 20 * ms}, {At: 30 * ms}},
			"ok 100; ok 190; bytes_full no; ok 270; ",
		},
		{"tenant: who has a ceiling", []Tier{tens(4, oneAtOnce)}, []Class{{Tenant: "a"}, {Tenant: "a"}, {Tenant: "b"}}, []Job{{}, {At: 10 * ms}, {At: 20 * ms}}, "ok 100; ok 190; ok 100; "},
		{"tenant: of a sub-request", behindAnother(tens(4, oneAtOnce)), []Class{{Tenant: "a"}, {Tenant: "a"}, {Tenant: "b"}}, []Job{{Service: ms}, {Service: ms}, {Service: ms}}, "ok 101; ok 201; ok 101; "},
		{"tenant: of another attempt", []Tier{tens(1, func(c *admission.Config) { oneAtOnce(c); c.Depth = admission.NoQueue })}, []Class{{Tenant: "b"}, {Tenant: "a", Retry: again}}, []Job{{}, {At: 95 * ms}}, "ok 100; queue_full ok 110; "},
		{"bytes: too large", []Tier{tens(1, func(c *admission.Config) { c.MaxBytes = 1000 })}, []Class{{Bytes: 1001}}, []Job{{}}, "too_large no; "},
		{
			"bytes: of a sub-request", behindAnother(tens(1, func(c *admission.Config) { c.MaxBytes = 1000 })),
			[]Class{{Bytes: 1001}, {Bytes: 1000}},
			[]Job{{Service: ms}, {Service: ms}},
			"lost; ok 101; ",
		},
		{
			"priority: who goes first",
			[]Tier{tens(1, nil)},
			[]Class{{}, {Priority: fair}, {Priority: dear}},
			[]Job{{}, {At: 10 * ms}, {At: 20 * ms}},
			"ok 100; ok 290; ok 180; ",
		},
		{
			"priority: who gives way",
			[]Tier{tens(1, depth(1))},
			[]Class{{}, {Priority: admission.Background}, {Priority: admission.Sheddable}},
			[]Job{{}, {At: 10 * ms}, {At: 20 * ms}},
			"ok 100; displaced no; ok 180; ",
		},
		{
			"priority: of a sub-request", behindAnother(tens(1, depth(1))),
			[]Class{{}, {Priority: admission.Background}, {Priority: admission.Sheddable}},
			[]Job{{Service: ms}, {At: 10 * ms, Service: ms}, {At: 20 * ms, Service: ms}},
			"ok 101; lost; ok 181; ",
		},
		// Nobody listens for 5 ms. Who then comes back is displaced by a first attempt, and
		// a first attempt is not.
		{
			"attempt: a retry gives way", down(tens(1, depth(1))),
			[]Class{{Retry: again}, {}, {}},
			[]Job{{At: ms}, {At: 6 * ms}, {At: 20 * ms}},
			"displaced unavailable no; ok 100; ok 186; ",
		},
		{
			"attempt: the first does not", down(tens(1, depth(1))),
			[]Class{{}, {}, {}},
			[]Job{{At: 6 * ms}, {At: 11 * ms}, {At: 20 * ms}},
			"ok 100; ok 195; queue_full no; ",
		},
		{
			"attempt: of a sub-request", down(behindAnother(tens(1, depth(1)))...),
			[]Class{{Retry: again}, {}, {}},
			[]Job{{At: ms, Service: ms}, {At: 6 * ms, Service: ms}, {At: 20 * ms, Service: ms}},
			"unavailable lost; ok 101; ok 187; ",
		},
		// 11 ms is the newest attempt, 7 ms the newest request.
		{
			"arrival: of the root, not of the retry", down(tens(1, order(admission.NewestFirst))),
			[]Class{{Retry: again}, {}, {}},
			[]Job{{At: ms}, {At: 6 * ms}, {At: 7 * ms}},
			"unavailable ok 305; ok 100; ok 199; ",
		},
		{
			"arrival: of the root, not of the sub-request", behindAnother(tens(1, order(admission.NewestFirst))),
			[]Class{{}, {}, {}},
			[]Job{{Service: ms}, {At: 5 * ms, Service: 50 * ms}, {At: 10 * ms, Service: 5 * ms}},
			"ok 101; ok 296; ok 191; ",
		},
		{
			"deadline: the earliest first",
			[]Tier{tens(1, order(admission.EDF))},
			[]Class{{}, {}, {}},
			[]Job{{}, {At: 10 * ms, Deadline: 400 * ms}, {At: 20 * ms, Deadline: 389 * ms}},
			"ok 100; ok 290; ok 180; ",
		},
		{
			"deadline: none is the last",
			[]Tier{tens(1, order(admission.EDF))},
			[]Class{{}, {}, {}},
			[]Job{{}, {At: 10 * ms}, {At: 20 * ms, Deadline: 9 * time.Second}},
			"ok 100; ok 290; ok 180; ",
		},
		{
			"deadline: untold is none",
			[]Tier{tens(1, order(admission.EDF))},
			[]Class{{}, {}, {Untold: true}},
			[]Job{{}, {At: 10 * ms, Deadline: 400 * ms}, {At: 20 * ms, Deadline: 389 * ms}},
			"ok 100; ok 190; ok 280; ",
		},
		{
			"deadline: the wait and the work do not fit",
			[]Tier{tens(1, depth(9))},
			[]Class{{}, {}, {Untold: true}},
			[]Job{{}, {At: 10 * ms, Deadline: 20 * ms}, {At: 20 * ms, Deadline: 50 * ms}},
			"ok 100; no_budget no; client late; ",
		},
		// 290 and 285 ms, both of the first arrival.
		{
			"deadline: of a sub-request is that of its request", behindAnother(tens(1, order(admission.EDF))),
			[]Class{{}, {}, {}},
			[]Job{{Service: ms}, {Service: 30 * ms, Deadline: 350 * ms}, {At: 10 * ms, Service: 5 * ms, Deadline: 345 * ms}},
			"ok 101; ok 201; ok 291; ",
		},
		// The retry has the whole deadline again, from 11 ms to 400, or ends within 380.
		{
			"deadline: of a retry", down(tens(1, order(admission.EDF))),
			[]Class{{Retry: again}, {}, {}},
			[]Job{{At: ms, Deadline: 389 * ms}, {At: 6 * ms}, {At: 7 * ms, Deadline: 388 * ms}},
			"unavailable ok 305; ok 100; ok 199; ",
		},
		{
			"deadline: within bounds it", down(tens(1, order(admission.EDF))),
			[]Class{{Retry: Retry{Attempts: 2, Backoff: 10 * ms, NoJitter: true, Within: 393 * ms}}, {}, {}},
			[]Job{{At: ms, Deadline: 389 * ms}, {At: 6 * ms}, {At: 7 * ms, Deadline: 388 * ms}},
			"unavailable ok 205; ok 100; ok 299; ",
		},
	} {
		s := Scenario{Length: time.Second, Tiers: c.tiers, Classes: c.classes}
		for i := range c.jobs {
			c.jobs[i].Class = i
		}
		s.Trace = handed(inTimeOrder(c.jobs)...)
		if got := fates(play(t, s, 1)); got != c.want {
			t.Errorf("%s: %s want %s", c.name, got, c.want)
		}
	}
}

// down has the first tier listen to nobody for 5 ms.
func down(tiers ...Tier) []Tier {
	tiers[0].Restarts = []Restart{{At: 0, Down: 5 * ms}}
	return tiers
}

func inTimeOrder(jobs []Job) []Job {
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.At, b.At) })
	return jobs
}

// The size scales the need of who waits and the sample of who has ended: fixed work of
// 10 ms a unit is known exactly, however the sizes are mixed.
func TestSizeIsTold(t *testing.T) {
	s := Scenario{
		Length: 5 * time.Second, Tiers: []Tier{tens(4, func(c *admission.Config) { c.Depth = 10 })},
		Classes: []Class{{Service: Dist{Kind: Fixed, Mean: 10 * ms}, Sizes: []Size{{1, 1}, {7, 1}}, Cost: 2, Arrivals: Arrivals{Rate: 40, Process: Constant, Changes: []Change{{At: 4 * time.Second}}}}, {}, {}, {}},
	}
	// All four slots are taken. 30 units of work take 300 ms, so 299 are too few; with 400
	// there are 100 for the wait, which is predicted as a quarter of what a slot is held.
	s.Trace = handed(Job{At: 4500 * ms, Class: 1, Cost: 4, Service: 100 * ms},
		Job{At: 4510 * ms, Class: 2, Cost: 1, Size: 30, Service: ms, Deadline: 299 * ms},
		Job{At: 4520 * ms, Class: 3, Cost: 1, Size: 30, Service: ms, Deadline: 400 * ms})
	r := play(t, s, 1)
	if r.Classes[2].Reasons[admission.NoBudget] != 1 || r.Classes[3].InTime != 1 {
		t.Errorf("30 units of 10 ms with 299 ms, then with 400 ms: %s", fates(r))
	}
}
