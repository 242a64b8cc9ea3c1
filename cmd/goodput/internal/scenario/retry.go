package scenario

import (
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// retry reads how whoever sends calls sends them again: the clients of a class, or a
// tier with sub-requests. budget and throttle are short for a mapping that has but
// their first key.
func retry(n strictyaml.Node) (t sim.Retry) {
	if !n.Present() {
		return t
	}
	m := n.Map()
	defer m.Done()
	t.Attempts = int(m.Need("attempts", "3").Whole(1, 100))
	t.Backoff = m.Get("backoff").Span(0, time.Hour)
	t.Max = m.Get("max").Span(0, month)
	t.Obey = m.Get("obey").Bool()
	t.Within = m.Get("within").Span(1, month)
	if n := m.Get("jitter"); n.Present() {
		t.NoJitter = !n.Bool()
	}
	if n := m.Get("budget"); n.Present() && !n.IsMap() {
		t.Budget.Ratio = n.Number(0, 1)
	} else if n.Present() {
		m := n.Map()
		t.Budget = sim.Budget{
			Ratio:   m.Need("ratio", "0.1").Number(0.001, 1),
			Reserve: int(m.Get("reserve").Whole(1, 1000)),
			Window:  m.Get("window").Span(time.Second, 10*time.Minute),
		}
		m.Done()
	}
	if n := m.Get("throttle"); n.Present() && !n.IsMap() {
		t.Throttle.K = n.Number(1.1, 100)
	} else if n.Present() {
		m := n.Map()
		t.Throttle = sim.Throttle{
			K:      m.Need("k", "2").Number(1.1, 100),
			Window: m.Get("window").Span(time.Second, 10*time.Minute),
		}
		m.Done()
	}
	return t
}

// faults reads when a share of the work of a tier fails.
func faults(n strictyaml.Node) (all []sim.Fault) {
	for _, n := range n.List(maxParts) {
		m := n.Map()
		all = append(all, sim.Fault{
			At:    m.Need("at", "10s").Span(0, month),
			For:   m.Need("for", "60s").Span(1, month),
			Share: m.Need("share", "0.5").Number(0.000001, 1),
		})
		m.Done()
	}
	return all
}
