package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// Stats is a snapshot. Counters never fall.
type Stats struct {
	Limit        int           // units of cost that may run
	InUse        int           // units of cost that run; idle lent slots excluded
	Running      int           // requests that run
	Waiting      int           // requests that wait
	WaitingCost  int           // units of cost that wait
	WaitingBytes int64         // bytes of body that wait
	Exempt       int           // exempt requests in flight
	Age          time.Duration // how long the one that arrived first has waited
	Stood        time.Duration // for how long somebody has waited without a break
	Order        Order         // in force: FIFO, NewestFirst or EDF
	Depth        int           // in force, units of cost: at most Derivation.Depth
	Overload     bool          // a standing overload may hold Depth below the derived one
	Offered      float64       // cost per second, refused requests included, but for those over a quota
	Load         float64       // offered cost / what can be served, over about one objective
	RetryAfter   time.Duration // in force, whole seconds
	Elsewhere    float64       // of the time for which slots are held, the part in which the work is elsewhere: see Sample
	Draining     bool
	Absent       bool          // there is nothing to run work on: see SetPresent
	AbsentFor    time.Duration // for how long that has been so
	MaxAbsence   time.Duration // how long anybody waits for it
	MaxItems     int
	MaxBytes     int64
	Derivation   Derivation

	Allowance     Quota   // in force; zero without
	AllowanceLeft float64 // units of cost that are left of it; negative after a correction

	// By priority, critical first.
	WaitingBy [priorities]int // units of cost that wait

	// In an overload those are shed first who are of ShedPriority, from the cohort
	// ShedCohort on: with what is offered now that leaves what the slots can serve.
	// ShedPriority is 0 while nobody need be shed.
	ShedPriority Priority
	ShedCohort   int     // 1 to Cohorts; 0 where nobody has one
	ShedOffered  float64 // cost per second that is asked for in that priority
	ShedServed   float64 // and what there is for it

	Tenants Tally // of all tenants; zero without

	Arrivals       uint64           // offers, exempt ones excluded
	Immediate      uint64           // admitted without waiting
	Dequeued       uint64           // admitted after waiting
	Outcomes       [Outcomes]uint64 // by Outcome; Pending is 0
	Refusals       [Reasons]uint64  // by Reason: rejected, expired and cancelled
	ExemptAdmitted uint64           // not among Arrivals
	Dropped        uint64           // of Failed: the resource itself refused them, being over a limit of its own; as of the last window
	LimitChanges   uint64           // of the limit, by its law or by a call
	LimitRaised    uint64           // of those, the ones upwards
	LimitCalled    uint64           // of LimitChanges, those by a call, SetLimit or Reconfigure; the rest are the law's. What a group grants is no change
	LimitCalledUp  uint64           // of LimitCalled, the ones upwards

	LimitWhy    string        // why the law last moved the limit, with the numbers; "" if it never has
	LimitFrom   int           // what the limit was before that
	LimitMoved  time.Duration // how long ago that was; 0 if it never has
	LimitAsked  time.Duration // how long ago the law was last asked
	LimitSearch bool          // the law does not know the capacity yet
	LimitHeld   bool          // there is a law that moves it, and it is not asked: see Hold

	LimitMin, LimitMax int           // what the law keeps the limit within: see limit.Bounds. Both are the limit of one that is fixed
	LimitFloored       time.Duration // how long the limit has stood at LimitMin while more was offered than that serves; 0 if it does not, or is fixed

	// Whether what the work depends on has slowed, or the work has become another: a unit of cost
	// is held for SlowedBy times as long as Baseline, a mean over the last minutes, and neither
	// more work nor a higher limit nor larger sizes are why. See slowed.go.
	Baseline time.Duration // 0 while there is none: in the first minute, where less than a request in two seconds ends, and while the core is told to Hold
	Slowed   bool
	SlowedBy float64 // 0 without a Baseline, and where nothing has run for a minute; also told while Slowed is not: 1.1 is nothing

	// What else was measured over the time of Baseline and over the last seconds, that of
	// SlowedBy: units of cost a second. Each is 0 where that is.
	OfferedBefore   float64 // refused ones included, as Offered
	CompletedBefore float64 // late ones included
	CompletedNow    float64
}

// A Tally is about all tenants together.
type Tally struct {
	Rows    int     // tenants known by name
	Active  int     // tenants that ask, wait or run
	Over    int     // of them, those that ask for more than their share in an overload
	Capped  int     // units of cost that wait for a MaxInUse and hold up nobody else
	Level   float64 // cost per second for each unit of weight that those over their share get; 0: nobody is
	Clamped uint64  // weights out of range that were clamped
}

// Stats returns the numbers at now. It decides nothing: Next has nothing new.
func (c *Core) Stats(now time.Duration) Stats {
	c.tick(now)
	s := Stats{
		Limit: c.limit, InUse: c.inUse, Running: c.running,
		Waiting: c.waiting, WaitingCost: c.cost, WaitingBytes: c.bytes, Exempt: c.exempt,
		Age: c.oldestAge(), Order: c.order, Depth: c.depth, Overload: c.overload, Offered: c.load.rate, Load: c.rho(),
		RetryAfter: c.retryAfter(), Elsewhere: c.service.ended.away(), Draining: c.draining,
		Absent: c.absence.is, MaxAbsence: c.cfg.MaxAbsence,
		MaxItems: c.cfg.MaxItems, MaxBytes: c.cfg.MaxBytes, Derivation: c.derivation,
		Arrivals: c.counts.arrivals, Immediate: c.counts.immediate, Dequeued: c.counts.dequeued,
		Outcomes: c.counts.outcomes, Refusals: c.counts.refusals,
		ExemptAdmitted: c.counts.exempt, LimitChanges: c.counts.limitChanges,
		Dropped: c.counts.dropped, LimitRaised: c.counts.raised,
		LimitCalled: c.counts.called, LimitCalledUp: c.counts.calledUp,
		LimitWhy: c.law.Why(), LimitFrom: c.movedFrom, LimitAsked: c.now - c.lawAt, LimitSearch: c.search,
		LimitHeld: c.held && Moves(c.cfg.Limit),
	}
	if c.waiting > 0 {
		s.Stood = c.now - c.stood
	}
	if c.counts.limitChanges > 0 {
		s.LimitMoved = c.now - c.movedAt
	}
	s.LimitMin, s.LimitMax = limit.Bounds(c.cfg.Limit)
	if f := c.noticed.floor; f != Never && c.limit <= s.LimitMin {
		s.LimitFloored = c.now - f
	}
	if !c.held {
		c.noticed.slow.tell(&s, c.quiet())
	}
	if c.absence.is {
		s.AbsentFor, s.MaxAbsence = c.now-c.absence.since, c.absence.bound
	}
	if c.allowance.Rate > 0 {
		s.Allowance, s.AllowanceLeft = c.derivation.Allowance, c.allowance.level(c.now)
	}
	for i := range c.lanes {
		s.WaitingBy[i] = c.lanes[i].cost
	}
	c.shedding(&s)
	s.Tenants = c.tally()
	if math.IsInf(s.Load, 0) || math.IsNaN(s.Load) {
		s.Load = 0
	}
	return s
}

// oldestAge is age with those that wait for a ceiling.
func (c *Core) oldestAge() time.Duration {
	age := c.age()
	if c.parked == 0 {
		return age
	}
	for _, t := range c.active {
		for i := range t.flows {
			if t.flows[i].parked {
				for leaf := range t.flows[i].leaves() {
					age = max(age, c.now-leaf.line.head.offered)
				}
			}
		}
	}
	return age
}

// RetryAfter returns the wait, in whole seconds, that a refusal for why is told
// before jitter; 0 if a retry cannot win.
func (c *Core) RetryAfter(why Reason) time.Duration {
	if !why.RetryCanWin() {
		return 0
	}
	return c.retryAfter()
}

func (c *Core) retryAfter() time.Duration {
	drain := 0.0
	if r := c.rate(); r > 0 {
		drain = math.Ceil(float64(c.cost) / r)
	}
	if c.allowance.Rate > 0 { // a slow one may take days for one more
		drain = max(drain, math.Ceil(c.spaced(c.cost+1)))
	}
	s := min(max(float64(c.hint.seconds), drain, minRetryAfter), maxRetryAfter)
	return time.Duration(s) * time.Second
}
