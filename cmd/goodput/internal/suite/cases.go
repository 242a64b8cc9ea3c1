package suite

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// A Case is a scenario of the suite.
type Case struct {
	Name string
	Why  string // what a law may get wrong there
	About
	Scene  sim.Scenario // without policies where the law is
	Repeat int          // seeds: 4 where that is cheap, 8 where something happens within seconds

	// From is where Auto, and each law of others that begins somewhere, begins; 0 is where its
	// authors begin it.
	From int

	// Truth is the limit of the oracle, for an instance of each of the first tiers; nil is
	// the slots of the first tier, shared by its instances.
	Truth []int

	// Share is the fair share of an instance of each of the first tiers, where there are many.
	Share []float64

	// Down and Up are when the capacity falls, and is restored; 0: it does not.
	Down, Up time.Duration
	Low      float64 // requests per second that it is between
}

// changed is when the load or the capacity changed last, if it does so at once.
func (c *Case) changed() (last time.Duration) {
	t := &c.Scene.Tiers[0]
	for _, step := range t.SlotSteps {
		last = max(last, step.At)
	}
	if s := t.Speed.Steps; len(s) == 1 { // more of them are a ramp
		last = max(last, s[0].At)
	}
	if s := t.Speed.Stalls; len(s) == 1 { // more of them come again and again
		last = max(last, s[0].At+s[0].For)
	}
	for _, change := range c.Scene.Classes[0].Arrivals.Changes {
		last = max(last, change.At)
	}
	return last
}

// About says what is asked of Auto in a scenario, beside its goodput.
type About uint8

const (
	Steady About = 1 << iota // the limit stands still: the load and the resource do
	Cold                     // the goodput is there within 5 s
	Below                    // nothing is refused: there is room
)

func (a About) is(of About) bool { return a&of != 0 }

// Names are those of the scenarios.
func Names(quick bool) (names []string) {
	for _, c := range cases(quick) {
		names = append(names, c.Name)
	}
	return names
}

// cases returns the scenarios. The quick ones are those in which laws fail most, each for
// another reason, half as long and with half the seeds where it takes long.
func cases(quick bool) (all []Case) {
	for _, list := range [][]Case{overloads(quick), colds(quick), changes(quick), pauses(quick), sizes(quick), others(quick)} {
		for _, c := range list {
			if quick && c.Repeat == 0 {
				continue
			}
			all = append(all, c)
		}
	}
	return all
}

// short is a length that is shorter in a quick run.
func short(quick bool, full, less time.Duration) time.Duration {
	if quick {
		return less
	}
	return full
}

// seeds is how many, 0 for a scenario that a quick run leaves out.
func seeds(quick bool, full, less int) int {
	if quick {
		return less
	}
	return full
}

// chosen is the one seed of a scenario that a quick run has, or none.
func chosen(it bool) int {
	if it {
		return 1
	}
	return 0
}

// enough is how many seeds an overload of 60 slots has. 8 of them answer 19,200 requests in
// 2 s, so that a ratio in a window is known to 1 %: what settles at 0.98 is not said to fall
// below 0.95 by chance. What is refused takes time to play too.
func enough(times float64) int {
	if times > 3 {
		return 6
	}
	return 8
}

const s = time.Second

// overloads are of steady load, and of work that varies more and more.
func overloads(quick bool) []Case {
	length := short(quick, 30*s, 20*s)
	list := []Case{
		{
			Name: "load-0.5x", Why: "from a limit below what is needed nothing may be refused on the way up", About: Below,
			Scene: load(0.5, length).Scenario, Repeat: seeds(quick, 4, 2),
		},
		{
			Name: "load-1x", Why: "chance fills the slots now and then: that is no overload",
			Scene: load(1, length).Scenario, Repeat: seeds(quick, 4, 0),
		},
	}
	for _, times := range []float64{1.5, 3, 10} {
		list = append(list, Case{
			Name: fmt.Sprintf("over-%vx", times), Why: "the plain overload", About: Steady | Cold,
			Scene: load(times, length).Scenario, Repeat: seeds(quick, enough(times), chosen(times < 10)),
		})
	}
	for _, work := range []struct {
		cv  float64
		why string
	}{
		{0, "work that is always as long: the shortest is the mean, and who goes by it does well"},
		{0.5, "the shortest of many is far below the mean, of work that hardly varies"},
		{2, "a few take very long: a mean of few says little"},
	} {
		for _, times := range []float64{1.5, 3} {
			list = append(list, Case{
				Name: fmt.Sprintf("cv%v-%vx", work.cv, times), Why: work.why, About: Steady,
				Scene: overload(times, slots, lognormal(work.cv), length).Scenario, Repeat: seeds(quick, 4, chosen(work.cv == 2 && times == 3)),
			})
		}
	}
	for _, times := range []float64{1.5, 3} {
		list = append(list, Case{
			Name: fmt.Sprintf("bimodal-%vx", times), Why: "9 of 10 take 5 ms and the tenth 455 ms", About: Steady,
			Scene: overload(times, slots, bimodal, length).Scenario, Repeat: seeds(quick, 4, chosen(times == 1.5)),
		})
	}
	return list
}

// colds begin inside the overload, from far below and far above. They are so long that both
// that is asked fits: 5 s on the way up with a third of it lost are 2.8 % of a minute.
func colds(quick bool) (list []Case) {
	for _, from := range []int{1, 1000} {
		for _, times := range []float64{1.5, 3, 10} {
			list = append(list, Case{
				Name: fmt.Sprintf("cold-%d-%vx", from, times), Why: "the first overload meets a limit that is far off", About: Cold, From: from,
				Scene: load(times, short(quick, 60*s, 40*s)).Scenario, Repeat: seeds(quick, enough(times), chosen(times == 3)),
			})
		}
	}
	return list
}

// changes are of the capacity. A phase is 15 s, so that the first 10 s after a step are
// counted, and what is after them.
func changes(quick bool) []Case {
	step := func(low int, reason string, n int) Case {
		return Case{
			Name: fmt.Sprintf("step-60-%d-60", low), Why: reason,
			Scene:  load(1.5, 50*s).slotsAt(15*s, low).slotsAt(30*s, slots).Scenario,
			Repeat: seeds(quick, 8, n), Down: 15 * s, Up: 30 * s, Low: rate(low, exponential),
		}
	}
	hour := short(quick, time.Hour, 5*time.Minute)
	ramp := overload(1.5, 10, sim.Dist{Kind: sim.Exponential, Mean: 100 * time.Millisecond}, hour)
	return []Case{
		step(20, "two thirds of the slots go, and come back", 2),
		step(30, "half of the slots go, and come back", 0),
		{
			Name: "halved", Why: "half of the slots go for good",
			Scene: load(1.5, 45*s).slotsAt(15*s, slots/2).Scenario, Repeat: seeds(quick, 8, 0), Down: 15 * s, Low: rate(slots/2, exponential),
		},
		{
			Name: "slower-as-many", Why: "work takes twice as long and the slots stay: the capacity is half and the limit should not move",
			Scene: load(1.5, 45*s).speedAt(15*s, 0.5).Scenario, Repeat: seeds(quick, 8, 2), Down: 15 * s, Low: rate(slots, exponential) / 2,
		},
		{
			Name: "slower-more", Why: "a dependency takes twice as long and serves as many a second: not a queue, and twice the limit is needed",
			Scene: load(1.5, 45*s).speedAt(15*s, 0.5).slotsAt(15*s, 2*slots).Scenario, Repeat: seeds(quick, 4, 1),
		},
		{
			Name: "ramp-x3", Why: "work takes three times as long after an hour: what was learnt long ago is wrong",
			Scene: ramp.slowing(3).within(2*s, 4*s).Scenario, Repeat: seeds(quick, 1, 1),
		},
	}
}

// pauses are of the process, or of the resource.
func pauses(quick bool) []Case {
	const ms = time.Millisecond
	fast := sim.Dist{Kind: sim.Exponential, Mean: 5 * ms}
	return []Case{
		{
			Name: "stall-retries", Why: "nothing moves for 5 s, and clients try three times: what is learnt in it is about no capacity",
			Scene:  load(0.9, short(quick, 60*s, 40*s)).stalled(20*s, 5*s).retrying(200 * ms).Scenario,
			Repeat: seeds(quick, 4, 1),
		},
		{
			Name: "gc", Why: "a collection stops all for 100 ms every 2 s: not a queue", About: Steady,
			Scene: load(1.5, 30*s).pausing(2*s, 100*ms).Scenario, Repeat: seeds(quick, 4, 0),
		},
		{
			Name: "throttled", Why: "a quota stops all for 70 of 100 ms: whole windows without an end", About: Steady,
			Scene:  overload(1.5*0.3, slots, fast, short(quick, 20*s, 10*s)).pausing(100*ms, 70*ms).Scenario,
			Repeat: seeds(quick, 2, 1),
		},
		{
			Name: "cold-idle", Why: "idle for 30 s at first: what little comes says nothing, and then 3x comes",
			Scene: load(0.02, 50*s).loadAt(30*s, 3).Scenario, Repeat: seeds(quick, 4, 1),
		},
		{
			Name: "warm-idle", Why: "what was learnt in an overload is there after 30 s without one",
			Scene: load(1.5, 65*s).loadAt(15*s, 0.02).loadAt(45*s, 3).Scenario, Repeat: seeds(quick, 4, 0),
		},
		{
			Name: "retry-500ms", Why: "clients that come back after 0.5 s, all of them: a load with a period",
			Scene: load(1.5, 30*s).retrying(500 * ms).Scenario, Repeat: seeds(quick, 4, 0),
		},
		{
			Name: "retry-50ms", Why: "they come back after as long as a window is",
			Scene: load(1.5, 30*s).retrying(50 * ms).Scenario, Repeat: seeds(quick, 4, 0),
		},
	}
}

// sizes are of resources that are smaller or larger.
func sizes(quick bool) []Case {
	probed := overload(0.5, 4, sim.Dist{Kind: sim.Exponential, Mean: 400 * time.Millisecond}, short(quick, 240*s, 120*s))
	return []Case{
		{
			Name: "slots-1", Why: "one at a time: a limit of 2 is twice too much, and 20 a second say little", About: Steady,
			Scene: overload(1.5, 1, exponential, 120*s).Scenario, Repeat: seeds(quick, 4, 1),
		},
		{
			Name: "slots-4", Why: "a limit of 3 loses a quarter", About: Steady,
			Scene: overload(1.5, 4, exponential, 60*s).Scenario, Repeat: seeds(quick, 4, 1),
		},
		{
			Name: "slots-500", Why: "25 times the start", About: Steady,
			Scene: overload(1.5, 500, exponential, short(quick, 30*s, 20*s)).Scenario, Repeat: seeds(quick, 1, 1),
		},
		{
			// 4 slots of 400 ms serve 10/s.
			Name: "probes", Why: "5/s, of 400 ms on 4 slots, and a probe of 1 ms a second: the shortest is a probe",
			Scene: probed.within(3*s, 6*s).probed().Scenario, Repeat: seeds(quick, 4, 1), About: Below,
		},
	}
}

// others are of many instances, and of more than one kind of work.
func others(quick bool) []Case {
	length := short(quick, 90*s, 70*s)
	// 200 slots, max-min fair: the light half wants 300 / 125 = 2.4 each and has it, the
	// heavy half wants 9.6 and has (200 - 25 x 2.4) / 25 = 5.6. The oracle has whole slots:
	// 2 and 6, all of which are busy; of 3 and 5 the 3 would not be.
	half := func(name, reason string, traffic, longer float64) Case {
		return Case{
			Name: name, Why: reason, Scene: mixed(length, traffic, longer).Scenario, Repeat: seeds(quick, 1, 0),
			Truth: []int{2, 6}, Share: []float64{2.4, 5.6},
		}
	}
	return []Case{
		{
			Name: "fleet", Why: "50 instances over one database of 200 slots: no instance sees its own effect",
			Scene: fleet(length).Scenario, Repeat: seeds(quick, 1, 1), Share: []float64{4},
		},
		half("fleet-traffic", "half of the 50 have four times the traffic of the others", 4, 1),
		half("fleet-longer", "half of the 50 have work that takes four times as long", 1, 4),
		{
			Name: "endpoints", Why: "one of two endpoints behind one limiter waits for a slow dependency: not a queue here", About: Steady,
			Scene: endpoints(short(quick, 60*s, 30*s)).Scenario, Repeat: seeds(quick, 2, 1), Truth: []int{183},
		},
	}
}
