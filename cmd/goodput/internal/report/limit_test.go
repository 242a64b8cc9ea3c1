package report

import (
	"strings"
	"testing"

	"github.com/goodput/goodput/internal/sim"
)

// Who plays a law that finds the limit is told what it found.
func TestLimitThatMovedIsTold(t *testing.T) {
	r := sample(2, 1)
	tier := &r.Policies[0].Runs[0].Tiers[0]
	if tier.Stats == nil {
		t.Fatal("the sample has no limiter of ours")
	}
	said := func() string { return r.derivations()[0].Line }
	if strings.Contains(said(), "the limit was") {
		t.Errorf("of a fixed limit: %q", said())
	}
	tier.Limits = []sim.Average{{Mean: 62.35, Deviation: 4.06}}
	tier.Stats.LimitWhy = "auto: 62 to 66, comparing"
	if want := "; the limit was 62.4 on average, give or take 4.1; latest move: auto: 62 to 66, comparing"; !strings.HasSuffix(said(), want) {
		t.Errorf("%q, want it to end in %q", said(), want)
	}
}
