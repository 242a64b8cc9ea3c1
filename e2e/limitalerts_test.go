//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// steady is a service in an overload that lasts, and the limit of it every 5 s.
const steady = `version: 1
name: steady
about: an overload that lasts
length: 20m
bins: 240
slots: %d
service: 50ms exponential
policy: {limit: auto, objective: 400ms}
load: %s
deadline: 2s
compare: [goodput]
`

// What GoodputLimitOscillating and GoodputLimitNeverMoves take for a fault is not what the
// law of ours does when all is well: looking for the capacity.
func TestLimitAlertsAreNotAboutAuto(t *testing.T) {
	t.Parallel() // with TestPrometheusSeesTheDemo, which mostly waits
	program := rig.Program(t)
	for _, c := range []struct {
		slots int
		load  string
	}{{10, "1.5x"}, {2, "1.2x"}} {
		t.Run(fmt.Sprintf("%d slots at %s", c.slots, c.load), func(t *testing.T) {
			into := filepath.Join(t.TempDir(), "result.json")
			cmd := exec.Command(program, "simulate", "--no-ceilings", "--seed", "3", "--format", "json", "--output", into,
				rig.File(t, "steady.yaml", fmt.Sprintf(steady, c.slots, c.load)))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var result struct {
				Policies []struct {
					Series struct{ Limit []float64 }
				}
			}
			b, err := os.ReadFile(into)
			if err == nil {
				err = json.Unmarshal(b, &result)
			}
			if err != nil {
				t.Fatal(err)
			}
			limits := result.Policies[0].Series.Limit
			if len(limits) != 240 {
				t.Fatalf("%d limits, want 240", len(limits))
			}
			const window = 120 // 10 minutes
			still, most, deviated := 0, 0, 0.0
			for i := range limits {
				if still++; i > 0 && limits[i] != limits[i-1] {
					still = 0
				}
				most = max(most, still)
				if i < window {
					continue
				}
				mean, sd := moments(limits[i-window : i])
				if sd > 2 && sd > 0.25*mean {
					t.Errorf("to second %d it deviates by %.1f slots of %.1f", 5*i, sd, mean)
				}
				deviated = max(deviated, sd/mean)
			}
			if most > 180 { // 15 minutes: half of what the alert takes
				t.Errorf("it did not move for %d s", 5*most)
			}
			figure(t, "auto", "deviates by %.2f in 10 minutes, rests for %d s", deviated, 5*most)
		})
	}
}

// moments are the mean and the standard deviation.
func moments(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(sd)
}
