package live

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// counted has some of every counter that rates are of, n times.
func counted(n uint64) *goodput.Stats {
	s := &goodput.Stats{}
	s.Arrivals, s.Immediate, s.Dequeued = 100*n, 60*n, 20*n
	s.Outcomes[goodput.Completed], s.Outcomes[goodput.Late], s.Outcomes[goodput.Failed] = 50*n, 5*n, 6*n
	s.Outcomes[goodput.Abandoned], s.Outcomes[goodput.Cancelled] = 7*n, 3*n
	s.Outcomes[goodput.Rejected], s.Outcomes[goodput.Expired] = 11*n, 4*n
	s.Refusals[goodput.QueueFull], s.Refusals[goodput.Shed], s.Refusals[goodput.Doomed] = 9*n, 2*n, 4*n
	s.Shadow.Refusals[goodput.NoBudget] = 8 * n
	return s
}

// C136: a rate is over the time that has passed, whether the tick was on time, late since ticks
// were dropped, or early since the one before was late.
func TestRatesAreOverTheTimeThatPassed(t *testing.T) {
	for _, elapsed := range []time.Duration{time.Second, 3700 * time.Millisecond, 300 * time.Millisecond, time.Nanosecond, time.Hour} {
		r := ratesOf(counted(7), counted(10), elapsed)
		per := 3 / elapsed.Seconds()
		for what, c := range map[string]struct{ got, want float64 }{
			"offered": {r.Offered, 100}, "admitted": {r.Admitted, 80}, "throughput": {r.Throughput, 68},
			"goodput": {r.Goodput, 50}, "refused": {r.Refused, 15},
			"late": {r.Outcomes["late"], 5}, "cancelled": {r.Outcomes["cancelled"], 3}, "queue_full": {r.Reasons["queue_full"], 9},
			"doomed": {r.Reasons["doomed"], 4}, "deadline": {r.Reasons["deadline"], 0},
		} {
			if math.Abs(c.got-c.want*per) > 1e-9*c.want*per {
				t.Errorf("in %v: %s %v, want %v", elapsed, what, c.got, c.want*per)
			}
		}
		if len(r.Outcomes) != 7 || len(r.Reasons) != 16 || r.Shadow != nil {
			t.Errorf("%d outcomes, %d reasons, shadow %v", len(r.Outcomes), len(r.Reasons), r.Shadow)
		}
		if r.InTime == nil || *r.InTime != 0.5 {
			t.Errorf("in time: %v", r.InTime)
		}
	}
	observed := counted(2)
	observed.Observe = true
	if r := ratesOf(counted(1), observed, time.Second); r.Shadow["no_budget"] != 8 || r.Reasons["no_budget"] != 0 {
		t.Errorf("observe mode: %v and %v", r.Shadow, r.Reasons)
	}
}

// Nothing is below zero or without end: not of counters that fell, not in no time, and the
// share of a tick in which more ended than arrived is 1; without arrivals there is none.
func TestRatesAreNeverNegative(t *testing.T) {
	backlog := counted(1)
	backlog.Outcomes[goodput.Completed] = 1000
	idle := counted(1)
	idle.Outcomes[goodput.Completed]++
	for name, c := range map[string]struct {
		was, is *goodput.Stats
		elapsed time.Duration
		inTime  *float64
	}{
		"fell":       {counted(9), counted(2), time.Second, nil},
		"no time":    {counted(2), counted(9), 0, nil},
		"backwards":  {counted(2), counted(9), -time.Second, nil},
		"backlog":    {counted(0), backlog, time.Second, new(1.0)},
		"no arrival": {counted(1), idle, time.Second, nil},
	} {
		r := ratesOf(c.was, c.is, c.elapsed)
		all := []float64{r.Offered, r.Admitted, r.Throughput, r.Goodput, r.Refused}
		for _, m := range []map[string]float64{r.Outcomes, r.Reasons} {
			for _, v := range m {
				all = append(all, v)
			}
		}
		for _, v := range all {
			if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
				t.Errorf("%s: %v in %+v", name, v, r)
			}
		}
		if (r.InTime == nil) != (c.inTime == nil) || r.InTime != nil && *r.InTime != *c.inTime {
			t.Errorf("%s: in time %v", name, r.InTime)
		}
	}
}

// C136: a busy machine, on which the sampler is held up for 0 to 4 s after each tick, so that
// most ticks are dropped, shows the known rate of 1000/s. On the clock of the bubble the only
// error is the request that is between two ticks: 1 of 1000.
func TestDroppedTicksDoNotChangeTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(9)})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() {
			for ctx.Err() == nil {
				if slot, err := lim.Acquire(ctx); err == nil {
					slot.Release()
				}
				time.Sleep(time.Millisecond)
			}
		})
		h := New(Config{Limiters: func() []*goodput.Limiter { return []*goodput.Limiter{lim} }, Scene: func() any { return nil }})
		busy := []time.Duration{0, 700, 3300, 0, 4000, 1999, 100}
		h.cfg.Scene = func() any {
			time.Sleep(busy[int(h.number)%len(busy)] * time.Millisecond)
			return nil
		}
		all.Go(func() { h.Run(ctx) })
		dropped := 0
		for seen := uint64(1); seen < 20; {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			h.mu.Lock()
			f := h.latest
			h.mu.Unlock()
			if f == nil || f.tick.Number == seen {
				continue
			}
			seen = f.tick.Number
			if f.tick.ElapsedSeconds > 1.5 {
				dropped++
			}
			if r := f.tick.Limiters[0].Rates; math.Abs(r.Offered-1000) > 50 || math.Abs(r.Goodput-1000) > 50 {
				t.Errorf("tick %d after %v s: %v/s offered, %v/s goodput", seen, f.tick.ElapsedSeconds, r.Offered, r.Goodput)
			}
		}
		if dropped < 5 {
			t.Errorf("only %d of 20 ticks were late: nothing is shown", dropped)
		}
	})
}
