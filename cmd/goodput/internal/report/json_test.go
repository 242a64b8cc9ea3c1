package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
)

func decoded(t *testing.T, r *Report) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// keys lists every path of the document with the kind of what is there. Elements of
// an array share one path.
func keys(path string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			keys(path+"."+k, x, into)
		}
	case []any:
		if len(v) == 0 && into[path] == "" {
			into[path] = "[]"
		}
		for _, x := range v {
			keys(path+"[]", x, into)
		}
		return
	default:
		kind := fmt.Sprintf("%T", v)
		if v == nil {
			kind = "null"
		}
		if had := into[path]; had != "" && had != kind && !strings.Contains(had, kind) {
			kind = strings.Join(slices.Sorted(slices.Values([]string{had, kind})), " or ")
		} else if had != "" {
			kind = had
		}
		into[path] = kind
	}
}

// Whoever reads the JSON relies on each of its keys. A golden file of the keys, not
// of the numbers, fails when one goes or comes and when nothing else has changed.
func TestKeysOfJSONAreStable(t *testing.T) {
	r := withTenants(sample(2, 2), 2)
	r.Policies[1].Runs[1].Total.Told.Counts, r.Policies[1].Runs[1].Total.Told.Count = [len(r.Policies[1].Runs[1].Total.Told.Counts)]uint64{}, 0
	found := map[string]string{}
	keys("", decoded(t, r), found)
	var lines []string
	for k, kind := range found {
		lines = append(lines, k+" "+kind+"\n")
	}
	slices.Sort(lines)
	golden(t, "keys.txt", []byte(strings.Join(lines, "")))
}

func TestVersionOfJSON(t *testing.T) {
	if v := decoded(t, sample(1, 1))["version"]; v != float64(1) {
		t.Errorf("version %v", v)
	}
}

// Every field of a tally, of a bin and of a tier is in the document: a count that is
// added there and forgotten here would be lost without anybody noticing.
func TestJSONForgetsNoField(t *testing.T) {
	for _, c := range []struct{ from, to any }{
		{sim.Tally{}, tally{}},
		{sim.Bin{}, series{}},
		{sim.Cohort{}, cohort{}},
		{sim.TenantResult{}, account{}},
		{Tenant{}, tenant{}},
		{sim.TierResult{}, tier{}},
		{admission.Derivation{}, derivation{}},
		{sim.Ceilings{}, ceilings{}},
		{Figures{}, figures{}},
		{Criterion{}, criteria{}},
	} {
		from, to := reflect.TypeOf(c.from), reflect.TypeOf(c.to)
		for i := range from.NumField() {
			name := from.Field(i).Name
			switch name {
			case "Stats":
				name = "Limiter"
			case "Tally":
				name = "tally" // is a part of it
			}
			if _, ok := to.FieldByName(name); !ok {
				t.Errorf("%v.%s is not in the document", from, name)
			}
		}
	}
}

// numbered sets each number of a struct to another value.
func numbered(v reflect.Value, next *uint64) {
	for i := range v.NumField() {
		f := v.Field(i)
		*next++
		switch f.Kind() {
		case reflect.Uint64:
			f.SetUint(*next)
		case reflect.Int64:
			f.SetInt(int64(*next) * int64(time.Second))
		case reflect.Int:
			f.SetInt(int64(*next))
		case reflect.Float64:
			f.SetFloat(float64(*next))
		}
	}
}

// same checks that each number of from is under its name in to; durations are
// seconds there, series have it as their first element, and what has words is one.
func same(t *testing.T, from, to any) {
	t.Helper()
	for f, v := range reflect.ValueOf(from).Fields() {
		var want float64
		switch {
		case v.Type() == reflect.TypeFor[time.Duration]():
			want = time.Duration(v.Int()).Seconds()
		case v.Type().Implements(reflect.TypeFor[fmt.Stringer]()):
			if got, word := reflect.ValueOf(to).FieldByName(f.Name), v.Interface().(fmt.Stringer).String(); got.Kind() == reflect.String && got.String() != word {
				t.Errorf("%T.%s is %v, want %s", from, f.Name, got, word)
			}
			continue
		case v.CanUint():
			want = float64(v.Uint())
		case v.CanInt():
			want = float64(v.Int())
		case v.CanFloat():
			want = v.Float()
		default:
			continue
		}
		got := reflect.ValueOf(to).FieldByName(f.Name)
		if got.Kind() == reflect.Slice {
			got = got.Index(0)
		}
		if got.Kind() == reflect.Pointer {
			got = got.Elem()
		}
		if x := got.Convert(reflect.TypeFor[float64]()).Float(); x != want {
			t.Errorf("%T.%s is %v, want %v", from, f.Name, x, want)
		}
	}
}

// A value that lands under its neighbour's key has the right key and is wrong.
func TestJSONHasEachNumberUnderItsKey(t *testing.T) {
	next := uint64(100)
	var in sim.Tally
	numbered(reflect.ValueOf(&in).Elem(), &next)
	for i := range in.Reasons {
		in.Reasons[i] = uint64(1000 + i)
	}
	same(t, in, tallyOf(&in))

	reasons := tallyOf(&in).Reasons
	if len(reasons) != admission.Reasons-1 {
		t.Errorf("%d reasons of %d: all are there, also those of 0", len(reasons), admission.Reasons-1)
	}
	for i := 1; i < admission.Reasons; i++ {
		if got := reasons[admission.Reason(i).String()]; got != uint64(1000+i) {
			t.Errorf("%v is %d, want %d", admission.Reason(i), got, 1000+i)
		}
	}

	var bin sim.Bin
	numbered(reflect.ValueOf(&bin).Elem(), &next)
	same(t, bin, seriesOf([]sim.Bin{bin}))

	at := sim.TierResult{Stats: sampleStats()}
	numbered(reflect.ValueOf(&at).Elem(), &next)
	numbered(reflect.ValueOf(&at.Stats.Derivation).Elem(), &next)
	same(t, at, tierOf(&at))
	same(t, at.Stats.Derivation, tierOf(&at).Limiter.Derivation)

	numbered(reflect.ValueOf(&at.Stats.Derivation.Allowance).Elem(), &next)
	same(t, at.Stats.Derivation.Allowance, tierOf(&at).Limiter.Derivation.Allowance)

	r := sample(1, 1)
	numbered(reflect.ValueOf(&r.Ceilings).Elem(), &next)
	same(t, r.Ceilings, r.document().Ceilings)
	figures := r.Policies[0].Figures()
	for f, v := range reflect.ValueOf(figures).Fields() {
		got := reflect.ValueOf(r.document().Policies[0].Figures).FieldByName(f.Name)
		if x := v.FieldByName("Mean").Float(); got.IsNil() || got.Elem().FieldByName("Mean").Float() != x {
			t.Errorf("%s is %v, want %v", f.Name, got, x)
		}
	}
}

// 1,000 durations of 1 to 1,000 ms: the quantile q is q seconds. A histogram with
// eight buckets an octave, evenly filled, is right to 1 %. Each of the four has its
// own number of them.
func TestDistributions(t *testing.T) {
	var in sim.Tally
	for i := range 1000 {
		in.Latency.Add(time.Duration(i+1) * time.Millisecond)
	}
	in.Good.Add(time.Second)
	for range 2 {
		in.Wait.Add(time.Second)
	}
	for range 3 {
		in.Told.Add(time.Second)
	}
	out := tallyOf(&in)
	if out.Latency.Count != 1000 || out.Good.Count != 1 || out.Wait.Count != 2 || out.Told.Count != 3 {
		t.Errorf("counts %d, %d, %d, %d, want 1000, 1, 2, 3", out.Latency.Count, out.Good.Count, out.Wait.Count, out.Told.Count)
	}
	d := out.Latency
	for q, got := range map[float64]number{0.5: d.P50, 0.9: d.P90, 0.95: d.P95, 0.99: d.P99, 0.999: d.P999, 0.5005: d.Mean} {
		if math.Abs(float64(got)-q) > 0.01*q {
			t.Errorf("%v is shown as %v", q, got)
		}
	}
	var n uint64
	for i, c := range d.Counts {
		if n += c; i > 0 && d.Bounds[i] <= d.Bounds[i-1] || c == 0 {
			t.Errorf("bucket %d: %d up to %v", i, c, d.Bounds[i])
		}
	}
	if n != 1000 {
		t.Errorf("the buckets hold %d of 1000", n)
	}
}

func TestJSONOfNothingHasNulls(t *testing.T) {
	r := &Report{Policies: []Policy{{Name: "goodput", Runs: []*sim.Result{{Window: sampleLength}}}}}
	p := decoded(t, r)["policies"].([]any)[0].(map[string]any)
	f := p["figures"].(map[string]any)
	if f["latency_p99_seconds"] != nil || f["refused_ratio"] != nil {
		t.Errorf("figures of nothing are null, not %v and %v", f["latency_p99_seconds"], f["refused_ratio"])
	}
	if f["offered_per_second"].(map[string]any)["mean"] != 0.0 {
		t.Error("nothing offered is 0/s")
	}
}

// Three runs of 1, 2 and 6 a second: mean 3, s^2 = (4+1+9)/2 = 7, standard error
// sqrt(7/3).
func TestStandardError(t *testing.T) {
	var p Policy
	for _, n := range []uint64{60, 120, 360} {
		p.Runs = append(p.Runs, &sim.Result{Window: time.Minute, Total: sim.Tally{Requests: n, Refused: n / 2}})
	}
	f := p.Figures()
	if f.Offered.Mean != 3 || math.Abs(f.Offered.Error-math.Sqrt(7.0/3)) > 1e-12 || f.Offered.Runs != 3 {
		t.Errorf("%+v, want 3 +- %v of 3 runs", f.Offered, math.Sqrt(7.0/3))
	}
	if f.Refused.Mean != 0.5 || f.Refused.Error != 0 {
		t.Errorf("%+v, want 0.5 +- 0", f.Refused)
	}
	if f.P99.Runs != 0 {
		t.Errorf("%+v: there is no p99 of nothing", f.P99)
	}
}

// Of a class the ratio is about its own requests: with 20 and 5 of them, of which 5
// and 4 are answered in time, 25 % and 80 %, whatever the capacity is.
func TestFiguresOfClasses(t *testing.T) {
	p := Policy{Name: "goodput", Runs: []*sim.Result{{
		Window: 10 * time.Second, Capacity: 1,
		Total: sim.Tally{Requests: 25, InTime: 9},
		Classes: []sim.Tally{
			{Name: "flood", Requests: 20, InTime: 5, Refused: 15},
			{Name: "steady", Requests: 5, InTime: 4, Late: 1},
		},
	}}}
	r := &Report{Policies: []Policy{p}}
	classes := r.document().Policies[0].Classes
	if len(classes) != 2 || classes[0].Name != "flood" || classes[1].Name != "steady" {
		t.Fatalf("classes %+v", classes)
	}
	for i, want := range []struct{ offered, goodput, ratio, refused, late float64 }{{2, 0.5, 0.25, 0.75, 0}, {0.5, 0.4, 0.8, 0, 0.2}} {
		f := classes[i].Figures
		if f.Offered.Mean != want.offered || f.Goodput.Mean != want.goodput || f.Ratio.Mean != want.ratio || f.Refused.Mean != want.refused || f.Late.Mean != want.late {
			t.Errorf("class %d: %v, %v, %v, %v, %v, want %+v", i, f.Offered.Mean, f.Goodput.Mean, f.Ratio.Mean, f.Refused.Mean, f.Late.Mean, want)
		}
		if f.Capacity != nil || f.PeakQueue != nil {
			t.Errorf("class %d has a capacity or a queue of its own", i)
		}
	}
	if got := show(t, r, Columns, false); !strings.Contains(got, "\n  flood            2.00    0.50    25.0    75.0") || !strings.Contains(got, "goodput % of a class: answered in time, of its own requests.") {
		t.Errorf("no class in\n%s", got)
	}
	p.Runs[0].Classes = p.Runs[0].Classes[:1]
	if got := show(t, r, Columns, false); strings.Contains(got, "flood") {
		t.Errorf("one class alone is everybody:\n%s", got)
	}
}

func TestUnitsShowThreeFigures(t *testing.T) {
	for _, c := range []struct {
		u    unit
		x    float64
		want string
	}{
		{millis, 0.4364, "436"},
		{millis, 0.06006, "60.1"},
		{millis, 0.00053, "0.53"},
		{millis, 0.000001, "0.00"},
		{millis, 0.09996, "100"},
		{millis, 30.0121, "30012"},
		{rate, 1188.4, "1188"},
		{rate, 9.996, "10.0"},
		{percent, 0.99449, "99.4"},
		{count, 480, "480"},
	} {
		if got := c.u.show(c.x); got != c.want {
			t.Errorf("%v is shown as %s, want %s", c.x, got, c.want)
		}
	}
}

func TestSpreadHasTheDecimalsOfItsMean(t *testing.T) {
	for _, c := range []struct {
		f    Figure
		want string
	}{
		{Figure{Mean: 0.436, Error: 0.0042, Runs: 3}, "±4"},
		{Figure{Mean: 0.436, Error: 0.0004, Runs: 3}, "±0.4"},  // ±0 would say that there is none
		{Figure{Mean: 0.436, Error: 0.000_004, Runs: 3}, "±0"}, // and this is none
		{Figure{Mean: 0.002, Error: 0.000_000_1, Runs: 3}, "±0.00"},
		{Figure{Mean: 0.436, Runs: 3}, "±0"},
		{Figure{Mean: 0.436, Runs: 1}, ""},
	} {
		if got := c.f.spread(millis); got != c.want {
			t.Errorf("%+v is shown as %q, want %q", c.f, got, c.want)
		}
	}
}
