package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The row of the table that no-late-answers marks has the figure that it judges, and the answers that
// came in the moment before their callers were gone have another name.
func TestTooLateIsOneFigure(t *testing.T) {
	r := good()
	x := at(r, 3)
	takes(x, 400, &x.TimedOut)
	x.InTime -= 10
	x.Followed = load.Followed{Asked: 25, Served: 20, Never: 5}
	Judge(r)
	// 1,990 - 410 in time; 10 just late, and 400 x 20/25 of those that gave up: 330 of 1,910.
	const want = "17.3"
	cells := map[string][]string{}
	failed := map[string]bool{}
	for _, row := range r.rows() {
		cells[row.Name], failed[row.Name] = row.Cells, row.Failed
	}
	if got := cells["served too late"]; len(got) != 5 || got[3] != want || got[4] != "0" || !failed["served too late"] {
		t.Errorf("served too late %q, marked %v", got, failed["served too late"])
	}
	if got := cells["just late"]; len(got) != 5 || got[3] != "2.00" || failed["just late"] {
		t.Errorf("just late %q", got)
	}
	for _, c := range r.Criteria {
		if c.Name == Late && (c.Met || !strings.Contains(c.Measured, want+" % ± 0.9 at 3x")) {
			t.Errorf("%+v", c)
		}
	}
	legend := strings.Join(r.legend(), "\n")
	if !strings.Contains(legend, "\njust late: ") || !strings.Contains(legend, "\nserved too late: ") {
		t.Errorf("the legend does not tell them apart:\n%s", legend)
	}
	for _, row := range good().rows() {
		if row.Name == "served too late" || row.Name == "just late" {
			t.Errorf("where nobody was late there is the row %q", row.Name)
		}
	}
}

// A p99 over its bound says what else may be in it: those who ask again and are let pass, and the
// lateness of the generator.
func TestWhatMayBeInTheP99(t *testing.T) {
	for name, c := range map[string]struct {
		attempts   int
		p99, late  time.Duration
		pass, sent bool
	}{
		"longer than the generator was late": {1, 306 * ms, 5 * ms, false, false},
		"no longer than that":                {1, 304 * ms, 5 * ms, false, true},
		"callers that ask again":             {3, 330 * ms, ms, true, false},
	} {
		r := good()
		r.Settings.Attempts = c.attempts
		for _, s := range r.Steps {
			s.Result.Plan.Deadline = time.Second
		}
		slow(at(r, 3), c.p99)
		at(r, 3).Late = each(6000, c.late)
		Judge(r)
		for _, f := range r.failed() {
			if f.Name != Flat {
				t.Errorf("%s: %+v", name, f)
			}
			if pass := strings.Contains(f.Why, "earliest deadline first"); pass != c.pass || pass != strings.Contains(f.Text, "from the start of its last attempt") {
				t.Errorf("%s: %s: %s", name, f.Text, f.Why)
			}
			if sent := strings.Contains(f.Why, "The generator was "+span(c.late)+" late at p99"); sent != c.sent {
				t.Errorf("%s: %s", name, f.Why)
			}
		}
		if len(r.failed()) != 1 {
			t.Errorf("%s: void %q, %d criteria failed", name, r.Void, len(r.failed()))
		}
	}
}
