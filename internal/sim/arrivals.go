package sim

import "time"

// Arrivals is how requests come: a process whose rate may change with time.
type Arrivals struct {
	Process Process
	Rate    float64 // per second, to begin with

	// Changes follow one another in time.
	Changes []Change

	// Sine multiplies the rate by 1 + Amplitude sin(2 pi t / Period), drawn as 64
	// straight lines a period, which is within 0.13 % of Amplitude.
	Sine Sine

	// Bursts, if set, is a Markov-modulated process of two states: the rate is
	// Bursts.Rate for an exponential time of mean On, then what the rest says for
	// one of mean Off.
	Bursts Bursts
}

// Process is the law of the gaps between arrivals.
type Process uint8

const (
	Poisson  Process = iota
	Constant         // evenly spaced
)

// A Change is a step of the rate at an instant, or a ramp from there.
type Change struct {
	At   time.Duration
	Rate float64       // per second, reached at At + Over
	Over time.Duration // 0 is a step
}

// A Sine is a wave, of a day perhaps.
type Sine struct {
	Amplitude float64 // 0 to 1
	Period    time.Duration
}

// Bursts is a second rate, with the mean times between the two.
type Bursts struct {
	Rate    float64
	On, Off time.Duration
}
