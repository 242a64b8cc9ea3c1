package live

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// binLength of the series: 600 answers at 1,200/s, which vary by 4 %.
const binLength = 500 * time.Millisecond

// gaveUp stands where a status would: the caller left at its deadline.
const gaveUp = -1

// A Bin is what happened in half a second.
type Bin struct {
	Start   float64 `json:"start_s"`
	Arrived int     `json:"arrived"`
	Good    int     `json:"good_2s"`    // answered in it, within the deadline
	Quick   int     `json:"good_400ms"` // of those, within the objective
	Refused int     `json:"refused"`

	Limit   float64 `json:"limit"`           // mean, 0 where it is not exposed
	Waiting float64 `json:"backend_waiting"` // mean, in the queue that the limiter cannot see
	Busy    float64 `json:"backend_busy"`    // mean, slots

	samples int
}

// A tally counts what became of the requests of a plan. It is not safe for concurrent
// use.
type tally struct {
	plan    Plan
	bins    []Bin // all of the plan's length; what ends later is in the sums alone
	offered int
	dropped int // never sent
	good    int // answered within the deadline
	quick   int // of those, within the objective
	refused int // 429 or 503
	late    int // given up at the deadline, or answered after it
	failed  int // no answer, or another status

	latency     []time.Duration // of the good and the late, these at the deadline
	refusal     []time.Duration // until the refused knew, from due
	lateness    []time.Duration // sent - due
	firstError  error
	interrupted bool
}

func newTally(p Plan) *tally {
	t := &tally{plan: p, bins: make([]Bin, int((p.Length()+binLength-1)/binLength))}
	for i := range t.bins {
		t.bins[i].Start = (time.Duration(i) * binLength).Seconds()
	}
	return t
}

// at returns the bin of an instant; of one outside the plan, a bin that nobody reads.
func (t *tally) at(now time.Duration) *Bin {
	if i := int(now / binLength); now >= 0 && i < len(t.bins) {
		return &t.bins[i]
	}
	return new(Bin)
}

func (t *tally) arrive(r Request) {
	t.offered++
	t.at(r.Due).Arrived++
}

// end counts the end at now of r, which was sent late.
func (t *tally) end(r Request, late, now time.Duration, a answer) {
	t.lateness = append(t.lateness, late)
	took, bin := now-r.Due, t.at(now)
	switch {
	case a.status == http.StatusOK && took <= t.plan.patience():
		t.good++
		bin.Good++
		t.latency = append(t.latency, took)
		if took <= t.plan.Objective {
			t.quick++
			bin.Quick++
		}
	case a.status == http.StatusOK || a.status == gaveUp:
		t.late++
		t.latency = append(t.latency, t.plan.patience())
	case refused(a.status):
		t.refused++
		bin.Refused++
		t.refusal = append(t.refusal, took)
	default:
		t.failed++
		if t.firstError == nil {
			t.firstError = a.err
			if a.err == nil {
				t.firstError = fmt.Errorf("status %d", a.status)
			}
		}
	}
}

// refused reports whether a status is a refusal.
func refused(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// sample adds what was seen at now.
func (t *tally) sample(now time.Duration, limit, waiting, busy int) {
	b := t.at(now)
	n := float64(b.samples)
	b.samples++
	for _, s := range []struct {
		mean *float64
		x    int
	}{{&b.Limit, limit}, {&b.Waiting, waiting}, {&b.Busy, busy}} {
		*s.mean = (*s.mean*n + float64(s.x)) / (n + 1)
	}
}

// The bounds beyond which a run is void.
const (
	// 5 % of the objective: then at most one request in a hundred, of those that take
	// between 380 and 400 ms, is counted late for no fault of the limiter's.
	maxLate = Objective / 20

	// Of the requests may be missing, or lost: the load is then off by as much.
	maxMissing = 0.01

	// Of the time in slots must be work: a sleep of 50 ms overruns by 1 ms where the
	// machine is not busy with something else.
	minSpeed = 0.95
)

// void returns one sentence about why the run says nothing, or "".
func (t *tally) void(speed float64) string {
	late := quantile(t.lateness, 0.99)
	switch {
	case t.interrupted:
		return "interrupted before its end"
	case t.offered == 0:
		return "no request was due"
	case float64(t.dropped) > maxMissing*float64(t.offered):
		return fmt.Sprintf("%d of %d requests were not sent: %d were in flight", t.dropped, t.offered, maxInFlight)
	case float64(t.failed) > maxMissing*float64(t.offered):
		return fmt.Sprintf("%d of %d requests were lost, the first to: %v", t.failed, t.offered, t.firstError)
	case late > maxLate:
		return fmt.Sprintf("the generator was %v late at the 99th percentile, more than %v", late.Round(100*time.Microsecond), maxLate)
	case speed < minSpeed:
		return fmt.Sprintf("the sleeps of the service overran: %.1f %% of the time in slots was work, less than %.0f %%", 100*speed, 100*minSpeed)
	}
	return ""
}

// quantile returns the q-quantile, 0 without values. It sorts v.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(int(q*float64(len(v))), len(v)-1)]
}
