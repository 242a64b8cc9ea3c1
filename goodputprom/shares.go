package goodputprom

import (
	"maps"

	"github.com/goodput/goodput/fleet"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	fleetBudget  = ofFleet("budget", "Units of the resource that all processes together have.")
	fleetShare   = ofFleet("share", "Units of the budget that are this process's, by the fleet as it knows it.")
	fleetUnits   = ofFleet("units", "Units that are in force here: less than the share until all others have made room.")
	fleetSettled = ofFleet("settled", "1 while the units in force are the share.")
	fleetChanges = ofFleet("changes_total", "How often other units were to be in force, by result: applied, or failed, which is tried again.", "result")
)

func ofFleet(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("goodput_fleet_"+name, help, append([]string{"limiter"}, labels...), nil)
}

// Shares shows the shares of a fleet, each by the name of the limiter that it sets the limit of.
// Nothing is leased, so nothing is renewed: the news of the fleet comes from whoever calls Set.
func Shares(byLimiter map[string]*fleet.Share) prometheus.Collector {
	return shares(maps.Clone(byLimiter))
}

type shares map[string]*fleet.Share

// Describe is for prometheus.Collector.
func (s shares) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{fleetBudget, fleetShare, fleetUnits, fleetSettled, fleetChanges} {
		ch <- d
	}
}

// Collect is for prometheus.Collector.
func (s shares) Collect(ch chan<- prometheus.Metric) {
	for limiter, share := range s {
		state := share.State()
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{limiter}, labels...)...)
		}
		send(fleetBudget, prometheus.GaugeValue, float64(state.Budget))
		send(fleetShare, prometheus.GaugeValue, float64(state.Share))
		send(fleetUnits, prometheus.GaugeValue, float64(state.Units))
		send(fleetSettled, prometheus.GaugeValue, truth(state.Settled))
		send(fleetChanges, prometheus.CounterValue, float64(state.Applied), "applied")
		send(fleetChanges, prometheus.CounterValue, float64(state.Failed), "failed")
	}
}
