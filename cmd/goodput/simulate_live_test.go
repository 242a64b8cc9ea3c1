package main

import (
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/demo"
	"github.com/goodput/goodput/cmd/goodput/internal/report"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// What the simulator says of `goodput demo` is what the demo shows, over real HTTP
// and with real goroutines: goodput within 3 points, p50 within 15 %.
//
// A live window of 10 s has 12,000 services of CV 1, a standard error of 0.9 points;
// the simulation is the mean of 20 such windows, 0.2. A live run that this machine
// was too busy for says so itself, and proves nothing.
func TestDemoIsWhatItsScenarioSays(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 24 s of real time")
	}
	const window = 10 * time.Second
	f := loadBuiltin(t, "demo")
	f.Sim.Length, f.Repeat = window, 20
	simulated := map[string]report.Figures{}
	for i, c := range f.Compare {
		var runs []*sim.Result
		for _, seed := range f.Seeds() {
			r, err := sim.Run(f.Play(i), seed)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		simulated[c.Name] = report.Policy{Name: c.Name, Runs: runs}.Figures()
	}

	// What is wrong with the simulation is wrong each time; what disturbs a shared
	// machine is not.
	var wrong []string
	for range 3 {
		live, err := demo.Run(t.Context(), demo.Config{
			Load: 3, Duration: window, Seed: 1, Limit: limit.Fixed(60), Protect: protect, Progress: io.Discard,
		})
		if err != nil {
			t.Fatal(err)
		}
		if why := live.Void(); why != "" {
			t.Logf("no answer: %s", why)
			continue
		}
		if wrong = compared(t, live, simulated); wrong == nil {
			return
		}
		t.Log(wrong)
	}
	if wrong == nil {
		t.Skip("the machine was too busy, three times")
	}
	t.Error(wrong)
}

// compared says what a live run and the simulation disagree about.
func compared(t *testing.T, live *demo.Report, simulated map[string]report.Figures) (wrong []string) {
	t.Helper()
	if len(live.Runs) != len(simulated) {
		t.Fatalf("%d live runs, %d simulated", len(live.Runs), len(simulated))
	}
	for _, run := range live.Runs {
		want, ok := simulated[run.Name]
		if !ok {
			t.Fatalf("the scenario has no policy %s", run.Name)
		}
		p50, _ := run.Load.Latency.Quantile(0.5)
		ratio := run.Load.Ratio(live.Capacity)
		t.Logf("%s: goodput %.2f %%, simulated %.2f; p50 %v, simulated %.4g s",
			run.Name, 100*ratio, 100*want.Ratio.Mean, p50, want.P50.Mean)
		if off := math.Abs(ratio - want.Ratio.Mean); off > 0.03 {
			wrong = append(wrong, fmt.Sprintf("%s: goodput %.4f live, %.4f simulated: %.1f points apart", run.Name, ratio, want.Ratio.Mean, 100*off))
		}
		if off := math.Abs(p50.Seconds()/want.P50.Mean - 1); off > 0.15 {
			wrong = append(wrong, fmt.Sprintf("%s: p50 %v live, %.4f s simulated: %.0f %% apart", run.Name, p50, want.P50.Mean, 100*off))
		}
	}
	return wrong
}
