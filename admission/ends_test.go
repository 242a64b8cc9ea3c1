package admission

import (
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A teller is a law that keeps what it is told.
type teller struct{ told *limit.Window }

func (teller) Start() (int, error)        { return 1000, nil }
func (t teller) Begin(uint64) limit.State { return t }
func (teller) Why() string                { return "" }
func (t teller) Next(current int, w *limit.Window) limit.Move {
	*t.told = *w
	return limit.Move{Limit: current}
}

// What a law is told of ends adds up with what was admitted, however many of them a driver
// times: all that ended has ended, and of the latest epochs which part.
func TestEndsAddUp(t *testing.T) {
	for _, c := range []struct {
		name          string
		of            int  // one in so many is timed
		lent          bool // the slots are
		drops         int  // of 80, refused by the resource
		detached      int  // of 80, without a sample
		early         bool // samples come a window before their ends
		cost          int
		ended         int
		left, dropped float64
	}{
		{name: "each is timed", of: 1, cost: 1, ended: 80},
		{name: "one in eight", of: 8, cost: 1, ended: 80},
		{name: "one in eight of lent slots", of: 8, lent: true, cost: 1, ended: 80},
		{name: "three units", of: 8, cost: 3, ended: 80},
		{name: "drops", of: 1, drops: 16, cost: 1, ended: 80, dropped: 16},
		{name: "one in eight, and all drops", of: 8, drops: 16, cost: 3, ended: 80, dropped: 48},
		{name: "half is detached", of: 1, detached: 40, cost: 1, ended: 80},
		{name: "all drops", of: 8, drops: 80, cost: 1, ended: 80, dropped: 80},
		{name: "all is detached", of: 1, detached: 80, cost: 1, ended: 80, left: 80},
		{name: "samples come first", of: 1, early: true, cost: 1, ended: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w limit.Window
			core := benchCore(t, Config{Limit: teller{&w}})
			now := 10 * ms
			if c.lent {
				core.Lend()
				core.Settle(now, Settlement{Free: core.limit - 80, Admitted: 80})
			} else {
				for range 80 {
					core.Offer(now, Request{Deadline: Never, Arrival: now, Cost: c.cost})
				}
			}
			now += 10 * ms
			var b Batch
			ends := 0
			for i := range 80 {
				switch {
				case i < c.drops:
					s := Sample{Cost: c.cost, Dropped: true}
					if i%c.of == 0 {
						s.Hold, s.Of = time.Millisecond, c.of
					}
					b.AddSample(s)
				case i < c.drops+c.detached:
				case i%c.of == 0:
					b.AddSample(Sample{Service: 10 * ms, Hold: 10 * ms, Cost: c.cost, Of: c.of})
				}
				ends++
			}
			end := func() {
				if c.lent {
					n := core.Lend()
					core.Settle(now, Settlement{Free: n + ends, Ended: [Outcomes]int64{Completed: int64(ends)}})
					return
				}
				for range ends {
					core.Release(now, End{Outcome: Completed, Cost: c.cost})
				}
			}
			if !c.early {
				end()
			}
			core.Observe(now, &b)
			e := &w.Epochs[0]
			if w.Ended != c.ended || e.Left() != c.left || e.Dropped != c.dropped || e.Ended > e.Admitted {
				t.Errorf("%d ended; of the epoch %v of %v, %v dropped, %v left; want %d, %v, %v",
					w.Ended, e.Ended, e.Admitted, e.Dropped, e.Left(), c.ended, c.dropped, c.left)
			}
			if w.Dropped != c.drops || core.Stats(now).Dropped != uint64(c.drops) {
				t.Errorf("%d dropped in the window, %d in all, want %d", w.Dropped, core.Stats(now).Dropped, c.drops)
			}
			// In the next window eight more come and go, all of them timed: they count as
			// eight, whatever is owed or was never seen.
			before := e.Ended
			now += 10 * ms
			if c.early {
				end()
				before = 80
			}
			b.Reset()
			for range 8 {
				core.Offer(now, Request{Deadline: Never, Arrival: now})
				core.Release(now, End{Outcome: Completed})
				b.Add(ms, ms, 1, 1)
			}
			core.Observe(now, &b)
			if e = &w.Epochs[0]; e.Ended != before+8 {
				t.Errorf("afterwards %v ended, want %v", e.Ended, before+8)
			}
		})
	}
}

// A quiet spell that the driver has seen counts, and the one that the core has.
func TestQuietIsTheLonger(t *testing.T) {
	var w limit.Window
	core := benchCore(t, Config{Limit: teller{&w}})
	core.Offer(0, Request{Deadline: Never})
	core.Offer(0, Request{Deadline: Never})
	core.Release(30*ms, End{Outcome: Completed})
	for _, c := range []struct{ seen, want time.Duration }{{0, 30 * ms}, {20 * ms, 20 * ms}, {90 * ms, 90 * ms}} {
		b := Batch{Quiet: c.seen}
		core.Observe(core.now+10*ms, &b)
		if w.Quiet != c.want {
			t.Errorf("seen %v: %v, want %v", c.seen, w.Quiet, c.want)
		}
	}
}
