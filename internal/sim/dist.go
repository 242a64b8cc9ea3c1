package sim

import "time"

// A Dist is a distribution of times.
type Dist struct {
	Kind Kind
	Mean time.Duration // of all but Modal and Empirical

	CV    float64 // of Lognormal: the coefficient of variation, standard deviation over mean
	Alpha float64 // of Pareto: the index of its tail, above 1

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

func (d Dist) mean() time.Duration { return d.Mean }

// Quantile returns the q-quantile, 0 < q < 1.
func (d Dist) Quantile(q float64) time.Duration { return d.Mean }
