package sim

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// Ten minutes at twice the capacity of 8 slots: what Auto compares with does not follow the
// overload. The mean limit of each two minutes is within a tenth of that of all, which is what
// TestNoiseIsNoReason grants, and stays by the slots.
func TestTenMinutesAtTwiceTheLoadDoNotDrift(t *testing.T) {
	const slots = 8
	_, d := tried(t, limit.Auto{}, 1, slots, exponential50, 2*slots/0.05, 10*time.Minute, nil)
	mean, _, least, most := spread(d.within(time.Minute, 10*time.Minute))
	t.Logf("%.2f, %v to %v", mean, least, most)
	if mean < slots || mean > 1.4*slots {
		t.Errorf("a mean limit of %.2f, %v to %v, of %d slots", mean, least, most, slots)
	}
	for from := 2 * time.Minute; from < 10*time.Minute; from += 2 * time.Minute {
		part, _, _, _ := spread(d.within(from, from+2*time.Minute))
		t.Logf("from %v on %.2f", from, part)
		if math.Abs(part/mean-1) > 0.1 {
			t.Errorf("from %v on a mean limit of %.2f, and %.2f over all", from, part, mean)
		}
	}
}
