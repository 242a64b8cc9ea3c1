// Package metrics shows what the program counts beside its limiters: connections, servers,
// what lasts, reloads and the process. The limiters are package goodputprom's, and the rules
// are the same: every series exists from the start, and the values of a label are words of
// ours or of the configuration.
package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/goodputprom"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// A Proxy is what the data path counts beside its limiters.
type Proxy struct {
	// Open returns the client connections that speak HTTP.
	Open func() int64
	// MaxUpgraded is how many connections may be upgraded at once.
	MaxUpgraded func() int
	// Failures returns how often the upstream failed, by kind.
	Failures func() map[string]uint64
	// Deadlines returns how many requests were forwarded, by what set their
	// deadline.
	Deadlines func() map[string]uint64
	// Door returns what is counted before a limiter is asked.
	Door func() goodputhttp.Stats
	// Listeners returns what they have accepted, and Overflows what the kernel could not
	// keep for them; nil: nobody asks it.
	Listeners func() []Listener
	Overflows func() (overflows, drops uint64, ok bool)
	// Servers returns those of all upstreams.
	Servers func() []Server
	// Traffic returns what lasts in each class.
	Traffic func() []Traffic
	// Switched returns for each limiter whether its observe mode is not as the policy says,
	// because somebody has switched it; nil: nobody can.
	Switched func() map[string]bool
	// Logs returns what was written of requests; nil: nobody writes.
	Logs func() []Log
	// Reloads returns how the configuration came to be what it is.
	Reloads func() Reloads
}

// Reloads are those of the configuration since the start, which counts as a good one.
type Reloads struct {
	Good         bool      // the latest
	At           time.Time // of the latest good one
	Done, Failed uint64
	Restart      bool // it has changes that need a restart

	Why      string // the latest that failed, and when; not metrics
	FailedAt time.Time
}

// Registry returns a registry of its own (nothing that a library registers by
// being imported) with c, the proxy, the build and the Go process.
func Registry(c *goodputprom.Collector, p Proxy) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(c, p,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := build.Read()
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "goodput_build_info",
		Help: "What this binary was built from; always 1.",
		ConstLabels: prometheus.Labels{
			"version": info.Version, "revision": info.Revision,
			"modified": strconv.FormatBool(info.Modified), "goversion": info.Go,
		},
	}, func() float64 { return 1 }))
	return r
}

func plain(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("goodput_"+name, help, labels, nil)
}

var (
	connectionsDesc = plain("connections_usage", "Client connections, by kind: open ones that speak HTTP, and upgraded ones.", "kind")
	connLimitDesc   = plain("connections_limit", "Client connections that may be open, by kind. Those of a listener are bounded by goodput_listener_connections_limit.", "kind")
	failuresDesc    = plain("upstream_failures_total", "Requests that the upstream did not answer, by kind.", "kind")
	shedDesc        = plain("upstream_refusals_total", "Answers of the upstream that were themselves refusals for overload, passed on.")
	sourcesDesc     = plain("deadlines_total", "Requests passed on to the upstream, by what set their deadline: the header that said the shortest, the default, the cap, or none.", "source")
	deadlinesDesc   = plain("deadline_errors_total", "Requests whose deadline header could not be read and was ignored, by header.", "header")
	bodiesDesc      = plain("bodies_refused_total", "Requests refused for their body, by kind: slow or malformed, before they arrived at a limiter; large, above max_body, also after that.", "kind")
	slowDesc        = plain("slow_clients_total", "Connections that were cut because the client kept a slot waiting, to send more of its body or to take more of the response.")
	bufferedDesc    = plain("bodies_buffered_bytes", "Bytes of request bodies in memory because they are read before their request queues.")
	heldDesc        = plain("finishing_requests", "Requests that nobody waits for any more and that keep their slot until the service has answered.")
	reloadGoodDesc  = plain("config_last_reload_successful", "1 if the latest reload of the configuration succeeded, as the start did; 0: the one before is in force.")
	reloadTimeDesc  = plain("config_last_reload_success_timestamp_seconds", "When the configuration in force was read.")
	reloadsDesc     = plain("config_reloads_total", "Reloads of the configuration, by result: done or failed.", "result")
	restartDesc     = plain("config_restart_needed", "1 while the configuration has listeners that are not those that are open: a restart is needed.")
	switchedDesc    = plain("observe_switched", "1 while observe mode is not as the policy says, because somebody has switched it at run time, on or off: goodput_observe says which.", "limiter")
	upgradesDesc    = plain("upgrades_total", "Connections that were upgraded, and upgrades that were refused for their number.", "result")
)

// Describe is for prometheus.Collector.
func (p Proxy) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{
		connectionsDesc, connLimitDesc, failuresDesc, shedDesc, sourcesDesc, deadlinesDesc, bodiesDesc, slowDesc, bufferedDesc, heldDesc, upgradesDesc,
		reloadGoodDesc, reloadTimeDesc, reloadsDesc, restartDesc, switchedDesc,
	}, slices.Concat(listenerDescs, serverDescs, trafficDescs, logDescs)...) {
		ch <- d
	}
}

// Collect is for prometheus.Collector.
func (p Proxy) Collect(ch chan<- prometheus.Metric) {
	door := p.Door()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	send(connectionsDesc, prometheus.GaugeValue, float64(p.Open()), "open")
	send(connectionsDesc, prometheus.GaugeValue, float64(door.Upgraded), "upgraded")
	send(connLimitDesc, prometheus.GaugeValue, float64(p.MaxUpgraded()), "upgraded")
	p.listeners(send)
	p.servers(send)
	p.lasting(send, ch)
	p.logs(send)
	reloads := p.Reloads()
	send(reloadGoodDesc, prometheus.GaugeValue, truth(reloads.Good))
	send(reloadTimeDesc, prometheus.GaugeValue, float64(reloads.At.UnixMilli())/1000)
	send(reloadsDesc, prometheus.CounterValue, float64(reloads.Done), "done")
	send(reloadsDesc, prometheus.CounterValue, float64(reloads.Failed), "failed")
	send(restartDesc, prometheus.GaugeValue, truth(reloads.Restart))
	if p.Switched != nil {
		for limiter, differs := range p.Switched() {
			send(switchedDesc, prometheus.GaugeValue, truth(differs), limiter)
		}
	}
	for kind, n := range p.Failures() {
		send(failuresDesc, prometheus.CounterValue, float64(n), kind)
	}
	send(shedDesc, prometheus.CounterValue, float64(door.UpstreamShed))
	for source, n := range p.Deadlines() { // of our choice: headers that an operator names are one
		send(sourcesDesc, prometheus.CounterValue, float64(n), source)
	}
	for header, n := range door.DeadlineErrors { // those that are always read, and those that an operator names
		send(deadlinesDesc, prometheus.CounterValue, float64(n), header)
	}
	send(bodiesDesc, prometheus.CounterValue, float64(door.SlowBodies), "slow")
	send(bodiesDesc, prometheus.CounterValue, float64(door.BadBodies), "malformed")
	send(bodiesDesc, prometheus.CounterValue, float64(door.LargeBodies), "large")
	send(slowDesc, prometheus.CounterValue, float64(door.SlowClients))
	send(bufferedDesc, prometheus.GaugeValue, float64(door.Buffered))
	send(heldDesc, prometheus.GaugeValue, float64(door.Held))
	send(upgradesDesc, prometheus.CounterValue, float64(door.UpgradedTotal), "upgraded")
	send(upgradesDesc, prometheus.CounterValue, float64(door.UpgradedRefused), "refused")
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
