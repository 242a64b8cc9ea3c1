package admission

import (
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A listener is a law of three slots that keeps what it is told, and how often.
type listener struct {
	told  *limit.Window
	times *int
}

func (listener) Start() (int, error)        { return 3, nil }
func (l listener) Begin(uint64) limit.State { return l }
func (listener) Why() string                { return "" }
func (l listener) Next(current int, w *limit.Window) limit.Move {
	*l.told = *w
	*l.times++
	return limit.Move{Limit: current}
}

// A law is not asked while there is nothing to run work on, and what it is told afterwards begins
// with the return: nothing of what came, waited, failed or stood still before.
func TestAbsenceTeachesTheLawNothing(t *testing.T) {
	var told limit.Window
	times := 0
	c, err := New(Config{Limit: listener{&told, &times}, Objective: 800 * ms, Order: FIFO})
	if err != nil {
		t.Fatal(err)
	}
	offer := func(at time.Duration, want Verdict) *Waiter {
		t.Helper()
		d := c.Offer(at, Request{Arrival: at, Deadline: Never, Cost: 1})
		if d.Verdict != want {
			t.Fatalf("at %v: %v, want %v", at, d.Verdict, want)
		}
		return d.Waiter
	}
	var b Batch
	before := c.Epoch()
	for i := range 3 {
		offer(time.Duration(10*i)*ms, Admitted)
	}
	c.Observe(100*ms, &b)
	c.SetPresent(150*ms, false)
	first := offer(160*ms, Queued)
	offer(170*ms, Queued)
	c.Release(180*ms, End{Cost: 1, Outcome: Failed})
	b.AddSample(Sample{Hold: 180 * ms, Cost: 1, Epoch: before, Dropped: true})
	for at := 200 * ms; at <= 400*ms; at += 100 * ms {
		c.Observe(at, &b)
		b.Reset()
	}
	if s := c.Stats(400 * ms); times != 1 || s.Dropped != 1 || s.LimitAsked != 300*ms || s.InUse != 2 {
		t.Errorf("asked %d times, %d dropped, last %v ago, %d in use", times, s.Dropped, s.LimitAsked, s.InUse)
	}
	c.SetPresent(450*ms, true)
	if w := c.Next(); w != first || c.Next() != nil {
		t.Errorf("%v got the slot", w)
	}
	after := c.Epoch()
	c.Release(460*ms, End{Cost: 1, Outcome: Completed})
	b.AddSample(Sample{Service: 450 * ms, Hold: 450 * ms, Cost: 1, Epoch: before})
	c.Release(480*ms, End{Cost: 1, Outcome: Completed})
	b.AddSample(Sample{Service: 30 * ms, Hold: 30 * ms, Cost: 1, Epoch: after})
	c.Observe(500*ms, &b)
	got, old := told.Epochs[0], told.Epochs[1]
	if times != 2 || told.Length != 50*ms || told.Arrived != 0 || told.Delayed != 0 || told.Ended != 2 || told.Dropped != 0 || told.Quiet != 20*ms {
		t.Errorf("asked %d times, at last with %+v", times, told)
	}
	// The slot of the first that waited and, at 460 ms, that of the second; of the ends the one
	// that began after the return.
	if got.Length != 50*ms || got.Admitted != 2 || got.Arrived != 0 || got.Delayed != 0 || got.Ended != 1 || got.Samples != 1 || got.Mean != 30*ms {
		t.Errorf("the epoch is %+v", got)
	}
	if old.Length != 0 || old.Admitted != 0 {
		t.Errorf("the one before it is %+v", old)
	}
}

// A member of a group borrows nothing from the others for work that it cannot run.
func TestAbsentMemberWantsNothing(t *testing.T) {
	c, err := New(Config{Limit: Granted{}, Objective: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var s Stake
	s.Take(0, c, Terms{Limit: 1, Nominal: 4})
	c.SetPresent(0, false)
	for range 3 {
		c.Offer(0, Request{Deadline: Never, Cost: 1})
	}
	c.Offer(0, Request{Deadline: Never, Cost: 1, NoWait: true})
	if claim := s.Look(0, c); claim.Wanted != 0 || claim.InUse != 0 || c.waiting != 3 {
		t.Errorf("%d wait, %+v", c.waiting, claim)
	}
	c.SetPresent(0, true)
	if claim := s.Look(0, c); claim.Wanted != 3 || claim.InUse != 1 {
		t.Errorf("%+v", claim)
	}
}
