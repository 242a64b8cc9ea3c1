package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/limit"
)

// trial is a run of 2000 arrivals in 10 s with given answers, in turn.
func trial(t *testing.T, name string, ctx context.Context, answers ...load.Answer) *Trial {
	t.Helper()
	var turn atomic.Int64
	g, err := load.New(load.Plan{Rate: 200, Duration: 10 * time.Second, Constant: true, Deadline: deadline},
		func(ctx context.Context) load.Answer {
			a := answers[int(turn.Add(1)-1)%len(answers)]
			if a == (load.Answer{}) { // none
				<-ctx.Done()
				return load.Answer{Err: ctx.Err()}
			}
			return a
		})
	if err != nil {
		t.Fatal(err)
	}
	return &Trial{Name: name, Load: g.Run(ctx), Served: 1000, PeakQueue: 7}
}

var (
	ok      = load.Answer{Status: 200}
	full    = load.Answer{Status: 503, Reason: "queue_full"}
	expired = load.Answer{Status: 504, Reason: "deadline"}
	nothing = load.Answer{}
)

// report has a direct run in which three of four give up, and one through the
// proxy in which half are served.
func report(t *testing.T) *Report {
	r := &Report{Seed: 9, Load: 2, Duration: 10 * time.Second, Limit: limit.Fixed(60), Capacity: 100}
	direct := trial(t, unprotected, t.Context(), ok, nothing, nothing, nothing)
	through := trial(t, protected, t.Context(), ok, full, ok, expired)
	through.Derivation = "60 slots / 50ms mean = 1200/s"
	r.Runs = []*Trial{direct, through}
	return r
}

func TestReportJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		if err := report(t).JSON(&b); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Version int
			Seed    uint64
			Load    float64
			Runs    []map[string]any
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Version != 1 || got.Seed != 9 || got.Load != 2 || len(got.Runs) != 2 {
			t.Errorf("version %d, seed %d, load %v, %d runs", got.Version, got.Seed, got.Load, len(got.Runs))
		}
		for i, want := range []map[string]any{
			{
				"name": "unprotected", "offered_per_second": 200.0, "capacity_per_second": 100.0, "in_time_per_second": 50.0,
				"goodput_ratio": 0.5, "p50_seconds": 2.0, "p99_seconds": 2.0, "gave_up_per_second": 150.0,
				"served_in_vain_ratio": 0.5, "rejected": map[string]any{}, "refusal_p50_seconds": nil, "peak_queue": 7.0,
			},
			{
				"name": "goodput", "offered_per_second": 200.0, "capacity_per_second": 100.0, "in_time_per_second": 100.0,
				"goodput_ratio": 1.0, "served_in_vain_ratio": 0.0, "refused_per_second": 100.0,
				"rejected":   map[string]any{"queue_full": 500.0, "deadline": 500.0},
				"derivation": "60 slots / 50ms mean = 1200/s",
			},
		} {
			for field, value := range want {
				got, there := got.Runs[i][field]
				if object, ok := value.(map[string]any); ok {
					if !maps.Equal(object, got.(map[string]any)) {
						t.Errorf("run %d: %s is %v, want %v", i, field, got, value)
					}
				} else if !there || got != value {
					t.Errorf("run %d: %s is %v, want %v", i, field, got, value)
				}
			}
			// Those whose value is this machine's.
			for _, field := range []string{"completed_per_second", "refusal_p99_seconds", "generator_lateness", "failed", "errors", "dropped"} {
				if _, there := got.Runs[i][field]; !there {
					t.Errorf("run %d: no %s", i, field)
				}
			}
			if why, there := got.Runs[i]["void"]; there {
				t.Errorf("run %d is void: %v", i, why)
			}
		}
	})
}

func TestReportText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		if err := report(t).Text(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"                      unprotected       goodput\n",
			"offered                   200.0/s       200.0/s\n",
			"in time                    50.0/s       100.0/s\n",
			"goodput %                  50.0 %       100.0 %\n",
			"p99                     2000.0 ms        0.0 ms\n",
			"work in vain               50.0 %         0.0 %\n",
			"refused                     0.0/s       100.0/s\n",
			"  deadline                  0.0/s        50.0/s\n",
			"  queue_full                0.0/s        50.0/s\n",
			"refusal time p50                -        0.0 ms\n",
			"peak queue                      7             7\n",
			"generator late p99         0.0 ms        0.0 ms\n",
			"seed 9",
			"\n  60 slots / 50ms mean = 1200/s\n",
			"Directly 50 of 100/s that can be served were answered in time, p99 2000.0 ms (objective 400ms).\n",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		if strings.Contains(b.String(), "Not a clean measurement") || strings.Contains(b.String(), "failed") {
			t.Errorf("nothing failed:\n%s", b.String())
		}
	})
}

func TestReportVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		good, cut := trial(t, protected, t.Context(), ok), trial(t, protected, ctx, ok)
		for _, tc := range []struct {
			name string
			runs []*Trial
			want string // "" is valid
		}{
			{"both", []*Trial{trial(t, unprotected, t.Context(), ok), good}, ""},
			{"direct one skipped", []*Trial{good}, ""},
			{"none", nil, "interrupted"},
			{"direct one alone", []*Trial{trial(t, unprotected, t.Context(), ok)}, "interrupted"},
			{"both void", []*Trial{trial(t, unprotected, ctx, ok), cut}, `the run "unprotected" is void: interrupted before its end; the run "goodput" is void: interrupted`},
			{"cut short", []*Trial{cut}, `the run "goodput" is void: interrupted`},
		} {
			r := &Report{Capacity: 100, Runs: tc.runs}
			if got := r.Void(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
			}
			var text, out bytes.Buffer
			if err := r.Text(&text); err != nil {
				t.Error(err)
			}
			if err := r.JSON(&out); err != nil {
				t.Error(err)
			}
			for form, s := range map[string]string{"text": text.String(), "json": out.String()} {
				said := strings.Contains(s, "void") || strings.Contains(s, "Not a clean measurement")
				if said != (tc.want != "") {
					t.Errorf("%s: the %s says %s", tc.name, form, s)
				}
			}
		}
	})
}

func TestReasonsAreSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := report(t)
		if got := r.reasons(); !slices.Equal(got, []string{"deadline", "queue_full"}) {
			t.Errorf("%v", got)
		}
	})
}
