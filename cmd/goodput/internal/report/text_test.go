package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput/internal/sim"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was; if that is wanted, go test -run %s -update:\n%s", name, t.Name(), got)
	}
}

func show(t *testing.T, r *Report, width int, colour bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b, width, colour); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextOfOneRun(t *testing.T) {
	golden(t, "one.txt", []byte(show(t, sample(5, 1), Columns, false)))
}

func TestTextOfRunsHasStandardErrors(t *testing.T) {
	golden(t, "runs.txt", []byte(show(t, sample(3, 3), Columns, false)))
}

// A line that is wider than the terminal breaks the table, whatever is in it.
func TestTextFitsItsWidth(t *testing.T) {
	r := sample(len(shapes), 2)
	r.Policies[1].Name = strings.Repeat("long-name-", 20)
	r.About, r.Command = strings.Repeat("word ", 100), strings.Repeat("--flag value ", 30)
	r.Criteria[0].Text = strings.Repeat("criterion ", 30)
	for _, width := range []int{0, 80, 100, 120} {
		for _, l := range strings.Split(show(t, r, width, false), "\n") {
			if n := utf8.RuneCountInString(l); n > max(width, Columns) {
				t.Errorf("%d columns of %d: %q", n, width, l)
			}
		}
	}
}

// A wide terminal is for the sparkline, not for a name without an end.
func TestLongNamesAreCut(t *testing.T) {
	r := sample(1, 1)
	r.Policies[0].Name = strings.Repeat("n", 100)
	if got := show(t, r, maxColumns, false); !strings.Contains(got, "\n"+strings.Repeat("n", maxName-2)+"… ") {
		t.Errorf("not cut to %d in\n%s", maxName-1, got)
	}
}

// Colours are marks of their own: with them taken away the text is the same, so
// nothing is said by colour alone.
func TestColourSaysNothing(t *testing.T) {
	r := sample(2, 1)
	coloured := show(t, r, Columns, true)
	if !strings.Contains(coloured, "\x1b[32m✓") || !strings.Contains(coloured, "\x1b[31m✗") {
		t.Error("no colours")
	}
	for _, code := range []string{"0", "1", "2", "31", "32"} {
		coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
	}
	if plain := show(t, r, Columns, false); coloured != plain {
		t.Errorf("without its colours the text is\n%s\nand was meant to be\n%s", coloured, plain)
	}
}

func TestTextIsCleanOfNames(t *testing.T) {
	r := sample(2, 1)
	r.Scenario, r.Policies[0].Name, r.Policies[1].Name = hostile, hostile, "a\nb\u202ec"
	r.Notes, r.Criteria[0].Measured = []string{hostile}, hostile
	got := show(t, r, Columns, false)
	for _, c := range "\x1b\u202e" {
		if strings.ContainsRune(got, c) {
			t.Errorf("%U reaches the terminal", c)
		}
	}
	if strings.Contains(got, "a\nb") {
		t.Error("a name breaks its line")
	}
}

func TestSparkline(t *testing.T) {
	bins := func(width int, in ...uint64) (s []sim.Bin) {
		for i, n := range in {
			s = append(s, sim.Bin{End: sampleLength / 60 * time.Duration(width*(i+1)), InTime: n})
		}
		return s
	}
	for _, c := range []struct {
		name   string
		series []sim.Bin
		length int // seconds
		top    float64
		width  int
		want   string
	}{
		{"one column a bin", bins(1, 0, 1, 2, 4, 8), 5, 8, 5, "·▁▂▄█"},
		{"two columns a bin", bins(2, 16, 8), 4, 8, 4, "██▄▄"},
		{"two bins a column", bins(1, 8, 0, 0, 0), 4, 8, 2, "▄·"},
		{"shorter than the others", bins(1, 8, 8), 4, 8, 4, "██"},
		{"ends within a column", []sim.Bin{{End: 1750 * time.Millisecond, InTime: 14}}, 2, 8, 2, "██"},
		{"a trickle is not nothing", bins(1, 1, 8000), 2, 8000, 2, "▁█"},
	} {
		if got := sparkline(c.series, sampleLength/60*time.Duration(c.length), c.top, c.width); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNothingToShowIsSaid(t *testing.T) {
	two := sample(2, 2)
	two.Policies[1].Runs = two.Policies[1].Runs[:1]
	window := sample(1, 1)
	window.Policies[0].Runs[0].Window = 0
	classes := sample(1, 2)
	classes.Policies[0].Runs[1].Classes = nil
	missing := sample(1, 1)
	missing.Policies[0].Runs[0] = nil
	for _, c := range []struct {
		r    *Report
		want string
	}{
		{&Report{}, "report: no policy was run, so there is nothing to show"},
		{&Report{Policies: []Policy{{Name: "a"}}}, `report: policy "a" has no run`},
		{two, `report: policy "fifo" has 1 runs and "goodput" has 2: each needs as many`},
		{window, `report: run 1 of policy "goodput" counts a window of 0s: it must be positive`},
		{classes, `report: run 2 of policy "goodput" has 0 classes and the first 2`},
		{missing, `report: run 1 of policy "goodput" is missing`},
	} {
		var b bytes.Buffer
		if err := c.r.Text(&b, 80, false); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		if b.Len() > 0 {
			t.Errorf("%s, and yet %q", c.want, b.String())
		}
	}
}

// What was measured is said even if nobody has written it down, and says nothing
// that is not known.
func TestMeasuredIsSaidFromTheFigures(t *testing.T) {
	r := sample(5, 1)
	unbounded, reject := r.Policies[2], r.Policies[4]
	unlimited := sample(1, 1).Policies[0]
	unlimited.Runs[0].Capacity = 0
	for _, c := range []struct {
		p    Policy
		want string
	}{
		{reject, "reject answers 1176/s in time, 98.0 % of what the slots can do; 67.4 % are refused, half of them at once; of what got a slot p99 is 336 ms."},
		{unbounded, "unbounded_fifo answers 22.9/s in time, 1.9 % of what the slots can do; 99.4 % are late or given up; 0.0 % are refused; of what got a slot p99 is 90475 ms."},
		{unlimited, "goodput answers 1178/s in time; 67.2 % are refused, half of them within 0.14 ms; of what got a slot p99 is 320 ms."},
	} {
		if got := (&Report{Policies: []Policy{c.p}}).measured(); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

// A run in which nothing happened, as a log without a usable line, shows dashes.
func TestNothingHappened(t *testing.T) {
	r := &Report{Policies: []Policy{{Name: "goodput", Runs: []*sim.Result{{Window: sampleLength}}}}}
	got := show(t, r, Columns, false)
	if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Errorf("not a number in\n%s", got)
	}
	if strings.Contains(got, "capacity  ") {
		t.Errorf("nothing bounds the capacity, and yet there is one in\n%s", got)
	}
}

// A figure that is too long for its column is shown shorter, and no two run into one.
func TestLongFigures(t *testing.T) {
	for figure, want := range map[string]string{
		"8070051": "8.07M", "207963": "208k", "±123456": "±123k", "999600": "1.00M", "99950": "100k", "123456789012345": "123T",
		"–": "–", "999": "999",
	} {
		if got := short(figure); got != want {
			t.Errorf("%s is shown as %s, want %s", figure, got, want)
		}
	}
	r := sample(1, 1)
	for i := range r.Policies {
		for _, run := range r.Policies[i].Runs {
			run.Total.Latency.AddN(8070*time.Second, 1<<40)
		}
	}
	got := show(t, r, Columns, false)
	if !strings.Contains(got, " 7.84M  8.18M ") {
		t.Errorf("%s", got)
	}
}
