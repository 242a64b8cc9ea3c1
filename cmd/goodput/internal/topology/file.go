package topology

import (
	_ "embed" // Example
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/plan"
)

// Example is a topology with a word about each key.
//
//go:embed example.yaml
var Example []byte

// A file of a topology, all of whose errors are reported at once:
//
//	version: 1
//	deadline: 2s                  # end to end
//	layers:                       # from the door inwards
//	  - name: api
//	    limit: 20                 # of one worker
//	    replicas: 12-40
//	    surge: 4
//	    workers: 4                # processes with a limit each
//	    service: 50ms:exp         # its own work, without the wait further in
//	    objective: 400ms
//	    attempts: 3               # that it makes at the next layer
//	    resource: database
//	resources:
//	  - name: database
//	    limit: 112-900            # planned with 112

// Bounds of the reader; plan says the narrower ones.
const (
	most       = 1 << 30
	mostLayers = 100
	longName   = 100
)

// MaxBytes is the longest file that is read.
const MaxBytes = strictyaml.MaxBytes

// Read parses a file. name is how errors call it; the error has a sentence, a line
// and a caret for each thing that is wrong.
func Read(name string, src []byte) (plan.Topology, error) {
	f, err := strictyaml.Parse(name, src)
	if err != nil {
		return plan.Topology{}, err
	}
	r := &reader{at: map[string]strictyaml.Node{}}
	root := f.Root()
	r.at[""] = root.Node()
	root.Need("version", "1").Whole(1, 1)
	root.Need("deadline", "2s")
	t := plan.Topology{Deadline: r.span(root, "", "deadline")}
	for i, n := range root.Need("layers", "[{name: api, limit: 20}]; goodput plan --print prints a whole file").List(mostLayers) {
		t.Layers = append(t.Layers, r.layer(n, fmt.Sprintf("layers[%d]", i)))
	}
	for i, n := range root.Get("resources").List(mostLayers) {
		t.Resources = append(t.Resources, r.resource(n, fmt.Sprintf("resources[%d]", i)))
	}
	root.Done()
	if err := f.Err(); err != nil {
		return plan.Topology{}, err // a value that could not be read breaks no rule
	}
	for _, fault := range t.Faults() {
		r.place(fault.Path).Fail("%s", fault.Text)
	}
	return t, f.Err()
}

// A reader remembers where each value stands, by the paths of plan.Fault.
type reader struct{ at map[string]strictyaml.Node }

// place returns the value of a path, or the nearest one around it.
func (r *reader) place(path string) strictyaml.Node {
	for path != "" {
		if n, ok := r.at[path]; ok && n.Present() {
			return n
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return r.at[""]
}

func (r *reader) get(m *strictyaml.Map, at, key string) strictyaml.Node {
	n := m.Get(key)
	r.at[strings.TrimPrefix(at+"."+key, ".")] = n
	return n
}

func (r *reader) span(m *strictyaml.Map, at, key string) time.Duration {
	return r.get(m, at, key).Span(time.Millisecond, strictyaml.Day)
}

func (r *reader) count(m *strictyaml.Map, at, key string) int {
	return int(r.get(m, at, key).Whole(1, most))
}

// NeedsNumber is what a plan says of a limit that is found by a law: a depth, and what an
// overload does, follow from the number that runs at once, and a law has none before it
// runs.
const NeedsNumber = "has no number before it runs, and a plan needs one: the number of workers or connections, such as 60, or the one that it has found, which is in /api/v1/state of goodput serve"

// limit reads a number; a word, and the keys of a law, are none.
func (r *reader) limit(m *strictyaml.Map, at string) int {
	n := r.get(m, at, "limit")
	word := n.Raw() != "" && strings.Trim(n.Raw(), "abcdefghijklmnopqrstuvwxyz0123456789") == "" && n.Raw()[0] > '9'
	switch {
	case n.IsMap():
		n.Fail("limit, as a law with its constants, %s", NeedsNumber)
		return 0
	case word:
		n.Fail("limit %s %s", n.Raw(), NeedsNumber)
		return 0
	}
	return int(n.Whole(1, most))
}

// text parses a value with a grammar of its own, into what its caller passes.
func (r *reader) text(m *strictyaml.Map, at, key string, into interface{ UnmarshalText([]byte) error }) {
	n := r.get(m, at, key)
	if text := n.Text(longName); text != "" {
		if err := into.UnmarshalText([]byte(text)); err != nil {
			n.Fail("%s %v", key, err)
		}
	}
}

func (r *reader) layer(n strictyaml.Node, at string) plan.Layer {
	r.at[at] = n
	m := n.Map()
	var replicas Range
	var service Service
	var percentile Percentile
	r.text(m, at, "replicas", &replicas)
	r.text(m, at, "service", &service)
	r.text(m, at, "percentile", &percentile)
	l := plan.Layer{
		Name:     r.get(m, at, "name").Text(longName),
		Limit:    r.limit(m, at),
		Replicas: plan.Range(replicas),
		Surge:    r.count(m, at, "surge"),
		Workers:  r.count(m, at, "workers"),
		Shared:   r.get(m, at, "shared").Bool(),
		Resource: r.get(m, at, "resource").Text(longName),
		Holds:    r.count(m, at, "holds"),

		Service:    service.Service,
		Assumed:    service.Assumed,
		Objective:  r.span(m, at, "objective"),
		Percentile: float64(percentile),
		Depth:      r.count(m, at, "depth"),
		Bytes:      r.get(m, at, "request_bytes").Size(),
		Wait:       r.span(m, at, "wait"),

		Attempts:      r.count(m, at, "attempts"),
		RetryBudget:   r.get(m, at, "retry_budget").Number(0, 1),
		RetryInterval: r.span(m, at, "retry_interval"),
		Loop:          r.span(m, at, "loop"),
		FanOut:        r.count(m, at, "fan_out"),
	}
	classes := r.get(m, at, "classes")
	for i, c := range classes.List(mostLayers) {
		l.Classes = append(l.Classes, r.class(c, fmt.Sprintf("%s.classes[%d]", at, i)))
	}
	if s := m.Get("service"); s.Present() && classes.Present() {
		classes.Clash(s, "classes and service are both given: the service of a layer with classes is that of each class")
	}
	m.Done()
	return l
}

func (r *reader) class(n strictyaml.Node, at string) plan.Class {
	m := n.Map()
	var service Service
	m.Need("service", "50ms:exp")
	r.text(m, at, "service", &service)
	c := plan.Class{
		Name:    m.Need("name", "reports").Text(longName),
		Service: service.Service,
		Share:   m.Need("share", "0.1").Number(1e-9, 1e9),
	}
	m.Done()
	return c
}

func (r *reader) resource(n strictyaml.Node, at string) plan.Resource {
	r.at[at] = n
	m := n.Map()
	var size Range
	m.Need("limit", "100")
	r.text(m, at, "limit", &size)
	out := plan.Resource{
		Name:    r.get(m, at, "name").Text(longName),
		Limit:   plan.Range(size),
		Largest: r.get(m, at, "assume").Word("smallest", "largest") == 1,
	}
	m.Done()
	return out
}
