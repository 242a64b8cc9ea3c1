package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Server is one of those of an upstream. Its labels are names of the configuration.
type Server struct {
	Upstream, Server                         string
	Well                                     bool
	Why                                      string // it is out; not a metric
	Since                                    time.Time
	Share                                    float64
	InFlight, Limit                          int
	Requests, Elsewhere, Failures, Ejections uint64
	Checks, Sick                             uint64
}

func ofServer(name, help string) *prometheus.Desc {
	return plain("upstream_server_"+name, help, "upstream", "server")
}

var (
	serverWellDesc      = ofServer("well", "1 while the server takes requests; 0: it has left several in a row without an answer, or its checks failed.")
	serverShareDesc     = ofServer("share", "The part of its room that the server is given: 1, less while it starts slowly, 0 while it is out.")
	serverInFlightDesc  = ofServer("in_flight", "Requests that are at the server.")
	serverLimitDesc     = ofServer("limit", "Requests that the server runs at once, as the configuration says; 0: it does not.")
	serverRequestsDesc  = ofServer("requests_total", "Requests that were sent to the server.")
	serverElsewhereDesc = ofServer("elsewhere_total", "Requests that the server did not answer and that were sent on to another one: it had not executed them, or they may be repeated.")
	serverFailuresDesc  = ofServer("failures_total", "Requests and connections that the server left without an answer.")
	serverEjectionsDesc = ofServer("ejections_total", "How often the server was taken out.")
	serverChecksDesc    = ofServer("checks_total", "Checks of the health of the server.")
	serverSickDesc      = ofServer("checks_failed_total", "Checks of the health of the server that failed.")
)

var serverDescs = []*prometheus.Desc{
	serverWellDesc, serverShareDesc, serverInFlightDesc, serverLimitDesc, serverRequestsDesc, serverElsewhereDesc,
	serverFailuresDesc, serverEjectionsDesc, serverChecksDesc, serverSickDesc,
}

// servers sends what is known of those of the upstreams.
func (p Proxy) servers(send send) {
	for _, s := range p.Servers() {
		for _, v := range []struct {
			desc  *prometheus.Desc
			kind  prometheus.ValueType
			value float64
		}{
			{serverWellDesc, prometheus.GaugeValue, truth(s.Well)},
			{serverShareDesc, prometheus.GaugeValue, s.Share},
			{serverInFlightDesc, prometheus.GaugeValue, float64(s.InFlight)},
			{serverLimitDesc, prometheus.GaugeValue, float64(s.Limit)},
			{serverRequestsDesc, prometheus.CounterValue, float64(s.Requests)},
			{serverElsewhereDesc, prometheus.CounterValue, float64(s.Elsewhere)},
			{serverFailuresDesc, prometheus.CounterValue, float64(s.Failures)},
			{serverEjectionsDesc, prometheus.CounterValue, float64(s.Ejections)},
			{serverChecksDesc, prometheus.CounterValue, float64(s.Checks)},
			{serverSickDesc, prometheus.CounterValue, float64(s.Sick)},
		} {
			send(v.desc, v.kind, v.value, s.Upstream, s.Server)
		}
	}
}
