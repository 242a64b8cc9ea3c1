package topology

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/plan"
)

func TestRead(t *testing.T) {
	src, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read("shop.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Topology{
		Deadline: 2 * time.Second,
		Layers: []plan.Layer{
			{
				Name: "api", Limit: 20, Replicas: plan.Range{Min: 12, Max: 40}, Surge: 4, Workers: 2, Shared: true, Resource: "database", Holds: 1,
				Service: plan.Service{Mean: 5 * ms}, Objective: 400 * ms, Percentile: 0.999, Bytes: 100_000,
				Attempts: 3, RetryBudget: 0.1, RetryInterval: time.Second, Loop: 50 * ms, FanOut: 2, Depth: 10,
			},
			{Name: "database", Limit: 100, Wait: 200 * ms, Classes: []plan.Class{
				{Name: "lookup", Service: plan.Service{Mean: 2 * ms, Shape: plan.Fixed}, Share: 9},
				{Name: "report", Service: plan.Service{Mean: 10 * ms, Shape: plan.Lognormal, CV: 1.5}, Share: 1},
			}},
		},
		Resources: []plan.Resource{{Name: "database", Limit: plan.Range{Min: 1200, Max: 9000}, Largest: true}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every error names its line, shows it with a caret, and all come at once.
func TestErrors(t *testing.T) {
	const head = "version: 1\ndeadline: 2s\nlayers:\n"
	for _, c := range []struct {
		src  string
		want []string
	}{
		{"", []string{"empty"}},
		{"\x00\x01", []string{"bad.yaml"}},
		{"version: 2\n", []string{"bad.yaml:1:10: version", "layers is missing"}},
		{"deadline: 2s\n", []string{"version is missing", "layers is missing"}},
		{"version: 1\nlayers:\n  - name: a\n", []string{"deadline is missing"}},
		{"version: 1\n", []string{"deadline is missing", "layers is missing"}},
		{head + "  - name: a\n    limt: 3\n", []string{"bad.yaml:5:5: limt is unknown, did you mean limit?", "    5 |     limt: 3", "^"}},
		{head + "  - name: a\n    limit: 0\n", []string{`bad.yaml:5:12: limit "0"`}},
		{head + "  - name: a\n    limit: auto\n", []string{"bad.yaml:5:12: limit auto has no number before it runs, and a plan needs one"}},
		{head + "  - name: a\n    limit: {law: vegas, max: 90}\n", []string{"bad.yaml:5:12: limit, as a law with its constants, has no number before it runs"}},
		{head + "  - name: a\n    limit: 6x\n", []string{`bad.yaml:5:12: limit "6x" is not a whole number`}},
		{head + "  - name: a\n    limit: 9999999\n", []string{"bad.yaml:5:12: limit 9999999 is out of range: 0 to 1048576"}},
		{head + "  - name: a\n    wait: 800\n", []string{`bad.yaml:5:11: wait "800" has no unit: write 800ms or 800s`}},
		{head + "  - name: a\n    service: 50ms:cauchy\n", []string{`bad.yaml:5:14: service "50ms:cauchy"`, "50ms:lognormal:2"}},
		{head + "  - name: a\n    service: 50ms\n", []string{"bad.yaml:4:5: limit is missing"}},
		{head + "  - name: a\n    replicas: 6-2\n", []string{`bad.yaml:5:15: replicas "6-2"`, "112-900"}},
		{head + "  - name: a\n  - name: a\n", []string{`bad.yaml:5:11: layer "a" needs a name of its own`}},
		{head + "  - name: a\n    limit: 3\n    resource: db\n", []string{`bad.yaml:6:15: resource "db" is not among the resources`}},
		{head + "  - name: a\n    retry_budget: 10\n", []string{`retry_budget "10"`}},
		{head + "  - name: a\n    limit: 3\n    service: 5ms\n    classes:\n      - {name: x, service: 5ms, share: 1}\n", []string{"classes and service are both given"}},
		{head + "  - name: a\n    limit: 3\n    classes:\n      - {name: x, share: 1}\n", []string{"service is missing"}},
		{head + "  - name: a\n    name: b\n", []string{"name is given twice"}},
		{head + "  - name: a\nresources:\n  - name: db\n    limit: 5\n    assume: middle\n", []string{`assume "middle" is unknown`}},
		{head + "  - name: a\n    wait: 1\n    surge: x\n", []string{"bad.yaml:5:11", "bad.yaml:6:12"}},
		{head + "  - &a name: a\n", []string{"bad.yaml:4"}},
	} {
		_, err := Read("bad.yaml", []byte(c.src))
		if err == nil {
			t.Errorf("%q is taken", c.src)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q:\n%v\ndoes not say %s", c.src, err, w)
			}
		}
	}
}

// Whatever the file, reading it gives an error or something that can be planned.
func FuzzRead(f *testing.F) {
	src, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Add([]byte("version: 1\ndeadline: 2s\nlayers:\n  - name: a\n    wait: 800ms\n"))
	f.Add([]byte("version: 1\ndeadline: 1ms\nlayers: [{name: a, limit: 1, service: 1us}]\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		top, err := Read("fuzz.yaml", src)
		if err != nil {
			return
		}
		if faults := top.Faults(); len(faults) > 0 {
			t.Fatalf("read, but %+v", faults)
		}
		for i := range top.Layers { // planning their limiters is for the tests of plan
			top.Layers[i].Service, top.Layers[i].Classes = plan.Service{}, nil
		}
		a, err := plan.Check(top)
		if err != nil {
			t.Fatal(err)
		}
		if text := a.Text() + a.Markdown("x"); strings.Contains(text, "NaN") || strings.Contains(text, "%!") {
			t.Fatal(text)
		}
	})
}
