package virtual

import (
	"encoding/json"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/internal/sim"
)

// A Scene is a load, what serves it, and who is asked to play.
type Scene struct {
	Name  string `json:"name"`
	Title string `json:"title"`

	Load   float64 `json:"load"`   // times what the slots serve, Poisson
	Phases []Stage `json:"phases"` // the slots, one after the other
	Work   Work    `json:"work"`

	Deadline Span `json:"deadline_ms"` // a caller leaves so long after it asked

	// Stall, if set, is a stretch in which the service begins nothing; what it is working
	// on goes to its end.
	Stall *Stall `json:"stall,omitempty"`

	// Attempts are how often a caller asks in all, each time with the whole deadline: again
	// after a refusal or its deadline, and a random time of up to 200 ms, and up to twice
	// as long each time.
	Attempts int `json:"attempts"`

	// Who plays.
	Who []string `json:"-"`
}

// players are those that s is for, in the order of Contestants.
func (s Scene) players() []Contestant {
	var all []Contestant
	for _, c := range Contestants {
		if slices.Contains(s.Who, c.Name) {
			all = append(all, c)
		}
	}
	return all
}

// A Stage is so long with so many slots.
type Stage struct {
	Length Span `json:"length_ms"`
	Slots  int  `json:"slots"`
}

// A Stall is from At on, For so long.
type Stall struct {
	At  Span `json:"at_ms"`
	For Span `json:"for_ms"`
}

// Work is how long a request takes a slot: fixed, exponential or lognormal.
type Work struct {
	Shape string  `json:"shape"`
	Mean  Span    `json:"mean_ms"`
	CV    float64 `json:"cv,omitempty"` // of lognormal
}

// Span is a time that is written in milliseconds.
type Span time.Duration

// MarshalJSON writes milliseconds.
func (s Span) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(s) / float64(time.Millisecond))
}

// UnmarshalJSON reads milliseconds.
func (s *Span) UnmarshalJSON(b []byte) error {
	var ms float64
	err := json.Unmarshal(b, &ms)
	*s = Span(math.Round(ms * float64(time.Millisecond)))
	return err
}

// dist is w as the simulator has it.
func (w Work) dist() sim.Dist {
	kinds := map[string]sim.Kind{"fixed": sim.Fixed, "exponential": sim.Exponential, "lognormal": sim.Lognormal}
	return sim.Dist{Kind: kinds[w.Shape], Mean: time.Duration(w.Mean), CV: w.CV}
}

// plan is s as package live has it, whose work is exponential.
func (s Scene) plan(seed uint64) live.Plan {
	p := live.Plan{
		Name: s.Name, Rate: s.rate(), Service: time.Duration(s.Work.Mean),
		Seed: seed, Deadline: time.Duration(s.Deadline), Objective: live.Objective,
	}
	for _, st := range s.Phases {
		p.Phases = append(p.Phases, live.Phase{Length: time.Duration(st.Length), Slots: st.Slots})
	}
	return p
}

// capacity returns the requests per second that so many slots serve.
func (s Scene) capacity(slots int) float64 {
	return float64(slots) / time.Duration(s.Work.Mean).Seconds()
}

func (s Scene) rate() float64 { return s.Load * s.capacity(s.Phases[0].Slots) }

func (s Scene) length() time.Duration {
	var sum Span
	for _, st := range s.Phases {
		sum += st.Length
	}
	return time.Duration(sum)
}

// Requests yields those of a seed in the order in which they are due. Whatever the shape,
// the work of a request is at the same quantile: what is long in one is long in the other.
func (s Scene) Requests(seed uint64) iter.Seq[live.Request] {
	d, mean := s.Work.dist(), float64(s.Work.Mean)
	return func(yield func(live.Request) bool) {
		for r := range s.plan(seed).Requests() {
			if d.Kind != sim.Exponential {
				r.Work = d.Quantile(-math.Expm1(-float64(r.Work) / mean))
			}
			r.Work = max(r.Work, 1) // of a lognormal the 0-quantile is 0
			if !yield(r) {
				return
			}
		}
	}
}
