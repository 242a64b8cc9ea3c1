package sim

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A Policy decides at the door of an instance: our own core, or one of the
// disciplines of others. Exactly one of the two is set.
type Policy struct {
	Name     string
	Core     *admission.Config
	Baseline *Baseline
}

// Unbounded, as Baseline.Limit or Baseline.Depth, is no bound at all: what most
// services run with.
const Unbounded = -1

// A Baseline is a discipline of others: a limit with a queue.
type Baseline struct {
	Limit   int // units of cost that run at once, 1 to 100,000, or Unbounded
	Depth   int // requests that wait, to 2^24, or Unbounded; 0 refuses at once
	Order   Discipline
	PushOut bool // a full queue gives up its oldest for the newest

	// Expire drops whoever has less than Margin left when its turn comes; 0 is
	// the expiry test, a quantile of the service time the doomed test. Whose deadline
	// nobody told (Class.Untold) is not dropped.
	Expire bool
	Margin time.Duration

	// CoDel, if Target is set, bounds the wait: to Target while the queue has not
	// been empty for Interval, to Interval otherwise (Maurer, "Fail at Scale",
	// ACM Queue 13(8), 2015; 5 ms and 100 ms there).
	CoDel CoDel

	// AIMD, if Floor is set, moves the limit, which begins at Limit.
	AIMD AIMD

	// Law, if set, moves the limit, which begins where the law says. Limit and all else but
	// Depth 0 stay unset: it refuses at once, as the libraries do from which such laws
	// come. It is told what a core tells its law, as often, and since it is one
	// without a queue that does so, Stats has why the limit last moved. A request that
	// costs more than the limit is refused.
	Law limit.Law
}

// core is the configuration of a core that does what a baseline with a law does.
func (b *Baseline) core(objective time.Duration) *admission.Config {
	return &admission.Config{Limit: b.Law, Depth: admission.NoQueue, MaxBytes: 1 << 50, Objective: objective}
}

// cores returns what the policy of t configures a core with, nil for a queue of our own.
func (t *Tier) cores() *admission.Config {
	switch p := &t.Policy; {
	case p.Core != nil:
		return p.Core
	case p.Baseline.Law != nil:
		return p.Baseline.core(t.objective())
	}
	return nil
}

// An AIMD moves a limit by the ratio of each service time to the shortest ever
// seen, as many hand-written adaptive limits do: times Decrease above High, plus
// one below Low if all slots are in use, times Drop after an answer that came too
// late. It is here to be looked at: the shortest of many service times is far below
// their mean as soon as they vary, and the limit falls to its floor and stays
// there.
type AIMD struct {
	Floor          int
	High, Low      float64
	Decrease, Drop float64
}

// A CoDel bounds the wait in a queue that stands.
type CoDel struct {
	Target, Interval time.Duration
}

// A Discipline is who of those that wait goes first.
type Discipline uint8

const (
	FIFO     Discipline = iota
	LIFO                // the newest
	EDF                 // the earliest deadline that was told; of equal ones, who came first
	Adaptive            // FIFO, and LIFO while the queue has not been empty for CoDel.Interval
)

// Baselines are the names that Named knows, in the order of tables.
var Baselines = []string{
	"none", "unbounded_fifo", "fifo", "fifo_expiry",
	"fifo_doomed_mean", "fifo_doomed_p95", "fifo_doomed_p99",
	"lifo", "codel", "edf_expiry", "reject", "aimd_min_rtt",
}

// Named returns the baseline of that name for a limiter of limit slots before work
// of the distribution service, whose mean and quantiles are the margins of the doomed
// tests. depth is for fifo and lifo, the two that are bounded. The error is a sentence
// about a name that is not among Baselines.
func Named(name string, limit, depth int, service Dist) (Policy, error) {
	b := Baseline{Limit: limit, Depth: Unbounded}
	switch name {
	case "none":
		b.Limit = Unbounded
	case "unbounded_fifo":
	case "fifo":
		b.Depth = depth
	case "fifo_expiry":
		b.Expire = true
	case "fifo_doomed_mean":
		b.Expire, b.Margin = true, service.average()
	case "fifo_doomed_p95":
		b.Expire, b.Margin = true, service.Quantile(0.95)
	case "fifo_doomed_p99":
		b.Expire, b.Margin = true, service.Quantile(0.99)
	case "lifo":
		b.Depth, b.Order, b.PushOut, b.Expire = depth, LIFO, true, true
	case "codel":
		b.Order, b.CoDel = Adaptive, CoDel{5 * time.Millisecond, 100 * time.Millisecond}
	case "edf_expiry":
		b.Order, b.Expire = EDF, true
	case "reject":
		b.Depth = 0
	case "aimd_min_rtt":
		b.Depth, b.AIMD = 0, AIMD{Floor: 4, High: 3, Low: 1.5, Decrease: 0.9, Drop: 0.7}
	default:
		return Policy{}, fmt.Errorf("policy %q is unknown: goodput, or one of %v", name, Baselines)
	}
	return Policy{Name: name, Baseline: &b}, nil
}
