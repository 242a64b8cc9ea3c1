package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Dist is a distribution of times.
type Dist struct {
	Kind Kind
	Mean time.Duration // of all but Modal and Empirical: above 0, to 30 days

	CV    float64 // of Lognormal: the coefficient of variation, standard deviation over mean; above 0, to 100
	Alpha float64 // of Pareto: the index of its tail, above 1, to 100; at 2 and below the variance is infinite

	Modes   []Mode          // of Modal
	Samples []time.Duration // of Empirical: drawn evenly, in any order
}

// A Mode is one value of a Modal distribution.
type Mode struct {
	Value time.Duration
	Share float64 // relative to the others
}

// Kind is the family of a distribution.
type Kind uint8

const (
	Fixed Kind = iota
	Exponential
	Lognormal
	Pareto
	Modal     // a few values, such as 2 ms and 4 s
	Empirical // recorded values
)

// zero reports whether d says nothing.
func (d *Dist) zero() bool {
	return d.Kind == Fixed && d.Mean == 0 && len(d.Modes) == 0 && len(d.Samples) == 0
}

// validate returns what is wrong with d, as a sentence that follows a name.
func (d *Dist) validate() error {
	switch d.Kind {
	case Fixed, Exponential, Lognormal, Pareto:
		if d.Mean <= 0 || d.Mean > maxTime {
			return fmt.Errorf("mean %v is out of range: above 0, to %v", d.Mean, maxTime)
		}
	case Modal:
		return validateShares("modes", len(d.Modes), func(i int) float64 {
			if v := d.Modes[i].Value; v < 0 || v > maxTime {
				return math.NaN()
			}
			return d.Modes[i].Share
		})
	case Empirical:
		if len(d.Samples) == 0 {
			return fmt.Errorf("samples are missing: say one recorded time at least")
		}
		for _, v := range d.Samples {
			if v < 0 || v > maxTime {
				return fmt.Errorf("sample %v is out of range: 0 to %v", v, maxTime)
			}
		}
	default:
		return fmt.Errorf("kind %d is unknown", d.Kind)
	}
	if d.Kind == Lognormal && !(d.CV > 0 && d.CV <= 100) {
		return fmt.Errorf("cv %v is out of range: above 0, to 100", d.CV)
	}
	if d.Kind == Pareto && !(d.Alpha > 1 && d.Alpha <= 100) {
		return fmt.Errorf("alpha %v is out of range: above 1, where the mean is finite, to 100", d.Alpha)
	}
	return nil
}

// validateShares returns what is wrong with n relative shares.
func validateShares(name string, n int, share func(int) float64) error {
	if n > maxParts {
		return fmt.Errorf("%s are %d: at most %d", name, n, maxParts)
	}
	sum := 0.0
	for i := range n {
		s := share(i)
		if !(s >= 0 && s <= 1e9) {
			return fmt.Errorf("%s: entry %d is out of range: times from 0 to %v, shares from 0 to 1e9", name, i+1, maxTime)
		}
		sum += s
	}
	if sum <= 0 {
		return fmt.Errorf("%s: the shares add up to 0", name)
	}
	return nil
}

// average returns the mean.
func (d *Dist) average() time.Duration {
	sum, weight := 0.0, 0.0
	switch d.Kind {
	case Modal:
		for _, m := range d.Modes {
			sum += float64(m.Value) * m.Share
			weight += m.Share
		}
	case Empirical:
		for _, v := range d.Samples {
			sum += float64(v)
		}
		weight = float64(len(d.Samples))
	default:
		return d.Mean
	}
	if weight == 0 {
		return 0
	}
	return time.Duration(sum / weight)
}

// Quantile returns the q-quantile, 0 < q < 1.
func (d Dist) Quantile(q float64) time.Duration {
	mean := float64(d.Mean)
	switch d.Kind {
	case Exponential:
		return cut(-mean * math.Log1p(-q))
	case Lognormal:
		s2 := math.Log1p(d.CV * d.CV)
		return cut(mean * math.Exp(-s2/2+math.Sqrt(2*s2)*math.Erfinv(2*q-1)))
	case Pareto:
		return cut(mean * (d.Alpha - 1) / d.Alpha * math.Pow(1-q, -1/d.Alpha))
	case Modal:
		return d.modalQuantile(q)
	case Empirical:
		if len(d.Samples) == 0 {
			return 0
		}
		sorted := slices.Sorted(slices.Values(d.Samples))
		return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
	}
	return d.Mean
}

func (d *Dist) modalQuantile(q float64) time.Duration {
	modes := slices.SortedFunc(slices.Values(d.Modes), func(a, b Mode) int { return cmp.Compare(a.Value, b.Value) })
	sum := 0.0
	for _, m := range modes {
		sum += m.Share
	}
	for _, m := range modes {
		if q -= m.Share / sum; q < 0 {
			return m.Value
		}
	}
	if len(modes) == 0 {
		return 0
	}
	return modes[len(modes)-1].Value
}

// maxTime bounds every time of a scenario, and every draw: thirty days of
// nanoseconds, a thousandth of what a time.Duration holds, so that sums of a few
// do not overflow.
const maxTime = 30 * 24 * time.Hour

// horizon bounds instants, and sums of times: a century of nanoseconds, a third of what
// a time.Duration holds. Work that would end beyond it ends there.
const horizon = 100 * 365 * 24 * time.Hour

// cut returns ns as a duration within the bounds.
func cut(ns float64) time.Duration {
	if !(ns > 0) {
		return 0
	}
	return time.Duration(min(ns, float64(maxTime)))
}

// A sampler draws from a Dist, with what can be computed once computed once.
type sampler struct {
	kind  Kind
	mean  float64 // ns
	mu, s float64 // of Lognormal
	low   float64 // ns, of Pareto: the least value
	inv   float64 // of Pareto: -1/alpha
	dist  *Dist
	cdf   []float64 // of Modal
}

func newSampler(d *Dist) sampler {
	s := sampler{kind: d.Kind, mean: float64(d.Mean), dist: d}
	switch d.Kind {
	case Lognormal:
		s2 := math.Log1p(d.CV * d.CV)
		s.mu, s.s = math.Log(s.mean)-s2/2, math.Sqrt(s2)
	case Pareto:
		s.low, s.inv = s.mean*(d.Alpha-1)/d.Alpha, -1/d.Alpha
	case Modal:
		s.cdf = shares(len(d.Modes), func(i int) float64 { return d.Modes[i].Share })
	}
	return s
}

func (s *sampler) draw(r *rand.Rand) time.Duration {
	switch s.kind {
	case Exponential:
		return cut(s.mean * r.ExpFloat64())
	case Lognormal:
		return cut(math.Exp(s.mu + s.s*r.NormFloat64()))
	case Pareto:
		return cut(s.low * math.Pow(1-r.Float64(), s.inv))
	case Modal:
		return s.dist.Modes[pick(s.cdf, r)].Value
	case Empirical:
		return s.dist.Samples[r.IntN(len(s.dist.Samples))]
	}
	return time.Duration(s.mean)
}

// shares returns the cumulated shares of n entries, ending with 1.
func shares(n int, share func(int) float64) []float64 {
	cdf, sum := make([]float64, n), 0.0
	for i := range cdf {
		sum += share(i)
		cdf[i] = sum
	}
	for i := range cdf {
		cdf[i] /= sum
	}
	return cdf
}

// pick draws an index by cumulated shares.
func pick(cdf []float64, r *rand.Rand) int {
	if len(cdf) == 1 {
		return 0
	}
	u := r.Float64()
	for i, c := range cdf {
		if u < c {
			return i
		}
	}
	return len(cdf) - 1
}
