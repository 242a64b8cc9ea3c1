package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Listener is what one address has accepted. Its label is the address as the kernel has
// it: [::]:8080 for :8080.
type Listener struct {
	Address           string
	Open              int64
	Limit             int
	Accepted, Errors  uint64
	Full              uint64
	FullFor, Paused   time.Duration
	Queue, QueueLimit int
	QueueKnown        bool
}

var (
	listenOpenDesc     = plain("listener_connections", "Client connections that are open, upgraded ones included.", "listener")
	listenLimitDesc    = plain("listener_connections_limit", "Client connections that may be open; beyond that nobody is accepted and the accept queue fills.", "listener")
	listenAcceptedDesc = plain("listener_accepted_total", "Client connections that were accepted.", "listener")
	listenErrorsDesc   = plain("listener_accept_errors_total", "Tries to accept a connection that failed: no descriptors, no memory.", "listener")
	listenFullDesc     = plain("listener_full_total", "Times that nobody was accepted because as many connections were open as may be.", "listener")
	listenFullForDesc  = plain("listener_full_seconds_total", "How long nobody was accepted because as many connections were open as may be.", "listener")
	listenPausedDesc   = plain("listener_paused_seconds_total", "How long accepts were held back in a standing overload.", "listener")
	listenQueueDesc    = plain("listener_accept_queue", "Connections in the accept queue of the kernel.", "listener")
	listenBacklogDesc  = plain("listener_accept_queue_limit", "Connections that the accept queue of the kernel holds: the backlog in force.", "listener")
	overflowsDesc      = plain("accept_queue_overflows_total", "Connections that found a full accept queue, as the kernel counts them for the whole network namespace, other processes included.")
	dropsDesc          = plain("accept_queue_drops_total", "Connections that were dropped before they were accepted, for whatever reason, as the kernel counts them for the whole network namespace.")
)

var listenerDescs = []*prometheus.Desc{
	listenOpenDesc, listenLimitDesc, listenAcceptedDesc, listenErrorsDesc, listenFullDesc, listenFullForDesc,
	listenPausedDesc, listenQueueDesc, listenBacklogDesc, overflowsDesc, dropsDesc,
}

// send sends a series.
type send func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string)

// listeners sends what the listeners count, and what the kernel does.
func (p Proxy) listeners(send send) {
	for _, l := range p.Listeners() {
		send(listenOpenDesc, prometheus.GaugeValue, float64(l.Open), l.Address)
		send(listenLimitDesc, prometheus.GaugeValue, float64(l.Limit), l.Address)
		send(listenAcceptedDesc, prometheus.CounterValue, float64(l.Accepted), l.Address)
		send(listenErrorsDesc, prometheus.CounterValue, float64(l.Errors), l.Address)
		send(listenFullDesc, prometheus.CounterValue, float64(l.Full), l.Address)
		send(listenFullForDesc, prometheus.CounterValue, l.FullFor.Seconds(), l.Address)
		send(listenPausedDesc, prometheus.CounterValue, l.Paused.Seconds(), l.Address)
		if l.QueueKnown {
			send(listenQueueDesc, prometheus.GaugeValue, float64(l.Queue), l.Address)
			send(listenBacklogDesc, prometheus.GaugeValue, float64(l.QueueLimit), l.Address)
		}
	}
	if p.Overflows == nil {
		return
	}
	if overflows, drops, ok := p.Overflows(); ok {
		send(overflowsDesc, prometheus.CounterValue, float64(overflows))
		send(dropsDesc, prometheus.CounterValue, float64(drops))
	}
}
