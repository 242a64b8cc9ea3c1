package scenario

import (
	"slices"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
)

// A metric is a number of a result that a criterion can be about. Exactly one of
// the four functions is set: of the run as a whole, of all or of one class or tenant,
// of all or of one tier, of all or of one group.
type metric struct {
	unit  unit
	all   func(*sim.Result) (float64, bool)
	tally func(*sim.Tally) (float64, bool)
	tier  func(*sim.TierResult) float64
	group func(*sim.Result, *sim.GroupResult) (float64, bool)
}

// metrics are those of sim.Result, sim.Tally and sim.TierResult by the names of
// scenario files. Without a scope the ones of tiers are those of the tier that has
// most.
var metrics = map[string]metric{
	"ratio":    {unit: share, all: func(r *sim.Result) (float64, bool) { return r.Ratio(), r.Total.Requests > 0 }},
	"capacity": {unit: rate, all: func(r *sim.Result) (float64, bool) { return r.Capacity, true }},
	"ended":    {unit: span, all: func(r *sim.Result) (float64, bool) { return r.Ended.Seconds(), true }},

	"requests": counted(func(t *sim.Tally) uint64 { return t.Requests }),
	"in_time":  counted(func(t *sim.Tally) uint64 { return t.InTime }),
	"late":     counted(func(t *sim.Tally) uint64 { return t.Late }),
	"refused":  counted(func(t *sim.Tally) uint64 { return t.Refused }),
	"failed":   counted(func(t *sim.Tally) uint64 { return t.Failed }),
	"kept":     counted(func(t *sim.Tally) uint64 { return t.Kept }),
	"attempts": counted(func(t *sim.Tally) uint64 { return t.Attempts }),
	"served":   counted(func(t *sim.Tally) uint64 { return t.Served }),
	"asked":    counted(func(t *sim.Tally) uint64 { return t.Asked }),
	"granted":  counted(func(t *sim.Tally) uint64 { return t.Granted }),

	"in_time_share": shared(func(t *sim.Tally) (part, whole float64) { return float64(t.InTime), float64(t.Requests) }),
	"kept_share":    shared(func(t *sim.Tally) (part, whole float64) { return float64(t.Kept), float64(t.Requests) }),
	"refused_share": shared(func(t *sim.Tally) (part, whole float64) { return float64(t.Refused), float64(t.Requests) }),
	"wasted_share":  shared(func(t *sim.Tally) (part, whole float64) { return t.Wasted.Seconds(), t.Work.Seconds() }),
	"steady_share":  {unit: share, tally: (*sim.Tally).Steady},
	"parts_share":   shared(func(t *sim.Tally) (part, whole float64) { return t.Parts, float64(t.InTime) }),

	"attempts_per_request": {unit: factor, tally: func(t *sim.Tally) (float64, bool) {
		return float64(t.Attempts) / float64(t.Requests), t.Requests > 0
	}},

	"p50":      quantile(0.5, func(t *sim.Tally) *hist.Histogram { return &t.Latency }),
	"p99":      quantile(0.99, func(t *sim.Tally) *hist.Histogram { return &t.Latency }),
	"good_p50": quantile(0.5, func(t *sim.Tally) *hist.Histogram { return &t.Good }),
	"good_p99": quantile(0.99, func(t *sim.Tally) *hist.Histogram { return &t.Good }),
	"wait_p50": quantile(0.5, func(t *sim.Tally) *hist.Histogram { return &t.Wait }),
	"wait_p99": quantile(0.99, func(t *sim.Tally) *hist.Histogram { return &t.Wait }),
	"told_p50": quantile(0.5, func(t *sim.Tally) *hist.Histogram { return &t.Told }),
	"told_p99": quantile(0.99, func(t *sim.Tally) *hist.Histogram { return &t.Told }),

	"arrivals":    {unit: count, tier: func(t *sim.TierResult) float64 { return float64(t.Arrivals) }},
	"peak_queue":  {unit: count, tier: func(t *sim.TierResult) float64 { return float64(t.PeakQueue) }},
	"peak_in_use": {unit: count, tier: func(t *sim.TierResult) float64 { return float64(t.PeakInUse) }},
	"peak_behind": {unit: count, tier: func(t *sim.TierResult) float64 { return float64(t.PeakBehind) }},
	"peak_bytes":  {unit: size, tier: func(t *sim.TierResult) float64 { return float64(t.PeakBytes) }},
	"peak_age":    {unit: span, tier: func(t *sim.TierResult) float64 { return t.PeakAge.Seconds() }},
	"peak_used":   {unit: count, group: func(_ *sim.Result, g *sim.GroupResult) (float64, bool) { return float64(g.PeakInUse), g.Units > 0 }},
	"used_share":  {unit: share, group: func(r *sim.Result, g *sim.GroupResult) (float64, bool) { return g.Share(r.Window) }},
	"extra_load":  {unit: factor, tier: (*sim.TierResult).Extra},
	"restarts":    {unit: count, tier: func(t *sim.TierResult) float64 { return float64(t.Restarts) }},
}

// Attempts that were refused, by the word of the reason: quota, replaced, queue_full ...
func init() {
	for i := range admission.Reasons {
		if why := admission.Reason(i); why != admission.None {
			metrics[why.String()] = counted(func(t *sim.Tally) uint64 { return t.Reasons[why] })
		}
	}
}

func counted(of func(*sim.Tally) uint64) metric {
	return metric{unit: count, tally: func(t *sim.Tally) (float64, bool) { return float64(of(t)), true }}
}

func shared(of func(*sim.Tally) (part, whole float64)) metric {
	return metric{unit: share, tally: func(t *sim.Tally) (float64, bool) {
		part, whole := of(t)
		return part / whole, whole > 0
	}}
}

func quantile(q float64, of func(*sim.Tally) *hist.Histogram) metric {
	return metric{unit: span, tally: func(t *sim.Tally) (float64, bool) {
		d, ok := of(t).Quantile(q)
		return d.Seconds(), ok
	}}
}

// most is the value of the tier that has most.
func (m metric) most(tiers []sim.TierResult) (v float64, ok bool) {
	for i := range tiers {
		v, ok = max(v, m.tier(&tiers[i])), true
	}
	return v, ok
}

// whose says which scopes the metric has.
func (m metric) whose() string {
	switch {
	case m.tally != nil:
		return "of a class or a tenant"
	case m.tier != nil:
		return "of a tier"
	case m.group != nil:
		return "of a group"
	}
	return "of the whole run"
}

// metricNames are in the order of the alphabet.
func metricNames() []string {
	var names []string
	for name := range metrics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
