package load

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result says what became of the arrivals of a Plan. Once the run has ended
//
//	Offered = Sent + Dropped
//	Sent    = Completed + Refused + Failed + TimedOut + Errors + Aborted
type Result struct {
	Plan Plan

	Offered int64 // arrivals that came due
	Dropped int64 // never sent, since Plan.MaxInFlight were in flight
	Sent    int64

	Completed int64 // answered by the service, below 500
	InTime    int64 // of those: the whole answer was there before the deadline
	Refused   int64 // not executed: Goodput-Rejected, or 429 or 503 without it
	Failed    int64 // 5xx that is no refusal
	TimedOut  int64 // the caller gave up at its deadline
	Errors    int64 // no answer: could not connect, connection lost
	Aborted   int64 // in flight when the run was interrupted

	Status  map[int]int64    // answers by status, refusals included
	Reasons map[string]int64 // refusals by reason

	// Latency, from due to end, of those that got a slot: completed ones, and
	// the ones that timed out. Whoever is late is recorded at its deadline,
	// where its caller gave up: a percentile that reaches the deadline means
	// "at least". Who timed out while it queued is among them; from outside
	// the two look the same. Failures are not: they are quick and would
	// flatter.
	Latency *Histogram
	Refusal *Histogram // from due to the answer, of refusals
	Late    *Histogram // sent - due: the generator's own doing, charged to Latency too

	Interrupted bool  // the run ended before its plan did
	FirstError  error // of Errors
}

// maxReasons bounds Result.Reasons, which comes from the wire; the rest is
// counted as "other". The protocol has 15 reasons.
const maxReasons = 32

// maxDroppedShare of the arrivals may be missing before a run is void: the rate
// is then off by as much.
const maxDroppedShare = 0.01

func newResult(p Plan) *Result {
	return &Result{
		Plan:   p,
		Status: map[int]int64{}, Reasons: map[string]int64{},
		Latency: newHistogram(), Refusal: newHistogram(), Late: newHistogram(),
	}
}

// count sorts in the end of one request, sent late and answered after total,
// both counted from the instant at which it was due.
func (r *Result) count(late, total time.Duration, how ending, a Answer) {
	r.Late.add(late)
	switch how {
	case gaveUp:
		r.TimedOut++
		r.Latency.add(r.Plan.Deadline)
		return
	case aborted:
		r.Aborted++
		return
	}
	if a.Err != nil {
		r.Errors++
		if r.FirstError == nil {
			r.FirstError = a.Err
		}
		return
	}
	r.Status[a.Status]++
	switch {
	case a.Refused():
		r.Refused++
		r.Refusal.add(total)
		r.reason(a.Reason)
	case a.Failed():
		r.Failed++
	default:
		r.Completed++
		r.Latency.add(min(total, r.Plan.Deadline))
		if total <= r.Plan.Deadline {
			r.InTime++
		}
	}
}

func (r *Result) reason(word string) {
	if _, known := r.Reasons[word]; !known && len(r.Reasons) >= maxReasons {
		word = "other"
	}
	r.Reasons[word]++
}

// Ratio returns the goodput ratio: requests in time per request that could have
// been, which is the smaller of what was offered and of what capacity, in
// requests per second, could serve in the window. 0 if nothing was offered.
func (r *Result) Ratio(capacity float64) float64 {
	could := min(float64(r.Offered), capacity*r.Plan.Duration.Seconds())
	if could <= 0 {
		return 0
	}
	return float64(r.InTime) / could
}

// PerSecond returns n as a rate over the window.
func (r *Result) PerSecond(n int64) float64 {
	return float64(n) / r.Plan.Duration.Seconds()
}

// Void returns one sentence about why the run answers nothing, or "".
func (r *Result) Void() string {
	late, _ := r.Late.Quantile(0.99)
	switch {
	case r.Interrupted:
		return "interrupted before its end"
	case r.Offered == 0:
		return "no request was due in the window"
	case float64(r.Dropped) > maxDroppedShare*float64(r.Offered):
		return fmt.Sprintf("the load was not offered: %d of %d requests dropped, since %d were in flight",
			r.Dropped, r.Offered, r.Plan.MaxInFlight)
	case late > r.Plan.Tolerance:
		return fmt.Sprintf("the load was not offered in time: the generator was %v late at p99, more than %v",
			late.Round(100*time.Microsecond), r.Plan.Tolerance)
	case r.Errors > 0 && r.Errors == r.Sent:
		return fmt.Sprintf("the target answered nothing: %v", r.FirstError)
	}
	return ""
}

// A Histogram counts durations to three digits, 1 µs to twice the longest
// deadline of a Plan; what lies outside counts as the bound.
type Histogram struct {
	h   *hdrhistogram.Histogram
	max time.Duration // exact: a quantile, which is the end of a bucket, may not exceed it
}

const maxMicros = int64(2 * maxDuration / time.Microsecond)

func newHistogram() *Histogram {
	return &Histogram{h: hdrhistogram.New(1, maxMicros, 3)}
}

func (h *Histogram) add(d time.Duration) {
	h.max = max(h.max, d)
	// In range by construction, so there is no error to look at.
	_ = h.h.RecordValue(min(max(d.Microseconds(), 1), maxMicros))
}

// Count returns how many durations there are.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Quantile returns the q-quantile, 0 <= q <= 1, and false if there is none.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	return min(time.Duration(h.h.ValueAtQuantile(100*q))*time.Microsecond, h.max), true
}

// Mean returns the mean, and false if there is none.
func (h *Histogram) Mean() (time.Duration, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	return time.Duration(h.h.Mean() * float64(time.Microsecond)), true
}
