package live

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// What is above the objective is not called within it: not where the p99 is above, and not where all
// that is known of it is that it is longer than the last bucket.
func TestTheVerdictOfALatency(t *testing.T) {
	for _, c := range []struct {
		target float64
		over   bool
		want   string
	}{
		{0.3, false, "p99 300ms of the last 10 s, within the objective of 300ms"},
		{0.31, false, "p99 310ms of the last 10 s, above the objective of 300ms"},
		{0.2, true, "p99 over 200ms of the last 10 s, above the objective of 300ms"},
	} {
		s := goodput.Stats{}
		s.Derivation.Objective, s.Derivation.Percentile = 300*time.Millisecond, 0.99
		n := Now{View: &View{WindowSeconds: 10, Latency: &Quantiles{Target: c.target, TargetOver: c.over}}, Stats: &s}
		if got := n.latency(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Who left by himself was not refused; of the others the most frequent comes first, and what did not
// happen is not said.
func TestReasonsOfRefusals(t *testing.T) {
	rates := map[string]float64{"client": 90, "parent": 80, "queue_full": 12.34, "doomed": 200, "quota": 12.34, "shed": 0}
	if got := reasonsOf(rates); got != "doomed 200, queue_full 12.3, quota 12.3" {
		t.Errorf("%q", got)
	}
	if got := reasonsOf(map[string]float64{"client": 1}); got != "" {
		t.Errorf("%q", got)
	}
}

// An operator has no Drain to turn: it is the shutdown that decided.
func TestTheShutdownDecided(t *testing.T) {
	if got := Knob(&goodput.Rejection{Reason: goodput.Draining}); got != "the shutdown" {
		t.Errorf("%q", got)
	}
	if got := Knob(&goodput.Rejection{Reason: goodput.NoBudget, Remaining: time.Second}); !strings.HasPrefix(got, "the size of those that wait") {
		t.Errorf("%q", got)
	}
}
