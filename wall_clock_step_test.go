package goodput

import (
	"context"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/goodput/goodput/limit"
)

// A wall-clock step: NTP or an operator sets the clock, forwards or backwards by an hour, while
// requests run and wait. No decision, no deadline and no queue changes, since instants are
// monotonic here. Where the time of the wall is read, and what a step does there:
//
//   - A deadline that is an instant of the wall, in a header or in Work.Deadline, is turned into
//     the time that is left once, at the door. A step before that makes it wrong by the step,
//     as the clock of the sender that is wrong does; one after it changes nothing
//     (TestWallClockStepOfHeaders_C058 in package goodputhttp).
//   - Cohorts take turns with the hour of the wall, so after a step of an hour it is another's
//     turn to be shed first. That is meant: all instances agree on it without being told.
//   - Access log and trace stamp arrivals by the wall, and say how long each took by the
//     monotonic clock. A step is a gap in them, or lines out of order, and replay says so.

// C058: a slot is held and three wait with deadlines when the clock is stepped; a fourth comes
// after it. Nobody is told no, and they are served by their deadlines, of which the fourth is
// between two others: a step of an hour would move it before or behind both. What the core heard
// of deadlines is what is left of them.
func TestWallClockStepChangesNoQueue_C058(t *testing.T) {
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		l := New(Config{Limit: limit.Fixed(1), Depth: 10, Order: EDF, MaxWait: 24 * time.Hour})
		heard := map[time.Duration]int{} // left at the offer, in whole minutes
		now := l.enter()
		l.journal = func(c call) { // under the lock
			if c.op == "offer" {
				heard[(c.request.Deadline-c.now).Round(time.Minute)]++
			}
		}
		l.leave(now)
		held := mustAcquire(t, l)
		served := make(chan time.Duration)
		wait := func(left time.Duration, of func(time.Time) time.Time) {
			before := l.Stats().Arrivals
			deadline := of(time.Now().Add(left))
			go func() {
				slot, err := l.AcquireWork(context.Background(), Work{Deadline: deadline})
				if err != nil {
					t.Errorf("a step of %v: a deadline in %v: %v", step, left, err)
				}
				served <- left
				slot.Release()
			}()
			for l.Stats().Arrivals == before { // who is refused has arrived, too
				runtime.Gosched()
			}
		}
		ofWall := func(at time.Time) time.Time { return at.Round(0) } // strips the monotonic reading
		wait(40*time.Minute, ofWall)
		wait(20*time.Minute, func(at time.Time) time.Time { return at })
		wait(50*time.Minute, ofWall)
		l.mu.Lock()
		stepWall(t, &l.epoch, -step) // everything since is step later by the wall
		l.mu.Unlock()
		wait(30*time.Minute, ofWall)
		if n := l.Stats().Waiting; n != 4 {
			t.Errorf("a step of %v: %d of 4 wait", step, n)
		}
		held.Release()
		for _, want := range []time.Duration{20 * time.Minute, 30 * time.Minute, 40 * time.Minute, 50 * time.Minute} {
			if got := <-served; got != want {
				t.Errorf("a step of %v: who has %v left is served in place of %v", step, got, want)
			}
			if heard[want] != 1 {
				t.Errorf("a step of %v: the core heard %v, want %v once", step, heard, want)
			}
		}
	}
}

// C058: deadlines and arrivals that come as instants of the wall are taken by their distance from
// the clock as it is then, whatever it was when the limiter was made.
func TestWallClockStepBeforeADeadline_C058(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		l := fixed(1, 10)
		stepWall(t, &l.epoch, -step) // everything since is step later by the wall
		if now := l.now(); now < 0 || now > time.Minute {
			t.Errorf("step %v moves the clock of the limiter to %v", step, now)
		}
		// Round(0) strips the monotonic reading, as sending a time does.
		for _, left := range []time.Duration{-2 * time.Second, 2 * time.Minute} {
			deadline := time.Now().Add(left).Round(0)
			// A minute is for a machine that stops between two lines.
			if off := l.instant(deadline) - l.now() - left; off.Abs() > time.Minute {
				t.Errorf("step %v: a deadline in %v is off by %v", step, left, off)
			}
			slot, err := l.AcquireWork(WithArrival(context.Background(), time.Now().Round(0)), Work{Deadline: deadline})
			if (err == nil) != (left > 0) {
				t.Errorf("step %v: a deadline in %v: %v", step, left, err)
			}
			slot.Release()
		}
		if s := l.Stats(); s.Outcomes[Completed] != 1 || s.Refusals[Deadline] != 1 {
			t.Errorf("step %v: outcomes %v", step, s.Outcomes)
		}
		checkEmpty(t, l)
	}
}

// stepWall moves the wall clock of t and leaves its monotonic reading, which no
// method of time.Time does. It relies on the layout of time.Time: the seconds of
// the wall clock begin at bit 30 of its first word.
func stepWall(t *testing.T, at *time.Time, d time.Duration) {
	t.Helper()
	before := *at
	*(*uint64)(unsafe.Pointer(at)) += uint64(int64(d/time.Second) << 30)
	if at.Sub(before) != 0 || at.Unix()-before.Unix() != int64(d/time.Second) {
		t.Skip("time.Time is laid out differently")
	}
}
