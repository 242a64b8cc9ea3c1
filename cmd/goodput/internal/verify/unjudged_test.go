package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// eachOfNames checks that each of Names is either judged or said not to be, with what was measured.
func eachOfNames(t *testing.T, name string, r *Report) {
	t.Helper()
	judged, open := map[string]bool{}, map[string]bool{}
	for _, c := range r.Criteria {
		judged[c.Name] = true
	}
	for _, o := range r.Unjudged {
		open[o.Name] = true
		if o.Text == "" || o.Measured == "" || o.Why == "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for _, n := range Names {
		if judged[n] == open[n] {
			t.Errorf("%s: %s is judged %v and said not to be %v", name, n, judged[n], open[n])
		}
	}
}

// A run without an answer says of each criterion what was seen, at the loads that void it too,
// and never that it is met.
func TestUnjudgedIsNotSilent(t *testing.T) {
	r := good()
	at(r, 3).Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 6000})
	Judge(r)
	got := textOf(t, r, minWidth, false)
	for _, want := range []string{
		"not judged, 11 of 11 criteria: what was measured does not stand", "? goodput: in time >= 95 % of the capacity", "at 3x,", "? recovery: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "✓") || strings.Contains(got, "✗") {
		t.Errorf("there is a verdict in\n%s", got)
	}

	r = &Report{Void: "the target is not there: connection refused"}
	Judge(r)
	if got := textOf(t, r, minWidth, false); !strings.Contains(got, "not judged, 11 of 11 criteria: nothing was measured\n? not measured: below-capacity, goodput,") {
		t.Errorf("of a run that has seen nothing:\n%s", got)
	}

	// A verdict without the loads that were left out does not hide what only they could show.
	r = good()
	stepOf(r, 10).Recovery = -1
	at(r, 0.5).Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 6000})
	Judge(r)
	got = textOf(t, r, minWidth, false)
	if r.Void != "" || len(r.Unjudged) != 1 || r.Unjudged[0].Name != Below || !strings.Contains(got, "does not stand: at 0.5x the load was not offered in time") {
		t.Errorf("void %q, not judged %+v in\n%s", r.Void, r.Unjudged, got)
	}
}
