package simulated

import (
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// A Step is a capacity that halves and is restored, under a load of 1.5 times all of it.
type Step struct {
	Limit string `json:"limit"` // who finds it
	What  string `json:"what"`  // halves

	First    Spread `json:"first_10s"`  // of the new capacity, after it halved
	Restored Spread `json:"restored_s"` // until 95 % is in time again, after it was restored
}

// stepSeeds is how often a step is played: 6,000 answers in 10 s vary by 1.3 %, the mean of
// eight by 0.5 %.
const stepSeeds = 8

// bin of the series: a tenth of a second.
const bin = 100 * ms

// steps plays slots that halve, as where instances go away, and a speed that halves, as where
// a dependency slows. The limit finds itself.
func steps(s Setup, r *Result) error {
	for _, what := range []string{"slots", "speed"} {
		var firsts, backs []float64
		seeds := uint64(stepSeeds)
		if s.brief() {
			seeds = 2
		}
		for seed := range seeds {
			first, back, err := step(what, seed+1)
			if err != nil {
				return err
			}
			firsts, backs = append(firsts, first), append(backs, back)
		}
		r.Steps = append(r.Steps, Step{Limit: "auto", What: what, First: spreadOf(firsts), Restored: spreadOf(backs)})
	}
	return nil
}

// Times of a step: the limit has found its place before it.
const (
	halves   = 20 * time.Second
	restores = 40 * time.Second
	ended    = 60 * time.Second
)

func step(what string, seed uint64) (first, back float64, err error) {
	const slots, mean, load = 60, 50 * ms, 1.5
	capacity := slots / mean.Seconds()
	tier := sim.Tier{
		Slots: slots, Objective: Objective, Service: exponential.of(mean),
		Policy: sim.Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Auto{}, Objective: Objective}},
	}
	if what == "slots" {
		tier.SlotSteps = []sim.SlotStep{{At: halves, Slots: slots / 2}, {At: restores, Slots: slots}}
	} else {
		tier.Speed.Steps = []sim.SpeedStep{{At: halves, Factor: 0.5}, {At: restores, Factor: 1}}
	}
	r, err := sim.Run(sim.Scenario{
		Length: ended, Bins: int(ended / bin), Tiers: []sim.Tier{tier},
		Classes: []sim.Class{{
			Arrivals: sim.Arrivals{Rate: load * capacity}, Patience: sim.Vanishes,
			Deadlines: []sim.Deadline{{After: 2 * time.Second, Share: 1}},
		}},
	}, seed)
	if err != nil {
		return 0, 0, err
	}
	first = inTime(r, halves, halves+10*time.Second) / (10 * capacity / 2)
	// 2 s of 1,200/s are 2,400 answers, which vary by 2 %: windows of less would be noise.
	const window = 2 * time.Second
	for at := restores; at+window <= ended; at += bin {
		if inTime(r, at, at+window) >= 0.95*capacity*window.Seconds() {
			return first, (at - restores).Seconds(), nil
		}
	}
	return first, (ended - restores).Seconds(), nil
}

// inTime counts the answers between two instants.
func inTime(r *sim.Result, from, to time.Duration) float64 {
	n := uint64(0)
	for _, b := range r.Series[from/bin : to/bin] {
		n += b.InTime
	}
	return float64(n)
}

// A Stall is five seconds in which nothing moves, at 0.9 of the capacity, with clients that
// send a request up to three times.
type Stall struct {
	Policy   string  `json:"policy"`
	Deadline float64 `json:"deadline_ms"`
	Back     Spread  `json:"back_s"` // until the goodput was back for good; at the end of the run: never
	Never    int     `json:"never"`  // of the seeds
}

// Times of a stall.
const (
	stalled  = 10 * time.Second
	resumes  = 15 * time.Second
	finished = 45 * time.Second
)

func stalls(_ Setup, r *Result) error {
	unbounded, err := sim.Named("unbounded_fifo", 60, 0, exponential.of(50*ms))
	if err != nil {
		return err
	}
	unbounded.Name = "a limit with an unbounded queue"
	for _, p := range []sim.Policy{ours(60), unbounded} {
		for _, deadline := range []time.Duration{2 * time.Second, Objective} {
			one := Stall{Policy: p.Name, Deadline: deadline.Seconds() * 1e3}
			var backs []float64
			for _, seed := range r.Seeds {
				back, ok, err := stall(p, deadline, seed)
				if err != nil {
					return err
				}
				if !ok {
					one.Never++
				}
				backs = append(backs, back)
			}
			one.Back = spreadOf(backs)
			r.Stalls = append(r.Stalls, one)
		}
	}
	return nil
}

// stall returns the seconds after its end from which on each second has answers in time for
// 0.95 of its arrivals, less 0.04: what is under way at the two ends of a second differs by 11,
// 1 % of 1,080, and four times that is no news. The clients are naive: three attempts, a tenth
// of a second apart, with no budget.
func stall(p sim.Policy, deadline time.Duration, seed uint64) (back float64, ok bool, err error) {
	s := scene{exponential, 60, 50 * ms, 0.9, deadline, finished - warm}.scenario(p)
	s.Warmup, s.Bins = 0, int(finished/bin)
	s.Tiers[0].Speed.Stalls = []sim.Stall{{At: stalled, For: resumes - stalled}}
	s.Classes[0].Retry = sim.Retry{Attempts: 3, Backoff: 100 * ms, Max: 100 * ms, NoJitter: true}
	r, err := sim.Run(s, seed)
	if err != nil {
		return 0, false, err
	}
	const second = int(time.Second / bin)
	last := len(r.Series) - second
	for i := last; i >= int(resumes/bin); i-- {
		var good, arrived uint64
		for _, b := range r.Series[i : i+second] {
			good += b.InTime
			arrived += b.Arrivals
		}
		if float64(good) < (0.95-0.04)*float64(arrived) {
			at := time.Duration(i+1)*bin - resumes
			return at.Seconds(), i < last, nil
		}
	}
	return 0, true, nil
}
