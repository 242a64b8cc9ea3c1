package metrics

import "github.com/prometheus/client_golang/prometheus"

// A Log is one that has a line for each request: access or record.
type Log struct {
	Name           string
	Lines, Dropped uint64
}

var (
	logLinesDesc   = plain("request_log_lines_total", "Requests that are in the access log or in the record.", "log")
	logDroppedDesc = plain("request_log_dropped_total", "Requests that are missing in the access log or in the record: the file did not take them in time.", "log")
)

var logDescs = []*prometheus.Desc{logLinesDesc, logDroppedDesc}

// logs sends what was written of requests; nothing without a function that says it.
func (p Proxy) logs(send send) {
	if p.Logs == nil {
		return
	}
	for _, l := range p.Logs() {
		send(logLinesDesc, prometheus.CounterValue, float64(l.Lines), l.Name)
		send(logDroppedDesc, prometheus.CounterValue, float64(l.Dropped), l.Name)
	}
}
