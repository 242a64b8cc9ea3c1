package goodput

import (
	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
)

// The words of the admission core, under the names that callers use.
type (
	// Priority says who goes first and who is shed first.
	Priority = admission.Priority
	// Outcome is how a request ended; each has exactly one.
	Outcome = admission.Outcome
	// Reason says why a request did not start.
	Reason = admission.Reason
	// Overflow says what happens to a request that finds the queue full.
	Overflow = admission.Overflow
	// Order says who of those that wait goes first.
	Order = admission.Order
	// Derivation is the arithmetic of the depth, a value that prints itself.
	Derivation = admission.Derivation
	// Tenants shares the limit between those who send requests.
	Tenants = admission.Tenants
	// Tenant is one of them, or all that have no row of their own.
	Tenant = admission.Tenant
	// Quota is a rate of cost with a burst.
	Quota = admission.Quota
	// Reserve is the part of the limit that is left to each priority.
	Reserve = admission.Reserve
	// TenantState is the account of one tenant.
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
	None        = admission.None
	QueueFull   = admission.QueueFull
	BytesFull   = admission.BytesFull
	TooCostly   = admission.TooCostly
	TooLarge    = admission.TooLarge
	NoBudget    = admission.NoBudget
	OverQuota   = admission.OverQuota
	Shed        = admission.Shed
	Displaced   = admission.Displaced
	Replaced    = admission.Replaced
	WaitBound   = admission.WaitBound
	Unavailable = admission.Unavailable
	Draining    = admission.Draining
	Deadline    = admission.Deadline
	Doomed      = admission.Doomed
	Client      = admission.Client
	Parent      = admission.Parent
)

// What happens when the queue is full. The zero value is Displace.
const (
	Displace     = admission.Displace
	RefuseNewest = admission.RefuseNewest
	EvictOldest  = admission.EvictOldest
	Block        = admission.Block
	LatestOnly   = admission.LatestOnly
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
