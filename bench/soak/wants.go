package soak

import (
	"fmt"
	"slices"
)

// What the criteria read of /metrics and of /api/v1/state. A name that is not there reads as 0, or
// as nothing to compare, which is what most criteria ask for. So what is not there is noted
// at each look, and a criterion that needs it is not met but not measured.

// A want is a metric that a criterion needs, with a series for each of these values of a label.
type want struct {
	name   string
	label  string   // "": it has none
	values []string // of it
	climbs bool     // it must be known as one that may not fall
}

// everyPolicy are the classes that every policy has.
var everyPolicy = []string{classPlain, classAuto, classLasting}

func of(name string) want { return want{name: name, values: []string{""}} }

func ofClasses(name string) want { return want{name: name, label: "limiter", values: everyPolicy} }

func counter(w want) want {
	w.climbs = true
	return w
}

// wants are the metrics that each criterion reads.
var wants = map[string][]want{
	CritMemory:   {of(heapInUse)},
	CritLeaks:    {of(goroutinesNow)},
	CritRest:     gauges,
	CritCounters: append([]want{{name: logLines, label: "log", values: []string{"access"}}, {name: logDropped, label: "log", values: []string{"access", "record"}}}, identity...),
	CritNeverFall: {
		counter(ofClasses(arrivals)), counter(ofClasses(ended)), counter(ofClasses("goodput_request_duration_seconds_count")),
	},
}

// Metrics that are read by name.
const (
	heapInUse     = "go_memstats_heap_inuse_bytes"
	goroutinesNow = "go_goroutines"
	logLines      = "goodput_request_log_lines_total"
	logDropped    = "goodput_request_log_dropped_total"
	arrivals      = "goodput_arrivals_total"
	ended         = "goodput_requests_total"
	waitingNow    = "goodput_requests_waiting"
	runningNow    = "goodput_requests_running"
)

// identity is what must add up at each scrape.
var identity = []want{ofClasses(arrivals), ofClasses(ended), ofClasses(waitingNow), ofClasses(runningNow)}

// gauges must all be 0 at rest, beside what the state has.
var gauges = []want{
	ofClasses(runningNow), ofClasses(waitingNow), ofClasses("goodput_concurrency_usage"), ofClasses("goodput_queue_depth"),
	ofClasses("goodput_queue_size_bytes"), ofClasses("goodput_queue_age_seconds"), ofClasses("goodput_exempt_running"),
	of("goodput_bodies_buffered_bytes"), of("goodput_finishing_requests"),
	{name: "goodput_lasting_requests", label: "class", values: []string{classLasting}},
	{name: "goodput_tunnels", label: "class", values: []string{classLasting}},
	{name: "goodput_upstream_server_in_flight", label: "upstream", values: []string{classPlain, classAuto}},
}

// held is what a class of the state must have, and have as 0 at rest.
var held = []string{"in_use", "running", "waiting", "waiting_cost", "waiting_bytes"}

// lacks says which series of w are not there. A class that only some of the policies have needs
// what the others need, while any metric has it.
func (s *scrape) lacks(w want, classes []string) []string {
	there := map[string]bool{}
	s.each(w.name, func(key string, _ float64) {
		if s.counts[key] || !w.climbs {
			there[label(key, w.label)] = true
		}
	})
	values := w.values
	if w.label == "limiter" {
		values = classes
	}
	kind := ""
	if w.climbs {
		kind = "as a counter "
	}
	var lack []string
	for _, v := range values {
		switch {
		case there[v]:
		case w.label == "":
			lack = append(lack, fmt.Sprintf("/metrics does not have %s%s", kind, w.name))
		default:
			lack = append(lack, fmt.Sprintf("/metrics does not have %s%s{%s=%q}", kind, w.name, w.label, v))
		}
	}
	return lack
}

// unseen returns what is not in s of what each criterion wants.
func (s *scrape) unseen() map[string][]string {
	classes := everyPolicy
	for _, w := range identity {
		for class := range s.by(w.name, w.label) {
			if !slices.Contains(classes, class) {
				classes = append(slices.Clone(classes), class)
			}
		}
	}
	lack := map[string][]string{}
	for crit, all := range wants {
		for _, w := range all {
			lack[crit] = append(lack[crit], s.lacks(w, classes)...)
		}
	}
	return lack
}

// left says what the state has that must not be there at rest, and what it does not have at all.
func (s *state) left() (left, unseen []string) {
	there := map[string]bool{}
	for _, l := range s.Limiters {
		name, _ := l["name"].(string)
		there[name] = true
		for _, field := range held {
			switch v, is := l[field].(float64); {
			case !is:
				unseen = append(unseen, fmt.Sprintf("/api/v1/state does not have %s of class %s", field, name))
			case v != 0:
				left = append(left, fmt.Sprintf("class %s: %s is %g", name, field, v))
			}
		}
	}
	for _, class := range everyPolicy {
		if !there[class] {
			unseen = append(unseen, fmt.Sprintf("/api/v1/state does not have class %s", class))
		}
	}
	return left, unseen
}

// scrape reads /metrics, and notes what is not there.
func (s *stage) scrape() (*scrape, error) {
	m, err := s.operator.scrape()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for crit, lack := range m.unseen() {
		s.missing(crit, lack)
	}
	return m, nil
}

// missing notes, once, what a criterion needs and was not there. The caller holds the lock.
func (s *stage) missing(crit string, lack []string) {
	for _, said := range lack {
		known := func(f Finding) bool { return f.What == crit && f.Said == said }
		if len(s.r.Unseen) < findings && !slices.ContainsFunc(s.r.Unseen, known) {
			s.r.Unseen = append(s.r.Unseen, Finding{s.now(), crit, said})
		}
	}
}
