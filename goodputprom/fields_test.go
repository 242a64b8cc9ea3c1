package goodputprom

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// sent returns the series of a snapshot: name and labels but limiter -> value. Of a histogram they
// are its count and its sum.
func sent(t *testing.T, stats *goodput.Stats) map[string]float64 {
	t.Helper()
	l := newShown(goodput.New(goodput.Config{Limit: limit.Fixed(1)}), "default")
	ch := make(chan prometheus.Metric, 1000)
	l.send(ch, stats, classic)
	close(ch)
	return parsed(t, ch)
}

func parsed(t *testing.T, ch <-chan prometheus.Metric) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for m := range ch {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		name := nameOf(m.Desc())
		var labels []string
		for _, p := range out.Label {
			if p.GetName() != "limiter" {
				labels = append(labels, fmt.Sprintf("%s=%q", p.GetName(), p.GetValue()))
			}
		}
		put := func(suffix string, v float64) {
			key := name + suffix
			if len(labels) > 0 {
				key += "{" + strings.Join(labels, ",") + "}"
			}
			if _, twice := all[key]; twice {
				t.Errorf("%s is there twice", key)
			}
			all[key] = v
		}
		switch {
		case out.Counter != nil:
			put("", out.Counter.GetValue())
		case out.Gauge != nil:
			put("", out.Gauge.GetValue())
		default:
			put("_count", float64(out.Histogram.GetSampleCount()))
			put("_sum", out.Histogram.GetSampleSum())
		}
	}
	return all
}

// nameOf is the name of a description, which says it nowhere but in its words.
func nameOf(d *prometheus.Desc) string {
	_, rest, _ := strings.Cut(d.String(), `fqName: "goodput_`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// unseen are the fields of Stats that no metric shows, with the reason.
var unseen = map[string]string{
	"Name":                       "is the label limiter",
	"PressureAbsent":             "pressure is 0 then",
	"PressureSays":               "is words",
	"Excess":                     "is in use above the limit for as long as what was observed runs, and for the state page",
	"Unlimited":                  "says how far to trust others, and is for the state page",
	"LimitWhy":                   "is words",
	"LimitFrom":                  "belongs to LimitWhy; concurrency_limit has what it was",
	"AbsentFor":                  "is how long absent has been 1",
	"Stood":                      "explains queue_order, and is for those who read the explanation",
	"Refusing":                   "is whether requests_total with outcome rejected has grown lately",
	"MaxAbsence":                 "is configured",
	"MaxItems":                   "is configured, and a cap that the depth stays below by far",
	"Offered":                    "is Demand",
	"SlowedBy":                   "is service_expected_seconds / service_baseline_seconds",
	"OfferedBefore":              "is demand over the last minutes, which whoever collects has",
	"CompletedBefore":            "is the rate of requests_total over the last minutes",
	"CompletedNow":               "is the rate of requests_total now",
	"ShedPriority":               "requests_total with reason shed has how many; which comes next is for the state page",
	"ShedCohort":                 "as ShedPriority",
	"ShedOffered":                "as ShedPriority",
	"ShedServed":                 "as ShedPriority",
	"WaitingBy":                  "queue_depth has their sum; who is waiting by priority is for the state page",
	"Outcomes[rejected]":         "is the sum of its reasons",
	"Outcomes[expired]":          "is the sum of its reasons",
	"Outcomes[cancelled]":        "is the sum of its reasons",
	"Outcomes[pending]":          "is no end",
	"Refusals[]":                 "is no reason",
	"Service[pending]":           "is no end",
	"Service[rejected]":          "did not start",
	"Service[expired]":           "did not start",
	"Service[cancelled]":         "did not start",
	"Allowance.Burst":            "is configured",
	"Tenants.Capped":             "is for the state page",
	"Tenants.Level":              "is for the state page",
	"Tenants.Clamped":            "is a mistake of a caller, said by the state page",
	"Derivation.Limit":           "is Limit",
	"Derivation.Rate":            "is Capacity",
	"Derivation.Allowance.Rate":  "is Allowance",
	"Derivation.Allowance.Burst": "is Allowance",
	"Derivation.Percentile":      "is configured, and is 0.99 where nobody says otherwise",
	"Derivation.Growth":          "limit_search says that the limit is being searched",
	"Derivation.Rule":            "is capacity_per_second x objective_seconds",
	"Derivation.RuleLatency":     "explains the depth, and is for those who read the derivation",
	"Derivation.Reachable":       "is whether service_quantile_seconds is below objective_seconds",
	"Derivation.Tight":           "explains the depth, and is for those who read the derivation",
	"Derivation.Chances":         "explains the depth, and is for those who read the derivation",
	"Derivation.Fixed":           "is configured",
	"Derivation.Samples":         "is the count of service_duration_seconds, once it is above 100",
	"Derivation.Prior":           "explains the mean of the first 100 requests",
	"Derivation.Declared":        "is configured; service_drifted says that it is wrong",
	"Derivation.Sizes":           "explains the service time, and is for those who read the derivation",
	"Derivation.Explained":       "as Sizes",
	"Derivation.SizeBase":        "as Sizes",
	"Derivation.SizeEach":        "as Sizes",
}

// seen are the fields that metrics show, with the series that move with them; those of one that are
// named by its index are added in elements.
var seen = map[string]string{
	"Observe": "observe", "Latency": "request_duration_seconds_count request_duration_seconds_sum",
	"Capacity": "capacity_per_second", "Demand": "demand_per_second", "Pressure": "pressure",
	"Limit": "concurrency_limit", "InUse": "concurrency_usage", "Running": "requests_running",
	"Waiting": "requests_waiting", "WaitingCost": "queue_depth", "WaitingBytes": "queue_size_bytes", "Exempt": "exempt_running",
	"Age": "queue_age_seconds", "Order": `queue_order{order="edf"}`, "Depth": "queue_limit", "Overload": "overload",
	"Load": "demand_ratio", "RetryAfter": "retry_after_seconds", "Elsewhere": "elsewhere_ratio",
	"Draining": "draining", "Absent": "absent", "MaxBytes": "queue_size_limit_bytes",
	"Allowance.Rate": "allowance_per_second", "AllowanceLeft": "allowance_left",
	"Tenants.Rows": `tenants{state="known"}`, "Tenants.Active": `tenants{state="active"}`, "Tenants.Over": `tenants{state="over"}`,
	"Arrivals": "arrivals_total", "Immediate": `admissions_total{path="immediate"}`, "Dequeued": `admissions_total{path="queued"}`,
	"ExemptAdmitted": "exempt_admissions_total", "Dropped": "dropped_total",
	"LimitChanges":  changed("down", "law"),
	"LimitRaised":   changed("down", "law") + " " + changed("up", "law"),
	"LimitCalled":   changed("down", "call") + " " + changed("down", "law"),
	"LimitCalledUp": changed("down", "call") + " " + changed("up", "call") + " " + changed("down", "law") + " " + changed("up", "law"),
	"LimitMin":      "concurrency_limit_min", "LimitMax": "concurrency_limit_max", "LimitFloored": "limit_floored_seconds",
	"LimitMoved": "limit_moved_seconds", "LimitAsked": "limit_asked_seconds", "LimitSearch": "limit_search", "LimitHeld": "limit_held",
	"Baseline": "service_baseline_seconds", "Slowed": "service_slowed",
	"Derivation.Mean": "service_expected_seconds", "Derivation.Objective": "objective_seconds",
	"Derivation.Service": "service_quantile_seconds", "Derivation.Depth": "queue_derived_limit", "Derivation.Drifted": "service_drifted",
}

func changed(direction, cause string) string {
	return fmt.Sprintf("limit_changes_total{cause=%q,direction=%q}", cause, direction)
}

// elements adds the arrays, which have an index for each of their words.
func elements() map[string]string {
	all := map[string]string{}
	for field, series := range seen {
		all[field] = series
	}
	for _, shadow := range []string{"", "shadow_"} {
		of := map[string]string{"": "", "shadow_": "Shadow."}[shadow]
		for _, o := range ran {
			all[fmt.Sprintf("%sOutcomes[%s]", of, o)] = fmt.Sprintf(`%srequests_total{outcome=%q,reason=""}`, shadow, o.String())
		}
		for i := 1; i < len(goodput.Stats{}.Refusals); i++ { // 0 is no reason
			r := goodput.Reason(i)
			all[fmt.Sprintf("%sRefusals[%s]", of, r)] = fmt.Sprintf(`%srequests_total{outcome=%q,reason=%q}`, shadow, r.Outcome().String(), r.String())
		}
	}
	for _, o := range ran {
		all[fmt.Sprintf("Service[%s]", o)] = twice("service_duration_seconds", o.String())
	}
	for i, w := range waits {
		all[fmt.Sprintf("Wait[%d]", i)] = twice("queue_duration_seconds", w[0])
	}
	return all
}

func twice(name, outcome string) string {
	return fmt.Sprintf("%s_count{outcome=%q} %s_sum{outcome=%q}", name, outcome, name, outcome)
}

// A leaf is a number, a word or a histogram of Stats.
type leaf struct {
	path string
	at   reflect.Value
}

// leaves returns those of v, a field of Stats.
func leaves(path string, v reflect.Value) (all []leaf) {
	switch {
	case v.Type() == reflect.TypeFor[goodput.Histogram](), v.Kind() == reflect.Pointer:
		return []leaf{{path, v}}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := strings.TrimPrefix(path+"."+f.Name, ".")
			if f.Anonymous {
				name = path
			}
			all = append(all, leaves(name, v.Field(i))...)
		}
		return all
	case v.Kind() == reflect.Array && !strings.HasSuffix(path, "WaitingBy"):
		for i := range v.Len() {
			index := fmt.Sprint(i)
			switch {
			case strings.HasSuffix(path, "Outcomes"), strings.HasSuffix(path, "Service"):
				index = goodput.Outcome(i).String()
			case strings.HasSuffix(path, "Refusals"):
				index = goodput.Reason(i).String()
			}
			all = append(all, leaves(path+"["+index+"]", v.Index(i))...)
		}
		return all
	}
	return []leaf{{path, v}}
}

// set makes at something that is not 0, and returns what a series of it is then.
func set(at reflect.Value) float64 {
	h := new(goodput.Histogram)
	h.AddN(3*time.Second, 3)
	switch v := at.Addr().Interface().(type) {
	case *goodput.Order:
		*v = goodput.EDF
		return 1
	case *time.Duration:
		*v = 1500 * time.Millisecond
		return 1.5
	case *goodput.Histogram:
		*v = *h
		return 3
	case **goodput.Histogram:
		*v = h
		return 3
	}
	switch at.Kind() {
	case reflect.Bool:
		at.SetBool(true)
		return 1
	case reflect.Int, reflect.Int64:
		at.SetInt(7)
	case reflect.Uint64, reflect.Uint8, reflect.Uint32:
		at.SetUint(7)
	case reflect.Float64:
		at.SetFloat(7)
	case reflect.String:
		at.SetString("seven")
	case reflect.Array:
		at.Index(0).SetInt(7)
	default:
		panic("set does not know a " + at.Type().String())
	}
	return 7
}

// Each field of Stats, by itself, moves the series that it is said to move, to what it is, in
// seconds and units; and one that is said to be unseen moves none. A field that somebody adds is in
// neither list, and fails.
func TestEachFieldOfStatsHasItsSeries(t *testing.T) {
	still := sent(t, &goodput.Stats{})
	series := elements()
	used := map[string]bool{}
	var s goodput.Stats
	for _, l := range leaves("", reflect.ValueOf(&s).Elem()) {
		want, shown := series[l.path]
		why, hidden := unseen[l.path]
		if strings.HasPrefix(l.path, "Shadow.") && !shown {
			hidden, why = true, "of the shadow, only how requests end is shown"
		}
		if shown == hidden {
			t.Errorf("Stats.%s: say in seen or in unseen, and in one of them, what shows it (%q, %q)", l.path, want, why)
			continue
		}
		value := set(l.at)
		var moved []string
		for name, v := range sent(t, &s) {
			if v != still[name] {
				moved = append(moved, name)
			}
			used[name] = used[name] || v != still[name]
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("Stats.%s: %s is %v", l.path, name, v)
			}
			if name == want && v != value {
				t.Errorf("Stats.%s: %s is %v, want %v", l.path, name, v, value)
			}
		}
		slices.Sort(moved)
		if got := strings.Join(moved, " "); got != want {
			t.Errorf("Stats.%s moves %q, want %q", l.path, got, want)
		}
		l.at.SetZero()
	}
	for name := range still {
		if !used[name] && !strings.HasPrefix(name, "queue_order") {
			t.Errorf("%s moves with no field of Stats: nothing is shown by it", name)
		}
	}
}
