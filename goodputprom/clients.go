package goodputprom

import (
	"strings"

	"github.com/goodput/goodput/retry"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	clientCalls = client("calls_total", "Calls that ended, by why there was no further attempt; answered is the good one.", "outcome")
	clientTries = client("attempts_total", "Attempts of calls, the first ones included, and those that were kept here. attempts / calls is what the dependency is asked for in place of 1.")
	clientKept  = client("attempts_kept_total", "Attempts that were kept here and not sent, because the server would most likely have refused them.")
	clientSpent = client("retries_total", "Retries that calls asked the budget for, by result: granted or refused. Of policies that share a budget each has those of all.", "result")
	clientLeft  = client("retry_budget", "Retries that there are now. At 0 calls fail with their first attempt, which keeps an outage from being made worse.")
)

func client(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("goodput_client_"+name, help, append([]string{"dependency"}, labels...), nil)
}

// Clients shows the retries of those who call others, by Policy.Name. None of the policies is nil.
// Those of one name are told apart by a number: the second one is "billing-2".
//
// How each attempt ended is not counted, so attempts have no outcome; their calls have. The numbers
// of a policy are no snapshot of one instant, and each of them by itself only grows, but for the
// budget.
func Clients(policies ...*retry.Policy) prometheus.Collector {
	c := make(clients, 0, len(policies))
	taken := map[string]bool{}
	for _, p := range policies {
		if p == nil {
			panic("goodputprom: Clients of a nil *retry.Policy")
		}
		name := unlike(taken, strings.ToValidUTF8(p.Name, ""))
		taken[name] = true
		c = append(c, dependency{name, p})
	}
	return c
}

type clients []dependency

type dependency struct {
	name   string
	policy *retry.Policy
}

// Describe is for prometheus.Collector.
func (c clients) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clientCalls, clientTries, clientKept, clientSpent, clientLeft} {
		ch <- d
	}
}

// Collect is for prometheus.Collector.
func (c clients) Collect(ch chan<- prometheus.Metric) {
	for _, d := range c {
		s := d.policy.Stats()
		count := func(desc *prometheus.Desc, n uint64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), append([]string{d.name}, labels...)...)
		}
		for stop := retry.NoStop + 1; stop < retry.Stops; stop++ {
			count(clientCalls, s.Stops[stop], stop.String())
		}
		count(clientTries, s.Attempts)
		count(clientKept, s.Kept)
		count(clientSpent, s.Budget.Granted, "granted")
		count(clientSpent, s.Budget.Refused, "refused")
		ch <- prometheus.MustNewConstMetric(clientLeft, prometheus.GaugeValue, s.Budget.Left, d.name)
	}
}
