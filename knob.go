package goodput

import (
	"cmp"
	"fmt"

	"github.com/goodput/goodput/admission"
)

// Knob returns which setting of Config decided, and what it was, in a short phrase: the one to
// turn so that such a request is decided about otherwise. Where that is no setting, it says
// what it is: "the caller's deadline (12ms left)".
//
//	Objective 400ms at a limit of 60 (201 may wait)
//	Objective 400ms at a limit of 60, in a standing overload (17 of 201 may wait)
//	Depth 100
//	MaxItems 4096
//	MaxBytes 64 MiB
//	tenant quota 50/s, burst 50
//
// A value is shared by all that are refused for its reason in its window, so this is about the
// first of them. A Rejection that no limiter has made knows no settings, and what it says is
// shorter.
func (r *Rejection) Knob() string {
	var cfg admission.Config
	if r.of != nil {
		cfg = r.of.cfg.core().WithDefaults()
	}
	switch r.Reason {
	case QueueFull:
		return r.depthKnob(&cfg)
	case BytesFull, TooLarge:
		return r.bytesKnob(&cfg)
	case TooCostly:
		return r.costKnob(&cfg)
	case NoBudget:
		if r.PredictedWait+r.Service <= r.Remaining {
			return sizeKnob
		}
		return fmt.Sprintf("the caller's deadline (%v left)", short(r.Remaining))
	case OverQuota:
		return "tenant " + quotaWords(r.Quota)
	case Shed:
		return "Priority, where the queue is full by " + r.depthKnob(&cfg)
	case Displaced:
		return r.displacedKnob(&cfg)
	case Replaced:
		return "Overflow latest_only"
	case WaitBound:
		if r.of == nil {
			return "MaxWait"
		}
		if r.of.cfg.MaxWait == 0 {
			return fmt.Sprintf("MaxWait %v, which is the Objective", cfg.MaxWait)
		}
		return fmt.Sprintf("MaxWait %v", cfg.MaxWait)
	case Unavailable:
		if r.Limit == 0 {
			return "the limit of 0, a pause"
		}
		return fmt.Sprintf("MaxAbsence %v", cmp.Or(cfg.MaxAbsence, admission.DefaultMaxAbsence))
	case Draining:
		return "Drain"
	case Deadline:
		return "the caller's deadline"
	case Doomed:
		return fmt.Sprintf("the caller's deadline, which leaves less than the service of %v", short(r.Service))
	case Client, Parent:
		return "the caller"
	}
	return ""
}

// displacedKnob is by what it gave way, and what bounds who may wait.
func (r *Rejection) displacedKnob(cfg *admission.Config) string {
	how := "Priority"
	switch {
	case r.ground == admission.BySize:
		return sizeKnob
	case cfg.Overflow == EvictOldest:
		how = "Overflow evict_oldest"
	case r.ground == admission.ByShare:
		how = "the shares of tenants"
	case r.ground == admission.ByRetry:
		how = "first attempts before retries"
	case r.ground == admission.ByCohort:
		how = "the cohort of its user"
	case r.ground == admission.ByAge:
		how = "newest first, the order in force"
	}
	return how + ", where the queue is full by " + r.depthKnob(cfg)
}

// sizeKnob is of who would be late, or make others late.
const sizeKnob = "the Size of those that wait, and their deadlines"

// depthKnob is what bounds who may wait.
func (r *Rejection) depthKnob(cfg *admission.Config) string {
	d := &r.Derivation
	derived := fmt.Sprintf("Objective %v at a limit of %d", d.Objective, d.Limit)
	if _, binds := d.SlotRate(); binds {
		derived = fmt.Sprintf("Objective %v at an Allowance of %.6g/s", d.Objective, d.Allowance.Rate)
	}
	part := ""
	if r.of != nil && r.asked.cost > 0 && r.asked.waiting+r.asked.cost <= r.Depth {
		part = "a part, by priority, of "
		if cfg.Tenants != nil {
			part = "its tenant's part of "
		}
	}
	switch {
	case r.asked.noWait:
		return "the caller, who would not wait"
	case r.of != nil && r.Waiting >= cfg.MaxItems:
		return fmt.Sprintf("MaxItems %d", cfg.MaxItems)
	case cfg.Depth == NoQueue || d.Fixed && d.Depth == 0:
		return "Depth none"
	case r.Depth < d.Depth:
		if d.Fixed {
			derived = fmt.Sprintf("Depth %d", d.Depth)
		}
		return fmt.Sprintf("%s%s, in a standing overload (%d of %d may wait)", part, derived, r.Depth, d.Depth)
	case d.Fixed:
		return fmt.Sprintf("%sDepth %d", part, d.Depth)
	}
	return fmt.Sprintf("%s%s (%d may wait)", part, derived, r.Depth)
}

func (r *Rejection) bytesKnob(cfg *admission.Config) string {
	if r.of == nil {
		return "MaxBytes"
	}
	if r.Reason == TooLarge && r.asked.bytes > 0 {
		return fmt.Sprintf("MaxBytes %s, of which it has %s", bytesWords(cfg.MaxBytes), bytesWords(r.asked.bytes))
	}
	return "MaxBytes " + bytesWords(cfg.MaxBytes)
}

// costKnob is what no request may cost more than.
func (r *Rejection) costKnob(cfg *admission.Config) string {
	costs := ""
	if r.asked.cost > 0 {
		costs = fmt.Sprintf(" (it costs %d)", r.asked.cost)
	}
	switch a := r.Derivation.Allowance; {
	case r.asked.cost == 0 || r.asked.cost > r.Limit:
		return fmt.Sprintf("the limit of %d%s", r.Limit, costs)
	case a.Rate > 0 && float64(r.asked.cost) > a.Burst:
		return fmt.Sprintf("the burst of the Allowance, %.6g%s", a.Burst, costs)
	}
	return "the MaxInUse or the quota of its tenant" + costs
}

// bytesWords is a size to three figures, or exactly where it is a round one.
func bytesWords(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.4g %ciB", v, "KMGTP"[i])
}
