// Package limit has the laws that set how many units of cost may run at once.
//
// A law is a value that describes; it keeps no state, so two limiters may share
// one. The state is a number, the limit in force, and belongs to the admission
// core, which hands it to the law with what a window showed and takes the next
// one back.
//
// Laws are pure: no clock, no randomness of their own, no goroutine. The same
// windows give the same limits, in production and in a simulation.
package limit

import (
	"fmt"
	"time"
)

// Max is the largest limit there is. A slot is a request in flight in one
// process; a million of them is past what any resource behind one limiter
// serves, and the bound keeps cost arithmetic far from overflow.
const Max = 1 << 20

// A Law decides the limit, in units of cost. Laws are comparable with ==: a
// configuration that is read again with an equal law keeps the limit in force.
type Law interface {
	// Start returns the limit before anything has been measured. An error
	// states in one sentence which constant is out of range.
	Start() (int, error)

	// Next returns the limit for the next window, given the limit in force
	// and what the last window showed. The core clamps it to [0, Max].
	Next(current int, w Window) int
}

// A Window is what the core measured between two decisions of a law.
type Window struct {
	Length  time.Duration // how long it was
	Samples int           // service times in it; failed and cancelled work gives none
	Mean    time.Duration // mean time that a unit of cost was held by them, 0 without samples

	// Own is Mean without the time that the work spent waiting for, or in, something that
	// has a limit of its own: the signal of a law that looks for contention. A slow
	// dependency makes Mean longer, and fewer slots here would not make that shorter.
	Own time.Duration
}

// Fixed is the law of a limit that someone measured or was told: it stays.
// 0 admits nothing, which pauses a resource without losing who waits.
//
// Use it when the resource has a size (connections of a database, workers of a
// pool). It cannot follow a resource whose capacity changes.
type Fixed int

// Start returns the limit itself.
func (f Fixed) Start() (int, error) {
	if f < 0 || f > Max {
		return 0, fmt.Errorf("limit %d is out of range: a fixed limit is 0 to %d units of cost", int(f), Max)
	}
	return int(f), nil
}

// Next returns the limit itself, whatever the window showed.
func (f Fixed) Next(int, Window) int { return int(f) }

// String returns "fixed(60)".
func (f Fixed) String() string { return fmt.Sprintf("fixed(%d)", int(f)) }
