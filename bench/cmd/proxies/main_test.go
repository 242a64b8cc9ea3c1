package main

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/bench/proxies"
)

func TestFlags(t *testing.T) {
	s, err := parse(nil)
	if err != nil || len(s.parts) != 3 || len(s.names) != 0 || s.clock.Passes != 6 || len(s.load.Multiple) != 3 || s.load.Slots != 60 || s.json {
		t.Fatalf("%+v, %v", s, err)
	}
	s, err = parse(strings.Fields("-only cost,memory -contestants goodput,bare -passes 2 -pass 3s -slots 20 -length 4500ms -loads 2 -format json -seed 7 -waiting 200"))
	if err != nil || len(s.parts) != 2 || len(s.contestants(proxies.Passing())) != 2 || s.clock.Length != 3*time.Second ||
		s.load.Slots != 20 || s.load.Multiple[0] != 2 || s.load.Seed != 7 || s.waiting != 200 || !s.json {
		t.Fatalf("%+v, %v", s, err)
	}
	if s, err = parse([]string{"-quick"}); err != nil || s.clock.Passes != 1 || s.load.Length > time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	for args, want := range map[string]string{
		"-only speed":        `part "speed" is unknown: one of cost, overload, memory`,
		"-contestants envoy": `contestant "envoy" is unknown: one of bare, goodput, bare-roomy`,
		"-passes 0":          "passes 0 are out of range",
		"-pass 1500ms":       "pass 1.5s is out of range",
		"-slots 1":           "slots 1 are out of range",
		"-length 700ms":      "length 700ms is out of range",
		"-rounds 0":          "rounds 0 are out of range",
		"-tries 0":           "tries 0 are out of range",
		"-loads 3,x":         `load "x" is out of range`,
		"-loads NaN":         `load "NaN" is out of range`,
		"-waiting 10":        "waiting 10 are out of range",
		"-format yaml":       `format "yaml" is unknown`,
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestTable(t *testing.T) {
	r := &proxies.Report{
		Processors: 2, Go: "go1.26", Versions: map[string]string{"caddy": "2.6.2"},
		Costs: []*proxies.Cost{
			{Contestant: proxies.Bare, Protocol: proxies.HTTP1, What: proxies.Pass, PerCPU: []float64{20000, 10000}, Rate: []float64{15000, 15000}},
			{Contestant: proxies.Goodput, Protocol: proxies.HTTP1, What: proxies.Pass, PerCPU: []float64{19000, 9000}, Rate: []float64{14000, 14000}},
		},
		Overloads: []*proxies.Overload{
			{Result: &live.Result{Contestant: proxies.Goodput, Plan: "cold 3x", Load: 3, Rate: 3600, Capacity: 1200, Quick: 0.96, Series: make([]live.Bin, 4)}, Admits: "told the slots", CPU: 0.72},
			{Result: &live.Result{Contestant: proxies.Bare, Plan: "cold 3x", Load: 3, Void: "the generator slept"}},
		},
		Memories: []*proxies.Memory{{Contestant: proxies.Goodput, Protocol: proxies.H2C, Waiting: 5000, Body: 10240, Each: 20000}},
	}
	r.Judge()
	var b strings.Builder
	if err := report(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 processors, go1.26, caddy 2.6.2", "24576", "0.925     0.900    0.950", "goodput: told the slots",
		"void: cold 3x, bare, round 1: the generator slept", ">= 0.93   missed", "<= 24576  reached", ">= 0.97   missed",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
