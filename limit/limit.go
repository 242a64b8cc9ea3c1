// Package limit has the laws that set how many units of cost may run at once.
//
// A Law is a value that describes: its type and its constants. It keeps no state, so
// two limiters may share one. Each limiter has a State of its own, which the law begins
// and which answers, after every window of measurements, with the limit for the next.
//
// Laws are pure: no clock, no goroutine, and no randomness but what follows from the
// seed that they are begun with. The same windows give the same limits, in production
// and in a simulation.
package limit

import "fmt"

// Max is the largest limit there is. A slot is a request in flight in one
// process; a million of them is past what any resource behind one limiter
// serves, and the bound keeps cost arithmetic far from overflow.
const Max = 1 << 20

// A Law decides the limit, in units of cost. Laws are comparable with ==: a
// configuration that is read again with an equal law keeps the limit in force and
// all that has been learnt.
type Law interface {
	// Start returns the limit before anything has been measured. An error
	// states in one sentence which constant is out of range.
	Start() (int, error)

	// Begin returns the state of one limiter. It is called only on a law whose Start has
	// no error. What is random in a law, so that the instances of a service do not all do
	// the same at the same time, follows from seed.
	Begin(seed uint64) State
}

// A State is a law at work in one limiter. It is not safe for concurrent use.
type State interface {
	// Next returns the limit for the next window, given the limit in force and what the
	// last window showed. Of the answer the core goes as far as twice the limit in force, or 4
	// more, and half of it, and not to 0. w is not to be kept.
	Next(current int, w *Window) Move

	// Why says, in a line and with the numbers, why the limit last moved, or "" if it
	// never has.
	Why() string
}

// A Move is what a law answers with.
type Move struct {
	Limit int // for the next window

	// Mark ends the current epoch: what is admitted from now on is another one. See
	// Window.Epochs.
	Mark bool

	// Search says that the capacity is not known yet and the limit may be far below it. The
	// queue then stays as deep as the deadline allows: what looks like an overload may be
	// the limit alone.
	Search bool
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

// Begin returns the limit itself, which has nothing to learn.
func (f Fixed) Begin(uint64) State { return f }

// Next returns the limit itself, whatever the window showed.
func (f Fixed) Next(int, *Window) Move { return Move{Limit: int(f)} }

// Why returns "": it never moves.
func (f Fixed) Why() string { return "" }

// String returns "fixed(60)".
func (f Fixed) String() string { return fmt.Sprintf("fixed(%d)", int(f)) }
