// Package goodputprom shows limiters to Prometheus:
//
//	prometheus.MustRegister(goodputprom.New(search, images))
//
// The model: a limiter counts for itself, and a scrape takes one snapshot of it
// and prints that. There is no second bookkeeping, so the numbers of one scrape
// belong to one instant:
//
//	arrivals = sum of requests_total + requests_waiting + requests_running
//
// holds exactly at every scrape. Every series exists from the start, at 0: a
// rate over a series that appears with its first event misses that event.
//
// Labels are limiter, outcome, reason, direction and path, each from a closed set. Nothing
// that a client sends becomes a label.
package goodputprom

import (
	"time"

	"github.com/goodput/goodput"
	"github.com/prometheus/client_golang/prometheus"
)

// A Collector shows limiters. It is a prometheus.Collector. Whose limiters come and go makes
// one himself; New is for those that stay.
type Collector struct {
	// Limiters returns those to show; it is called at each scrape, from several goroutines at
	// once if there are several scrapes. Their names are the label that tells them apart.
	Limiters func() []*goodput.Limiter

	// Longest returns the longest deadline that requests of a limiter may have, by its name:
	// the buckets of its histograms reach past it and past its objective. nil: no deadline is
	// longer than the objective. The buckets reach to 10 s at least.
	Longest func(limiter string) time.Duration
}

// New returns a collector of limiters that stay.
func New(limiters ...*goodput.Limiter) *Collector {
	return &Collector{Limiters: func() []*goodput.Limiter { return limiters }}
}

// A scalar is a series per limiter.
type scalar struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*goodput.Stats) float64
}

func counter(name, help string, value func(*goodput.Stats) uint64) scalar {
	return scalar{describe(name, help), prometheus.CounterValue, func(s *goodput.Stats) float64 {
		return float64(value(s))
	}}
}

func gauge(name, help string, value func(*goodput.Stats) float64) scalar {
	return scalar{describe(name, help), prometheus.GaugeValue, value}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("goodput_"+name, help, append([]string{"limiter"}, labels...), nil)
}

var scalars = []scalar{
	counter("arrivals_total", "Requests that arrived, exempt ones excluded.",
		func(s *goodput.Stats) uint64 { return s.Arrivals }),
	counter("exempt_admissions_total", "Exempt requests (probes) let through; not among the arrivals.",
		func(s *goodput.Stats) uint64 { return s.ExemptAdmitted }),
	counter("dropped_total", "Requests that what is behind the limit refused, being over a limit of its own, or that did not reach it; among the failed ones.",
		func(s *goodput.Stats) uint64 { return s.Dropped }),
	gauge("requests_waiting", "Requests that wait.",
		func(s *goodput.Stats) float64 { return float64(s.Waiting) }),
	gauge("requests_running", "Requests that run, exempt ones excluded.",
		func(s *goodput.Stats) float64 { return float64(s.Running) }),
	gauge("exempt_running", "Exempt requests that run.",
		func(s *goodput.Stats) float64 { return float64(s.Exempt) }),
	gauge("queue_depth", "Units of cost that wait.",
		func(s *goodput.Stats) float64 { return float64(s.WaitingCost) }),
	gauge("queue_limit", "Depth in force: units of cost that may wait now.",
		func(s *goodput.Stats) float64 { return float64(s.Depth) }),
	gauge("queue_derived_limit", "Derived depth: units of cost that may wait within the objective, unless a standing overload lowers it.",
		func(s *goodput.Stats) float64 { return float64(s.Derivation.Depth) }),
	gauge("queue_size_bytes", "Bytes of request bodies that wait in memory.",
		func(s *goodput.Stats) float64 { return float64(s.WaitingBytes) }),
	gauge("queue_size_limit_bytes", "Bytes of request bodies that may wait in memory.",
		func(s *goodput.Stats) float64 { return float64(s.MaxBytes) }),
	gauge("queue_age_seconds", "How long the request that has waited longest has waited.",
		func(s *goodput.Stats) float64 { return s.Age.Seconds() }),
	gauge("overload", "1 while a standing overload may hold the depth in force below the derived one.",
		func(s *goodput.Stats) float64 { return truth(s.Overload) }),
	gauge("absent", "1 while there is nothing to run work on: no server of the upstream is well. Who waits is refused as unavailable.",
		func(s *goodput.Stats) float64 { return truth(s.Stats.Absent) }),
	gauge("service_expected_seconds", "Mean time that a unit of cost is held.",
		func(s *goodput.Stats) float64 { return s.Derivation.Mean.Seconds() }),
	gauge("service_quantile_seconds", "Service time at the percentile of the objective.",
		func(s *goodput.Stats) float64 { return s.Derivation.Service.Seconds() }),
	gauge("service_drifted", "1 while the measured service time is more than 25 % away from the declared one.",
		func(s *goodput.Stats) float64 { return truth(s.Derivation.Drifted) }),
	gauge("objective_seconds", "Latency that requests which got a slot must meet.",
		func(s *goodput.Stats) float64 { return s.Derivation.Objective.Seconds() }),
	gauge("capacity_per_second", "Units of cost per second that the slots can serve.",
		func(s *goodput.Stats) float64 { return s.Derivation.Rate }),
	gauge("demand_ratio", "Offered cost / capacity. Shedding hides load from the CPU, not from this: scale on it.",
		func(s *goodput.Stats) float64 { return s.Load }),
	gauge("concurrency_usage", "Units of cost that run.",
		func(s *goodput.Stats) float64 { return float64(s.InUse) }),
	gauge("concurrency_limit", "Units of cost that may run.",
		func(s *goodput.Stats) float64 { return float64(s.Limit) }),
	gauge("limit_asked_seconds", "How long ago the law of the limit was asked, at most 0.1 while it works. Alert above 10 while requests arrive: the limit is frozen.",
		func(s *goodput.Stats) float64 { return s.LimitAsked.Seconds() }),
	gauge("limit_moved_seconds", "How long ago the limit last moved, 0 if it never has. One that adapts and does not move under load is not adapting.",
		func(s *goodput.Stats) float64 { return s.LimitMoved.Seconds() }),
	gauge("limit_search", "1 while the law of the limit has not found the capacity yet.",
		func(s *goodput.Stats) float64 { return truth(s.LimitSearch) }),
	gauge("retry_after_seconds", "What a refusal tells callers to wait, before jitter.",
		func(s *goodput.Stats) float64 { return s.RetryAfter.Seconds() }),
}

var (
	requestsDesc = describe("requests_total",
		"Requests that ended, each once, by outcome; reason says why it did not start. Goodput is the rate of completed.", "outcome", "reason")
	shadowDesc = describe("shadow_requests_total",
		"Observe mode: how requests would have ended.", "outcome", "reason")
	changesDesc = describe("limit_changes_total",
		"Changes of the concurrency limit, whatever the cause, by direction: up or down.", "direction")
	admissionsDesc = describe("admissions_total",
		"Requests admitted, at once or after waiting.", "path")
	waitDesc = describe("queue_duration_seconds",
		"Time in the queue, of requests that were in it, by what became of them: admitted; refused, "+
			"which is every end but the caller's doing, expired and doomed ones included; cancelled, because the caller left.", "outcome")
	serviceDesc = describe("service_duration_seconds",
		"Time from slot to end, by outcome.", "outcome")
)

// waits are the labels of Stats.Wait: coarser than the outcomes of requests_total,
// since the waits of those that were told no answer one question (how long does
// it take to be refused), and why is counted there.
var waits = [...]string{
	goodput.WaitAdmitted:  "admitted",
	goodput.WaitRefused:   "refused",
	goodput.WaitCancelled: "cancelled",
}

// Describe sends every description, so that the registry checks them.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range scalars {
		ch <- s.desc
	}
	for _, d := range []*prometheus.Desc{requestsDesc, shadowDesc, changesDesc, admissionsDesc, waitDesc, serviceDesc} {
		ch <- d
	}
}

// Collect takes one snapshot of each limiter and sends it.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c.Limiters() {
		stats := l.Stats()
		longest := stats.Derivation.Objective
		if c.Longest != nil {
			longest = max(longest, c.Longest(stats.Name))
		}
		collect(ch, &stats, boundsPast(longest))
	}
}

func collect(ch chan<- prometheus.Metric, s *goodput.Stats, bounds []float64) {
	for _, m := range scalars {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s), s.Name)
	}
	ch <- prometheus.MustNewConstMetric(admissionsDesc, prometheus.CounterValue, float64(s.Immediate), s.Name, "immediate")
	ch <- prometheus.MustNewConstMetric(admissionsDesc, prometheus.CounterValue, float64(s.Dequeued), s.Name, "queued")
	ch <- prometheus.MustNewConstMetric(changesDesc, prometheus.CounterValue, float64(s.LimitRaised), s.Name, "up")
	ch <- prometheus.MustNewConstMetric(changesDesc, prometheus.CounterValue, float64(s.LimitChanges-s.LimitRaised), s.Name, "down")
	for _, end := range s.Ends() {
		ch <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(end.Count), s.Name, end.Outcome.String(), end.Reason.String())
	}
	for _, end := range s.Shadow.Ends() { // all 0 before the first request in observe mode
		ch <- prometheus.MustNewConstMetric(shadowDesc, prometheus.CounterValue, float64(end.Count), s.Name, end.Outcome.String(), end.Reason.String())
	}
	for i, outcome := range waits {
		ch <- newHistogram(waitDesc, &s.Wait[i], bounds, s.Name, outcome)
	}
	for _, o := range started {
		ch <- newHistogram(serviceDesc, s.Service[o], bounds, s.Name, o.String())
	}
}

// started are the outcomes of requests that ran.
var started = [...]goodput.Outcome{goodput.Completed, goodput.Late, goodput.Failed, goodput.Abandoned}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
