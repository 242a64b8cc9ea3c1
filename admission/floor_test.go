package admission

import (
	"testing"

	"github.com/goodput/goodput/limit"
)

// lowers is a law that has been misled: it halves its limit in every window, to its minimum.
type lowers struct{}

func (lowers) Start() (int, error)                    { return 8, nil }
func (lowers) Begin(uint64) limit.State               { return lowers{} }
func (lowers) Why() string                            { return "" }
func (lowers) Bounds() (low, high int)                { return 2, 100 }
func (lowers) Next(n int, _ *limit.Window) limit.Move { return limit.Move{Limit: max(n/2, 2)} }

// envoyproxy/envoy#10647, #38338: what pins a limit at its floor is seen nowhere. Here it is
// known for how long the limit stands there while more is asked for, and a limit that is
// there because no more is asked for is none of it. (C030)
func TestC030TimeAtTheFloor(t *testing.T) {
	c := benchCore(t, Config{Limit: lowers{}, Objective: 400 * ms, Service: 10 * ms})
	window, now := 50*ms, 0*ms
	// Slots are held for 10 ms and two serve 200/s: so 8 in a window of 50 ms are 160/s and 16
	// are 320/s. The load is a mean over an objective or so.
	run := func(windows, each int) Stats {
		for range windows {
			for i := range each {
				c.Offer(now, Request{Deadline: Never, NoWait: true})
				if i%2 == 1 || c.free() == 0 {
					now += 10 * ms * 2 / 16
					for c.running > 0 {
						c.Release(now, End{Outcome: Completed})
					}
				}
			}
			now += window - now%window
			c.Observe(now, &Batch{})
		}
		return c.Stats(now)
	}
	if s := run(20, 4); s.Limit != 2 || s.LimitMin != 2 || s.LimitMax != 100 || s.LimitFloored != 0 {
		t.Fatalf("at the minimum, load %.2f, which it serves: %d of %d to %d for %v", s.Load, s.Limit, s.LimitMin, s.LimitMax, s.LimitFloored)
	}
	s := run(200, 16) // 10 s at load 1.6
	// The load has passed 1 within the time constant of its meter, an objective, twice over.
	if s.Limit != 2 || s.LimitFloored < 10000*ms-800*ms || s.LimitFloored > 10000*ms {
		t.Errorf("at load %.2f for 10s: floored for %v", s.Load, s.LimitFloored)
	}
	if s = run(60, 4); s.LimitFloored != 0 {
		t.Errorf("at load %.2f again: floored for %v", s.Load, s.LimitFloored)
	}
	run(60, 16)
	if err := c.SetLimit(now, 2); err != nil {
		t.Fatal(err)
	}
	if s = run(60, 16); s.LimitFloored != 0 || s.LimitMin != 2 || s.LimitMax != 2 {
		t.Errorf("fixed at 2: floored for %v, %d to %d", s.LimitFloored, s.LimitMin, s.LimitMax)
	}
	if s.LimitChanges != 2 || s.LimitRaised != 0 || s.LimitCalled != 0 {
		t.Errorf("from 8 to 4 to 2 by the law: %d changes, %d up, %d by a call", s.LimitChanges, s.LimitRaised, s.LimitCalled)
	}
	for _, n := range []int{5, 3, 3} {
		if err := c.SetLimit(now, n); err != nil {
			t.Fatal(err)
		}
	}
	if s = c.Stats(now); s.LimitChanges != 4 || s.LimitRaised != 1 || s.LimitCalled != 2 || s.LimitCalledUp != 1 {
		t.Errorf("then to 5 and 3 by calls: %d changes, %d up, %d by a call, %d of them up", s.LimitChanges, s.LimitRaised, s.LimitCalled, s.LimitCalledUp)
	}
}
