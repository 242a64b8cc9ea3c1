package suite

import (
	"fmt"
	"math"
)

// What is asked of Auto. The numbers are the promise of the product: a run that misses one
// says so, and nothing here gives way to it.
const (
	leastRatio = 0.97  // of the oracle, in every scenario
	leastMean  = 0.99  // over the scenarios
	lead       = 0.01  // of its worst scenario over that of each other law
	firstTen   = 0.97  // of the new capacity, in the 10 s after a step
	restored   = 4     // seconds, until 95 % is in time again
	coldStart  = 5     // seconds, the same from a cold start
	swing      = 0.10  // deviation of the limit over its mean, in steady load
	refusedMax = 0.001 // of the requests, below capacity
	crowdMin   = 200.0 // in flight at the database of a fleet
	crowdMax   = 400.0
	shareMin   = 0.5 // of its fair share, the mean of each instance
	shareMax   = 2.0
)

// A Criterion is a sentence that holds or not.
type Criterion struct {
	Text     string
	Met      bool
	Measured string // the worst there was
}

// Judge returns the criteria, of the scenarios that were played.
func (s *Suite) Judge() []Criterion {
	j := judge{suite: s, auto: s.law(Auto)}
	j.each("goodput is %v of the oracle's in every scenario", atLeast(leastRatio), func(_ *Case, r *Row) float64 { return r.Ratio })
	worst, sum := j.ratios(j.auto)
	j.add(fmt.Sprintf("and %v of it in the mean of all scenarios", leastMean), sum >= leastMean, fmt.Sprintf("%.4f", sum))
	for k, name := range s.Laws {
		if name == Fixed || name == Auto {
			continue
		}
		other, _ := j.ratios(k)
		j.add(fmt.Sprintf("the worst scenario of %s is %v below that of auto", name, lead), worst-other >= lead, fmt.Sprintf("%.3f against %.3f", other, worst))
	}
	j.each("in the first 10 s after capacity falls, %v of the new one", atLeast(firstTen), func(c *Case, r *Row) float64 { return only(c.Down > 0, r.FirstTen) })
	j.each("95 %% is in time within %v s of its restoration", atMost(restored), func(c *Case, r *Row) float64 { return only(c.Up > 0, r.Restored) })
	j.each("from a cold start 95 %% is in time within %v s", atMost(coldStart), func(c *Case, r *Row) float64 { return only(c.About.is(Cold), r.Settle) })
	j.each("the limit deviates by %v of its mean in steady load", atMost(swing), func(c *Case, r *Row) float64 { return only(c.About.is(Steady), r.Deviation/r.Limit) })
	j.each("%v of the requests are refused below capacity", atMost(refusedMax), func(c *Case, r *Row) float64 { return only(c.About.is(Below), r.Refused) })
	j.each("of a fleet, %v are in flight at the database", atLeast(crowdMin), func(c *Case, r *Row) float64 { return only(c.Share != nil, r.InFlight) })
	j.each("of a fleet, %v are in flight at the database", atMost(crowdMax), func(c *Case, r *Row) float64 { return only(c.Share != nil, r.InFlight) })
	j.each("the mean limit of an instance is %v of its fair share", atLeast(shareMin), func(c *Case, r *Row) float64 { return only(c.Share != nil, r.Least) })
	j.each("the mean limit of an instance is %v of its fair share", atMost(shareMax), func(c *Case, r *Row) float64 { return only(c.Share != nil, r.Most) })
	return j.criteria
}

// skip stands for a scenario that a criterion is not about. It is no NaN: that is
// something which was asked for and not reached.
var skip = math.Inf(-1)

func only(asked bool, v float64) float64 {
	if asked {
		return v
	}
	return skip
}

// A bound is what a figure has to keep.
type bound struct {
	v    float64
	most bool
}

func atLeast(v float64) bound { return bound{v, false} }
func atMost(v float64) bound  { return bound{v, true} }

func (b bound) holds(v float64) bool {
	if b.most {
		return v <= b.v // NaN does not hold
	}
	return v >= b.v
}

func (b bound) String() string {
	if b.most {
		return fmt.Sprintf("at most %v", b.v)
	}
	return fmt.Sprintf("at least %v", b.v)
}

// worse reports whether v is further from what b asks than w.
func (b bound) worse(v, w float64) bool {
	switch {
	case math.IsNaN(w):
		return false
	case math.IsNaN(v):
		return true
	}
	return v > w == b.most && v != w
}

type judge struct {
	suite    *Suite
	auto     int
	criteria []Criterion
}

func (j *judge) add(text string, met bool, measured string) {
	j.criteria = append(j.criteria, Criterion{text, met, measured})
}

// each adds a criterion about the figure of every scenario that it is about. It is left out
// if there is none.
func (j *judge) each(text string, b bound, figure func(*Case, *Row) float64) {
	met, worst, where, missed := true, skip, "", 0
	for i := range j.suite.Cases {
		c := &j.suite.Cases[i]
		v := figure(c, j.suite.Row(i, j.auto))
		if math.IsInf(v, -1) {
			continue
		}
		if !b.holds(v) {
			met = false
			missed++
		}
		if where == "" || b.worse(v, worst) {
			worst, where = v, c.Name
		}
	}
	if where == "" {
		return
	}
	measured := fmt.Sprintf("%s in %s", precise(worst), where)
	if math.IsNaN(worst) {
		measured = "never in " + where
	}
	if missed > 1 {
		measured += fmt.Sprintf(", %d miss it", missed)
	}
	j.add(fmt.Sprintf(text, b), met, measured)
}

// ratios returns the worst and the mean ratio of a law over the scenarios. In the mean, what is
// above 1 counts as 1: who has more than the oracle has a longer queue, where the objective
// forbids that, and it makes up for nothing elsewhere.
func (j *judge) ratios(law int) (worst, mean float64) {
	worst = math.Inf(1)
	for i := range j.suite.Cases {
		r := j.suite.Row(i, law).Ratio
		worst = min(worst, r)
		mean += min(r, 1) / float64(len(j.suite.Cases))
	}
	return worst, mean
}

// precise is v with as many digits as it takes to see on which side of a bound it is.
func precise(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.4g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
