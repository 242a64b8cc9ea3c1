package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/fleet"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/goodputprom"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/retry"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var rewrite = flag.Bool("rewrite", false, "write docs/metrics.md anew")

// reference is the page; what stands above its tables is here.
const reference = "../../../../docs/metrics.md"

const head = `# Metrics

Every series is there from the first scrape, at 0. Times are in seconds and sizes in bytes; no
counter falls while its process and its class live. The values of labels are words of goodput or
of the configuration: nothing that a client sends becomes one.

Goodput is ` + "`rate(goodput_requests_total{outcome=\"completed\"}[1m])`" + `, what is offered
` + "`rate(goodput_arrivals_total[1m])`" + `, and at each scrape

    goodput_arrivals_total = sum of goodput_requests_total + goodput_requests_waiting + goodput_requests_running

holds exactly in each class. [Rules, alerts](../deploy/prometheus) and the [runbooks](runbooks)
are made of these; what a value of ` + "`reason`" + ` means is in [refusals](refusals.md). This page is
written by a test, from the program.
`

// page is a table of the metrics that c has.
func page(t *testing.T, title, text string, skip map[string]bool, all ...prometheus.Collector) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(all...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| metric | kind | labels | what it is |\n|---|---|---|---|\n", title, text)
	for _, f := range families {
		if name := f.GetName(); !skip[name] {
			skip[name] = true
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), labelsOf(f), strings.ReplaceAll(f.GetHelp(), "|", `\|`))
		}
	}
	return b.String()
}

// labelsOf are the labels of a family, with their values where those are words of ours.
func labelsOf(f *dto.MetricFamily) string {
	values := map[string]map[string]bool{}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			if values[l.GetName()] == nil {
				values[l.GetName()] = map[string]bool{}
			}
			values[l.GetName()][l.GetValue()] = true
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words := slices.Sorted(maps.Keys(values[name]))
		if words = slices.DeleteFunc(words, func(w string) bool { return w == "" }); len(words) < 2 || name == "tenant" {
			all = append(all, name)
		} else {
			all = append(all, name+" ("+strings.Join(words, ", ")+")")
		}
	}
	return strings.Join(all, ", ")
}

// The page has every metric as it is, and no other.
func TestThePageHasEveryMetric(t *testing.T) {
	lim := goodput.New(goodput.Config{Name: "web", Limit: limit.Fixed(60)})
	share, err := fleet.New(lim.SetLimit, fleet.Split{Budget: 60, Surge: 1}, fleet.Place{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer share.Stop()
	proxy := Proxy{
		Open: func() int64 { return 0 }, MaxUpgraded: func() int { return 0 },
		Failures: func() map[string]uint64 {
			return map[string]uint64{"unreachable": 0}
		},
		Deadlines: func() map[string]uint64 { return map[string]uint64{"none": 0} },
		Door: func() goodputhttp.Stats {
			return goodputhttp.Stats{DeadlineErrors: map[string]uint64{"Grpc-Timeout": 0}}
		},
		Listeners: func() []Listener { return []Listener{{Address: ":8080", QueueKnown: true}} },
		Overflows: func() (uint64, uint64, bool) { return 0, 0, true },
		Servers:   func() []Server { return []Server{{Upstream: "app", Server: "http://h"}} },
		Traffic:   func() []Traffic { return []Traffic{{Class: "web"}} },
		Switched:  func() map[string]bool { return map[string]bool{"web": false} },
		Reloads:   func() Reloads { return Reloads{At: time.Now()} },
	}
	skip := map[string]bool{}
	tenants := goodputprom.New(goodput.New(goodput.Config{Limit: limit.Fixed(1), Tenants: &goodput.Tenants{Rows: []goodput.Tenant{{ID: "acme"}}}}))
	tenants.Tenants = 2
	got := head +
		page(t, "Of each class", "The label limiter is the name of the class. A library has these of its limiters by package goodputprom.", skip, goodputprom.New(lim)) +
		page(t, "Of the proxy", "What `goodput serve` has beside its classes. Those of the Go runtime and of the process, `go_` and `process_`, are client_golang's.", skip, proxy) +
		page(t, "Of a library alone", "By goodputprom.Collector.Tenants, goodputprom.Clients and goodputprom.Shares; `goodput serve` has none of them.", skip,
			tenants, goodputprom.Clients(&retry.Policy{Name: "billing"}), goodputprom.Shares(map[string]*fleet.Share{"web": share}))
	if *rewrite {
		if err := os.WriteFile(reference, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/metrics.md is not what the metrics are: go test ./cmd/goodput/internal/metrics -rewrite writes it")
	}
}
