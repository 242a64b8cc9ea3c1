package metrics

import (
	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputprom"
	"github.com/prometheus/client_golang/prometheus"
)

// Traffic is what lasts in one class: streams, and connections that were upgraded. Its label
// is the name of the class: one of connections has no limiter.
type Traffic struct {
	Class             string
	Mode              string // request, stream or connection; not a metric
	Requests, Tunnels int64
	TunnelsTotal      uint64
	UpgradesRefused   uint64
	CutIdle, CutTotal uint64

	Streamed, Tunnelled *goodput.Histogram // how long those lasted that have ended; nil: none has
}

var (
	lastingDesc         = plain("lasting_requests", "Requests in flight in classes of streams and of connections, upgraded ones included.", "class")
	tunnelsDesc         = plain("tunnels", "Upgraded connections (WebSocket) that are open.", "class")
	openedDesc          = plain("tunnels_total", "Connections that were upgraded.", "class")
	upgradesRefusedDesc = plain("tunnels_refused_total", "Upgrades that were refused for their number.", "class")
	cutDesc             = plain("lasting_cut_total", "Streams and upgraded connections that were cut, by the limit that they met: idle, nothing had moved for so long, or total.", "class", "limit")
	lastedDesc          = plain("lasting_duration_seconds", "How long what lasts has lasted that has ended, by kind: stream, a request in a class of streams or of connections; upgraded, a connection, in any class. None of it is in request_duration and service_duration.", "class", "kind")
)

// lengths are the classic buckets of what lasts: who closes at once is told from who stays for a
// while, for a working day, and for longer.
var lengths = []float64{0.1, 1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600}

var trafficDescs = []*prometheus.Desc{lastingDesc, tunnelsDesc, openedDesc, upgradesRefusedDesc, cutDesc, lastedDesc}

// lasting sends what lasts in each class.
func (p Proxy) lasting(send send, ch chan<- prometheus.Metric) {
	for _, t := range p.Traffic() {
		send(lastingDesc, prometheus.GaugeValue, float64(t.Requests), t.Class)
		send(tunnelsDesc, prometheus.GaugeValue, float64(t.Tunnels), t.Class)
		send(openedDesc, prometheus.CounterValue, float64(t.TunnelsTotal), t.Class)
		send(upgradesRefusedDesc, prometheus.CounterValue, float64(t.UpgradesRefused), t.Class)
		send(cutDesc, prometheus.CounterValue, float64(t.CutIdle), t.Class, "idle")
		send(cutDesc, prometheus.CounterValue, float64(t.CutTotal), t.Class, "total")
		ch <- goodputprom.NewHistogram(lastedDesc, t.Streamed, lengths, t.Class, "stream")
		ch <- goodputprom.NewHistogram(lastedDesc, t.Tunnelled, lengths, t.Class, "upgraded")
	}
}
