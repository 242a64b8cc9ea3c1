package goodputprom

import (
	"github.com/goodput/goodput"
	"github.com/prometheus/client_golang/prometheus"
)

// A family is a metric of limiters with one value per series.
type family struct {
	labelled
	kind prometheus.ValueType
	fill func(s *goodput.Stats, values []float64) // one for each row
}

// single is the row of a metric with one series per limiter.
var single = [][]string{nil}

func counter(name, help string, value func(*goodput.Stats) uint64) family {
	return family{label("limiter", name, help, nil, single), prometheus.CounterValue, func(s *goodput.Stats, v []float64) {
		v[0] = float64(value(s))
	}}
}

func gauge(name, help string, value func(*goodput.Stats) float64) family {
	return family{label("limiter", name, help, nil, single), prometheus.GaugeValue, func(s *goodput.Stats, v []float64) {
		v[0] = value(s)
	}}
}

// is is a gauge that is 1 while something is so.
func is(name, help string, so func(*goodput.Stats) bool) family {
	return gauge(name, "1 while "+help, func(s *goodput.Stats) float64 { return truth(so(s)) })
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// families are the metrics of a limiter, its histograms apart.
var families = []family{
	// What arrived, and what became of it.
	counter("arrivals_total", "Requests that arrived, exempt ones excluded.",
		func(s *goodput.Stats) uint64 { return s.Arrivals }),
	ends("requests_total", "Requests that ended, each once, by outcome; reason says why it did not start. Goodput is the rate of completed.",
		func(s *goodput.Stats) []goodput.Ended { return s.Ends() }),
	ends("shadow_requests_total", "How requests would have ended that were let through in observe mode; all 0 without.",
		func(s *goodput.Stats) []goodput.Ended { return s.Shadow.Ends() }),
	{
		label("limiter", "admissions_total", "Requests admitted, at once or after waiting.", []string{"path"}, [][]string{{"immediate"}, {"queued"}}),
		prometheus.CounterValue, func(s *goodput.Stats, v []float64) { v[0], v[1] = float64(s.Immediate), float64(s.Dequeued) },
	},
	counter("exempt_admissions_total", "Exempt requests (probes) let through; not among the arrivals.",
		func(s *goodput.Stats) uint64 { return s.ExemptAdmitted }),
	counter("dropped_total", "Requests that what is behind the limit refused, being over a limit of its own, or that did not reach it; among the failed ones.",
		func(s *goodput.Stats) uint64 { return s.Dropped }),
	is("observe", "the limiter decides and counts, and refuses nothing.", func(s *goodput.Stats) bool { return s.Observe }),
	is("draining", "the service is shutting down: who comes is refused.", func(s *goodput.Stats) bool { return s.Draining }),
	is("absent", "there is nothing to run work on: no server of the upstream is well. Who waits is refused as unavailable.",
		func(s *goodput.Stats) bool { return s.Stats.Absent }),

	// The queue.
	gauge("requests_waiting", "Requests that wait.",
		func(s *goodput.Stats) float64 { return float64(s.Waiting) }),
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
	{
		label("limiter", "queue_order", "1 for the order in which those that wait are served now.", []string{"order"}, words(orders)),
		prometheus.GaugeValue, func(s *goodput.Stats, v []float64) {
			for i, o := range orders {
				v[i] = truth(s.Order == o)
			}
		},
	},
	is("overload", "a standing overload may hold the depth in force below the derived one.",
		func(s *goodput.Stats) bool { return s.Overload }),
	gauge("retry_after_seconds", "What a refusal tells callers to wait, before jitter.",
		func(s *goodput.Stats) float64 { return s.RetryAfter.Seconds() }),

	// What the depth is derived from.
	gauge("objective_seconds", "Latency that requests which got a slot must meet.",
		func(s *goodput.Stats) float64 { return s.Derivation.Objective.Seconds() }),
	gauge("service_expected_seconds", "Mean time that a unit of cost is held.",
		func(s *goodput.Stats) float64 { return s.Derivation.Mean.Seconds() }),
	gauge("service_quantile_seconds", "Service time at the percentile of the objective.",
		func(s *goodput.Stats) float64 { return s.Derivation.Service.Seconds() }),
	is("service_drifted", "the measured service time is more than 25 % away from the declared one.",
		func(s *goodput.Stats) bool { return s.Derivation.Drifted }),
	gauge("service_baseline_seconds", "What service_expected_seconds was over the last minutes; 0 until that is known.",
		func(s *goodput.Stats) float64 { return s.Baseline.Seconds() }),
	is("service_slowed", "a unit of cost is held for so much longer than over the last minutes that what it depends on has slowed, or the requests are others.",
		func(s *goodput.Stats) bool { return s.Slowed }),
	gauge("elsewhere_ratio", "Part of the time for which slots are held in which their work waits at the limiter of a dependency.",
		func(s *goodput.Stats) float64 { return s.Elsewhere }),
	gauge("capacity_per_second", "Units of cost per second that the slots and the allowance can serve.",
		func(s *goodput.Stats) float64 { return s.Capacity }),
	gauge("demand_per_second", "Units of cost per second that are offered, refused ones included.",
		func(s *goodput.Stats) float64 { return s.Demand }),
	gauge("demand_ratio", "Offered cost / capacity, over about one objective. Shedding hides load from the CPU, not from this: scale on it.",
		func(s *goodput.Stats) float64 { return s.Load }),

	// The limit.
	gauge("requests_running", "Requests that run, exempt ones excluded.",
		func(s *goodput.Stats) float64 { return float64(s.Running) }),
	gauge("exempt_running", "Exempt requests that run.",
		func(s *goodput.Stats) float64 { return float64(s.Exempt) }),
	gauge("concurrency_usage", "Units of cost that run.",
		func(s *goodput.Stats) float64 { return float64(s.InUse) }),
	gauge("concurrency_limit", "Units of cost that may run.",
		func(s *goodput.Stats) float64 { return float64(s.Limit) }),
	gauge("concurrency_limit_min", "The least that the law of the limit may set it to; the limit itself of one that is fixed.",
		func(s *goodput.Stats) float64 { return float64(s.LimitMin) }),
	gauge("concurrency_limit_max", "The most that the law of the limit may set it to; the limit itself of one that is fixed.",
		func(s *goodput.Stats) float64 { return float64(s.LimitMax) }),
	gauge("limit_floored_seconds", "How long the limit has stood at its least while more was offered than that serves; 0 if it does not.",
		func(s *goodput.Stats) float64 { return s.LimitFloored.Seconds() }),
	{
		label("limiter", "limit_changes_total", "Changes of the concurrency limit, by direction, up or down, and by cause: law, or call, which is a reload too.",
			[]string{"direction", "cause"}, [][]string{{"up", "law"}, {"down", "law"}, {"up", "call"}, {"down", "call"}}),
		prometheus.CounterValue, func(s *goodput.Stats, v []float64) {
			v[0] = float64(s.LimitRaised - s.LimitCalledUp)
			v[2], v[3] = float64(s.LimitCalledUp), float64(s.LimitCalled-s.LimitCalledUp)
			v[1] = float64(s.LimitChanges-s.LimitRaised) - v[3]
		},
	},
	gauge("limit_asked_seconds", "How long ago the law of the limit was asked, at most 0.1 while it works. Alert above 10 while requests arrive: the limit is frozen.",
		func(s *goodput.Stats) float64 { return s.LimitAsked.Seconds() }),
	gauge("limit_moved_seconds", "How long ago the limit last moved, 0 if it never has. One that adapts and does not move under load is not adapting.",
		func(s *goodput.Stats) float64 { return s.LimitMoved.Seconds() }),
	is("limit_search", "the law of the limit has not found the capacity yet.", func(s *goodput.Stats) bool { return s.LimitSearch }),
	is("limit_held", "the limit has a law that moves it, and that is not asked, because nothing is refused in observe mode.",
		func(s *goodput.Stats) bool { return s.LimitHeld }),
	gauge("pressure", "Level of the signal beside latency (CPU) that the law of the limit was told last: 1 is too much. 0 while there is none.",
		func(s *goodput.Stats) float64 { return s.Pressure }),
	gauge("allowance_per_second", "Units of cost per second that may start, whatever the slots would serve; 0: no allowance is set.",
		func(s *goodput.Stats) float64 { return s.Allowance.Rate }),
	gauge("allowance_left", "Units of cost that are left of the allowance now, negative after a correction; 0 without one.",
		func(s *goodput.Stats) float64 { return s.AllowanceLeft }),
	{
		label("limiter", "tenants", "Tenants: known by name; active, which ask, wait or run; over, which ask for more than their share in an overload.",
			[]string{"state"}, [][]string{{"known"}, {"active"}, {"over"}}),
		prometheus.GaugeValue, func(s *goodput.Stats, v []float64) {
			v[0], v[1], v[2] = float64(s.Tenants.Rows), float64(s.Tenants.Active), float64(s.Tenants.Over)
		},
	},
}

// flat is how many series a limiter has, its histograms apart.
var flat = func() (n int) {
	for i := range families {
		n += len(families[i].rows)
	}
	return n
}()

// orders are those that may be in force.
var orders = []goodput.Order{goodput.FIFO, goodput.NewestFirst, goodput.EDF}

func words[T interface{ String() string }](all []T) (rows [][]string) {
	for _, v := range all {
		rows = append(rows, []string{v.String()})
	}
	return rows
}

// ends is a counter of each way to end.
func ends(name, help string, of func(*goodput.Stats) []goodput.Ended) family {
	var rows [][]string
	for _, e := range of(&goodput.Stats{}) {
		rows = append(rows, []string{e.Outcome.String(), e.Reason.String()})
	}
	return family{label("limiter", name, help, []string{"outcome", "reason"}, rows), prometheus.CounterValue, func(s *goodput.Stats, v []float64) {
		for i, e := range of(s) {
			v[i] = float64(e.Count)
		}
	}}
}
