package verify

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

func jsonOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The files are the document as an example, with the first bins of each series.
func TestJSONIsGolden(t *testing.T) {
	for name, r := range samples() {
		for i := range r.Steps {
			s := &r.Steps[i]
			s.Result.Bins = s.Result.Bins[:3]
			if s.Calm != nil {
				s.Calm.Bins = s.Calm.Bins[:3]
			}
		}
		var b bytes.Buffer
		if err := json.Indent(&b, jsonOf(t, r), "", " "); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", b.Bytes())
	}
}

// A parsed is the document as somebody reads it who knows its names alone.
type parsed struct {
	Verdict   string
	Certified bool
	Void      *string
	Criteria  []struct {
		Name string
		Met  bool
	}
	Steps []struct {
		Load     float64
		Figures  map[string]*float64
		AtLeast  []string `json:"at_least"`
		Refusals []struct {
			Form      string
			PerSecond float64 `json:"per_second"`
		}
		Reasons []struct {
			Reason    string
			PerSecond float64 `json:"per_second"`
		}
		Recovered *bool
	}
}

func parse(t *testing.T, r *Report) (d parsed) {
	t.Helper()
	if err := json.Unmarshal(jsonOf(t, r), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Each cell of the table is the number of the JSON in another unit, rounded.
func TestTableHasTheFiguresOfTheJSON(t *testing.T) {
	scales := map[string]float64{"/s": 1, "%": 100, "ms": 1000, "s": 1, "": 1}
	for name, r := range samples() {
		d := parse(t, r)
		for _, row := range r.rows() {
			for i, cell := range row.Cells {
				s := d.Steps[i]
				x := s.Figures[row.Key]
				bound := false
				for _, key := range s.AtLeast {
					bound = bound || key == row.Key
				}
				for _, one := range s.Refusals {
					if row.Key == "refusals" && "  "+one.Form == row.Name {
						x = &one.PerSecond
					}
				}
				for _, one := range s.Reasons {
					if row.Key == "reasons" && "  "+one.Reason == row.Name {
						x = &one.PerSecond
					}
				}
				missing := row.Key == "refusals" || row.Key == "reasons" // of this step: none
				if shown, ok := strings.CutPrefix(cell, "≥"); ok != bound || x != nil && !near(shown, *x*scales[row.Unit]) ||
					x == nil && cell != "–" && !(missing && cell == "0") {
					t.Errorf("%s: %q at %vx is %q %s, at least: %v, and in the JSON %v", name, row.Name, s.Load, cell, row.Unit, bound, x)
				}
			}
		}
	}
}

// near reports that shown is want, rounded to as many decimals as it has.
func near(shown string, want float64) bool {
	x, err := strconv.ParseFloat(shown, 64)
	_, decimals, _ := strings.Cut(shown, ".")
	half := 0.5 * math.Pow(10, -float64(len(decimals)))
	return err == nil && math.Abs(x-want) <= half*(1+1e-9)
}

func TestVerdictsOfTheJSON(t *testing.T) {
	for name, want := range map[string]struct {
		verdict string
		void    bool
	}{
		"certified": {"certified", false}, "collapsed": {"not certified", false}, "void": {"no answer", true},
		"dead": {"not certified", false}, "nothing": {"no answer", false},
	} {
		d := parse(t, samples()[name])
		if d.Verdict != want.verdict || d.Certified != (want.verdict == "certified") || (d.Void != nil) != want.void {
			t.Errorf("%s: verdict %q, certified %v, void %v", name, d.Verdict, d.Certified, d.Void)
		}
	}
	for i, s := range parse(t, collapsedReport()).Steps {
		if above := s.Load > 1; (s.Recovered != nil) != above || above && *s.Recovered {
			t.Errorf("step %d: recovered %v", i, s.Recovered)
		}
	}
}

// The names of the JSON are a promise.
func TestFiguresAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range allFigures {
		if seen[f.key] {
			t.Errorf("two figures are called %s", f.key)
		}
		seen[f.key] = true
		unit := map[string]string{"/s": "_per_second", "%": "_ratio", "ms": "_seconds", "s": "_seconds", "": "_per_request"}[f.unit.name]
		if !strings.HasSuffix(f.key, unit) {
			t.Errorf("%s does not end in its unit %s", f.key, unit)
		}
	}
}
