package goodputprom

import (
	"strings"

	"github.com/goodput/goodput"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// mostTenants bounds Collector.Tenants: 5 series each, so with the others 505 to a limiter, which is
	// as much as twice what it has without.
	mostTenants = 100
	// mostID is how much of an id is shown, in bytes: a UUID with a prefix has 50.
	mostID = 64
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
	ofTenant("entitled_per_second", "Units of cost per second that the tenant would be served if it asked without end; 0 of the others."),
	ofTenant("over", "1 while the tenant asks for more than its share in an overload; 0 of the others."),
}

// A share is what the metrics of tenants are made of, in their order.
type share [5]float64

// sendTenants sends those of top by their names, and as the others what is left of the whole. A tenant whose
// label is taken, because its id was cut or is nothing but what a label may not have, is among the others.
// top is of a moment after stats: what is left may be a little off, and is not less than nothing.
func (l *shown) sendTenants(ch chan<- prometheus.Metric, stats *goodput.Stats, top []goodput.TenantState) {
	rest := share{float64(stats.InUse), float64(stats.WaitingCost), stats.Demand}
	if stats.Observe {
		rest[0], rest[1] = float64(stats.Shadow.InUse), float64(stats.Shadow.WaitingCost)
	}
	taken := map[string]bool{"": true, others: true}
	own := pair("limiter", l.label)
	for i := range top {
		t := &top[i]
		id := safe(t.ID)
		if taken[id] {
			continue
		}
		taken[id] = true
		of := share{float64(t.InUse), float64(t.WaitingCost), t.Offered, t.Entitled, truth(t.Over)}
		for k := range 3 {
			rest[k] = max(rest[k]-of[k], 0)
		}
		sendShare(ch, &of, own, id)
	}
	sendShare(ch, &rest, own, others)
}

func sendShare(ch chan<- prometheus.Metric, of *share, own *dto.LabelPair, id string) {
	labels := []*dto.LabelPair{own, pair("tenant", id)}
	for k, v := range of {
		ch <- &sample{tenantDescs[k], prometheus.GaugeValue, labels, v}
	}
}

// safe returns id as a label may be: short, and valid UTF-8, which a registry insists on.
func safe(id string) string {
	if len(id) > mostID {
		id = id[:mostID]
	}
	return strings.ToValidUTF8(id, "")
}
