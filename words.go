package goodput

import (
	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
)

// The words of the admission core, under the names that callers use. Their fields and
// methods are documented there, with units, ranges and defaults: go doc
// github.com/goodput/goodput/admission Tenant, and so on.
type (
	// Priority says who goes first and who is shed first.
	Priority = admission.Priority
	// Outcome is how a request ended; each has exactly one.
	Outcome = admission.Outcome
	// Reason says why a request did not start.
	Reason = admission.Reason
	// Ended is one of the ways in which a request ends, and how many did: Stats.Ends.
	Ended = admission.Ended
	// Overflow says what happens to a request that finds the queue full.
	Overflow = admission.Overflow
	// Order says who of those that wait goes first.
	Order = admission.Order
	// Derivation is the arithmetic of the depth, a value that prints itself. Its fields: go
	// doc github.com/goodput/goodput/admission Derivation.
	Derivation = admission.Derivation
	// Tenants shares the limit between those who send requests. Its fields: go doc
	// github.com/goodput/goodput/admission Tenants.
	Tenants = admission.Tenants
	// Tenant is one of them, or all that have no row of their own. Its fields: go doc
	// github.com/goodput/goodput/admission Tenant.
	Tenant = admission.Tenant
	// Quota is a rate of cost with a burst. Its fields: go doc
	// github.com/goodput/goodput/admission Quota.
	Quota = admission.Quota
	// Reserve is the part of what is granted that is left to each priority. Its fields: go
	// doc github.com/goodput/goodput/admission Reserve.
	Reserve = admission.Reserve
	// TenantState is the account of one tenant. Its fields: go doc
	// github.com/goodput/goodput/admission TenantState.
	TenantState = admission.TenantState
	// Histogram counts durations in buckets that grow by 9.1 %.
	Histogram = hist.Histogram
)

// Priorities, the most important first. The zero value means Default.
const (
	Critical   = admission.Critical
	Default    = admission.Default
	Sheddable  = admission.Sheddable
	Background = admission.Background
)

// Outcomes of a request.
const (
	Pending   = admission.Pending
	Completed = admission.Completed
	Late      = admission.Late
	Failed    = admission.Failed
	Rejected  = admission.Rejected
	Expired   = admission.Expired
	Cancelled = admission.Cancelled
	Abandoned = admission.Abandoned
)

// Reasons for which a request did not start.
const (
	None        = admission.None        // it started
	QueueFull   = admission.QueueFull   // the depth in force is reached, MaxItems, or the part of its tenant
	BytesFull   = admission.BytesFull   // the bodies that wait fill MaxBytes
	TooCostly   = admission.TooCostly   // it costs more than the limit, the burst of the allowance, or what its tenant or group may ever have
	TooLarge    = admission.TooLarge    // its bytes alone exceed MaxBytes
	NoBudget    = admission.NoBudget    // it would be late, or make others late that take less
	OverQuota   = admission.OverQuota   // its tenant has had what its quota allows for now
	Shed        = admission.Shed        // those that wait are more important, or shed after it
	Displaced   = admission.Displaced   // it gave its place to one that is more important, younger or shorter
	Replaced    = admission.Replaced    // a newer one of the same key has its place
	WaitBound   = admission.WaitBound   // it waited as long as MaxWait allows
	Unavailable = admission.Unavailable // there is nothing to run it on
	Draining    = admission.Draining    // the service is shutting down
	Deadline    = admission.Deadline    // its deadline has passed
	Doomed      = admission.Doomed      // what is left until its deadline is too short to serve it
	Client      = admission.Client      // the caller left
	Parent      = admission.Parent      // the caller was ended by whoever owns it, who said why
)

// What happens when the queue is full. The zero value is Displace. Who gives way to whom:
// go doc github.com/goodput/goodput/admission Displace.
const (
	Displace     = admission.Displace
	RefuseNewest = admission.RefuseNewest
	EvictOldest  = admission.EvictOldest
	Block        = admission.Block
	LatestOnly   = admission.LatestOnly // a newer one of the same key takes its place; else Displace
)

// Orders of the queue. The zero value is Auto.
const (
	Auto        = admission.Auto
	FIFO        = admission.FIFO
	NewestFirst = admission.NewestFirst
	EDF         = admission.EDF
)

// NoQueue as Config.Depth says that nobody may wait.
const NoQueue = admission.NoQueue
