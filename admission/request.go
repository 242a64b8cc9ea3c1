package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// Never is the deadline of a request that has none.
const Never time.Duration = math.MaxInt64

// A Request is what the core needs to know of one arrival.
type Request struct {
	Cost     int           // units of the limit held while running; 0 means 1
	Size     int           // units of work that scale the service time; 0 means Cost; see SizeUse
	Bytes    int64         // bytes of body held in memory while it waits
	Priority Priority      // 0 means Default
	Attempt  int           // 2 and more is a retry
	Arrival  time.Duration // root arrival: when the work entered the system; later than now counts as now
	Deadline time.Duration // when the caller stops caring; Never without one
	Exempt   bool          // a probe: not limited, not sampled, counted apart
	NoWait   bool          // refuse rather than queue

	Tenant string // who sends it; looked at if there are Config.Tenants
	Cohort int    // which users are shed first within a priority: 1 the last, Cohorts the first; 0 is shed before those
	Key    string // what it is about, under LatestOnly; empty: nothing that another could replace
}

// Cohorts is how many cohorts there are. A driver hashes whoever is a user, so that
// it is the same cohort in every instance: see CohortOf.
const Cohorts = 128

// A Share is whose account a request is on. It is what a Decision or Waiter gave,
// and goes back in End.
type Share uint64

// A Verdict is what became of an offer.
type Verdict uint8

const (
	Refused  Verdict = iota // Reason says why
	Admitted                // it runs
	Queued                  // it waits; Next will return its Waiter
)

// A Decision answers one Offer.
type Decision struct {
	Verdict Verdict
	Reason  Reason  // of a refusal
	Exempt  bool    // admitted outside the limit: release it with End.Exempt
	Share   Share   // of an admitted request: release it with End.Share
	Waiter  *Waiter // of a queued request

	// RetryAfter is the time until the quota has enough for the request, of one
	// refused as OverQuota; 0 for others.
	RetryAfter time.Duration

	// The numbers that decided, for a request that would have had to wait: how
	// long, and the service time that had to fit behind it.
	PredictedWait time.Duration
	Service       time.Duration
}

// An End describes a request that ran.
type End struct {
	Cost    int     // as offered; 0 means 1
	Outcome Outcome // Completed, Late, Failed or Abandoned
	Exempt  bool
	Share   Share // as decided

	// Charge is the cost that it turned out to be, 0 for Cost. It corrects what its
	// tenant is charged, in fairness and quota, and what is left of the allowance; the
	// units held are Cost.
	Charge int
}

// correction is what it turned out to cost beyond Cost; less than 0 if that is less.
func (e *End) correction() int {
	if e.Charge <= 0 {
		return 0
	}
	return min(e.Charge, limit.Max) - max(e.Cost, 1)
}

// A Settlement is what became of lent slots.
type Settlement struct {
	Free     int             // slots that are free now; more than were lent if others were returned to them
	Admitted int64           // requests of cost 1 admitted on them since Lend
	Ended    [Outcomes]int64 // requests of cost 1 that ended since Lend without a call of Release
}
