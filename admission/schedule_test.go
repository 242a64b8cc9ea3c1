package admission

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/theory"
	"github.com/goodput/goodput/limit"
)

// knowing returns a core of so many slots, all of them busy, that has seen that a unit of
// size takes a millisecond.
func knowing(t testing.TB, slots int, cfg Config) *Core {
	t.Helper()
	cfg.Limit = limit.Fixed(slots)
	if cfg.Objective == 0 {
		cfg.Objective = time.Hour
	}
	cfg.Service = 32 * ms
	c := benchCore(t, cfg)
	var b Batch
	for i := range 2 * windowPairs {
		d := time.Duration(1+i) * ms
		b.Add(d, d, 1, 1+i)
	}
	c.Observe(0, &b)
	if d := c.derivation; d.Sizes != SizeTrusted {
		t.Fatalf("sizes are %s: %v", d.Sizes, d)
	}
	for range slots {
		c.Offer(0, Request{Deadline: Never, Size: 1})
	}
	return c
}

// For one server, and requests that come in the order of their deadlines before any is
// served, the rule keeps as many as can be served in time at all: Moore's theorem, and
// our clairvoyant is exact there. In another order who has given way is missed later.
func TestScheduleKeepsTheMost(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 2000 {
		c := knowing(t, 1, Config{})
		n := 1 + rng.IntN(12)
		var jobs []theory.Job
		for range n {
			size, due := 1+rng.IntN(100), time.Duration(1+rng.IntN(600))*ms
			// Half a millisecond of room: times are sums of float64, and a deadline that is
			// met to the nanosecond is not what this is about.
			jobs = append(jobs, theory.Job{Service: time.Duration(size) * ms, Deadline: due - ms/2})
		}
		slices.SortFunc(jobs, func(a, b theory.Job) int { return cmp.Compare(a.Deadline, b.Deadline) })
		for _, j := range jobs {
			c.Offer(0, Request{Size: int(j.Service / ms), Deadline: j.Deadline})
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		most, exact := theory.Clairvoyant(jobs)
		if !exact {
			t.Fatal("the bound is not exact")
		}
		if c.waiting != most {
			t.Fatalf("seed %d, round %d: %d of %d are kept, and %d could be served: %v", seed, round, c.waiting, n, most, jobs)
		}
	}
}

// Who gives way to whom, told with what words.
func TestLongestGivesWay(t *testing.T) {
	type offer struct {
		Request
		want Reason // None: it waits
		gone int    // which of the earlier ones is displaced; 0: nobody
	}
	in := func(d time.Duration, size int) Request { return Request{Size: size, Deadline: d * ms} }
	with := func(r Request, f func(*Request)) Request { f(&r); return r }
	for _, c := range []struct {
		name   string
		cfg    Config
		slots  int
		offers []offer
	}{
		{"a shorter one takes the place of the longest", Config{}, 1, []offer{
			{in(100, 60), None, 0}, {in(100, 30), None, 0}, {in(100, 20), None, 1},
		}},
		{"a longer one is refused", Config{}, 1, []offer{
			{in(100, 60), None, 0}, {in(100, 30), None, 0}, {in(100, 70), NoBudget, 0},
		}},
		{"of equal ones the last is refused", Config{}, 1, []offer{
			{in(100, 60), None, 0}, {in(100, 60), NoBudget, 0},
		}},
		{"only those up to the late one are looked at", Config{}, 1, []offer{
			{in(400, 90), None, 0}, {in(100, 60), None, 0}, {in(101, 50), None, 2},
		}},
		{"a newcomer makes a later one late", Config{}, 1, []offer{
			{in(100, 80), None, 0}, {in(50, 30), None, 1},
		}},
		{"two slots are twice as fast", Config{}, 2, []offer{
			{in(100, 60), None, 0}, {in(100, 60), None, 0}, {in(100, 30), None, 0}, {in(100, 40), None, 2},
		}},
		{"cost is slots", Config{}, 2, []offer{
			{with(in(100, 40), func(r *Request) { r.Cost = 2 }), None, 0}, {in(100, 50), None, 0}, {in(100, 60), None, 1},
		}},
		{"without a deadline there is the bound of the wait", Config{MaxWait: 100 * ms}, 1, []offer{
			{Request{Size: 80, Deadline: Never}, None, 0}, {in(90, 30), None, 1},
		}},
		{"a retry does not take the place of a first attempt", Config{}, 1, []offer{
			{in(100, 80), None, 0}, {with(in(100, 30), func(r *Request) { r.Attempt = 2 }), NoBudget, 0},
		}},
		{"nor a later cohort that of an earlier one", Config{}, 1, []offer{
			{with(in(100, 80), func(r *Request) { r.Cohort = 1 }), None, 0},
			{with(in(100, 30), func(r *Request) { r.Cohort = 9 }), NoBudget, 0},
			{with(in(100, 40), func(r *Request) { r.Cohort = 1 }), None, 1},
		}},
		{"nor a lower priority that of a higher one", Config{}, 1, []offer{
			{with(in(100, 80), func(r *Request) { r.Priority = Critical }), None, 0},
			{in(100, 30), NoBudget, 0},
		}},
		{"a higher priority is not in the way of its own", Config{}, 1, []offer{
			{in(100, 80), None, 0},
			{with(in(100, 30), func(r *Request) { r.Priority = Critical }), None, 0},
			{with(in(100, 65), func(r *Request) { r.Priority = Critical }), None, 0},
			{with(in(100, 60), func(r *Request) { r.Priority = Critical }), None, 3},
		}},
		{"the longest goes, if a shorter one would be late", Config{}, 1, []offer{
			{in(200, 120), None, 0}, {in(210, 100), None, 1},
		}},
		{"who refuses the newest displaces nobody", Config{Overflow: RefuseNewest}, 1, []offer{
			{in(200, 120), None, 0}, {in(210, 100), None, 0}, // 120 + 100 > 210
		}},
		{"a full queue gives up the longest", Config{MaxItems: 2}, 1, []offer{
			{in(1000, 80), None, 0}, {in(1000, 50), None, 0}, {in(1000, 60), None, 1}, {in(1000, 70), QueueFull, 0},
		}},
		{"a doomed newcomer displaces nobody", Config{}, 1, []offer{
			{in(100, 60), None, 0}, {in(50, 51), NoBudget, 0},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := knowing(t, c.slots, c.cfg)
			places := map[*Waiter]int{}
			for i, o := range c.offers {
				d := core.Offer(0, o.Request)
				if d.Reason != o.want {
					t.Fatalf("offer %d: %v, want %v: %+v", i+1, d.Reason, o.want, d)
				}
				if d.Waiter != nil {
					places[d.Waiter] = i + 1
				}
				gone := 0
				for w := core.Next(); w != nil; w = core.Next() {
					if gone = places[w]; w.Reason() != Displaced {
						t.Errorf("offer %d: number %d is told %v", i+1, gone, w.Reason())
					}
				}
				if gone != o.gone {
					t.Fatalf("offer %d: number %d is displaced, want %d", i+1, gone, o.gone)
				}
				if err := core.Check(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A line that is too long for a schedule is one as without sizes, and has a schedule
// again once it is half as long. An offer allocates nothing.
func TestLongLinesHaveNoSchedule(t *testing.T) {
	c := knowing(t, 1, Config{MaxItems: 3 * maxScheduled, Objective: 20 * time.Hour})
	l := &c.rows[everybody].flows[Default-1].line
	var places []*Waiter
	for i := range maxScheduled + 10 {
		d := c.Offer(0, Request{Size: 1, Deadline: 10 * time.Hour})
		if d.Waiter == nil {
			t.Fatalf("number %d is refused as %v", i, d.Reason)
		}
		places = append(places, d.Waiter)
		if want := i < maxScheduled; l.planned != want {
			t.Fatalf("with %d waiting there is a schedule: %v", i+1, l.planned)
		}
	}
	for len(places) > maxScheduled/2-1 {
		c.Cancel(0, places[0], Client)
		places = places[1:]
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	c.Offer(0, Request{Size: 1, Deadline: 10 * time.Hour})
	if !l.planned {
		t.Errorf("with %d waiting there is no schedule", l.n)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if d := c.Offer(0, Request{Size: 1 << 30, Deadline: 15 * time.Hour}); d.Reason != NoBudget {
			t.Fatalf("%+v", d)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
