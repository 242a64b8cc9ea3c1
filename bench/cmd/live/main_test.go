package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goodput/goodput/bench/live"
)

func TestFlags(t *testing.T) {
	s, err := parse(nil)
	if err != nil || len(s.plans) != 6 || len(s.contestants) != 6 {
		t.Fatalf("%+v, %v", s, err)
	}
	if p := s.plans[4]; p.Rate != 1800 || len(p.Phases) != 3 || p.Phases[1].Slots != 20 || p.Length().Seconds() != 45 {
		t.Errorf("the step is %+v", p)
	}
	if p := s.plans[5]; p.Rate != 1080 || p.Attempts != 3 || p.Phases[1].Slots != 0 || p.Length().Seconds() != 27 {
		t.Errorf("the stall is %+v", p)
	}
	s, err = parse(strings.Fields("-slots 30 -service 100ms -length 5s -loads 2 -step 0 -stall 0 -contestants goodput-told,kratos-bbr -seed 9 -json x"))
	if err != nil || len(s.plans) != 1 || len(s.contestants) != 2 || s.file != "x" {
		t.Fatalf("%+v, %v", s, err)
	}
	if p := s.plans[0]; p.Rate != 600 || p.Seed != 9 || p.Length().Seconds() != 5 || p.Phases[0].Slots != 30 {
		t.Errorf("the load is %+v", p)
	}
	for args, want := range map[string]string{
		"-slots 2":                  "slots 2 are out of range",
		"-service 1us":              "service 1µs is out of range",
		"-step -1":                  "step -1 is out of range",
		"-step NaN":                 "step NaN is out of range",
		"-length 700ms":             "length or phase 700ms is out of range",
		"-phase 1300ms":             "length or phase 1.3s is out of range",
		"-loads 1,x":                `load "x" is out of range`,
		"-loads NaN":                `load "NaN" is out of range`,
		"-stall NaN":                "stall NaN is out of range",
		"-loads , -step 0 -stall 0": "nothing to play",
		"-contestants nobody":       `contestant "nobody" is unknown: one of goodput-auto`,
		"-tries 0":                  "tries 0 are out of range",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestTable(t *testing.T) {
	settle, limit := 2.5, 61.25
	results := []*live.Result{
		{Contestant: "a", Plan: "cold 3x", Ratio: 0.9876, Quick: 0.9, Model: &live.Estimate{Mean: 0.99, Deviation: 0.002}, Refused: 0.6667, Limit: &limit},
		{Contestant: "a", Plan: "cold 1x", Ratio: 0.986, Model: &live.Estimate{Mean: 0.99}},
		{Contestant: "b", Plan: "cold 3x", Void: "the generator slept"},
		{Contestant: "c", Plan: "step", Phases: []live.PhaseResult{{Slots: 60, Settle: &settle}, {Slots: 20}}},
	}
	var b strings.Builder
	if err := report(&b, results); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(b.String(), "\n")
	if n := len(regexp.MustCompile(`  +`).Split(strings.TrimSpace(head), -1)); n != columns {
		t.Errorf("%d columns, said to be %d: %s", n, columns, head)
	}
	for _, want := range []string{"0.988  0.990±0.002", "66.67", "61.2", "void: cold 3x, b: the generator slept", "2.5", "a and its model differ by 0.4 points of the ratio at 2 s, at the most: cold 1x"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// What one run writes another reads, and the two together are printed as one.
func TestFilesAreReadBack(t *testing.T) {
	dir := t.TempDir()
	one, both := filepath.Join(dir, "one.json"), filepath.Join(dir, "both.json")
	if err := os.WriteFile(one, []byte(`[{"contestant":"a","plan":"cold 3x","ratio_2s":0.5,"phases":[{"slots":60,"settle_s":null}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-json", both, one, one}); err != nil {
		t.Fatal(err)
	}
	results, err := read([]string{both})
	if err != nil || len(results) != 2 || results[1].Ratio != 0.5 || results[1].Phases[0].Slots != 60 {
		t.Errorf("%+v, %v", results, err)
	}
	if _, err := read([]string{filepath.Join(dir, "none.json")}); err == nil {
		t.Error("a file that is not there was read")
	}
}
