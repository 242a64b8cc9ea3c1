package load

import (
	"fmt"
	"strings"
	"time"
)

// A Result says what became of the arrivals of a Plan. Once the run has ended
//
//	Offered = Sent + Dropped
//	Sent    = Completed + Refused + Failed + TimedOut + Errors + Aborted
//	Offered = the sum of Bins.Offered, and each other field of a Bin likewise
//
// These are per request: a caller that asks again is one, and its last answer is what became of
// it. What was said is per attempt, since whoever listens on the wire hears all of it:
//
//	Attempts         = Sent + Earlier.Sum()
//	AttemptsRefused  = Refused + Earlier.Refused
//	                 = the sum of Refusals = the sum of Reasons
//	                 = RetryAfter.Absent + Zero + Malformed + the sum of Values
//	the sum of Status = Completed + AttemptsRefused + Failed + Earlier.Failed
//
// It takes about 600 KiB, whatever the load: three histograms. A minute adds 600 bins of 48
// bytes.
type Result struct {
	Plan Plan

	Offered int64 // arrivals that came due
	Dropped int64 // never sent, since Plan.MaxInFlight were in flight
	Sent    int64

	Completed int64 // answered by the service, below 500
	InTime    int64 // of those: the whole answer was there before the deadline
	Early     int64 // of InTime: it came before the load had settled, see Goodput
	Drained   int64 // of InTime: it came after the window
	Refused   int64 // not executed: Goodput-Rejected, or 429 or 503 without it
	Failed    int64 // 5xx that is no refusal
	TimedOut  int64 // the caller gave up at its deadline
	Errors    int64 // no answer: could not connect, connection lost
	Aborted   int64 // in flight when the run was interrupted

	Attempts int64   // requests on the wire; more than Sent with Plan.Attempts
	Earlier  Earlier // the attempts that another one followed

	Status  map[int]int64    // answers by status, refusals included; of every attempt
	Reasons map[string]int64 // refusals by reason; of every attempt

	// Refusals is what callers were told: how many, by status and by whether
	// Goodput-Rejected said so; of every attempt.
	Refusals map[Told]int64

	// Unlike are answers that Plan.Like did not take for one of the service, among
	// Completed, and FirstUnlike is the first of them. They count as Completed and never
	// as InTime: a service that refuses with status 200 serves nobody.
	Unlike      int64
	FirstUnlike Answer

	RetryAfter RetryAfter // of refusals; of every attempt
	Followed   Followed   // of the ones that timed out

	// Bins are the arrivals by the instant at which they were due, BinLength each, from the
	// start to the end of the window.
	Bins []Bin

	// Latency, from due to end, or from the start of the last attempt to its end if there
	// were more than one, of those that got a slot: completed ones, less
	// those that are Unlike, and the ones that timed out. Whoever is late is recorded at its deadline,
	// where its caller gave up: a percentile that reaches the deadline means
	// "at least". Who timed out while it queued is among them; from outside
	// the two look the same. Failures are not: they are quick and would
	// flatter.
	Latency *Histogram
	Refusal *Histogram // from due, or the start of the last attempt if there were more, to the answer, of refusals
	Late    *Histogram // sent - due: the generator's own doing, charged to Latency too

	Interrupted bool  // the run ended before its plan did
	FirstError  error // of Errors
}

// Earlier says how the attempts ended that another one followed.
type Earlier struct {
	Refused int64
	Failed  int64 // 5xx that is no refusal
	Lost    int64 // no answer
}

// Sum is how many there were.
func (e Earlier) Sum() int64 { return e.Refused + e.Failed + e.Lost }

// Told is the form of a refusal.
type Told struct {
	Status int
	Marked bool
}

// RetryAfter counts what refusals said about when to come back.
type RetryAfter struct {
	Absent    int64
	Zero      int64                   // 0, or a date that is not after the answer's own
	Malformed int64                   // neither a whole number of seconds nor a date of HTTP
	Min, Max  time.Duration           // of Values; a date counts from that of its answer
	Values    map[time.Duration]int64 // the others: at most maxReasons different ones; the rest as the nearest of them
	FirstOdd  string                  // the first that was zero or malformed, as it came, up to maxWord bytes
}

// Followed says what came to those that were asked to wait on after their deadline, a few
// of all who timed out: whether a service answers late, or never. Asked is the sum of the
// others.
type Followed struct {
	Asked   int64
	Served  int64 // an answer that is no refusal, whatever its status
	Refused int64
	Never   int64 // nothing within the patience, or the connection was lost, or the run ended
}

// BinLength is the width of a Bin: a twentieth of the 2 s in which a service is to recover.
const BinLength = 100 * time.Millisecond

// A Bin says what became of the arrivals that were due in it. Late are the Completed ones that
// are neither InTime nor Unlike; with Failed are those that are Unlike, Errors and Dropped. Those
// of an interrupted run that were Aborted are among Offered alone.
type Bin struct {
	Offered, InTime, Late, Refused, TimedOut, Failed int64
}

// maxWord bounds a word from the wire that a Result keeps: twice the longest of the protocol.
const maxWord = 64

// maxReasons bounds Result.Reasons, which comes from the wire; the rest is
// counted as "other". The protocol has 15 reasons.
const maxReasons = 32

// maxDroppedShare of the arrivals may be missing before a run is void: the rate
// is then off by as much.
const maxDroppedShare = 0.01

func newResult(p Plan) *Result {
	return &Result{
		Plan:   p,
		Status: map[int]int64{}, Reasons: map[string]int64{}, Refusals: map[Told]int64{},
		RetryAfter: RetryAfter{Values: map[time.Duration]int64{}},
		Bins:       make([]Bin, (p.Duration+BinLength-1)/BinLength),
		Latency:    newHistogram(), Refusal: newHistogram(), Late: newHistogram(),
	}
}

// An end is that of one request.
type end struct {
	due, total time.Duration // since the start of the run; from due to the end
	spent      time.Duration // of total, before the last attempt began; 0 with one
	how        ending
	answer     Answer // the last one
	unlike     bool   // Plan.Like did not take it for one of the service
}

// bin returns that of an arrival: it was due in the window.
func (r *Result) bin(due time.Duration) *Bin { return &r.Bins[due/BinLength] }

// offer counts an arrival, and whether it is sent.
func (r *Result) offer(due time.Duration, sent bool) {
	r.Offered++
	r.bin(due).Offered++
	if !sent {
		r.Dropped++
		r.bin(due).Failed++
		return
	}
	r.Sent++
	r.Attempts++
}

// retry counts an attempt that another one follows, and what its answer said.
func (r *Result) retry(a Answer) {
	r.Attempts++
	switch {
	case a.Err != nil:
		r.Earlier.Lost++
		return
	case a.Refused():
		r.Earlier.Refused++
	default:
		r.Earlier.Failed++
	}
	r.said(a)
}

// AttemptsRefused is how many refusals were said: to one caller as many as it asked for.
func (r *Result) AttemptsRefused() int64 { return r.Refused + r.Earlier.Refused }

// count sorts in the end of one request.
func (r *Result) count(e end) {
	a, bin := e.answer, r.bin(e.due)
	switch {
	case e.how == gaveUp:
		r.TimedOut++
		bin.TimedOut++
		r.Latency.add(r.Plan.Deadline)
		return
	case e.how == aborted:
		r.Aborted++
		return
	case a.Err != nil:
		r.Errors++
		bin.Failed++
		if r.FirstError == nil {
			r.FirstError = a.Err
		}
		return
	}
	r.said(a)
	switch {
	case a.Refused():
		r.Refused++
		bin.Refused++
		r.Refusal.add(e.total - e.spent)
	case a.Failed():
		r.Failed++
		bin.Failed++
	default:
		r.completed(e, bin)
	}
}

// completed counts an answer of the service.
func (r *Result) completed(e end, bin *Bin) {
	r.Completed++
	if e.unlike {
		if r.Unlike == 0 {
			r.FirstUnlike = e.answer
		}
		r.Unlike++
		bin.Failed++
		return
	}
	r.Latency.add(min(e.total, r.Plan.Deadline) - e.spent)
	if e.total > r.Plan.Deadline {
		bin.Late++
		return
	}
	r.InTime++
	bin.InTime++
	switch at := e.due + e.total; {
	case at < r.Plan.Settled():
		r.Early++
	case at >= r.Plan.Duration:
		r.Drained++
	}
}

// said counts what an answer says, be it that of the last attempt or of one before.
func (r *Result) said(a Answer) {
	r.Status[a.Status]++
	if !a.Refused() {
		return
	}
	r.Refusals[Told{Status: a.Status, Marked: a.Marked}]++
	word := shortened(a.Reason)
	if _, known := r.Reasons[word]; !known && len(r.Reasons) >= maxReasons {
		word = "other"
	}
	r.Reasons[word]++
	r.RetryAfter.add(a)
}

func (r *RetryAfter) add(a Answer) {
	wait, ok := a.Wait()
	switch {
	case a.RetryAfter == "":
		r.Absent++
		return
	case !ok:
		r.Malformed++
	case wait == 0:
		r.Zero++
	default:
		if len(r.Values) == 0 {
			r.Min = wait
		}
		r.Min, r.Max = min(r.Min, wait), max(r.Max, wait)
		r.Values[r.nearest(wait)]++
		return
	}
	if r.FirstOdd == "" {
		r.FirstOdd = shortened(a.RetryAfter)
	}
}

// nearest returns wait if there is room for it, and else the known value next to it, the
// shorter one of two.
func (r *RetryAfter) nearest(wait time.Duration) time.Duration {
	if _, known := r.Values[wait]; known || len(r.Values) < maxReasons {
		return wait
	}
	best, distance := time.Duration(0), time.Duration(-1)
	for v := range r.Values {
		d := max(v-wait, wait-v)
		if distance < 0 || d < distance || d == distance && v < best {
			best, distance = v, d
		}
	}
	return best
}

// count sorts in what came to one that was asked to wait on.
func (f *Followed) count(a Answer) {
	switch {
	case a.Err != nil:
		f.Never++
	case a.Refused():
		f.Refused++
	default:
		f.Served++
	}
}

// shortened returns a word from the wire that may be kept.
func shortened(word string) string {
	if len(word) > maxWord {
		return strings.Clone(word[:maxWord]) // and not all of it, behind the first bytes
	}
	return word
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

// Goodput returns the smaller of two ratios. One is Ratio: all of the load, each request to its
// end. Of a load above capacity that counts what a queue holds at the end of the window, which
// is answered in time that the window does not have: with a wait of 1 s and a window of 10 s it
// says 110 %. The other is of the answers by when they came, from a deadline after the begin,
// or the middle if that is sooner, to the end of the window: neither an empty service at first
// nor a queue at the end is in it.
func (r *Result) Goodput(capacity float64) float64 {
	settled := r.Plan.Duration - r.Plan.Settled()
	could := capacity * settled.Seconds()
	all := r.Ratio(capacity)
	if float64(r.Offered) <= capacity*r.Plan.Duration.Seconds() || could <= 0 {
		return all
	}
	return min(all, float64(r.Settled())/could)
}

// Settled is how many of InTime were answered when the load had settled, and before its end.
func (r *Result) Settled() int64 { return r.InTime - r.Early - r.Drained }

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
