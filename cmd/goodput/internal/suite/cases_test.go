package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What the scenarios are, each in a few words that follow from what is played: one that went, or was no longer
// what its name says, would make a law look better than it is.
var played = strings.Fields(`
	load-0.5x load-1x over-1.5x over-3x over-10x cv0-1.5x cv0-3x cv0.5-1.5x cv0.5-3x cv2-1.5x cv2-3x
	bimodal-1.5x bimodal-3x cold-1-1.5x cold-1-3x cold-1-10x cold-1000-1.5x cold-1000-3x cold-1000-10x
	step-60-20-60:slots=60,20,60 step-60-30-60:slots=60,30,60 halved:slots=60,30
	slower-as-many:speeds=1 slower-more:slots=60,120:speeds=1 ramp-x3:ramp
	stall-retries:stalls=1:attempts=3 gc:stalls=many throttled:stalls=many cold-idle:changes=1 warm-idle:changes=2
	retry-500ms:attempts=3 retry-50ms:attempts=3 slots-1 slots-4 slots-500 probes:classes=2
	fleet:instances=50 fleet-traffic:tiers=3 fleet-longer:tiers=3 endpoints:tiers=2:classes=2`)

func words(c *Case) string {
	t, class := &c.Scene.Tiers[0], &c.Scene.Classes[0]
	w := c.Name
	if len(t.SlotSteps) > 0 {
		w += fmt.Sprintf(":slots=%d", t.Slots)
		for _, s := range t.SlotSteps {
			w += fmt.Sprintf(",%d", s.Slots)
		}
	}
	switch n := len(t.Speed.Steps); {
	case n > 10:
		w += ":ramp"
	case n > 0:
		w += fmt.Sprintf(":speeds=%d", n)
	}
	switch n := len(t.Speed.Stalls); {
	case n > 10:
		w += ":stalls=many"
	case n > 0:
		w += fmt.Sprintf(":stalls=%d", n)
	}
	if n := class.Retry.Attempts; n > 1 {
		w += fmt.Sprintf(":attempts=%d", n)
	}
	if n := len(class.Arrivals.Changes); n > 0 {
		w += fmt.Sprintf(":changes=%d", n)
	}
	if t.Instances > 1 && len(c.Scene.Tiers) == 1 {
		w += fmt.Sprintf(":instances=%d", t.Instances)
	}
	if n := len(c.Scene.Tiers); n > 1 {
		w += fmt.Sprintf(":tiers=%d", n)
	}
	if n := len(c.Scene.Classes); n > 1 && (len(c.Scene.Tiers) != 3) {
		w += fmt.Sprintf(":classes=%d", n)
	}
	return w
}

func TestWhatIsPlayed(t *testing.T) {
	var got []string
	for _, c := range cases(false) {
		got = append(got, words(&c))
	}
	if !slices.Equal(got, played) {
		for i := range max(len(got), len(played)) {
			a, b := "nothing", "nothing"
			if i < len(got) {
				a = got[i]
			}
			if i < len(played) {
				b = played[i]
			}
			if a != b {
				t.Errorf("scenario %d is %s, want %s", i, a, b)
			}
		}
	}
}

// Auto begins where the scenario says, and is told of a resource that many share.
func TestLawsOfAScenario(t *testing.T) {
	for _, c := range cases(false) {
		law, err := c.law(Auto, 0)
		want := limit.Auto{From: c.From, Shared: strings.HasPrefix(c.Name, "fleet")}
		if err != nil || law != limit.Law(want) {
			t.Errorf("%s: %v, %v, want %v", c.Name, law, err, want)
		}
		if n, ok := map[string]int{"cold-1-3x": 1, "cold-1000-3x": 1000}[c.Name]; ok {
			vegas, err := c.law("vegas", 0)
			if err != nil {
				t.Fatal(err)
			}
			if start, _ := vegas.Start(); c.From != n || start != n {
				t.Errorf("%s: from %d, vegas from %d, want %d", c.Name, c.From, start, n)
			}
		}
		if c.Scene.Length < 10*time.Second {
			t.Errorf("%s is %v long: too short for what it asks", c.Name, c.Scene.Length)
		}
	}
}
