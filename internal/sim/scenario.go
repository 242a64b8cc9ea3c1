package sim

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// A Scenario is one service under one load. Times in it are 0 to 30 days where
// nothing else is said; Validate says what is out of range, in a sentence.
type Scenario struct {
	Name   string
	Length time.Duration // arrivals come in [0, Length); then what is left is drained. Above 0
	Warmup time.Duration // what arrives before is played, not counted. Below Length

	Tiers   []Tier  // 1 to 64
	Classes []Class // 1 to 1000
	Groups  []Group // of tiers that share a resource and lend to one another

	// Trace, if set, hands out recorded arrivals in the order of time, beside
	// those of the classes; false ends it. A run that is repeated needs a fresh
	// trace.
	Trace func(*Job) bool

	// Bins is how many points each series of the result has: 1 to 2000, 0 means
	// 120. More would be no more than a chart can show.
	Bins int
}

// A Job is a recorded arrival. Times are 0 to 30 days; Run does not check a trace, and
// panics at a class that is not there.
type Job struct {
	At       time.Duration // since the start; never falls
	Class    int           // index into Scenario.Classes
	Service  time.Duration // work at the tier of its class, whatever its size; 0 draws it
	Cost     int           // 0: that of the class
	Size     int           // 0: that of the class
	Deadline time.Duration // after At; 0: that of the class
}

// A Class is a population of clients that behave alike.
type Class struct {
	Name     string
	Arrivals Arrivals
	Tier     int  // where its requests arrive, an index into Scenario.Tiers
	Service  Dist // its work at that tier; the zero value is the tier's own. Of a unit where Sizes are set

	Tenant   string // who sends it, as the limiter is told; a baseline does not look. At most 128 bytes
	Tenants  Ids    // it is many tenants instead, called Tenant-1, Tenant-2 ..., or by fresh names
	Users    Ids    // people, whose cohort the limiter is told: see admission.CohortOf. Of all classes the same
	Turn     uint64 // of the cohorts
	Keys     Ids    // what a request is about, of which admission.LatestOnly keeps the newest
	Priority admission.Priority
	Cost     int     // units of the limit, and slots of the resource: to 2^20; 0 means 1
	Sizes    []Size  // units of work, drawn by share; none means 1
	Told     Hearsay // what the limiter hears of cost and size; the zero value is the truth
	Bytes    int64   // of body, held in memory from arrival to end: 0 to 2^50

	// Deadlines are how long its clients care, drawn by share. None: for ever, and
	// an answer is in time within the objective of the tier.
	Deadlines []Deadline
	Untold    bool     // the limiter is not told the deadline
	Local     bool     // it is answered by its tier alone, without the sub-requests of others
	Patience  Patience // what a client does at its deadline

	Retry Retry
}

// A Size is a number of units of work with the share of the requests that have it.
type Size struct {
	Units int     // 1 to 2^30
	Share float64 // relative to the others, 0 to 1e9
}

// A Deadline is how long after its arrival an answer is wanted, with the share of
// the requests for which that is so.
type Deadline struct {
	After time.Duration
	Share float64 // relative to the others
}

// Patience says what a client does when its deadline has passed.
type Patience uint8

const (
	// Leaves: it hangs up, and whoever holds its place in a queue is told. Work
	// that has started goes on.
	Leaves Patience = iota
	// Vanishes: it stops caring, perhaps tries again, and nobody is told.
	Vanishes
	// Stays: it takes the late answer, and does not try again before.
	Stays
)

// String returns the word used in scenario files.
func (p Patience) String() string {
	switch p {
	case Leaves:
		return "leaves"
	case Vanishes:
		return "vanishes"
	case Stays:
		return "stays"
	}
	return "patience(?)"
}

// A Tier is a service: instances, each with a limiter, before one resource.
type Tier struct {
	Name      string
	Instances int    // 0 means 1; at most 10,000. Each request goes to one at random
	Policy    Policy // of each instance

	// Objective is what in time means for requests without a deadline, and for
	// the plots; 0 means that of the core, or a second for a baseline.
	Objective time.Duration

	// Slots is how many units of cost the resource, shared by all instances, serves
	// at once; the others wait there, first come first served, out of sight of the
	// limiter. 1 to 100,000; 0: as many as the limiters let in.
	Slots      int
	SlotSteps  []SlotStep // they change for good, in order of time; with Slots only
	Service    Dist       // of its own work
	Speed      Speed
	Contention Contention
	Faults     []Fault   // of the resource, in order of time
	Absences   []Absence // likewise; for a policy with a core

	// Next, if set, is what a request does after its own work, its slot kept.
	Next *Fan

	Restarts []Restart
	Memory   int64   // bytes of requests that an instance can hold; beyond, it is killed. 0: none is killed
	Killed   Restart // how it comes back then; At is not used
}

// A Fan is the sub-requests that a request sends, all at once, to another tier.
type Fan struct {
	Tier int // an index above that of the sender: tiers have no loops
	N    int // how many, to 10,000; 0 means 1
	Need int // the answers that make one, to N: 0 means all

	Service Dist // the work of one, there; the zero value is that of the tier it goes to

	// Wait, if set, answers with what has come after so long, if that is at least
	// one; the request fails if nothing has.
	Wait time.Duration

	// Retry says whether a sub-request that was refused or failed is sent again. Each
	// instance of the sender has a budget and a throttle of its own.
	Retry Retry
}

// least is how many sub-requests must be served for an answer.
func (f *Fan) least() int {
	switch {
	case f.Wait > 0:
		return 1
	case f.Need > 0:
		return f.Need
	}
	return max(f.N, 1)
}

// A Restart loses what is in an instance: its queue and what it is working on.
type Restart struct {
	At   time.Duration
	Down time.Duration // nothing listens: refused as unavailable
	Cold float64       // work takes so many times as long at first, to 1000; 0 and 1: no longer
	Warm time.Duration // how long until it takes no longer, in a straight line
}

// Contention makes work take longer where much of it goes on at once: by
// 1 + Alpha (n-1) + Beta n (n-1), n being the requests in service at the resource
// (Gunther, "Guerrilla Capacity Planning", 2007, the universal scalability law), and
// by another Slope for each request that waits beyond Knee.
type Contention struct {
	Alpha float64 // contention, what is serial: 0 to 100
	Beta  float64 // coherence, what each pair must agree on: 0 to 100
	Knee  int     // requests that wait, in the limiters and at the resource
	Slope float64 // per request beyond: 0 to 100
}
