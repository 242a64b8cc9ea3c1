package sim

import (
	"time"

	"github.com/goodput/goodput/admission"
)

const never = admission.Never

// A call is one attempt of a request, or one sub-request, at one tier. Calls are
// reused; whoever keeps one beyond its life keeps its generation with it.
type call struct {
	gen   uint32
	state state

	class  *class
	sender *sender // the population of the class, or the instance of its parent
	tier   *tier
	in     *instance
	parent *call // whose sub-request it is, while pgen is its generation
	pgen   uint32

	root     time.Duration // when the client first asked
	arrival  time.Duration // of this attempt
	after    time.Duration // how long each attempt is wanted; never: for ever
	deadline time.Duration // of this attempt; never without one
	told     time.Duration // the deadline that its limiter knows; never if nobody said it
	within   time.Duration // of all attempts; never without one
	service  time.Duration // its own work at the tier
	start    time.Duration // when it got its slot
	epoch    uint32        // of its limiter then
	began    time.Duration // when the resource began to work on it
	parted   time.Duration // when it sent its sub-requests
	patience time.Duration // how long a CoDel lets it wait
	bytes    int64
	cost     int
	width    int // units of a baseline's limit that it holds
	slots    int // of the resource that it takes, while it works
	size     int
	toldCost int // what its limiter believes
	toldSize int
	attempt  int             // of all attempts at this and what led to it, as a limiter is told
	share    admission.Share // of the core, while it holds a slot
	who
	counted bool // it arrived in the window
	gone    bool // its client has given up
	watched bool // its client will, at the deadline

	waiter     *admission.Waiter
	next, prev *call // in the queue of a baseline, or at the resource
	heap       int32 // index in an EDF queue
	tries      int32 // attempts of its sender
	left       *call // the list of what is in an instance, kept where it can be killed
	right      *call

	pending, came, need, sent int  // of its fan-out
	shed                      bool // the latest of it that came to nothing was refused: if c fails, the next tier had no room
}

// A who is what a request says of itself in each of its attempts, and where it is
// counted.
type who struct {
	tally  *Tally
	tenant string
	key    string
	cohort int // 0 without users
}

type state uint8

const (
	idle    state = iota
	waits         // in a limiter
	behind        // holds a slot, waits at the resource
	works         // at the resource
	spreads       // waits for its sub-requests
	pauses        // its client will try again
)

// inTime reports whether an answer at now is wanted.
func (c *call) inTime(now time.Duration) bool {
	if c.deadline == never {
		return now-c.arrival <= c.class.objective
	}
	return now <= c.deadline
}
