package goodput

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Who is refused because the allowance is spent, with every slot free, reads that; and a
// limiter that refuses most of what comes is not called idle.
func TestSpentAllowanceInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(8), Allowance: Quota{Rate: 2, Burst: 2}, Objective: 100 * time.Millisecond, Service: time.Millisecond})
		var last error
		for range 400 {
			slot, err := l.Acquire(t.Context())
			if err != nil {
				last = err
			}
			slot.Release()
			time.Sleep(10 * time.Millisecond)
		}
		if last == nil || !strings.Contains(last.Error(), "slots are free, the allowance is what is used up") {
			t.Errorf("refused with: %v", last)
		}
		if s := l.Stats(); !strings.Contains(s.State(), "the allowance is used up as it comes") {
			t.Errorf("called %q at load %.1f", s.State(), s.Load)
		}
	})
}
