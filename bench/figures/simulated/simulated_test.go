package simulated

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

const azure = "../../../cmd/goodput/internal/accesslog/testdata/traces/AzureLLMInferenceTrace_2023_code.csv"

// All of it, so short that hardly a figure means something: what follows from the seeds is
// there, and what is exact is right.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Setup{Seeds: 1, Short: 0.02, Azure: azure, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Seeds) != 1 || len(r.Grid) != 27 || len(r.Finds) != 27 || len(r.Hard) != 11 || len(r.Trace) != 1 || len(r.Steps) != 2 || len(r.Stalls) != 4 || len(r.Speeds) != 4 {
		t.Errorf("%d seeds, %d of the grid, %d hard, %d of the trace, %d steps, %d stalls, %d speeds",
			len(r.Seeds), len(r.Grid), len(r.Hard), len(r.Trace), len(r.Steps), len(r.Stalls), len(r.Speeds))
	}
	if !r.Same {
		t.Error("two runs of one seed differ")
	}
	if r.PerRequest > 1 {
		t.Errorf("a further request allocates %.2f bytes", r.PerRequest)
	}
	for _, h := range r.Hard {
		// Nobody is above who knows everything, but by what is drained: at most 480 of 2,000.
		if h.Tried < 20 || h.Best == "" || h.Ceiling < h.Goodput.Median-0.25 || math.Abs(h.BestGoodput.Median-h.Goodput.Median-h.Behind) > 1e-9 {
			t.Errorf("%+v", h)
		}
	}
	for _, s := range r.Trace {
		// The same as package replay of the program makes of the trace (TestAzureSizes): there
		// the least is 0.953, at twice the capacity.
		if s.Requests != 8819 || s.OfBound.Smallest < 0.95 || s.OfBound.Largest > 1 || s.Blind > s.Known || s.Known > s.Bound {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range r.Stalls {
		if ours := s.Policy == "goodput"; ours != (s.Never == 0) {
			t.Errorf("%+v", s)
		}
	}
}

func TestTraceIsRead(t *testing.T) {
	jobs, err := read(azure)
	if err != nil {
		t.Fatal(err)
	}
	// 4,808 tokens read and 10 written: 480.8 and 200 ms.
	if first := jobs[0]; len(jobs) != 8819 || first.At != 0 || first.Service != 680800*time.Microsecond || first.Size != 681 {
		t.Errorf("%d requests, the first %+v", len(jobs), first)
	}
	for text, want := range map[string]string{
		"":                 "has 0 lines",
		"a,b,c\n":          "has 1 lines",
		"a,b\n1,2\n":       "want a head of three columns",
		"a,b,c\nnow,1,2\n": "line 2 of the trace",
		"a,b,c\n2023-11-16 18:17:03.9799600,-1,2\n": "line 2 of the trace",
		"a,b,c\n\"x": "is no CSV",
	} {
		file := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := read(filepath.Join(t.TempDir(), "nothing")); err == nil || !strings.Contains(err.Error(), "the trace is not there") {
		t.Errorf("a trace that is not there: %v", err)
	}
}

// What follows the cut comes first, and time goes on where it was cut.
func TestRotate(t *testing.T) {
	const s = time.Second
	got := rotate([]sim.Job{{At: 0}, {At: 1 * s}, {At: 5 * s}}, 1, 6*s)
	for i, want := range []time.Duration{0, 4 * s, 5 * s} {
		if got[i].At != want {
			t.Errorf("job %d at %v, want %v", i, got[i].At, want)
		}
	}
}
