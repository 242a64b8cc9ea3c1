package metrics

import (
	"strconv"

	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// A Proxy is what the data path counts beside its limiters.
type Proxy struct {
	// Connections returns the open client connections and the upgraded ones.
	Connections func() (open, upgraded int64)
	// Failures returns how often the upstream failed, by kind.
	Failures func() map[string]uint64
}

// Registry returns a registry of its own (nothing that a library registers by
// being imported) with c, the proxy, the build and the Go process.
func Registry(c *Collector, p Proxy) *prometheus.Registry {
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

var (
	connectionsDesc = prometheus.NewDesc("goodput_connections_usage",
		"Client connections, by kind: open ones that speak HTTP, and upgraded ones.", []string{"kind"}, nil)
	failuresDesc = prometheus.NewDesc("goodput_upstream_failures_total",
		"Requests that the upstream did not answer, by kind.", []string{"kind"}, nil)
)

// Describe is for prometheus.Collector.
func (p Proxy) Describe(ch chan<- *prometheus.Desc) {
	ch <- connectionsDesc
	ch <- failuresDesc
}

// Collect is for prometheus.Collector.
func (p Proxy) Collect(ch chan<- prometheus.Metric) {
	open, upgraded := p.Connections()
	ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(open), "open")
	ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(upgraded), "upgraded")
	for kind, n := range p.Failures() {
		ch <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(n), kind)
	}
}
