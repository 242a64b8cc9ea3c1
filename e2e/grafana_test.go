//go:build linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// A panelJSON is a panel of the dashboard.
type panelJSON struct {
	ID                       *int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               source
	Targets                  []struct {
		Expr, LegendFormat, RefID string
		Datasource                source
		Exemplar                  bool
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
	Links       []struct{ Title, URL string }
}

type source struct{ Type, UID string }

type dashboardJSON struct {
	ID            *int
	UID, Refresh  string
	SchemaVersion int
	Panels        []panelJSON
	Links         []struct{ URL string }
	Annotations   struct {
		List []struct {
			Name, Expr string
			Datasource source
		}
	}
	Templating struct {
		List []struct {
			Name, Type string
			Multi      bool
		}
	}
}

func grafana(t *testing.T) (d dashboardJSON) {
	t.Helper()
	if err := json.Unmarshal(text(t, "../deploy/grafana/goodput.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// panels are those that show something.
func panels(t *testing.T) (shown []panelJSON) {
	t.Helper()
	for _, p := range grafana(t).Panels {
		if p.Type != "row" {
			shown = append(shown, p)
		}
	}
	return shown
}

// The dashboard can be imported anywhere: it has no ids, its data source is a variable, and
// nothing lies on anything else. Each panel says what to look at, and in what unit.
func TestGrafanaDashboard(t *testing.T) {
	d := grafana(t)
	if d.ID != nil || d.UID != "goodput" || d.Refresh != "5s" || d.SchemaVersion < 41 {
		t.Errorf("id %v, uid %q, refresh %q, schema %d", d.ID, d.UID, d.Refresh, d.SchemaVersion)
	}
	if len(d.Links) != 1 || d.Links[0].URL != runbook("README") {
		t.Errorf("links to %v", d.Links)
	}
	// That observe mode was switched is to be seen in every panel.
	switched := false
	for _, a := range d.Annotations.List {
		switched = switched || strings.HasPrefix(a.Expr, "goodput_observe_switched{") && strings.HasSuffix(a.Expr, "== 1")
		if a.Datasource != (source{"prometheus", "${datasource}"}) || a.Name == "" {
			t.Errorf("annotation %+v", a)
		}
	}
	if !switched {
		t.Errorf("no annotation of goodput_observe_switched: %+v", d.Annotations.List)
	}
	variables := map[string]bool{}
	for _, v := range d.Templating.List {
		variables[v.Name] = v.Multi
	}
	if multi, ok := variables["datasource"]; !ok || multi || !variables["limiter"] || !variables["job"] {
		t.Errorf("variables, and whether several may be chosen: %v", variables)
	}
	var rows []string
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID != nil {
			t.Errorf("%s has an id", p.Title)
		}
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("%s lies at %+v, the grid is 24 wide", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		panelIsComplete(t, p)
	}
	if got := strings.Join(rows, " > "); got != "Offered > Admitted > Waiting > Limit > Outcome > Upstreams" {
		t.Errorf("rows: %s", got)
	}
	if first := panels(t)[0].Title; first != "Offered, throughput and goodput" {
		t.Errorf("first is %s", first)
	}
}

func panelIsComplete(t *testing.T, p panelJSON) {
	t.Helper()
	if p.FieldConfig.Defaults.Unit == "" || len(p.Description) < 40 || len(p.Targets) == 0 {
		t.Errorf("%s: unit %q, description %q, %d queries", p.Title, p.FieldConfig.Defaults.Unit, p.Description, len(p.Targets))
	}
	ours := source{"prometheus", "${datasource}"}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if p.Datasource != ours || target.Datasource != ours || target.Exemplar || target.LegendFormat == "" || refs[target.RefID] {
			t.Errorf("%s: %+v of %+v", p.Title, target, p.Datasource)
		}
		refs[target.RefID] = true
		if !strings.Contains(target.Expr, `job=~"$job"`) || strings.Contains(target.Expr, "sum by (limiter") && !strings.Contains(target.Expr, `limiter=~"$limiter"`) {
			t.Errorf("%s does not follow the variables: %s", p.Title, target.Expr)
		}
	}
	for _, l := range p.Links {
		if l.URL != runbook(l.Title) || runbooks(t)[l.Title] == "" {
			t.Errorf("%s links to %v, which is no page", p.Title, l)
		}
	}
}

// What the main panels show is what their legends say: goodput is what was completed, and the depth
// in force is the one that may wait. $ stands for the variables, and a rate is over $__rate_interval.
func TestGrafanaQueries(t *testing.T) {
	const p99 = "histogram_quantile(0.99, sum by (limiter, le) (rate(goodput_request_duration_seconds_bucket{$})))"
	want := map[string]map[string]string{
		"Offered, throughput and goodput": {
			"offered":    "sum by (limiter) (rate(goodput_arrivals_total{$}))",
			"throughput": `sum by (limiter) (rate(goodput_requests_total{$, outcome=~"completed|late|failed|abandoned"}))`,
			"goodput":    `sum by (limiter) (rate(goodput_requests_total{$, outcome="completed"}))`,
		},
		"In time": {
			"": `sum by (limiter) (rate(goodput_requests_total{$, outcome="completed"})) / (sum by (limiter) (rate(goodput_requests_total{$})) > 0)`,
		},
		"Demand ratio": { // of several instances: what is offered to all by what all can serve
			"": "sum by (limiter) (goodput_demand_ratio{$} * goodput_capacity_per_second{$}) / (sum by (limiter) (goodput_capacity_per_second{$}) > 0)",
		},
		"Refused, by reason": {
			"{{reason}}": `sum by (limiter, reason) (rate(goodput_requests_total{$, outcome=~"rejected|expired"})) > 0`,
		},
		"Would be refused in observe mode": {
			"{{reason}}": `sum by (limiter, reason) (rate(goodput_shadow_requests_total{$, outcome=~"rejected|expired"})) > 0`,
		},
		"Queue depth": {
			"waiting":  "sum by (limiter) (goodput_queue_depth{$})",
			"in force": "sum by (limiter) (goodput_queue_limit{$})",
			"derived":  "sum by (limiter) (goodput_queue_derived_limit{$})",
		},
		"Queue age": {
			"age":       "max by (limiter) (goodput_queue_age_seconds{$})",
			"objective": "max by (limiter) (goodput_objective_seconds{$})",
		},
		"Limit and usage": {
			"in use":  "sum by (limiter) (goodput_concurrency_usage{$})",
			"limit":   "sum by (limiter) (goodput_concurrency_limit{$})",
			"minimum": "sum by (limiter) (goodput_concurrency_limit_min{$})",
		},
		"Latency, arrival to end": {
			"p50":       strings.Replace(p99, "0.99", "0.5", 1),
			"p99":       p99,
			"objective": "max by (limiter) (goodput_objective_seconds{$})",
		},
	}
	short := strings.NewReplacer(`job=~"$job", limiter=~"$limiter"`, "$", "[$__rate_interval]", "")
	for _, p := range panels(t) {
		queries, main := want[p.Title]
		if !main {
			continue
		}
		delete(want, p.Title)
		if len(p.Targets) != len(queries) {
			t.Errorf("%s has %d queries, want %d", p.Title, len(p.Targets), len(queries))
		}
		for _, target := range p.Targets {
			legend := strings.TrimSpace(strings.TrimPrefix(target.LegendFormat, "{{limiter}}"))
			if got := short.Replace(target.Expr); got != queries[legend] {
				t.Errorf("%s, %q, is\n%s, want\n%s", p.Title, target.LegendFormat, got, queries[legend])
			}
		}
	}
	for title := range want {
		t.Errorf("there is no panel %q", title)
	}
}
