package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// tiny is a window of ten seconds of a resource, and what comes.
func tiny(slots int, speed Speed, classes []Class, jobs ...Job) Scenario {
	return Scenario{
		Length: 10 * time.Second, Classes: classes, Trace: handed(jobs...),
		Tiers: []Tier{{Policy: fifo(slots, 0), Slots: slots, Service: fixed50, Speed: speed}},
	}
}

// served returns the clairvoyant ceiling as the number of requests that it is about:
// it is a share of what was offered, or of what could be done if that is less.
func (c *Ceilings) served() float64 {
	return c.Clairvoyant * min(c.Offered, c.Capacity) * 10
}

// The ceilings of a few requests, counted by hand.
func TestCeilingsByHand(t *testing.T) {
	const second = time.Second
	anyone := []Class{{}}
	for _, c := range []struct {
		name string
		s    Scenario
		most float64 // in time, by who knows everything
		// Of the shortest that fit into all that the resource does, the last in part.
		aware float64
		exact bool
	}{
		// 3 s of work each: two fit into 7 s; 9 s are done in all of 10.
		{"as it is", tiny(1, Speed{}, anyone, Job{Service: 3 * second, Deadline: 7 * second}, Job{Service: 3 * second, Deadline: 7 * second}, Job{Service: 3 * second, Deadline: 7 * second}), 2, 3, true},
		// From 2 to 4 s nothing moves: 5 s of work until 7 s.
		{"a stall", tiny(1, Speed{Stalls: []Stall{{2 * second, 2 * second}}}, anyone, Job{Service: 3 * second, Deadline: 7 * second}, Job{Service: 3 * second, Deadline: 7 * second}, Job{Service: 3 * second, Deadline: 7 * second}), 1, 8.0 / 3, true},
		{"a stall, and a second more", tiny(1, Speed{Stalls: []Stall{{2 * second, 2 * second}}}, anyone, Job{Service: 3 * second, Deadline: 8 * second}, Job{Service: 3 * second, Deadline: 8 * second}, Job{Service: 3 * second, Deadline: 8 * second}), 2, 8.0 / 3, true},
		// From 1 s at half: 1 + 3 s until 7 s. 5.5 s in all.
		{"half the speed", tiny(1, Speed{Steps: []SpeedStep{{second, 0.5}}}, anyone, Job{Service: 2 * second, Deadline: 7 * second}, Job{Service: 2 * second, Deadline: 7 * second}, Job{Service: 2 * second, Deadline: 7 * second}), 2, 2.75, true},
		{"half the speed, a nanosecond less", tiny(1, Speed{Steps: []SpeedStep{{second, 0.5}}}, anyone, Job{Service: 2 * second, Deadline: 7*second - 2}, Job{Service: 2 * second, Deadline: 7*second - 2}, Job{Service: 2 * second, Deadline: 7*second - 2}), 1, 2.75, true},
		// Arrivals and deadlines within the stall: 3 s of work from 2 to 6 s, less 1 s.
		{"comes in a stall", tiny(1, Speed{Stalls: []Stall{{second, 2 * second}}}, anyone, Job{At: 2 * second, Service: 3 * second, Deadline: 4 * second}, Job{At: 2 * second, Service: second, Deadline: 8 * second}), 2, 2, true},
		{"comes in a stall, too late", tiny(1, Speed{Stalls: []Stall{{second, 2 * second}}}, anyone, Job{At: 2 * second, Service: 3*second + 1, Deadline: 4 * second}, Job{At: 2 * second, Service: second, Deadline: 8 * second}), 1, 2, true},
		{"due in a stall", tiny(1, Speed{Stalls: []Stall{{3 * second, 2 * second}}}, anyone, Job{Service: 3 * second, Deadline: 4 * second}, Job{Service: second, Deadline: 4 * second}), 1, 2, true},
		// Two slots: 2 x 3 s of slots until 3 s. Cost 2 takes both for 1 s.
		{"costs", tiny(2, Speed{}, anyone, Job{Service: second, Cost: 2, Deadline: 3 * second}, Job{Service: 2 * second, Deadline: 3 * second}, Job{Service: 2 * second, Deadline: 3 * second}, Job{Service: second, Deadline: 3 * second}), 3, 4, true},
		// A cost beyond the slots takes all of them, and no more.
		{"a cost beyond the slots", tiny(2, Speed{}, anyone, Job{Service: second, Cost: 5, Deadline: 2 * second}, Job{Service: second, Deadline: 2 * second}, Job{Service: second, Deadline: 2 * second}), 3, 3, true},
		// Drawn of 50 ms a unit: 1, 2, 4 s, and 5 s until the deadline.
		{"sizes", tiny(1, Speed{}, []Class{{Sizes: []Size{{1, 1}}}}, Job{Size: 20, Deadline: 5 * second}, Job{Size: 40, Deadline: 5 * second}, Job{Size: 80, Deadline: 5 * second}), 2, 3, true},
		// Who comes first has the later deadline, and is interrupted: 3 s until 4, 7 until 9.
		{"deadlines that differ", tiny(1, Speed{}, anyone, Job{Service: 4 * second, Deadline: 9 * second}, Job{At: second, Service: 3 * second, Deadline: 3 * second}), 2, 2, false},
		{"the objective is a deadline", tiny(1, Speed{}, anyone, Job{Service: 600 * ms}, Job{Service: 600 * ms}), 1, 2, true}, // of a second
		{"within, for all attempts", tiny(1, Speed{}, []Class{{Retry: Retry{Attempts: 3, Within: 5 * second}}}, Job{Service: 3 * second, Deadline: 3 * second}, Job{Service: 2 * second, Deadline: 3 * second}, Job{Service: 2 * second, Deadline: 3 * second}), 2, 3, true},
		// 1 + 2 + 3 s, and 4 of 9 s in the ten.
		{"the shortest", tiny(1, Speed{}, anyone, Job{Service: 9 * second}, Job{Service: second}, Job{Service: 3 * second}, Job{Service: 2 * second}), 1, 3 + 4.0/9, true},
		{"the shortest, at half the speed from 5 s", tiny(1, Speed{Steps: []SpeedStep{{5 * second, 0.5}}}, anyone, Job{Service: 9 * second}, Job{Service: second}, Job{Service: 3 * second}, Job{Service: 2 * second}), 1, 3 + 1.5/9, true},
		// Slots x seconds: 2 x 10. Of cost 2, 6 s are 12; 5 s of cost 1 come first.
		{"the cheapest", tiny(2, Speed{}, anyone, Job{Service: 6 * second, Cost: 2}, Job{Service: 6 * second, Cost: 2}, Job{Service: 5 * second}), 0, 2 + 3.0/12, true},
	} {
		got, err := c.s.Ceilings(1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.served()-c.most) > 1e-9 || got.Exact != c.exact {
			t.Errorf("%s: %v of %d in time, exact %v; want %v, %v", c.name, got.served(), got.Jobs, got.Exact, c.most, c.exact)
		}
		if aware := got.SizeAware * min(got.Offered, got.Capacity) * 10; math.Abs(aware-c.aware) > 1e-9 {
			t.Errorf("%s: %v of the shortest, want %v", c.name, aware, c.aware)
		}
	}
}

// Every order of a few requests, tried: whoever would be late is left out. Where the
// ceiling says that it is exact, it is; elsewhere it is not below.
func TestCeilingsAgainstEveryOrder(t *testing.T) {
	exact, moved := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 8))
		within := func(lo, hi int) time.Duration { return time.Duration(lo+r.IntN(hi-lo+1)) * ms }
		slots := 1 << r.IntN(3)
		speed := Speed{Steps: []SpeedStep{{within(0, 40), 0.5}, {within(40, 60), 2}}, Stalls: []Stall{{within(0, 30), within(1, 20)}, {within(50, 60), within(1, 20)}}}
		var jobs []Job
		at, due := time.Duration(0), within(5, 60)
		for range 5 {
			at += within(0, 12)
			if due = max(due, at) + within(1, 12); seed%3 == 0 {
				due = at + within(5, 80) // deadlines in any order
			}
			jobs = append(jobs, Job{At: at, Service: 4 * within(1, 12), Cost: 1 + r.IntN(5), Deadline: due - at})
		}
		got, err := tiny(slots, speed, []Class{{}}, jobs...).Ceilings(seed)
		if err != nil {
			t.Fatal(err)
		}
		most := float64(everyOrder(done(speed, 400), jobs, slots))
		switch {
		case got.Exact && math.Abs(got.served()-most) > 1e-9, got.served() < most-1e-9:
			t.Errorf("seed %d: the ceiling is %v, exact %v; every order tried gives %v", seed, got.served(), got.Exact, most)
		case got.Exact:
			exact++
		}
		if most != float64(everyOrder(done(Speed{}, 400), jobs, slots)) {
			moved++
		}
	}
	if t.Logf("%d exact, %d moved by the speed", exact, moved); exact < 200 || moved < 100 {
		t.Errorf("only %d of 400 are exact, and the speed moves only %d", exact, moved)
	}
}

// done returns the work, in ms, that can be done until each ms.
func done(s Speed, until int) []float64 {
	work := make([]float64, until+1)
	for i := range until {
		at, v := time.Duration(i)*ms, 1.0
		for _, p := range s.Steps {
			if p.At <= at {
				v = p.Factor
			}
		}
		for _, p := range s.Stalls {
			if p.At <= at && at < p.At+p.For {
				v = 0
			}
		}
		work[i+1] = work[i] + v
	}
	return work
}

// everyOrder returns the most jobs in time of one server that works for all slots. Who
// does not fit its own window alone, on its own slots, cannot be in time.
func everyOrder(work []float64, jobs []Job, slots int) int {
	var try func(left []Job, now float64) int
	try = func(left []Job, now float64) int {
		most := 0
		for i, j := range left {
			from, until := work[j.At/ms], work[(j.At+j.Deadline)/ms]
			service := float64(j.Service / ms)
			end := max(now, from) + service*float64(min(j.Cost, slots))/float64(slots)
			if from+service > until || end > until {
				continue
			}
			rest := append(append([]Job(nil), left[:i]...), left[i+1:]...)
			most = max(most, 1+try(rest, end))
		}
		return most
	}
	return try(jobs, 0)
}
