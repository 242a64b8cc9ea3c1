package admission

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What broke in other systems, as far as it concerns decisions. Named after the
// cases in the collection; those that need goroutines are tests of the runtime.

// A release needs nothing from outside and cannot fail. (C001)
func TestC001ReleaseCannotFail(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(4), Depth: NoQueue})
	for range 100 {
		for range 4 {
			if c.Offer(0, Request{Deadline: Never}).Verdict != Admitted {
				t.Fatal("a free slot was refused")
			}
		}
		if err := c.SetLimit(0, -1); err == nil { // the source of the limit fails
			t.Fatal("limit -1 was accepted")
		}
		for range 4 {
			c.Release(0, End{Outcome: Completed})
		}
	}
	if s := c.Stats(0); s.InUse != 0 || s.Limit != 4 {
		t.Errorf("%d of %d in use", s.InUse, s.Limit)
	}
}

// A hundred thousand refusals leave nothing behind. (C012)
func TestC012RefusalsLeaveNothing(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 2, MaxBytes: 100})
	c.Offer(0, Request{Deadline: Never})
	a := c.Offer(0, Request{Deadline: Never, Bytes: 60}).Waiter
	before := c.Stats(0)
	for range 100_000 {
		if c.Offer(0, Request{Deadline: Never, Bytes: 50}).Verdict != Refused {
			t.Fatal("admitted")
		}
	}
	after := c.Stats(0)
	if after.Waiting != before.Waiting || after.WaitingBytes != before.WaitingBytes || len(c.decided) != 0 || cap(c.victims) > 8 {
		t.Errorf("%+v\nwas %+v", after, before)
	}
	c.Cancel(0, a, Client)
	if s := c.Stats(0); s.Waiting != 0 || s.WaitingBytes != 0 {
		t.Errorf("%d wait with %d bytes", s.Waiting, s.WaitingBytes)
	}
}

// A waiter is granted a slot, and cancelled before its driver has heard of it: the
// driver sees Admitted, gives the slot back, and the next one gets it. (C021)
func TestC021CancelAfterGrantPassesOn(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 5})
	c.Offer(0, Request{Deadline: Never})
	a := c.Offer(0, Request{Deadline: Never}).Waiter
	b := c.Offer(0, Request{Deadline: Never}).Waiter
	c.Release(0, End{Outcome: Completed})
	if !c.Cancel(0, a, Client) || a.Verdict() != Admitted {
		t.Fatalf("cancelled after the grant: %v", a.Verdict())
	}
	c.Release(0, End{Outcome: Abandoned})
	if b.Verdict() != Admitted {
		t.Error("the slot vanished")
	}
	c.Release(0, End{Outcome: Completed})
	if s := c.Stats(0); s.InUse != 0 || s.Refusals[Client] != 0 || s.Outcomes[Abandoned] != 1 {
		t.Errorf("%+v", s)
	}
}

// Newcomers in a closed loop do not overtake a patient waiter. (C022)
func TestC022NoOvertaking(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(2), Depth: 60, Objective: time.Minute})
	for range 52 { // 2 run, 50 wait
		c.Offer(0, Request{Deadline: Never})
	}
	patient := c.Offer(0, Request{Deadline: Never}).Waiter
	releases := 0
	for patient.Verdict() == Queued {
		c.Release(0, End{Outcome: Completed})
		c.Offer(0, Request{Deadline: Never})
		releases++
	}
	if releases != 51 {
		t.Errorf("served after %d releases, 50 were before it", releases)
	}
}

// A limit that moves at random never over-admits and never stalls. (C027)
func TestC027LimitMoves(t *testing.T) {
	const seed = 27
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := benchCore(t, Config{Limit: limit.Fixed(6), Depth: 200})
	running, granted := 0, 0
	count := func() {
		for w := c.Next(); w != nil; w = c.Next() {
			running++
			granted++
		}
	}
	for range 5 {
		c.Offer(0, Request{Deadline: Never})
		running++
	}
	for range 10_000 {
		n := []int{2, 4, 0, 6}[rng.IntN(4)]
		before := running
		if err := c.SetLimit(0, n); err != nil {
			t.Fatal(err)
		}
		count()
		if running > max(n, before) || running < n && c.waiting > 0 {
			t.Fatalf("%d run at a limit of %d, %d before, %d waiting", running, n, before, c.waiting)
		}
		if running > 0 && rng.IntN(2) == 0 {
			running--
			c.Release(0, End{Outcome: Completed})
			count()
		}
		if c.waiting < 100 {
			if c.Offer(0, Request{Deadline: Never}).Verdict == Admitted {
				running++
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if granted < 1000 {
		t.Errorf("only %d were granted", granted)
	}
}
