package suite

import (
	"math"

	"github.com/goodput/goodput/internal/sim"
)

// A Row is what one law did in one scenario, over all seeds. NaN is no number: it does not
// apply, or it was not reached.
type Row struct {
	Scenario, Law string
	Seeds         []uint64

	Offered, Goodput, Oracle float64 // per second; in time is within 2 s where nothing else is said
	Ratio                    float64 // of the goodput to that of the oracle
	RatioObjective           float64 // the same of what was answered within the objective
	P99                      float64 // seconds, of all that got a slot
	Settle                   float64 // seconds, since the start or the last change, until 95 % of the oracle's are in time, and stay so
	Limit, Deviation         float64 // of the limit over time, in the steady part; of all instances of the first tier together
	Refused                  float64 // share of the requests

	FirstTen float64 // mean of the 10 s after the capacity fell, of the new one
	Restored float64 // seconds after it was restored until 95 % of what was offered and can be served is in time

	InFlight, PeakInFlight float64 // at the database of a fleet
	Least, Most            float64 // mean limit of an instance over its fair share

	requests uint64 // simulated
}

// row compares o with the oracle.
func (c *Case) row(law string, o, oracle *outcome) Row {
	nan := math.NaN()
	r := Row{
		Scenario: c.Name, Law: law, Seeds: o.seeds,
		Offered: float64(o.requests) / o.length, Goodput: float64(o.inTime) / o.length, Oracle: float64(oracle.inTime) / o.length,
		Ratio: float64(o.inTime) / float64(oracle.inTime), RatioObjective: o.within / oracle.within,
		P99: nan, Limit: o.mean, Deviation: o.dev, Refused: float64(o.refused) / float64(o.requests),
		FirstTen: nan, Restored: nan, InFlight: nan, PeakInFlight: nan, Least: nan, Most: nan,
		requests: o.simulated,
	}
	if p99, ok := o.latency.Quantile(0.99); ok {
		r.P99 = p99.Seconds()
	}
	cv := c.cv()
	r.Settle = o.settled(oracle.ends, cv, c.changed().Seconds())
	if c.Down > 0 {
		from := c.Down.Seconds()
		r.FirstTen = o.between(from, from+10) / c.Low
	}
	if c.Up > 0 {
		t := &c.Scene.Tiers[0]
		able := min(rate(t.Slots, t.Service), c.Scene.Classes[0].Arrivals.Rate)
		r.Restored = o.settled(o.level(able), cv, c.Up.Seconds())
	}
	if o.hasInstances {
		r.InFlight, r.PeakInFlight, r.Least, r.Most = o.inFlight, float64(o.peak), o.least, o.most
	}
	return r
}

// cv is the coefficient of variation of the work.
func (c *Case) cv() float64 {
	work := &c.Scene.Tiers[len(c.Scene.Tiers)-1].Service
	switch work.Kind {
	case sim.Exponential:
		return 1
	case sim.Lognormal:
		return work.CV
	case sim.Modal:
		sum, n, avg := 0.0, 0.0, mean(*work).Seconds()
		for _, m := range work.Modes {
			d := m.Value.Seconds() - avg
			sum, n = sum+d*d*m.Share, n+m.Share
		}
		return math.Sqrt(sum/n) / avg
	}
	return 0
}
