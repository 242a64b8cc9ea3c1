package admission

import "fmt"

// Priority says who goes first and who is shed first. The order is strict, with a
// guard against starvation: after 32 grants that passed over a priority in which
// somebody waits, the next is theirs. The zero value is Default.
type Priority uint8

const (
	unset      Priority = iota
	Critical            // a user is lost without it: served first, shed last
	Default             // what a request is that says nothing
	Sheddable           // a retry later is acceptable
	Background          // batch: served from what the others leave

	priorities = int(Background) // Core.lines begins with critical
)

// String returns the word used in logs and metrics.
func (p Priority) String() string {
	switch p {
	case Critical:
		return "critical"
	case unset, Default:
		return "default"
	case Sheddable:
		return "sheddable"
	case Background:
		return "background"
	}
	return fmt.Sprintf("priority(%d)", uint8(p))
}

// An Outcome is how a request ended. Each offered request has exactly one.
type Outcome uint8

const (
	Pending   Outcome = iota // not ended: waiting or running
	Completed                // ended before its deadline; without one, within the objective
	Late                     // ended, but nobody cared any more
	Failed                   // started and failed: handler error, panic, 5xx
	Rejected                 // never started: refused at the door or while waiting
	Expired                  // never started: its deadline passed, or was about to (doomed)
	Cancelled                // never started: the caller left while it waited
	Abandoned                // started, and the caller left before the end

	Outcomes = int(Abandoned) + 1
)

// String returns the word used in logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Pending:
		return "pending"
	case Completed:
		return "completed"
	case Late:
		return "late"
	case Failed:
		return "failed"
	case Rejected:
		return "rejected"
	case Expired:
		return "expired"
	case Cancelled:
		return "cancelled"
	case Abandoned:
		return "abandoned"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// A Reason says why a request did not start.
type Reason uint8

const (
	None        Reason = iota // it started
	QueueFull                 // rejected: the depth in force, its tenant's part of it, or the cap on items, is reached
	BytesFull                 // rejected: the bodies that wait fill MaxBytes
	TooCostly                 // rejected: its cost alone exceeds the limit, or what its tenant may ever have
	TooLarge                  // rejected: its bytes alone exceed MaxBytes
	NoBudget                  // rejected: predicted wait + service does not fit the remaining budget; or it would make others late that take less
	OverQuota                 // rejected: its tenant has had what its quota allows for now
	Shed                      // rejected: everybody who fills the queue outranks it, or its cohort is shed at the door
	Displaced                 // rejected: gave its place to a request that ranks above it, see Ground
	Replaced                  // rejected: a newer one of the same key has its place
	WaitBound                 // rejected: waited as long as MaxWait allows
	Unavailable               // rejected: there is nothing to run it on; also while the limit is 0, a pause
	Draining                  // rejected: shutting down
	Deadline                  // expired: the deadline has passed
	Doomed                    // expired: what is left of the budget is below the service quantile
	Client                    // cancelled or abandoned: the caller left
	Parent                    // cancelled or abandoned: whoever owns the caller ended it, and said why

	Reasons = int(Parent) + 1
)

var reasonWords = [Reasons]string{
	None: "", QueueFull: "queue_full", BytesFull: "bytes_full", TooCostly: "too_costly",
	TooLarge: "too_large", NoBudget: "no_budget", OverQuota: "quota", Shed: "shed", Displaced: "displaced", Replaced: "replaced",
	WaitBound: "wait_bound", Unavailable: "unavailable", Draining: "draining",
	Deadline: "deadline", Doomed: "doomed", Client: "client", Parent: "parent",
}

// String returns the word used in logs, metrics and the Goodput-Rejected header.
func (r Reason) String() string {
	if int(r) < Reasons {
		return reasonWords[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Outcome returns how a request ends that is refused for r: Rejected, Expired,
// Cancelled, or Pending for None.
func (r Reason) Outcome() Outcome {
	switch r {
	case None:
		return Pending
	case Deadline, Doomed:
		return Expired
	case Client, Parent:
		return Cancelled
	}
	return Rejected
}

// RetryCanWin reports whether the same request, sent again after Retry-After,
// could be served here. It cannot when its own budget or size was the reason, a newer
// one has taken its place, or the Core serves nobody any more: what is Draining may be
// sent elsewhere, at once.
func (r Reason) RetryCanWin() bool {
	switch r {
	case QueueFull, BytesFull, OverQuota, Shed, Displaced, WaitBound, Unavailable:
		return true
	}
	return false
}

// ForCapacity reports whether r is that more is asked for than can be served: with more capacity it
// would not have been. Not so a deadline that had passed, a quota, or what no limit has room for.
func (r Reason) ForCapacity() bool {
	switch r {
	case QueueFull, BytesFull, NoBudget, Shed, Displaced, WaitBound, Doomed:
		return true
	}
	return false
}

// Overflow says what happens to a request that finds the queue full.
type Overflow uint8

const (
	// Displace evicts, in this order, who is doomed, who has the lowest
	// priority, whose tenant would be served last, retries before first attempts,
	// the latest cohorts, and under NewestFirst the oldest; if nobody ranks below
	// the newcomer, the newcomer is refused. Where sizes are trusted it evicts, of
	// one tenant and priority, who is predicted to take longest, and it does so as
	// well when somebody would be late otherwise.
	Displace Overflow = iota
	// RefuseNewest refuses the newcomer, whoever waits.
	RefuseNewest
	// EvictOldest evicts who has waited longest, whatever the order.
	EvictOldest
	// Block lets the newcomer wait past the depth: backpressure for callers in
	// the same process that must slow down rather than fail. MaxItems,
	// MaxBytes and the bound of each wait still hold.
	Block
	// LatestOnly is for work that a newer one makes worthless, a reading or a
	// position: one that comes takes the place in the queue of the one with the same
	// Request.Key and tenant, which is refused as replaced. Otherwise, and without a
	// key, it is Displace.
	LatestOnly
)

// String returns the word used in logs and configuration.
func (o Overflow) String() string {
	switch o {
	case Displace:
		return "displace"
	case RefuseNewest:
		return "refuse_newest"
	case EvictOldest:
		return "evict_oldest"
	case Block:
		return "block"
	case LatestOnly:
		return "latest_only"
	}
	return fmt.Sprintf("overflow(%d)", uint8(o))
}

// Order says who of those that wait goes first, within a priority.
type Order uint8

const (
	// Auto is FIFO while healthy. When a queue has stood for
	// min(objective - service quantile, 1 s), and at least a mean service, it
	// becomes EDF if the deadlines differ by more than a tenth. If they do not,
	// it becomes NewestFirst, but only once whoever is first has waited so long
	// that a service of mean length would miss the objective. Once drained it
	// is FIFO again.
	Auto Order = iota
	FIFO
	NewestFirst // by root arrival: safe for requests that fan out
	EDF         // earliest deadline first
)

// String returns the word used in logs and configuration.
func (o Order) String() string {
	switch o {
	case Auto:
		return "auto"
	case FIFO:
		return "fifo"
	case NewestFirst:
		return "newest_first"
	case EDF:
		return "edf"
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}
