// Package goodput keeps a service useful while it is overloaded.
//
// (Package comment to be written with the runtime.)
package goodput

import (
	"context"
	"errors"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/limit"
)

// The words of the core, under the names that most callers use.
type (
	Priority   = admission.Priority
	Outcome    = admission.Outcome
	Reason     = admission.Reason
	Overflow   = admission.Overflow
	Order      = admission.Order
	Derivation = admission.Derivation
	Histogram  = hist.Histogram
)

const (
	Critical   = admission.Critical
	Default    = admission.Default
	Sheddable  = admission.Sheddable
	Background = admission.Background

	NoQueue = admission.NoQueue
)

// (Outcome, Reason, Overflow and Order constants are re-exported the same way.)

// Config: zero value of each field means its documented default.
type Config struct {
	Name       string        // names it in refusals, logs and metrics; default "default"
	Limit      limit.Law     // required
	Objective  time.Duration // as admission.Config, and so on
	Percentile float64
	Service    time.Duration
	Depth      int
	MaxItems   int
	MaxBytes   int64
	MaxWait    time.Duration
	Overflow   Overflow
	Order      Order
	Exempt     int
	Observe    bool // decide and count, refuse nothing
}

// Validate returns one sentence about what is wrong, or nil.
func (c Config) Validate() error { panic("not built") }

// New panics with the sentence of Validate if cfg is invalid.
func New(cfg Config) *Limiter { panic("not built") }

type Limiter struct{}

func (l *Limiter) Name() string                                          { panic("not built") }
func (l *Limiter) Acquire(ctx context.Context) (Slot, error)             { panic("not built") }
func (l *Limiter) AcquireWork(ctx context.Context, w Work) (Slot, error) { panic("not built") }
func (l *Limiter) TryAcquire() (Slot, bool)                              { panic("not built") }
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	panic("not built")
}
func (l *Limiter) SetLimit(n int) error            { panic("not built") }
func (l *Limiter) Reconfigure(cfg Config) error    { panic("not built") }
func (l *Limiter) Drain(ctx context.Context) error { panic("not built") } // refuse newcomers, serve the queue; ctx over: refuse the queue too, return its error
func (l *Limiter) Stats() Stats                    { panic("not built") }
func (l *Limiter) Explain() string                 { panic("not built") }

// Work describes one call. An explicit field wins over the context.
type Work struct {
	Cost     int
	Size     int
	Bytes    int64
	Priority Priority  // 0: from the context, else Default
	Attempt  int       // 2 and more is a retry
	Arrival  time.Time // root arrival; zero: from the context, else now
	Deadline time.Time // zero: the context's
	Exempt   bool
}

func WithPriority(ctx context.Context, p Priority) context.Context { panic("not built") }
func WithArrival(ctx context.Context, t time.Time) context.Context { panic("not built") }

// Slot: vet refuses copies of it.
type Slot struct{ _ noCopy }

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

func (s *Slot) Release()              { panic("not built") } // idempotent; completed or late
func (s *Slot) Fail(err error)        { panic("not built") } // started and failed; context errors of the caller: abandoned; nil: Release
func (s *Slot) Abandon()              { panic("not built") } // the caller left after start
func (s *Slot) Served()               { panic("not built") } // the service sample ends here (response header); the slot is still held
func (s *Slot) Detach()               { panic("not built") } // gives the slot back without a sample: upgrades
func (s *Slot) Waited() time.Duration { panic("not built") }
func (s *Slot) Exempt() bool          { panic("not built") }

// ErrRejected is matched by every *Rejection.
var ErrRejected = errors.New("goodput: not admitted")

// A Rejection says why work did not start. It was not executed.
// errors.Is: ErrRejected always; context.Canceled for cancelled ones,
// context.DeadlineExceeded for Reason Deadline.
type Rejection struct {
	Limiter       string
	Outcome       Outcome
	Reason        Reason
	Waited        time.Duration // 0 at the door
	RetryAfter    time.Duration // whole seconds before jitter; 0: a retry cannot win
	Limit         int
	InUse         int
	Waiting       int
	Depth         int           // in force
	PredictedWait time.Duration // of the request that built this value (shared at the door)
	Service       time.Duration // the service quantile that had to fit
	Remaining     time.Duration // budget left, 0 if it had no deadline
	Derivation    Derivation
}

func (r *Rejection) Error() string        { panic("not built") }
func (r *Rejection) Is(target error) bool { panic("not built") }

// Jittered returns RetryAfter spread over [RetryAfter, 1.5 RetryAfter], at most 30 s, whole
// seconds: a fresh value per answer. 0 stays 0.
func (r *Rejection) Jittered() time.Duration { panic("not built") }

// Stats is a snapshot.
type Stats struct {
	admission.Stats
	Name             string
	Observe          bool
	Shadow           admission.Stats                // observe mode: what would have been decided
	Wait             [3]Histogram                   // time in queue of admitted, expired, cancelled (rejected while waiting counts with expired)
	Service          [admission.Outcomes]*Histogram // slot to end, by outcome; nil where there is none
	Capacity, Demand float64                        // cost units/s
}
