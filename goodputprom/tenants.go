package goodputprom

import (
	"unicode/utf8"

	"github.com/goodput/goodput"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// mostTenants bounds Collector.Tenants: 7 series each, so the tenants of a limiter have at most
	// three times as many as it has itself.
	mostTenants = 100
	// others is the label of all tenants together that have no series of their own.
	others = "_other"
)

func ofTenant(name, help string) *prometheus.Desc {
	return label("limiter", "tenant_"+name, help, []string{"tenant"}, nil).desc
}

var tenantDescs = []*prometheus.Desc{
	ofTenant("usage", "Units of cost of the tenant that run."),
	ofTenant("queue_depth", "Units of cost of the tenant that wait."),
	ofTenant("demand_per_second", "Units of cost per second that the tenant asks for, less what its quota refused."),
	ofTenant("entitled_per_second", "Units of cost per second that the tenant would be served if it asked without end. The others have none."),
	ofTenant("over", "1 while the tenant asks for more than its share in an overload. The others have none."),
	ofTenant("arrivals_total", "Requests of the tenant that arrived. The others have none: who is among them changes."),
	ofTenant("refused_total", "Requests of the tenant that were refused, by whatever reason. The others have none."),
}

// counts is the first of tenantDescs that is a counter.
const counts = 5

// sendTenants sends the most that ask for most by their names, and as the others what is left of the
// whole. Who has no row is among the others, and so is a tenant whose id is no text, or that of the
// others. The accounts are of a moment after stats: what is left may be a little off, and is not less
// than nothing.
func (l *shown) sendTenants(ch chan<- prometheus.Metric, stats *goodput.Stats, most int) {
	rest := []float64{float64(stats.InUse), float64(stats.WaitingCost), stats.Demand} // what adds up
	if stats.Observe {                                                                // the accounts are the shadow's then
		rest[0], rest[1] = float64(stats.Shadow.InUse), float64(stats.Shadow.WaitingCost)
	}
	own := pair("limiter", l.label)
	top := l.limiter.Tenants(most + 1) // one of them may be all that have no row
	for i, sent := 0, 0; i < len(top) && sent < most; i++ {
		t := &top[i]
		if t.ID == "" || t.ID == others || !utf8.ValidString(t.ID) {
			continue
		}
		of := []float64{
			float64(t.InUse), float64(t.WaitingCost), t.Offered, t.Entitled, truth(t.Over), float64(t.Arrivals), float64(t.Refused),
		}
		for k := range rest {
			rest[k] = max(rest[k]-of[k], 0)
		}
		sendTenant(ch, of, own, t.ID)
		sent++
	}
	sendTenant(ch, rest, own, others)
}

func sendTenant(ch chan<- prometheus.Metric, of []float64, own *dto.LabelPair, id string) {
	labels := []*dto.LabelPair{own, pair("tenant", id)}
	for k, v := range of {
		kind := prometheus.GaugeValue
		if k >= counts {
			kind = prometheus.CounterValue
		}
		ch <- &sample{tenantDescs[k], kind, labels, v}
	}
}
