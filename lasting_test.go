package goodput

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// C134: an hour-long stream and a connection that was upgraded are requests that ended, and no
// more: what is beside them takes as long as it takes without them, in every number that is a
// duration and in what is derived from those.
func TestWhatLastsIsInNoDuration_C134(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(4), Objective: 400 * time.Millisecond})
		stream, upgraded := mustAcquire(t, l), mustAcquire(t, l)
		stream.Unsampled()
		work := func() {
			for range 50 {
				slot := mustAcquire(t, l)
				time.Sleep(10 * time.Millisecond)
				slot.Release()
			}
		}
		work()
		before := l.Stats()
		time.Sleep(time.Hour)
		upgraded.Detach()
		stream.Release()
		work()
		s := l.Stats()
		if done := s.Outcomes[Completed] + s.Outcomes[Late]; done != 102 {
			t.Errorf("%d requests ended, want 102", done)
		}
		for name, h := range map[string]*Histogram{"service": s.Service[Completed], "latency": &s.Latency} {
			longest, _ := h.Quantile(1)
			if h.Count != 100 || longest > 11*time.Millisecond { // buckets are 9.1 % wide
				t.Errorf("%s: %d durations up to %v, want 100 of 10ms", name, h.Count, longest)
			}
		}
		if s.Service[Late] != nil {
			t.Errorf("late: %d durations, want none", s.Service[Late].Count)
		}
		if s.Derivation.Service != before.Derivation.Service && s.Derivation.Service > 11*time.Millisecond {
			t.Errorf("the derivation went from %v to %v", before.Derivation, s.Derivation)
		}
	})
}
