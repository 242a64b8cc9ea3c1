package simulated

import (
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

const ms = time.Millisecond

// Objective is the p99 that the limiter is to keep.
const Objective = 400 * ms

// An Overload is what one scene came to, over its seeds.
type Overload struct {
	Work     string  `json:"work"` // fixed, exponential, lognormal
	Slots    int     `json:"slots"`
	Mean     float64 `json:"mean_ms"`
	Load     float64 `json:"load_x"`
	Deadline float64 `json:"deadline_ms"`

	Goodput Spread `json:"goodput"` // in time / min(offered, capacity), at the mean of the work that was served
	Refused Spread `json:"refused_share"`
	P50     Spread `json:"p50_ms"` // of all that got a slot, late ones included
	P99     Spread `json:"p99_ms"`
	Told    Spread `json:"refusal_p50_ms"` // until a refused one knew
}

// A shape is a distribution of work by its name.
type shape struct {
	name string
	of   func(mean time.Duration) sim.Dist
}

var (
	fixed       = shape{"fixed", func(m time.Duration) sim.Dist { return sim.Dist{Kind: sim.Fixed, Mean: m} }}
	exponential = shape{"exponential", func(m time.Duration) sim.Dist { return sim.Dist{Kind: sim.Exponential, Mean: m} }}
	lognormal   = shape{"lognormal, CV 1.4", func(m time.Duration) sim.Dist { return sim.Dist{Kind: sim.Lognormal, Mean: m, CV: 1.4} }}
	wide        = shape{"lognormal, CV 2", func(m time.Duration) sim.Dist { return sim.Dist{Kind: sim.Lognormal, Mean: m, CV: 2} }}
)

// A scene is a load on slots that a limiter is told.
type scene struct {
	work     shape
	slots    int
	mean     time.Duration
	load     float64 // of what the slots can do
	deadline time.Duration
	length   time.Duration
}

// warm is not counted: the time in which the service is measured and a standing overload is
// told from a burst.
const warm = 2 * time.Second

func (s scene) capacity() float64 { return float64(s.slots) / s.mean.Seconds() }

func (s scene) play(policy sim.Policy, seed uint64) (*sim.Result, error) {
	return sim.Run(s.scenario(policy), seed)
}

func (s scene) scenario(policy sim.Policy) sim.Scenario {
	return sim.Scenario{
		Name: s.work.name, Length: warm + s.length, Warmup: warm,
		Tiers: []sim.Tier{{Slots: s.slots, Policy: policy, Service: s.work.of(s.mean), Objective: Objective}},
		Classes: []sim.Class{{
			Arrivals: sim.Arrivals{Rate: s.load * s.capacity()}, Patience: sim.Vanishes,
			Deadlines: []sim.Deadline{{After: s.deadline, Share: 1}},
		}},
	}
}

// ours is goodput as the README shows it, told so many slots.
func ours(slots int) sim.Policy {
	return sim.Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(slots), Objective: Objective}}
}

// finding is goodput with a limit that finds itself.
func finding() sim.Policy {
	return sim.Policy{Name: "goodput, a limit that finds itself", Core: &admission.Config{Limit: limit.Auto{}, Objective: Objective}}
}

// goodput is what was answered in time of the smaller of what was offered and of what the
// slots do at the mean of the work that they were given. That mean is known: who does not look
// at the work cannot choose it, and without it the ratio would vary by what a few thousand draws
// add up to, 1 % of 10,000.
func (s scene) goodput(r *sim.Result) float64 {
	if r.Total.Served == 0 {
		return 0
	}
	mean := r.Total.Work.Seconds() / float64(r.Total.Served)
	could := float64(s.slots) / mean * r.Window.Seconds()
	return float64(r.Total.InTime) / min(could, float64(r.Total.Requests))
}

// overload plays s with each seed, before a limit that is told the slots.
func (s scene) overload(seeds []uint64) (Overload, error) {
	return s.behind(ours(s.slots), warm, seeds)
}

// behind plays s with each seed behind a policy, and does not count the first while.
func (s scene) behind(policy sim.Policy, first time.Duration, seeds []uint64) (Overload, error) {
	var goodput, refused, p50, p99, told []float64
	all := s.scenario(policy)
	all.Warmup, all.Length = first, first+s.length
	for _, seed := range seeds {
		r, err := sim.Run(all, seed)
		if err != nil {
			return Overload{}, err
		}
		goodput = append(goodput, s.goodput(r))
		refused = append(refused, float64(r.Total.Refused)/float64(r.Total.Requests))
		p50 = append(p50, milliseconds(&r.Total.Latency, 0.5))
		p99 = append(p99, milliseconds(&r.Total.Latency, 0.99))
		if r.Total.Told.Count > 0 {
			told = append(told, milliseconds(&r.Total.Told, 0.5))
		}
	}
	return Overload{
		Work: s.work.name, Slots: s.slots, Mean: s.mean.Seconds() * 1e3, Load: s.load, Deadline: s.deadline.Seconds() * 1e3,
		Goodput: spreadOf(goodput), Refused: spreadOf(refused), P50: spreadOf(p50), P99: spreadOf(p99), Told: spreadOf(told),
	}, nil
}

// grid is work whose p99 is at most half of the objective: 20 ms of mean have one of 20, 92 and
// 127 ms. 18,000 served or more. It is played twice: before a limit that is told the slots, and
// before one that finds them, which has searched for 20 s when the counting begins.
func grid(s Setup, r *Result) error {
	const mean = 20 * ms
	for _, work := range []shape{fixed, exponential, lognormal} {
		for _, slots := range []int{8, 60, 200} {
			for _, load := range []float64{1.5, 3, 10} {
				length := s.length(max(10*time.Second, 18_000/time.Duration(slots)*mean))
				one := scene{work, slots, mean, load, Objective, length}
				told, err := one.overload(r.Seeds)
				if err != nil {
					return err
				}
				finds, err := one.behind(finding(), s.length(20*time.Second), r.Seeds)
				if err != nil {
					return err
				}
				r.Grid, r.Finds = append(r.Grid, told), append(r.Finds, finds)
			}
		}
	}
	return nil
}

// milliseconds returns a quantile of h, 0 of none.
func milliseconds(h *hist.Histogram, q float64) float64 {
	d, _ := h.Quantile(q)
	return d.Seconds() * 1e3
}
