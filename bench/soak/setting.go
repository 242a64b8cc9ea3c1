package soak

import "time"

// The load. Each of the two classes that queue has slots of its own in the servers:
// 2 servers x 10 slots / 100 ms = 200/s, and 1.2 times that is 240/s for each, 480/s together,
// which is less than half a core for everything here.
const (
	servers     = 2
	slotsEach   = 10 // of one server, for one class
	meanService = 100 * time.Millisecond
	multiple    = 1.2

	capacity = servers * slotsEach / 0.1 // of one class, per second: meanService is 0.1 s
	rate     = multiple * capacity       // of one class, per second

	// Streams and WebSockets, which are no part of the 1.2: about 1.5/s x 3 s = 5 open.
	lastingRate = 1.5
	lastingMean = 3 * time.Second
)

// objective is what the classes promise. An exponential service of 100 ms has a 99th
// percentile of 460 ms: less than half of this, so a queue fits.
const objective = time.Second

// Deadlines. Those of the class auto are all the same; of the class plain three in ten have
// the longer one, and one in ten brings none and has the cap: there the order of an overload is
// earliest deadline first.
const (
	shortDeadline = 2 * time.Second
	longDeadline  = 3 * time.Second
	deadlineCap   = 5 * time.Second
)

// hopMargin is what goodput takes off a deadline for the way back.
const hopMargin = 5 * time.Millisecond

// patience is how much longer clients wait than they have said: somebody who is told nothing
// until then was left hanging.
const patience = 2 * time.Second

// Times of the policy that bound what a server that went away, or a slow client, can do.
const (
	slowStart  = 2 * time.Second // of a server that is back
	slowClient = 3 * time.Second
)

// settling is how long after a server is back goodput is not judged: a check each second, of
// which two must be good, then the slow start, make 4 s, and a limit that finds itself has
// another 6.
const settling = 10 * time.Second

// lateMost is how late a request may be sent in a second that is judged: a twentieth of the
// objective. More is the machine's other work, which the servers and the proxy felt as well.
const lateMost = objective / 20

// WarmUp is how long memory and goodput are not judged at the start: buffers are touched for
// the first time, a limit is searched. The history of the live page takes five minutes to fill,
// which is in the first half and makes the bound of the last a little stricter.
const WarmUp = 2 * time.Minute

// Every is the time between two looks at the process.
const every = 10 * time.Second

// A Run is what is to be done.
type Run struct {
	Program string        // goodput
	Self    string        // this program, which plays the servers: Self as server ADDRESS
	Dir     string        // for the policy, the record, the logs
	Length  time.Duration // whole minutes
	Every   time.Duration // the load stops once in so long, and at the end; whole minutes
	Warm    time.Duration // not judged, WarmUp
	Seed    uint64
	Say     func(format string, args ...any)
}
