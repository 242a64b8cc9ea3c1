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
	r := sample(2, 2)
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
		{sim.TierResult{}, tier{}},
		{admission.Derivation{}, derivation{}},
		{sim.Ceilings{}, ceilings{}},
		{Figures{}, figures{}},
		{Criterion{}, criteria{}},
	} {
		from, to := reflect.TypeOf(c.from), reflect.TypeOf(c.to)
		for i := range from.NumField() {
			name := from.Field(i).Name
			if name == "Stats" {
				name = "Limiter"
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

// A value that lands under its neighbour's key has the right key and is wrong.
func TestJSONHasEachNumberUnderItsKey(t *testing.T) {
	var in sim.Tally
	var bin sim.Bin
	next := uint64(100)
	numbered(reflect.ValueOf(&in).Elem(), &next)
	numbered(reflect.ValueOf(&bin).Elem(), &next)
	for i := range in.Reasons {
		in.Reasons[i] = uint64(1000 + i)
	}
	out, s := reflect.ValueOf(tallyOf(&in)), reflect.ValueOf(seriesOf([]sim.Bin{bin}))
	same := func(name string, from, to reflect.Value) {
		want := 0.0
		switch {
		case from.Type() == reflect.TypeFor[time.Duration]():
			want = time.Duration(from.Int()).Seconds()
		case from.CanUint():
			want = float64(from.Uint())
		case from.CanInt():
			want = float64(from.Int())
		case from.CanFloat():
			want = from.Float()
		default:
			return
		}
		if got := to.Convert(reflect.TypeFor[float64]()).Float(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for f, v := range reflect.ValueOf(in).Fields() {
		same(f.Name, v, out.FieldByName(f.Name))
	}
	for f, v := range reflect.ValueOf(bin).Fields() {
		same(f.Name, v, s.FieldByName(f.Name).Index(0))
	}
	reasons := tallyOf(&in).Reasons
	if len(reasons) != admission.Reasons-1 {
		t.Errorf("%d reasons of %d: all are there, also those of 0", len(reasons), admission.Reasons-1)
	}
	for i := 1; i < admission.Reasons; i++ {
		if got := reasons[admission.Reason(i).String()]; got != uint64(1000+i) {
			t.Errorf("%v is %d, want %d", admission.Reason(i), got, 1000+i)
		}
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
