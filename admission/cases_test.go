package admission

import (
	"math/rand/v2"
	"slices"
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

// Four cases are one story, of deadlines and clocks.
const deadlineStory = "testdata/deadline.txt"

// golang/go#63615: what was over already was admitted when a slot happened to be
// free. (C017)
func TestC017OverOnArrivalIsNeverAdmitted(t *testing.T) { checkStory(t, deadlineStory) }

// grpc-ecosystem/grpc-gateway#7382, grpc/grpc-go#2379: the longest legal timeout
// overflowed and became a deadline in the past. (C048)
func TestC048FarDeadlineDoesNotOverflow(t *testing.T) { checkStory(t, deadlineStory) }

// grpc/grpc-java#6514: calls that began late showed negative waits. (C056)
func TestC056ExpiredOnArrival(t *testing.T) { checkStory(t, deadlineStory) }

// ProfessionalWiki/MediaWiki-MCP-Server#557, #568: durations broke on steps of the
// clock. (C058)
func TestC058ClockThatGoesBack(t *testing.T) { checkStory(t, deadlineStory) }

// nuetzliches/hookaido#239: each reload of an unchanged configuration refilled all
// allowances, and frequent reloads removed the limit. Here a reload each second
// under three times the load changes nothing: whoever comes is told the same at
// the same instant, and every number is the same in the end. A reload between two
// windows derives anew from the same samples, so a digit of the arithmetic may be
// younger, and nothing else. (C093)
func TestC093ReloadingChangesNothing(t *testing.T) {
	for _, seed := range runsOf() {
		type fate struct {
			arrival, end time.Duration
			refused      Reason
		}
		play := func(every time.Duration) (fates []fate, s Stats) {
			l := flagship(3, 2*time.Second, seed)
			l.tune = func(w *world) {
				done, each, next := w.done, w.each, every
				w.done = func(j *job) { fates = append(fates, fate{j.arrival, j.end, j.refused}); done(j) }
				w.each = func() {
					for ; every > 0 && w.now >= next; next += every {
						if err := w.core.Reconfigure(w.now, l.config); err != nil {
							t.Fatal(err)
						}
						w.collect()
					}
					each()
				}
			}
			l.config.Limit, l.config.Objective = limit.Fixed(l.slots), 400*ms
			r := l.run(t)
			return fates, r.core.Stats(r.core.now)
		}
		once, a := play(0)
		for _, every := range []time.Duration{time.Second, 1013 * ms} { // with the windows, and between them
			again, b := play(every)
			if every%(50*ms) != 0 {
				b.Derivation = a.Derivation
			}
			for i := range min(len(once), len(again)) {
				if once[i] != again[i] {
					t.Fatalf("seed %d, every %v: the %d-th told was %+v, with reloads %+v", seed, every, i, once[i], again[i])
				}
			}
			if !slices.Equal(once, again) || a != b {
				t.Errorf("seed %d, every %v: %d told and %+v\nwith reloads %d and %+v", seed, every, len(once), a, len(again), b)
			}
		}
		if a.Refusals[QueueFull] < 1000 {
			t.Errorf("seed %d: refusals %v: that was no overload", seed, a.Refusals)
		}
	}
}
