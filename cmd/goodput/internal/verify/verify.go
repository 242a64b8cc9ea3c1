// Package verify offers a service more than it can do and says whether it stays useful.
//
// A run has four parts. An idle service is asked a few times, one request after another:
// what its answers look like, and how long they take. Its capacity is found, by loads that
// double until the rate of answers in time grows no more. Then each step offers a multiple
// of that capacity, 0.5 to 10 times, for the same time; and each step above capacity is
// followed, without a pause, by half of the capacity, to see how soon everybody is in time
// again. What came of it is judged by named criteria.
//
// All loads are open loops (package load): the offered rate does not depend on the answers.
// Callers tell their deadline and leave when it is over.
//
// A load that cannot be judged is left out: the generator was late or could not send, or too few
// requests got a slot for a 99th percentile. A run is certified if no load is left out and each
// criterion is met, it is not if one is not met at the loads that remain, and else it is no
// answer.
//
// Definitions, the same as everywhere in this program:
//
//	goodput ratio   in time / min(offered, capacity), over the arrivals of a step; above capacity
//	                not more than by the answers that came within it (load.Result.Goodput)
//	p99             from the instant at which a request was due to the end of its answer,
//	                over all that got a slot; whoever left at the deadline counts as that
//	                and, of a caller that asks again, from the start of its last attempt: the
//	                backoff before it is the caller's. In time counts from due all the same
//	per request     in time, goodput, refused, failed, latency and recovery: a caller that asks
//	                again is one, and its last answer is what became of it
//	per attempt     statuses, forms of refusals, reasons, Retry-After and lost connections: what
//	                was said counts, also where another attempt hides it from the caller
//	recovery        from the end of a step above capacity to the first instant from which
//	                95 % of the arrivals of the next second are in time, and of all that
//	                follow: a relapse is no recovery
package verify

import (
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A Report is what a run found. It is complete as far as the run came.
type Report struct {
	Target   string // the URL
	Local    bool   // it is on this machine
	Program  string // name and version of what made it
	Command  string // what makes it again
	Began    time.Time
	Took     time.Duration
	Settings Settings

	Idle     Idle
	Capacity Capacity
	Steps    []Step      // in the order in which they ran
	Criteria []Criterion // empty if Void, except those that say so much all the same
	Unjudged []Open      // the others: silence would be read as a yes
	Void     string      // one sentence about why there is no answer; "" if there is one
	Notes    []string    // one sentence each: what to be careful with
}

// Settings are what a run was asked for, with defaults filled in.
type Settings struct {
	Method    string
	Deadline  time.Duration // callers leave
	Objective time.Duration // p99 of what is admitted
	Loads     []float64     // multiples of the capacity
	Length    time.Duration // of a step
	Calm      time.Duration // of the half load after a step above capacity
	Arrivals  string        // "poisson", "constant", or the name of the file of a trace
	Attempts  int
	Obey      bool  // before they try again, callers wait as long as Retry-After says
	Expect    []int // statuses that are answers of the service; nil: those of the idle one
	AnyBody   bool  // and their bodies may be any, of a media type of the idle ones
	Seed      uint64
	Protocol  string // "HTTP/1.1", "HTTP/2"

	MaxRate     float64 // requests per second: the mean of each load, and 5 standard errors more in any second
	MaxRequests int64   // in all
}

// Idle is the service with one request at a time.
type Idle struct {
	Requests int
	Status   map[int]int
	P50, Max time.Duration
	Content  string // what the answers have in common, in words: "200, 3 bytes of text/plain, always the same"
}

// Capacity is the most that the service answers in time, requests per second.
type Capacity struct {
	PerSecond float64
	Error     float64 // standard error of PerSecond, from the number of answers; 0 if it was given
	Given     bool    // by the user, and not found
	Probes    []Probe // in their order
	Why       string  // how the number came about, with the figures of the probes that decide
}

// A Probe is one load of the search for the capacity.
type Probe struct {
	Rate   float64
	Result *load.Result
}

// A Step is one load that is judged.
type Step struct {
	Load   float64 // times the capacity
	Rate   float64 // requests per second, the mean that was asked for
	Result *load.Result
	Calm   *load.Result // the half load after it; nil if Load <= 1

	// Recovery is from the end of the step until callers were in time again; -1: not within
	// Calm. It has no meaning without Calm.
	Recovery time.Duration
}

// A Criterion is something that was asked for, and whether it came out.
type Criterion struct {
	Name     string // short and stable, for scripts: see Names
	Text     string // "in time >= 95 % of the capacity, at each load above it"
	Met      bool
	Measured string // "99.2 % at 1.5x, 98.9 % at 3x, 98.8 % at 10x"
	Why      string // the arithmetic, and what it means for who runs the service; "" if Met
}

// Open is a criterion that was not judged: what was measured does not stand.
type Open struct {
	Name, Text string // as of a Criterion
	Measured   string // "not measured" if there was nothing to see
	Why        string // why it does not stand
}

// The names of criteria, in the order of a report.
const (
	Below       = "below-capacity" // at half of the capacity nearly nobody is refused or late
	Goodput     = "goodput"        // >= 0.95 of the capacity above it
	Flat        = "p99-flat"       // p99 of what is admitted is within the objective and does not rise with the load
	Refusals    = "refusals-rise"  // what cannot be served is told no, the more the higher the load
	Prompt      = "refusals-quick" // a no comes before the objective is over
	Hanging     = "no-hanging"     // nearly nobody is left without any answer until the deadline
	Late        = "no-late-answers"
	Statuses    = "no-foreign-status" // answers are those of the idle service, or refusals that clients understand
	RetryAfter  = "retry-after"       // not 0, not malformed, not absurd
	Connections = "connections"       // nearly none is refused or lost
	Recovery    = "recovery"          // <= 2 s
)

// Names are all of them.
var Names = []string{Below, Goodput, Flat, Refusals, Prompt, Hanging, Late, Statuses, RetryAfter, Connections, Recovery}

// Certified reports whether r has an answer and it is yes.
func (r *Report) Certified() bool {
	if r.Void != "" || len(r.Criteria) == 0 || len(r.Unjudged) > 0 {
		return false
	}
	for _, c := range r.Criteria {
		if !c.Met {
			return false
		}
	}
	return true
}
