package goodputprom

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goodput/goodput"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A shown is a limiter as it is shown: its name there, and the labels of its series, which are
// made once. A scrape of 100 limiters is 10,000 series and more, and half of what
// it took was to make and sort their labels.
type shown struct {
	limiter *goodput.Limiter
	name    string // its own
	label   string // the value of the label limiter
	labels  [][]*dto.LabelPair
}

// show returns the limiters of now, each as it was shown before.
func (c *Collector) show() []*shown {
	limiters := c.Limiters()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make(map[*goodput.Limiter]*shown, len(limiters))
	taken := make(map[string]bool, len(limiters))
	for _, l := range limiters {
		if s := c.shown[l]; s != nil && s.name == l.Name() { // Reconfigure may have changed that
			now[l], taken[s.label] = s, true
		}
	}
	all := make([]*shown, 0, len(limiters))
	there := make(map[*shown]bool, len(limiters))
	for _, l := range limiters {
		if now[l] == nil {
			s := newShown(l, unlike(taken, l.Name()))
			now[l], taken[s.label] = s, true
		}
		if s := now[l]; !there[s] { // a limiter that is there twice is shown once
			there[s] = true
			all = append(all, s)
		}
	}
	c.shown = now
	return all
}

// unlike returns name, or if that is taken name-2, and so on.
func unlike(taken map[string]bool, name string) string {
	label := name
	for n := 2; taken[label]; n++ {
		label = fmt.Sprintf("%s-%d", name, n)
	}
	return label
}

func newShown(l *goodput.Limiter, label string) *shown {
	s := &shown{limiter: l, name: l.Name(), label: label}
	own := pair("limiter", label)
	for i := range families {
		s.labels = append(s.labels, families[i].with(own)...)
	}
	for i := range histograms {
		s.labels = append(s.labels, histograms[i].with(own)...)
	}
	return s
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// A labelled is a metric name with the labels, beside that of whose it is, of its series.
type labelled struct {
	desc *prometheus.Desc
	rows [][]*dto.LabelPair // one for each series
}

// label describes a metric whose series have the labels of names beside own, with the values
// of rows.
func label(own, name, help string, names []string, rows [][]string) labelled {
	f := labelled{desc: prometheus.NewDesc("goodput_"+name, help, append([]string{own}, names...), nil)}
	for _, values := range rows {
		row := make([]*dto.LabelPair, len(names))
		for i, v := range values {
			row[i] = pair(names[i], v)
		}
		f.rows = append(f.rows, row)
	}
	return f
}

// with returns the labels of each series, sorted by name, as a registry wants them.
func (f *labelled) with(own *dto.LabelPair) [][]*dto.LabelPair {
	all := make([][]*dto.LabelPair, len(f.rows))
	for i, row := range f.rows {
		all[i] = append([]*dto.LabelPair{own}, row...)
		slices.SortFunc(all[i], func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	}
	return all
}

// A sample is the value of one series in one scrape.
type sample struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []*dto.LabelPair
	value  float64
}

// Desc is for prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write is for prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.labels
	if s.kind == prometheus.CounterValue {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// send sends every series of one snapshot.
func (l *shown) send(ch chan<- prometheus.Metric, stats *goodput.Stats, bounds []bound) {
	values := make([]float64, flat)
	samples := make([]sample, flat)
	at := 0
	for i := range families {
		f := &families[i]
		n := len(f.rows)
		f.fill(stats, values[at:at+n])
		for range n {
			samples[at] = sample{f.desc, f.kind, l.labels[at], values[at]}
			ch <- &samples[at]
			at++
		}
	}
	for i := range histograms {
		h := &histograms[i]
		for row := range h.rows {
			ch <- &histogram{h.desc, l.labels[at], h.of(stats, row), bounds}
			at++
		}
	}
}
