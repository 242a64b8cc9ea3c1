package sim

import (
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
)

// A Result is what one run of one policy showed. What arrived in
// [Warmup, Length) is counted, to its end; series show all of the run.
type Result struct {
	Scenario string
	Policy   string
	Seed     uint64
	Window   time.Duration // Length - Warmup
	Ended    time.Duration // when the last request had ended

	Total   Tally
	Classes []Tally        // one per Scenario.Classes
	Tenants []TenantResult // in the order in which the classes name them, at most 64
	Tiers   []TierResult
	Groups  []GroupResult // one per Scenario.Groups
	Series  []Bin

	// Capacity is the requests per second that the resources could serve in the
	// window of the mix that came, mean over it: slots x speed / (mean service x cost)
	// at the narrowest tier, of tiers that share requests. Where nothing is bounded it is
	// what was offered.
	Capacity float64
}

// A Tally counts. Requests have one end each: Requests = InTime + Late + Refused +
// Failed + Kept. An attempt is what a limiter sees of a request.
type Tally struct {
	Name     string
	Requests uint64 // what clients wanted
	InTime   uint64 // answered before the deadline; without one, within the objective
	Late     uint64 // given up at the deadline, or answered after it
	Refused  uint64 // the last attempt was refused
	Failed   uint64 // the last attempt was lost in a restart, failed at work, or its sub-requests did
	Kept     uint64 // the next attempt, or the first, was kept at home by Retry.Throttle

	Asked   uint64 // units of cost that the requests are
	Granted uint64 // units of cost that got a slot, as they truly were

	Attempts uint64
	Served   uint64                     // attempts that got a slot
	Reasons  [admission.Reasons]uint64  // attempts that were refused, by reason
	Wasted   time.Duration              // work that ended when nobody wanted it any more, sub-requests included
	Work     time.Duration              // work done, stalls and contention included; not what a restart cut short
	Latency  hist.Histogram             // attempt arrival to end, of all that got a slot
	Good     hist.Histogram             // request arrival to answer, of those in time
	Wait     hist.Histogram             // attempt arrival to slot, of all that got one
	Told     hist.Histogram             // attempt arrival to refusal
	Parts    float64                    // sum over requests in time of the share of sub-requests whose answer had come
	Cohorts  *[admission.Cohorts]Cohort // the first is shed last; nil without users
}

// TierResult is one tier at its end, and its extremes.
type TierResult struct {
	Name string

	// What arrived in the window, got a slot, and got none: attempts and
	// sub-requests. The rest was lost where it waited, in a restart.
	Arrivals, Served, Refused uint64

	Again uint64 // of Arrivals, those that whoever sends here had sent before
	Kept  uint64 // calls in the window that whoever sends here kept at home: not among Arrivals

	// Capacity is the requests per second that the resource can do, mean over the
	// window; 0: nothing bounds it.
	Capacity float64

	PeakQueue  int           // requests waiting in the limiter of one instance
	PeakAge    time.Duration // the longest that anybody waited there
	PeakBytes  int64         // of requests in one instance, waiting and running
	PeakInUse  int           // requests that hold a slot, over all instances
	PeakBehind int           // requests waiting at the resource, behind the limiters
	Restarts   int           // planned or killed

	// InFlight is the units of cost that are at the resource, worked on or waiting there:
	// the mean over the window. PeakInFlight is the most of all of the run.
	InFlight     float64
	PeakInFlight int

	// Limits are the limits of the instances, one each, over the window, as each measurement
	// finds them. -1 is Unbounded.
	Limits []Average

	// Stats is the core of the first instance at the end of arrivals; nil for a
	// baseline.
	Stats *admission.Stats
}

// An Average is a number that changes, over time: each value counts for as long as it was.
type Average struct {
	Mean, Deviation float64 // Deviation: the standard deviation
}

// Extra returns the load that retries of whoever sends here are, per call that is sent
// for the first time.
func (t *TierResult) Extra() float64 {
	return float64(t.Again) / max(float64(t.Arrivals-t.Again), 1)
}

// A Bin is a stretch of the run: what happened in it, and what was so at its end.
type Bin struct {
	End                                           time.Duration
	Arrivals, InTime, Late, Refused, Failed, Kept uint64 // requests and their ends, when they happened
	Attempts                                      uint64

	// Of the first tier, all instances:
	Waiting int
	InUse   int
	Age     time.Duration // of whoever has waited longest
	Limit   int           // Unbounded for none
	Depth   int           // in force
	Derived int           // the derived depth; 0 for a baseline
	Behind  int           // waiting at the resource
}

// Ratio is the goodput ratio: in time / min(offered, capacity).
func (r *Result) Ratio() float64 { return r.Total.ratio(r.Window, r.Capacity) }

func (t *Tally) ratio(window time.Duration, capacity float64) float64 {
	offered := float64(t.Requests) / window.Seconds()
	if offered == 0 || capacity == 0 {
		return 0
	}
	return float64(t.InTime) / window.Seconds() / min(offered, capacity)
}

// add adds o to t.
func (t *Tally) add(o *Tally) {
	t.Requests += o.Requests
	t.InTime += o.InTime
	t.Late += o.Late
	t.Refused += o.Refused
	t.Failed += o.Failed
	t.Kept += o.Kept
	t.Asked += o.Asked
	t.Granted += o.Granted
	t.Attempts += o.Attempts
	t.Served += o.Served
	for i, n := range o.Reasons {
		t.Reasons[i] += n
	}
	t.Wasted += o.Wasted
	t.Work += o.Work
	t.Latency.Merge(&o.Latency)
	t.Good.Merge(&o.Good)
	t.Wait.Merge(&o.Wait)
	t.Told.Merge(&o.Told)
	t.Parts += o.Parts
	if o.Cohorts == nil {
		return
	}
	if t.Cohorts == nil {
		t.Cohorts = new([admission.Cohorts]Cohort)
	}
	for i, c := range o.Cohorts {
		t.Cohorts[i].Requests += c.Requests
		t.Cohorts[i].InTime += c.InTime
	}
}
