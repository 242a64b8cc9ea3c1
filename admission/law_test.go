package admission

import (
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A held law is not asked and its limit stays, whatever happens; afterwards it goes on, and is told
// nothing of what came, ran and failed in between, nor of what began then and ends later.
func TestHeldLawGoesOnWithWhatItKnew(t *testing.T) {
	var told limit.Window
	times := 0
	c, err := New(Config{Limit: listener{&told, &times}, Objective: 800 * ms, Order: FIFO})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(0); !s.LimitSearch || s.LimitHeld {
		t.Errorf("at first: searches %v, held %v", s.LimitSearch, s.LimitHeld)
	}
	var b Batch
	c.Observe(100*ms, &b)
	began := c.Epoch()
	c.Offer(110*ms, Request{Deadline: Never})
	c.Hold(150*ms, true)
	c.Hold(160*ms, true) // the same again changes nothing
	for at := 200 * ms; at <= 5000*ms; at += 100 * ms {
		d := c.Offer(at, Request{Deadline: Never, NoWait: true})
		b.AddSample(Sample{Service: 10 * time.Second, Hold: 10 * time.Second, Cost: 1, Epoch: began, Dropped: true})
		c.Observe(at, &b)
		b.Reset()
		if d.Verdict == Admitted && at < 4000*ms {
			c.Release(at, End{Outcome: Failed})
		}
	}
	if s := c.Stats(5000 * ms); times != 1 || s.Limit != 3 || !s.LimitHeld || s.LimitSearch || s.Dropped != 49 || s.LimitAsked != 4900*ms {
		t.Errorf("asked %d times, last %v ago; limit %d, held %v, searches %v, %d dropped",
			times, s.LimitAsked, s.Limit, s.LimitHeld, s.LimitSearch, s.Dropped)
	}
	running := c.Stats(5000 * ms).Running
	c.Hold(5050*ms, false)
	after := c.Epoch()
	c.Release(5060*ms, End{Outcome: Completed}) // what was held
	b.AddSample(Sample{Service: 4 * time.Second, Hold: 4 * time.Second, Cost: 1, Epoch: began})
	c.Offer(5070*ms, Request{Deadline: Never})
	c.Release(5090*ms, End{Outcome: Completed})
	b.AddSample(Sample{Service: 20 * ms, Hold: 20 * ms, Cost: 1, Epoch: after})
	c.Observe(5100*ms, &b)
	got := told.Epochs[0]
	if times != 2 || told.Length != 50*ms || told.Arrived != 1 || told.Ended != 2 || told.Dropped != 0 || running != 3 {
		t.Errorf("asked %d times, at last with %+v; %d ran", times, told, running)
	}
	if got.Length != 50*ms || got.Admitted != 1 || got.Ended != 1 || got.Mean != 20*ms {
		t.Errorf("the epoch is %+v", got)
	}
}

// Another law that comes while it is held waits where it starts; one that does not move is not held.
func TestAnotherLawIsHeldWhereItStarts(t *testing.T) {
	var told limit.Window
	times := 0
	law := listener{&told, &times}
	c, err := New(Config{Limit: limit.Fixed(1)})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	c.Hold(0, true)
	if s := c.Stats(0); s.LimitHeld {
		t.Error("a number is held")
	}
	if err := c.Reconfigure(0, Config{Limit: law}); err != nil {
		t.Fatal(err)
	}
	c.Observe(100*ms, &b)
	if s := c.Stats(100 * ms); s.Limit != 3 || !s.LimitHeld || s.LimitSearch || times != 0 {
		t.Errorf("limit %d, held %v, searches %v, asked %d times", s.Limit, s.LimitHeld, s.LimitSearch, times)
	}
	if err := c.SetLimit(100*ms, 7); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(100 * ms); s.Limit != 7 || s.LimitHeld {
		t.Errorf("set: limit %d, held %v", s.Limit, s.LimitHeld)
	}
}
