package goodput

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A crowded resource serves 100 a second, all that it has at once alike: what begins as the n-th takes
// n/100 s, and 40 ms at the least. So four at once are what it takes.
type crowded struct{ n atomic.Int64 }

func (c *crowded) serve(l *Limiter, t *testing.T) {
	slot, err := l.AcquireWork(t.Context(), Work{Tenant: "acme"})
	if err != nil {
		return
	}
	time.Sleep(max(time.Duration(c.n.Add(1))*10*time.Millisecond, 40*time.Millisecond))
	c.n.Add(-1)
	slot.Release()
}

// offer has 240 a second come for so long, and looks every 100 ms.
func (c *crowded) offer(l *Limiter, t *testing.T, d time.Duration, look func(*Stats)) {
	t.Helper()
	for i := range int(d / (time.Second / 240)) {
		go c.serve(l, t)
		time.Sleep(time.Second / 240)
		if i%24 == 0 && look != nil {
			s := l.Stats()
			look(&s)
		}
	}
}

// The switch is turned on in an overload of 2.4 for 5 s, and some 700 run where four may. Each
// then takes 170 times as long, which no dependency is why: nothing is called slow, unreachable or
// drifted, neither then nor until long after the last of them has ended, and the load is the one there is.
func TestSwitchTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(4), Objective: 300 * time.Millisecond, Service: 40 * time.Millisecond, Tenants: &Tenants{}})
		var c crowded
		c.offer(l, t, 70*time.Second, nil)
		before := l.Stats()
		if before.Baseline == 0 {
			t.Fatal("nothing to compare with after 70 s: this shows nothing")
		}
		sane := func(s *Stats) {
			t.Helper()
			text := flat(l.Explain())
			for _, word := range []string{"has slowed", "unreachable", "drift"} {
				if strings.Contains(text, word) {
					t.Fatalf("%q in\n%s", word, text)
				}
			}
			if s.Slowed || s.Condition() == ConditionSlowed || s.Condition() == ConditionUnreachable || s.Unlimited {
				t.Fatalf("slowed %v, %v, unlimited %v", s.Slowed, s.Condition(), s.Unlimited)
			}
			// Arrivals are even, and the rate that of 40 ms for each of four to within what 500 samples
			// of it can be off: an eighth is more than enough.
			if off := s.Load / 2.4; off < 7.0/8 || off > 9.0/8 {
				t.Fatalf("load %.2f of 2.4", s.Load)
			}
		}
		mustObserve(t, l, true)
		c.offer(l, t, 5*time.Second, sane)
		if n := l.Stats().InUse; n < 600 {
			t.Fatalf("only %d in use: this shows nothing", n)
		}
		sayings(t, l, []string{"measured before: what runs now, with", "would be in use", "refused, or would be", "order newest_first: the queue that there would be has stood for 1m1"}, nil)
		mustObserve(t, l, false)
		const held = "in use began while it observed: the limit holds once they have ended"
		over := 0
		c.offer(l, t, 30*time.Second, func(s *Stats) {
			sane(s)
			if says := strings.Contains(s.State(), held); says != (s.Excess > 0) || s.InUse > s.Limit != says {
				t.Fatalf("%d in use, %d in excess: %q", s.InUse, s.Excess, s.State())
			}
			if s.Excess > 0 {
				over++
			}
		})
		if s := l.Stats(); over == 0 || s.Excess > 0 || s.Derivation.Samples == 0 {
			t.Errorf("over %d times, now by %d", over, s.Excess)
		}
		sayings(t, l, []string{"would have been while it observed"}, []string{"measured", "would be in use"})
		synctest.Wait()
		time.Sleep(10 * time.Second)
		checkEmpty(t, l)
	})
}

// A limiter that has observed from the start knows nothing else: it says so, and once it decides it
// is not called unreachable for what it has seen before.
func TestMeasuredWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(4), Objective: 300 * time.Millisecond, Observe: true})
		var c crowded
		c.offer(l, t, 5*time.Second, nil)
		s := l.Stats()
		if !s.Unlimited || s.Load < 5 {
			t.Errorf("unlimited %v, load %.1f", s.Unlimited, s.Load)
		}
		sayings(t, l, []string{"measured without a limit,", "in use where 4 may be", "nothing to scale by"}, []string{"has slowed"})
		mustObserve(t, l, false)
		c.offer(l, t, 60*time.Second, func(s *Stats) {
			if c := s.Condition(); c == ConditionUnreachable || c == ConditionSlowed {
				t.Fatalf("%v, unlimited %v: %s", c, s.Unlimited, s.Derivation)
			}
		})
		if s = l.Stats(); s.Unlimited || s.Derivation.Service > 100*time.Millisecond {
			t.Errorf("%s", s.Derivation)
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		checkEmpty(t, l)
	})
}

// Nobody who waits is sent away when the depth falls, and 14 wait where 4 may reads like a bug.
func TestMoreWaitThanMayJoin(t *testing.T) {
	s := Stats{}
	s.Limit, s.InUse, s.Running, s.Waiting, s.WaitingCost, s.Depth, s.Overload, s.Load = 20, 20, 20, 14, 14, 4, true, 3
	s.Derivation.Reachable = true
	const want = "saturated and doing its job: 3 times what can be served is offered; the slots are busy, 4 may join, 14 are left of a longer queue, the rest is refused at once"
	if got := s.State(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Depth = 14
	if got := s.State(); !strings.Contains(got, "14 wait where 14 may") {
		t.Errorf("%q", got)
	}
}
