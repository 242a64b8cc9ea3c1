package admission

import (
	"math"
	"time"

	"github.com/goodput/goodput/internal/hist"
)

// Never is the deadline of a request that has none.
const Never time.Duration = math.MaxInt64

// A Request is what the core needs to know of one arrival.
type Request struct {
	Cost     int           // units of the limit held while running; 0 means 1
	Size     int           // units of work that scale the service time; 0 means Cost
	Bytes    int64         // bytes of body held in memory while it waits
	Priority Priority      // 0 means Default
	Attempt  int           // 2 and more is a retry
	Arrival  time.Duration // root arrival: when the work entered the system; later than now counts as now
	Deadline time.Duration // when the caller stops caring; Never without one
	Exempt   bool          // a probe: not limited, not sampled, counted apart
	NoWait   bool          // refuse rather than queue
}

// A Verdict is what Offer decided.
type Verdict uint8

const (
	Refused  Verdict = iota // Decision.Reason says why
	Admitted                // it runs now
	Queued                  // it waits; Next will return its Waiter
)

// A Decision answers one Offer.
type Decision struct {
	Verdict Verdict
	Reason  Reason  // of a refusal
	Exempt  bool    // admitted outside the limit: release it with End.Exempt
	Waiter  *Waiter // of a queued request

	// The numbers that decided: how long it would have waited, and the service
	// time that had to fit behind it. Set when somebody would have waited.
	PredictedWait time.Duration
	Service       time.Duration
}

// An End describes a request that ran.
type End struct {
	Cost    int
	Outcome Outcome // Completed, Late, Failed or Abandoned
	Exempt  bool
}

// A Settlement is what became of lent slots.
type Settlement struct {
	Free     int             // slots that came back unused
	Admitted int64           // requests admitted on them since Lend, of cost 1
	Ended    [Outcomes]int64 // requests that ended without a call of Release since Lend
}

// New returns a core, or the sentence of Config.Validate.
func New(cfg Config) (*Core, error) { panic("not built") }

// A Core decides. It is not safe for concurrent use: its driver brings the lock.
type Core struct{}

// Offer decides about a request that arrives at now.
func (c *Core) Offer(now time.Duration, r Request) Decision { panic("not built") }

// Release ends a request that was admitted.
func (c *Core) Release(now time.Duration, e End) { panic("not built") }

// Cancel decides about a waiter whose caller left (Client, Parent), or whose
// alarm rang (None): then it is refused if its time is over, and otherwise
// stays, with a new Alarm. It reports whether the waiter is decided; that it
// already was is no error and counts nothing.
func (c *Core) Cancel(now time.Duration, w *Waiter, why Reason) bool { panic("not built") }

// Next returns a waiter that was decided, until there is none. Waiter.Verdict
// and Waiter.Reason say what became of it. The waiter that a Cancel decided is
// not among them.
func (c *Core) Next() *Waiter { panic("not built") }

// Lend hands the free slots to the driver, to admit requests of cost 1 without
// a call, and returns how many: 0 while anyone waits. Lent slots count as used
// until Settle; the driver settles before any other call but Next.
func (c *Core) Lend() int { panic("not built") }

// Settle takes back what was lent.
func (c *Core) Settle(now time.Duration, s Settlement) { panic("not built") }

// Observe takes what was measured since the last call.
func (c *Core) Observe(now time.Duration, b *Batch) { panic("not built") }

// SetLimit replaces the law by limit.Fixed(n).
func (c *Core) SetLimit(now time.Duration, n int) error { panic("not built") }

// Reconfigure replaces the configuration; who waits and who runs is kept.
func (c *Core) Reconfigure(now time.Duration, cfg Config) error { panic("not built") }

// Drain refuses whoever is offered from now on, and with queue also whoever waits.
func (c *Core) Drain(now time.Duration, queue bool) { panic("not built") }

// Stats returns the numbers at now.
func (c *Core) Stats(now time.Duration) Stats { panic("not built") }

// A Waiter is the place of one request in the queue.
type Waiter struct {
	// Ref is the driver's: the core never looks at it.
	Ref any
}

// Verdict is Queued until the request is decided.
func (w *Waiter) Verdict() Verdict { panic("not built") }

// Reason says why it was refused.
func (w *Waiter) Reason() Reason { panic("not built") }

// Cost returns the units of the limit that it holds once admitted.
func (w *Waiter) Cost() int { panic("not built") }

// Waited returns how long it waited, from offer to decision.
func (w *Waiter) Waited() time.Duration { panic("not built") }

// Alarm returns the instant at which the driver calls Cancel with None.
func (w *Waiter) Alarm() time.Duration { panic("not built") }

// A Batch is what the driver measured in a window: service times, and the time
// that slots were held.
type Batch struct {
	Service  hist.Histogram // seconds per unit of Size, of completed and late work
	HoldCost float64        // sum of cost x seconds held, of every request that ended
	Cost     float64        // sum of cost of the same requests
}

// Add counts one request that ended. A service time of 0 is no sample: the work
// failed or was abandoned.
func (b *Batch) Add(service, hold time.Duration, cost, size int) { panic("not built") }

// Stats is a snapshot. Counters never fall.
type Stats struct {
	Limit       int           // units of cost that may run
	InUse       int           // units of cost that run; idle lent slots excluded
	Running     int           // requests that run
	Waiting     int           // requests that wait
	WaitingCost int           // units of cost that wait
	WaitingSize int64         // bytes of body that wait
	Exempt      int           // exempt requests in flight
	Age         time.Duration // how long the one that has waited longest has waited
	Order       Order         // in force: FIFO, NewestFirst or EDF
	Depth       int           // in force, cost units: at most Derivation.Depth
	Standing    bool          // a standing overload holds the depth below the derived one
	Load        float64       // offered cost / capacity, over about two objectives
	RetryAfter  time.Duration // in force, whole seconds
	Draining    bool
	Derivation  Derivation

	Arrivals       uint64           // offers, exempt ones excluded
	Immediate      uint64           // admitted without waiting
	Dequeued       uint64           // admitted after waiting
	Outcomes       [Outcomes]uint64 // by Outcome; Pending is 0
	Refusals       [Reasons]uint64  // by Reason: rejected, expired and cancelled
	ExemptAdmitted uint64           // not among Arrivals
	LimitChanges   uint64
}

// A Derivation is the arithmetic of the depth, a value that prints itself.
type Derivation struct {
	Limit       int
	Mean        time.Duration // time a slot is held per unit of cost
	Rate        float64       // cost units per second that the slots can serve
	Objective   time.Duration
	Percentile  float64
	Service     time.Duration // service quantile at Percentile
	Depth       int           // derived
	Rule        int           // rule of thumb: Rate x Objective
	RuleLatency time.Duration // the quantile a queue of Rule would give
	Reachable   bool          // Service fits Objective
	Fixed       bool          // Config.Depth said so
	Samples     int           // service times behind it; below 100 the prior fills in
	Declared    time.Duration // Config.Service
	Drifted     bool          // Mean is more than 25 % away from Declared
}

// String returns one line: what a log, a page and a refusal show.
func (d Derivation) String() string { panic("not built") }
