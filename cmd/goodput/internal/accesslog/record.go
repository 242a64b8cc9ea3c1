package accesslog

import "time"

// Absent is a duration that the line does not have. It is not 0: a request that
// nobody forwarded has no service time.
const Absent time.Duration = -1

// NoStatus is the status of a line that has none. A status of 0 is one that was
// written: no response had begun.
const NoStatus = -1

// A Record is one request, as its line tells it.
type Record struct {
	// Arrival is in nanoseconds since 1970 UTC. A trace that counts from its own
	// start counts from there.
	Arrival int64

	// Queue is the wait inside the proxy that wrote the line.
	Queue time.Duration

	// Service is how long the upstream worked, over all attempts. LastService is
	// the last attempt alone.
	Service, LastService time.Duration

	// Total is the duration of the request as its client saw it.
	Total time.Duration

	// Class, Cost and Size come from columns or from Options.Classes; "", 1 and 0
	// without them. A Size of 0 is not known.
	Class      string
	Cost, Size int

	// Budget is how long its caller was willing to wait, from its arrival; Absent where the
	// line does not say. Tenant is who sent it, or a number that stands for one, and Priority a
	// word of goodput. Only traces and access logs of goodput have them.
	Budget           time.Duration
	Tenant, Priority string

	// Observed says that it ran because its limiter observed: at once, whatever the limit.
	Observed bool

	Status   int
	Attempts int // at the upstream, 0 where the line does not say
	Outcome  Outcome
	Verdict  Verdict

	// ServiceAtLeast and TotalAtLeast say that the real value is this or more:
	// the line was written early, or the request was cut off. Such values belong
	// in no percentile.
	ServiceAtLeast, TotalAtLeast bool
}

// Sample returns the best that the line says about the service time: Service, or
// Total where the format knows nothing better. A request that its client left
// has no Total worth having, and a line of another verdict has none at all.
func (r *Record) Sample() (d time.Duration, ok bool) {
	switch {
	case r.Service >= 0:
		return r.Service, true
	case r.Verdict == OK && r.Total >= 0 && !r.TotalAtLeast && r.Outcome != Cancelled && r.Outcome != Stream:
		return r.Total, true
	}
	return 0, false
}

// An Outcome is what became of a request, from its status and flags.
type Outcome uint8

// The outcomes.
const (
	Unknown        Outcome = iota // the line has no status
	Served                        // answered, also with 304 or 404
	Failed                        // 5xx, a timeout, or a request that could not be read
	Rejected                      // refused for want of capacity, before any work
	ExpiredInQueue                // waited in the proxy until its queue timeout
	Cancelled                     // the client left
	Stream                        // an upgraded connection: its length is no service time
	outcomes
)

var outcomeNames = [outcomes]string{"unknown", "served", "failed", "rejected", "expired_in_queue", "cancelled", "stream"}

// String returns the outcome in lower case.
func (o Outcome) String() string { return name(outcomeNames[:], int(o)) }

// A Verdict is what a line is good for.
type Verdict uint8

// The verdicts. The first three are arrivals.
const (
	OK               Verdict = iota // an arrival with a time
	NoSample                        // an arrival, without a service time
	MalformedRequest                // an arrival whose request line cannot be read; its times count if it has them
	Malformed                       // of no use
	Header                          // names the columns
	Skip                            // of another program, or empty
	verdicts
)

var verdictNames = [verdicts]string{"ok", "nosample", "malformed_request", "malformed", "header", "skip"}

// String returns the verdict in lower case.
func (v Verdict) String() string { return name(verdictNames[:], int(v)) }

// Arrives says whether a line of this verdict is an arrival.
func (v Verdict) Arrives() bool { return v <= MalformedRequest }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "invalid"
}
