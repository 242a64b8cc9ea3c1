// Package goodputprom shows limiters to Prometheus:
//
//	prometheus.MustRegister(goodputprom.New(search, images))
//
// and, of the clients that call others, their retries ([Clients]), and the shares of a
// resource that a fleet splits ([Shares]).
//
// The model: a limiter counts for itself, and a scrape takes one snapshot of it
// and prints that. There is no second bookkeeping, so the numbers of one scrape
// belong to one instant:
//
//	arrivals_total = sum of requests_total + requests_waiting + requests_running
//
// holds exactly at every scrape. Every series exists from the start, at 0: a
// rate over a series that appears with its first event misses that event. No counter
// falls as long as its limiter lives.
//
// # Names
//
// They are what OpenTelemetry's names become in Prometheus: seconds and bytes, limit and
// usage for a total that is known and what is taken of it. Goodput is
//
//	rate(goodput_requests_total{outcome="completed"}[1m])
//
// and nothing else is; what is offered is rate(goodput_arrivals_total[1m]). A refusal counts
// in no metric of errors. What waits and runs is there twice, in requests
// (requests_waiting, requests_running), so that the sum above can be made, and in units of
// cost (queue_depth, concurrency_usage), because that is what the limits count. The waits of
// those who got no slot are told apart by whether the caller left, and no further: the
// time in queue answers how long a refusal takes, and requests_total says why.
//
// The labels are limiter, outcome, reason, direction, cause, path, order and state, each from a closed
// set, and tenant where somebody asks for that ([Collector.Tenants]). Nothing that a client sends
// becomes a label.
//
// # Histograms
//
// Each is there in two forms under one name. A scrape in text gets classic buckets, which
// reach past the objective and the longest deadline, whatever those are. A scrape in protobuf
// gets a native histogram as well, schema 3, which is how a limiter counts: no bucket is more
// than 9.1 % wide, up to 36 hours. A count of the highest bucket of all, le="+Inf", that is
// above the one before it is of durations over that one's bound.
package goodputprom

import (
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/prometheus/client_golang/prometheus"
)

// A Collector shows limiters. It is a prometheus.Collector, safe for concurrent use, and must
// not be copied. New makes one of limiters that stay; where they come and go, set Limiters.
//
// Limiters that have the same name are told apart by a number: the second one is shown as
// "search-2". Each keeps what it is shown as for as long as Limiters returns it. A limiter that
// takes the place of another begins at 0, as a process does that was restarted.
type Collector struct {
	// Limiters returns those to show, none of them nil. Each scrape calls it, and two scrapes
	// may do so at once.
	Limiters func() []*goodput.Limiter

	// Longest returns the longest deadline that requests of a limiter may have, by its name:
	// the buckets of its histograms reach past it, and past its objective, and to 10 s at
	// least. nil: no deadline is longer than the objective.
	Longest func(limiter string) time.Duration

	// Tenants is how many tenants of each limiter are shown by their ids, 0 to 100, those that
	// ask for most; all others together are "_other". They are rows of goodput.Config.Tenants,
	// which whoever configures the limiter names: an id that a client invents has no row.
	// Default 0: none is shown. Over the days there is a series for each that was ever among the first.
	Tenants int

	mu    sync.Mutex
	shown map[*goodput.Limiter]*shown // at the last scrape
}

// New returns a collector of limiters that stay, none of them nil.
func New(limiters ...*goodput.Limiter) *Collector {
	for _, l := range limiters {
		if l == nil {
			panic("goodputprom: New of a nil *goodput.Limiter")
		}
	}
	return &Collector{Limiters: func() []*goodput.Limiter { return limiters }}
}

// Describe is for prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for i := range families {
		ch <- families[i].desc
	}
	for i := range histograms {
		ch <- histograms[i].desc
	}
	for _, d := range tenantDescs {
		ch <- d
	}
}

// Collect is for prometheus.Collector. It takes one snapshot of each limiter, one after the
// other, and holds none of their locks while it sends.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c.show() {
		stats := l.limiter.Stats()
		longest := stats.Derivation.Objective
		if c.Longest != nil {
			longest = max(longest, c.Longest(l.name))
		}
		l.send(ch, &stats, boundsPast(longest))
		if n := min(c.Tenants, mostTenants); n > 0 {
			l.sendTenants(ch, &stats, n)
		}
	}
}
