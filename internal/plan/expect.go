package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// Expected is what an overload that lasts looks like: a simulation of the
// admission core, with clients that leave at the deadline and do not try again.
type Expected struct {
	Load        float64 `json:"load"`
	Offered     float64 `json:"offered_rate"`
	InTime      float64 `json:"in_time_rate"`
	Goodput     float64 `json:"goodput_ratio"` // in time / capacity
	Refused     float64 `json:"refused_rate"`
	P50Wait     float64 `json:"p50_wait_seconds"`
	P99Wait     float64 `json:"p99_wait_seconds"`
	P50Response float64 `json:"p50_response_seconds"`
	P99Response float64 `json:"p99_response_seconds"`
	P50Told     float64 `json:"p50_refusal_seconds"` // from arrival to refusal
	Served      uint64  `json:"served_requests"`     // that the percentiles of wait and response are of
	Slots       int     `json:"simulated_slots"`     // fewer than the limit where that would take too long
}

const (
	// Seed makes a plan say the same each time.
	Seed = 1

	// maxRequests bounds the simulations of one plan, all loads together: a third of
	// a second at the million a second that the simulator does at least.
	maxRequests = 300_000

	// maxWindows bounds them likewise: the core measures every Objective/8, and
	// every 100 ms at least, whether anything comes or not.
	maxWindows = 300_000

	// settle is how long the core may take to see that an overload lasts: two
	// objectives of standing queue, and as many for the measured load to come in.
	// Lengths are in objectives, or in units of five services where that is more.
	settle       = 5
	unitServices = 5

	// measured is how long the answer is measured: 40 units, and at most what
	// maxRequests leaves. 60 slots of 50 ms and an objective of 400 ms then serve
	// 18,000 requests, and the standard error of the p99 of an exponential service
	// is sqrt(0.01 x 0.99/18000)/0.01 = 7 % of its mean, 1.6 % of itself.
	measured    = 40
	minMeasured = 5
)

// expect plays the overloads that Loads names.
func (l *Limiter) expect() error {
	slots, long := l.extent()
	if slots == 0 {
		return nil
	}
	objective, unit := l.in.Objective, seconds(l.unit())
	rate := float64(slots) / l.ServiceMean
	for _, load := range Loads {
		r, err := sim.Run(sim.Scenario{
			Name: "plan", Warmup: settle * unit, Length: time.Duration((settle + long) * float64(unit)), Bins: 1,
			Tiers: []sim.Tier{{
				Name:    "service",
				Service: l.server.dist,
				Policy: sim.Policy{Name: "goodput", Core: &admission.Config{
					Limit: limit.Fixed(slots), Objective: objective, Percentile: l.Percentile, MaxItems: Most,
				}},
			}},
			Classes: []sim.Class{{
				Name: "callers", Arrivals: sim.Arrivals{Rate: load * rate},
				Deadlines: []sim.Deadline{{After: l.in.Deadline, Share: 1}},
			}},
		}, Seed)
		if err != nil {
			return fmt.Errorf("simulating %gx: %w", load, err)
		}
		t := &r.Total
		// The goodput is the share of the slots that worked, and for answers in
		// time: unlike a count over the window it does not move with how much work
		// was drawn (1 % for 10,000 exponential services).
		busy := min(1, t.Work.Seconds()/(float64(slots)*r.Window.Seconds()))
		good := busy * float64(t.InTime) / max(1, float64(t.Served))
		late := busy * float64(t.Late) / max(1, float64(t.Served))
		e := Expected{
			Load: load, Offered: load * l.CompletionRate, Goodput: good, InTime: good * l.CompletionRate,
			Refused: max(0, load-good-late) * l.CompletionRate,
			Served:  t.Served, Slots: slots,
		}
		for _, q := range []struct {
			to *float64
			h  interface {
				Quantile(float64) (time.Duration, bool)
			}
			q float64
		}{
			{&e.P50Wait, &t.Wait, 0.5},
			{&e.P99Wait, &t.Wait, l.Percentile},
			{&e.P50Response, &t.Latency, 0.5},
			{&e.P99Response, &t.Latency, l.Percentile},
			{&e.P50Told, &t.Told, 0.5},
		} {
			d, _ := q.h.Quantile(q.q) // nothing was counted: 0
			*q.to = d.Seconds()
		}
		l.Expected = append(l.Expected, e)
	}
	return nil
}

// extent returns how many slots to simulate and for how many objectives, within
// maxRequests: first it measures less, then it takes fewer slots, which wait
// longer than many and so err on the safe side. 0 slots: even one is too many
// requests, since the objective is thousands of services long.
func (l *Limiter) extent() (slots int, long float64) {
	loads := 0.0
	for _, load := range Loads {
		loads += load
	}
	windows := float64(len(Loads)) * l.unit() / min(max(l.Objective/8, 0.005), 0.1) // of one unit, all loads
	if windows*(settle+minMeasured) > maxWindows {
		return 0, 0
	}
	// Requests of one unit, all loads, for each slot.
	per := loads * l.unit() / l.ServiceMean
	long = maxRequests/(per*float64(l.Limit)) - settle
	if long >= minMeasured {
		return l.Limit, min(long, measured, maxWindows/windows-settle)
	}
	slots = int(math.Floor(maxRequests / (per * (settle + minMeasured))))
	return min(slots, l.Limit), minMeasured
}

// unit is what lengths are counted in, in seconds.
func (l *Limiter) unit() float64 { return max(l.Objective, unitServices*l.ServiceMean) }
