package sim

import "time"

// Speed is how fast the resource of a tier works as time goes: work of 50 ms takes
// 100 ms at half the speed, and what is under way feels it.
type Speed struct {
	Steps  []SpeedStep // in order of time; before the first the speed is 1
	Stalls []Stall     // nothing moves
	Pauses Pauses
}

// A SpeedStep changes the speed for good.
type SpeedStep struct {
	At     time.Duration
	Factor float64 // 0.5 is half as fast
}

// A Stall stops the resource for a while.
type Stall struct {
	At, For time.Duration
}

// Pauses stop the resource again and again, as a garbage collection that stops
// the world does: one of length For after each exponential time of mean Every.
type Pauses struct {
	Every, For time.Duration
}
