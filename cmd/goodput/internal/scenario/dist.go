package scenario

import (
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

const dists = "50ms fixed, 50ms exponential, 50ms lognormal 2, 50ms pareto 2.5, or a mapping"

// distribution reads work: a text, "50ms exponential", or a mapping with one key,
// the family.
func distribution(n strictyaml.Node) (d sim.Dist) {
	if n.IsText() {
		return distText(n)
	}
	if !n.Present() {
		return d
	}
	m := n.Map()
	defer m.Done()
	families := 0
	family := func(name string, kind sim.Kind, read func(strictyaml.Node)) {
		if v := m.Get(name); v.Present() {
			families++
			d.Kind = kind
			read(v)
		}
	}
	family("fixed", sim.Fixed, func(v strictyaml.Node) { d.Mean = v.Span(1, month) })
	family("exponential", sim.Exponential, func(v strictyaml.Node) { d.Mean = v.Span(1, month) })
	family("lognormal", sim.Lognormal, func(v strictyaml.Node) {
		m := v.Map()
		defer m.Done()
		d.Mean = m.Need("mean", "50ms").Span(1, month)
		d.CV = m.Need("cv", "2").Number(0.001, 100)
	})
	family("pareto", sim.Pareto, func(v strictyaml.Node) {
		m := v.Map()
		defer m.Done()
		d.Mean = m.Need("mean", "50ms").Span(1, month)
		d.Alpha = m.Need("alpha", "2.5").Number(1.001, 100)
	})
	family("modes", sim.Modal, func(v strictyaml.Node) {
		for _, n := range v.List(maxParts) {
			m := n.Map()
			d.Modes = append(d.Modes, sim.Mode{
				Value: m.Need("value", "2ms").Span(0, month),
				Share: m.Need("share", "0.9").Number(0, maxShare),
			})
			m.Done()
		}
	})
	family("empirical", sim.Empirical, func(v strictyaml.Node) {
		for _, n := range v.List(maxSamples) {
			d.Samples = append(d.Samples, n.Span(0, month))
		}
	})
	if families != 1 && len(m.Keys()) == families {
		n.Fail("%s has %d distributions: one of fixed, exponential, lognormal, pareto, modes and empirical", n.Name(), families)
	}
	return d
}

// distText parses "50ms exponential" and "50ms lognormal 2".
func distText(n strictyaml.Node) (d sim.Dist) {
	text := n.Text(200)
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ':' }) // 50ms:exp, as plan takes it
	if len(words) > 1 && words[1] == "exp" {
		words[1] = "exponential"
	}
	if len(words) == 1 {
		if _, err := time.ParseDuration(text); err == nil {
			n.Fail("%s %q does not say how it varies: %s", n.Name(), text, dists)
			return d
		}
	}
	shapes := map[string]struct {
		kind  sim.Kind
		shape *float64
		low   float64
	}{
		"fixed":       {sim.Fixed, nil, 0},
		"exponential": {sim.Exponential, nil, 0},
		"lognormal":   {sim.Lognormal, &d.CV, 0.001},
		"pareto":      {sim.Pareto, &d.Alpha, 1.001},
	}
	if len(words) < 2 {
		n.Fail("%s %q is not a distribution: %s", n.Name(), text, dists)
		return d
	}
	s, known := shapes[words[1]]
	wanted := 2
	if s.shape != nil {
		wanted = 3
	}
	if !known || len(words) != wanted {
		n.Fail("%s %q is not a distribution: %s", n.Name(), text, dists)
		return d
	}
	var err error
	if d.Mean, err = strictyaml.ParseSpan(words[0], 1, month); err != nil {
		n.Fail("%s %v", n.Name(), err)
		return d
	}
	d.Kind = s.kind
	if s.shape != nil {
		v, err := strconv.ParseFloat(words[2], 64)
		if err != nil || !(v >= s.low && v <= 100) {
			n.Fail("%s %q: %q is not a number of %v to 100", n.Name(), text, words[2], s.low)
			return d
		}
		*s.shape = v
	}
	return d
}

// mean is that of d, 0 if it says nothing.
func mean(d sim.Dist) time.Duration {
	sum, weight := 0.0, 0.0
	switch d.Kind {
	case sim.Modal:
		for _, m := range d.Modes {
			sum += float64(m.Value) * m.Share
			weight += m.Share
		}
	case sim.Empirical:
		for _, v := range d.Samples {
			sum += float64(v)
			weight++
		}
	default:
		return d.Mean
	}
	if weight == 0 {
		return 0
	}
	return time.Duration(sum / weight)
}
