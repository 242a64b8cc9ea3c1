package virtual

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestRowsAreMedians(t *testing.T) {
	s := func(x float64) *float64 { return &x }
	run := func(ratio, p99 float64, recovered, settle *float64) *Result {
		return &Result{Scene: "a", Contestant: "b", Figures: Figures{
			Ratio: ratio, P99: p99, Recovered: recovered, Phases: []Phase{{Slots: 60, First: ratio, Settle: settle}},
		}}
	}
	runs := []*Result{run(0.9, 100.123456, nil, s(2)), run(0.7, 300, s(3), s(1)), run(0.81234567, 50, s(0.25), nil)}
	r := row(runs)
	if r.Ratio != 0.8123 || r.Low != 0.7 || r.High != 0.9 || r.P99 != 100.1 || r.Phases[0].First != 0.8123 {
		t.Errorf("%+v", r)
	}
	if *r.Recovered != 3 || *r.Phases[0].Settle != 2 {
		t.Errorf("recovered %v, settled %v: never is later than anything", *r.Recovered, *r.Phases[0].Settle)
	}
	if r := row([]*Result{run(1, 1, nil, nil)}); r.Recovered != nil || r.Phases[0].Settle != nil {
		t.Errorf("%+v", r)
	}
	if runs[0].Phases[0].First != 0.9 || *runs[1].Recovered != 3 {
		t.Error("the median of runs changes them")
	}
}

// What is written can be read with the types alone, one row a line.
func TestTableIsReadAgain(t *testing.T) {
	one := 1.0
	in := Table{
		Go: "go", Versions: map[string]string{"a": "v1"}, Seeds: []uint64{1, 2},
		Contestants: []Words{{Name: "a"}, {Name: "b"}}, Scenes: []Scene{small()},
		Ceilings: []Ceiling{{Scene: "small", Blind: 1, Missing: []string{`said "}, {" in words`}}},
		Rows:     []Row{{Scene: "small", Figures: Figures{Ratio: 0.5, Recovered: &one, Phases: []Phase{{Slots: 1}, {Slots: 2}}}}, {Scene: "other"}},
	}
	b := lines(t, in)
	var out Table
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%+v became\n%+v", in, out)
	}
	if n := strings.Count(string(b), "\n"); n < 9 {
		t.Errorf("%d lines:\n%s", n, b)
	}
}

func TestRound(t *testing.T) {
	for x, want := range map[float64]float64{0.98765: 0.9877, 9.99999: 10, 433.456: 433.5, -0.00001: 0} {
		if got := round(x); got != want {
			t.Errorf("%v became %v, want %v", x, got, want)
		}
	}
	if !math.IsInf(round(math.Inf(1)), 1) {
		t.Error("never became some time")
	}
}
