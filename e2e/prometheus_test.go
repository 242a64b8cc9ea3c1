//go:build linux

package e2e

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	autoscaling "k8s.io/api/autoscaling/v2"

	"github.com/goodput/goodput/e2e/internal/rig"
)

const rulesFile = "../deploy/prometheus/goodput.rules.yaml"

// A rule is one of goodput.rules.yaml: it records a series or is an alert.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text(t, rulesFile), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func text(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The stories of goodput.rules.test.yaml: each alert fires in one and is silent in others.
func TestPrometheusRules(t *testing.T) {
	t.Parallel() // with TestPrometheusSeesTheDemo, which mostly waits
	promtool := rig.Need(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "goodput.rules.yaml"}, {"test", "rules", "goodput.rules.test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	stories := string(text(t, "../deploy/prometheus/goodput.rules.test.yaml"))
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		fires, silent := false, false
		for _, is := range regexp.MustCompile(`(?m)alertname: `+r.Alert+`\b.*\n(.*)`).FindAllStringSubmatch(stories, -1) {
			fires = fires || strings.Contains(is[1], "exp_alerts:")
			silent = silent || !strings.Contains(is[1], "exp_alerts:")
		}
		if !fires || !silent {
			t.Errorf("%s: there is a story in which it fires: %v, and one in which it does not: %v", r.Alert, fires, silent)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s is of severity %q", r.Alert, s)
		}
		if r.Annotations["runbook_url"] != runbook(r.Alert) || r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "{{") {
			t.Errorf("%s: %v", r.Alert, r.Annotations)
		}
	}
}

func runbook(name string) string {
	return "https://github.com/goodput/goodput/blob/main/docs/runbooks/" + name + ".md"
}

// A look is how many requests had completed when the state was asked.
type look struct {
	at        float64 // seconds since 1970
	completed float64
}

// watch asks for the state five times a second until stop is closed.
func watch(t *testing.T, p *rig.Proxy, stop <-chan struct{}) (looks []look) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		looks = append(looks, look{seconds(time.Now()), float64(p.Limiter(t).Ended("completed"))})
		select {
		case <-stop:
			return looks
		case <-tick.C:
		}
	}
}

func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

// underLoad is how long the demo is in an overload: nine looks of Prometheus.
const underLoad = 9 * time.Second

// A real Prometheus looks at the live demo at three times its capacity: what it says of
// goodput is what was counted, every rule is evaluated, every series that a rule, a panel or
// a page names is there, and native histograms say what the classic ones do.
func TestPrometheusSeesTheDemo(t *testing.T) {
	t.Parallel()
	rig.Need(t, "prometheus")
	demo := rig.Live(t, "0")
	serve := rig.ProtectBy(t, "version: 1\nlisten: 127.0.0.1:0\nupstream: http://127.0.0.1:1\n") // it has what only serve has
	targets := map[string]string{"demo": demo.Admin, "serve": serve.Admin}
	prom := rig.Look(t, rulesFile, targets)
	native := rig.Look(t, rulesFile, map[string]string{"demo": demo.Admin}, "--enable-feature=native-histograms")

	for _, p := range []*rig.Prometheus{prom, native} {
		p.Await(t, `up{job="demo"} == 1`, 15*time.Second)
	}
	set, err := http.Post("http://"+demo.Admin+"/api/v1/demo", "application/json", strings.NewReader(`{"load":3,"protect":true}`))
	if err != nil || set.StatusCode != http.StatusOK {
		t.Fatalf("setting the load: %v, %v", set, err)
	}
	set.Body.Close() //nolint:errcheck // its status was read
	stop, seen := make(chan struct{}), make(chan []look)
	go func() { seen <- watch(t, demo, stop) }()
	time.Sleep(underLoad) // wall clock: Prometheus has to look
	recorded := prom.Query(t, `limiter:goodput:rate1m{job="demo"}[1m]`)
	raw := prom.Query(t, `goodput_requests_total{job="demo", outcome="completed"}[1m]`)
	t.Run("goodput", func(t *testing.T) {
		time.Sleep(700 * time.Millisecond) // wall clock: three looks at the state after the last one of Prometheus
		close(stop)
		looks := <-seen
		if len(raw) != 1 || len(recorded) != 1 {
			t.Fatalf("%d series of what completed, %d of goodput, want 1", len(raw), len(recorded))
		}
		goodputIsWhatWasCounted(t, recorded[0].Values, raw[0].Values, looks)
	})
	t.Run("rules", func(t *testing.T) { rulesAreEvaluated(t, prom) })
	t.Run("names", func(t *testing.T) { namesExist(t, prom) })
	t.Run("panels", func(t *testing.T) { panelsHaveData(t, prom) })
	t.Run("native", func(t *testing.T) { nativeIsClassic(t, prom, native) })
	t.Run("switch", func(t *testing.T) { switchIsNoDemand(t, prom, demo) }) // the last: it changes what there is
}

// goodputIsWhatWasCounted compares the rate that a rule has recorded with the counts of the
// state. A sample of Prometheus lies between the looks before and after it, to the request. A
// rate over more time than there are samples is (last - first) / range, extended at each end
// by at most 1.1 intervals, and not below 0 (promql, extrapolatedRate).
func goodputIsWhatWasCounted(t *testing.T, recorded, samples []rig.Point, looks []look) {
	t.Helper()
	compared := 0
	for _, s := range samples {
		i := sort.Search(len(looks), func(i int) bool { return looks[i].at >= s.At })
		if i == 0 || i+2 >= len(looks) {
			continue
		}
		compared++
		// Prometheus stamps a sample when it asks and has its answer later, on a busy machine by
		// some 100 ms; this look began 400 ms after it had asked.
		if low, high := looks[i-1].completed, looks[i+2].completed; s.Value < low || s.Value > high {
			t.Errorf("at %.3f Prometheus has %v completed, the state had %v to %v", s.At, s.Value, low, high)
		}
	}
	if compared < 5 {
		t.Fatalf("%d samples lie between looks at the state, of %d", compared, len(samples))
	}
	goodput := recorded[len(recorded)-1]
	samples = slices.DeleteFunc(samples, func(s rig.Point) bool { return s.At > goodput.At })
	first, last := samples[0], samples[len(samples)-1]
	counted := last.Value - first.Value
	most := counted * (1 + 2.2/float64(len(samples)-1))
	if got := goodput.Value * 60; counted == 0 || got < counted-1 || got > most+1 {
		t.Errorf("limiter:goodput:rate1m is %v, x 60 s = %v; %v were completed, and %v with what is before and after the samples",
			goodput.Value, got, counted, most)
	}
	span := last.At - looks[0].at
	figure(t, "goodput", "%.0f/s by Prometheus, %.0f/s by the state; capacity 200/s, offered 600/s", goodput.Value*60/span, counted/span)
}

// rulesAreEvaluated checks that no rule fails, that each recorded series is there, and that
// a handled overload is a ticket that waits for its quarter of an hour and wakes nobody.
func rulesAreEvaluated(t *testing.T, prom *rig.Prometheus) {
	var answer struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	prom.Get(t, "rules", &answer)
	evaluated := 0
	for _, g := range answer.Groups {
		for _, r := range g.Rules {
			if evaluated++; r.Health != "ok" {
				t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if want := len(rules(t)); evaluated != want {
		t.Errorf("%d rules are evaluated, want %d", evaluated, want)
	}
	for _, r := range rules(t) {
		if r.Record != "" && len(prom.Query(t, r.Record+`{job="demo"}`)) == 0 {
			t.Errorf("%s is not recorded", r.Record)
		}
	}
	var alerts struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	prom.Get(t, "alerts", &alerts)
	shedding := false
	for _, a := range alerts.Alerts {
		if a.Labels["job"] != "demo" {
			continue
		}
		shedding = shedding || a.Labels["alertname"] == "GoodputSheddingSustained" && a.State == "pending"
		if a.Labels["severity"] == "critical" {
			t.Errorf("%s of a handled overload is %s", a.Labels["alertname"], a.State)
		}
	}
	if !shedding {
		t.Errorf("GoodputSheddingSustained does not wait for its time: %v", alerts.Alerts)
	}
}

var names = regexp.MustCompile(`\b(?:limiter:)?goodput(?:_[a-z0-9]+)*(?::[a-z0-9_]+)?\b`)

// named are the series that a text names: recorded ones have colons, the others are ours.
func named(text string) (found []string) {
	for _, name := range names.FindAllString(text, -1) {
		if strings.Contains(name, ":") || strings.Contains(name, "_") {
			found = append(found, name)
		}
	}
	return found
}

// namesExist checks that what rules, dashboard, pages and examples name is scraped or recorded.
func namesExist(t *testing.T, prom *rig.Prometheus) {
	var all []string
	prom.Get(t, "label/__name__/values", &all)
	exists := map[string]bool{}
	for line := range strings.Lines(string(text(t, "../goodputprom/testdata/series.txt"))) {
		if strings.HasPrefix(line, "goodput_fleet_") { // only users of the library have a fleet
			exists[strings.Fields(line)[0]] = true
		}
	}
	for _, name := range all {
		exists[name] = true
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && exists[base+"_bucket"] {
				exists[base] = true // a page may speak of the histogram
			}
		}
	}
	sources := map[string]string{"dashboard": ""}
	for _, r := range rules(t) {
		sources[r.Record+r.Alert] = r.Expr
	}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			sources["dashboard"] += target.Expr + "\n"
		}
	}
	for _, a := range grafana(t).Annotations.List {
		sources["annotations"] += a.Expr + "\n"
	}
	for _, page := range []string{"oncall/README.md", "refusals.md", "guides/objective.md"} {
		sources[page] = strings.Join(quoted.FindAllString(string(text(t, "../docs/"+page)), -1), "\n")
	}
	for name, page := range runbooks(t) {
		sources[name+".md"] = strings.Join(quoted.FindAllString(page, -1), "\n")
	}
	for _, file := range []string{"hpa.yaml", "keda.yaml"} {
		sources[file] = regexp.MustCompile(`(?m)^\s*#.*as:.*$`).ReplaceAllString(string(text(t, "../deploy/prometheus/"+file)), "")
	}
	total := 0
	for where, source := range sources {
		for _, name := range named(source) {
			if total++; !exists[name] {
				t.Errorf("%s names %s, which is not there", where, name)
			}
		}
	}
	if total < 100 {
		t.Errorf("%d names were found: the search is not to be trusted", total)
	}
}

// mayBeEmpty are panels of what does not happen in ten seconds of a demo, and why.
var mayBeEmpty = map[string]string{
	"Would be refused in observe mode": "the demo refuses",
	"Service time":                     "there is a usual time after some minutes",
}

// panelsHaveData asks for what each panel would, with all jobs and limiters.
func panelsHaveData(t *testing.T, prom *rig.Prometheus) {
	asked := 0
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$job", ".*", "$limiter", ".*", "$__rate_interval", "15s").Replace(target.Expr)
			if asked++; len(prom.Query(t, expr)) == 0 && mayBeEmpty[p.Title] == "" {
				t.Errorf("%s has no data: %s", p.Title, expr)
			}
		}
	}
	if asked < 40 {
		t.Errorf("%d queries, the dashboard has more", asked)
	}
}

// switchIsNoDemand presses the switch in the overload: an autoscaler is told nothing, instead of
// whatever the demand seems to be, and GoodputObserving begins to wait for its half hour.
func switchIsNoDemand(t *testing.T, prom *rig.Prometheus, demo *rig.Proxy) {
	const within = 10 * time.Second // a look and an evaluation take two
	if len(prom.Query(t, `limiter:goodput_demand:ratio{job="demo"} > 1`)) != 1 {
		t.Error("there is no overload before")
	}
	res, err := http.Post("http://"+demo.Admin+"/api/v1/observe?mode=on", "", nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the switch: %v, %v", res, err)
	}
	res.Body.Close() //nolint:errcheck // its status was read
	prom.Await(t, `goodput_observe_switched{job="demo"} == 1`, within)
	prom.Await(t, `absent(limiter:goodput_demand:ratio{job="demo"})`, within)
	prom.Await(t, `ALERTS{alertname="GoodputObserving", alertstate="pending", job="demo"}`, within)
}

// nativeIsClassic compares quantiles of the two kinds of histograms. The classic one is known
// to lie in a bucket; the native one is in it too, or within its own width, 2^(1/8) = 9.1 %, of an
// edge, since the two servers did not look at the same instant.
func nativeIsClassic(t *testing.T, prom, native *rig.Prometheus) {
	const window = `{job="demo"}[15s]`
	bounds := []float64{0}
	for _, row := range prom.Query(t, `goodput_request_duration_seconds_bucket{job="demo", le!="+Inf"}`) {
		var le float64
		if _, err := fmt.Sscan(row.Metric["le"], &le); err != nil {
			t.Fatal(err)
		}
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	for _, q := range []float64{0.5, 0.9} {
		classic := prom.One(t, fmt.Sprintf(`histogram_quantile(%v, sum by (le) (rate(goodput_request_duration_seconds_bucket%s)))`, q, window)).Value
		fine := native.One(t, fmt.Sprintf(`histogram_quantile(%v, sum(rate(goodput_request_duration_seconds%s)))`, q, window)).Value
		i := sort.SearchFloat64s(bounds, classic)
		if i == 0 || i == len(bounds) {
			t.Fatalf("the p%.0f of classic buckets is %v s, and their bounds are %v", 100*q, classic, bounds)
		}
		if width := math.Exp2(1.0 / 8); fine < bounds[i-1]/width || fine > bounds[i]*width {
			t.Errorf("p%.0f is %v s by native buckets, %v to %v s by classic ones", 100*q, fine, bounds[i-1], bounds[i])
		}
		figure(t, fmt.Sprintf("p%.0f", 100*q), "%.1f ms by native buckets, %.1f ms by classic ones (%v to %v s)", 1000*fine, 1000*classic, bounds[i-1], bounds[i])
	}
}

// What autoscalers are given is a manifest, and asks for the demand.
func TestAutoscalers(t *testing.T) {
	var hpa autoscaling.HorizontalPodAutoscaler
	if err := yaml.UnmarshalStrict(text(t, "../deploy/prometheus/hpa.yaml"), &hpa); err != nil {
		t.Fatal(err)
	}
	m := hpa.Spec.Metrics[0].External
	if target := m.Target; target.Type != autoscaling.ValueMetricType || target.Value.AsApproximateFloat64() != 0.8 || m.Metric.Name != "goodput_demand_ratio" {
		t.Errorf("the HPA aims at %+v of %q", target, m.Metric.Name)
	}
	var keda struct {
		Kind string
		Spec struct {
			Triggers []struct {
				Type, MetricType string
				Metadata         map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text(t, "../deploy/prometheus/keda.yaml"), &keda); err != nil {
		t.Fatal(err)
	}
	trigger := keda.Spec.Triggers[0]
	if keda.Kind != "ScaledObject" || trigger.Type != "prometheus" || trigger.MetricType != "Value" || trigger.Metadata["threshold"] != "0.8" ||
		trigger.Metadata["ignoreNullValues"] != "false" { // without it no data, as when all observe, is 0: the least instances in an overload
		t.Errorf("KEDA is given %+v", keda)
	}
}
