package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// lastWithout returns how long after at something was not so for the last time.
func lastWithout(r *Result, at time.Duration, so func(*Bin) bool) (last time.Duration) {
	for i := range r.Series {
		if b := &r.Series[i]; b.End > at && !so(b) {
			last = b.End - at
		}
	}
	return last
}

// Step back to 0.5x recovers in < 10 windows. After five seconds of an overload the load is half
// of the capacity. Nobody waits any more, nobody is refused, and the limit is that of the slots
// and stands still, each within ten windows of the control loop, 0.5 s. The limit is at least
// 0.95 of the slots and at most 1.5 of them: in an overload it is tried up to 1.35 times what it
// was.
//
// The depth in force is back within ten windows after 1.5x and 3x. It follows the load, which
// is a mean with a time constant of an objective, 8 windows: after 10x that is below 1 when
// 9.5 exp(-t) is below 0.5, after 8 ln 19 = 24 windows. Nobody notices, since nobody waits.
func TestStepBackToHalfRecoversInTenWindows(t *testing.T) {
	const objective, step = 400 * ms, 5 * time.Second
	ten := 10 * admission.Config{Objective: objective}.Window()
	for _, c := range []struct {
		times    float64
		deadline time.Duration
		depth    time.Duration // within which it is back
	}{
		{1.5, objective, ten},
		{1.5, 2 * time.Second, ten},
		{3, objective, ten},
		{3, 2 * time.Second, ten},
		{10, 2 * time.Second, time.Duration(math.Log((10-0.5)/0.5) * float64(objective))},
	} {
		s := plain(c.times, exponential50, c.deadline, 0)
		s.Length, s.Warmup, s.Bins = step+time.Second, 0, 600
		s.Classes[0].Arrivals.Changes = []Change{{At: step, Rate: 0.5 * capacity}}
		for _, law := range []limit.Law{limit.Fixed(slots), limit.Auto{}} {
			r := play(t, s.under(law), 1)
			end := &r.Series[len(r.Series)-1]
			busy := lastWithout(r, step, func(b *Bin) bool { return b.Waiting == 0 && b.Refused == 0 && b.Behind == 0 })
			moved := lastWithout(r, step, func(b *Bin) bool { return b.Limit == end.Limit })
			short := lastWithout(r, step, func(b *Bin) bool { return b.Depth == b.Derived })
			name := fmt.Sprintf("%gx, callers of %v, %v", c.times, c.deadline, law)
			t.Logf("%s: someone waits or is refused for %v; limit %d after %v; depth %d after %v", name, busy, end.Limit, moved, end.Depth, short)
			if b := r.Series[int(step/(10*ms))-1]; b.Depth >= b.Derived {
				t.Errorf("%s: the depth is %d of %d before the step back: there is no overload", name, b.Depth, b.Derived)
			}
			if busy >= ten || moved >= ten || short >= c.depth {
				t.Errorf("%s: someone waits or is refused for %v, and the limit moves for %v, want less than %v; the depth is back after %v, want %v",
					name, busy, moved, ten, short, c.depth)
			}
			if n := float64(end.Limit); n < 0.95*slots || n > 1.5*slots {
				t.Errorf("%s: the limit is %v of %d slots", name, n, slots)
			}
		}
	}
}
