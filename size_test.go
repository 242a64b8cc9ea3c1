package goodput

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Sizes that turn out to predict how long work takes decide who gives way: a long one that
// waits is displaced by two short ones, and a newcomer that would make them late is told at once. Those
// that are corrected at the end are judged by what was said at the door.
func TestLongWorkGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(1), Objective: time.Second})
		take := func(size, actual int) {
			slot, err := l.AcquireWork(context.Background(), Work{Size: size})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(actual) * time.Millisecond)
			slot.SetSize(actual)
			slot.Release()
		}
		for i := range 60 {
			take(2+2*i, 1+i) // what is said is twice what is true
		}
		d := l.Stats().Derivation
		if got := d.String(); !strings.Contains(got, "sizes are trusted: 0s + 500µs a unit") {
			t.Fatalf("%s", got)
		}
		running := mustAcquire(t, l)
		wait := func(size int, left time.Duration) chan error {
			ctx, cancel := context.WithTimeout(context.Background(), left)
			done := make(chan error, 1)
			go func() {
				defer cancel()
				slot, err := l.AcquireWork(ctx, Work{Size: size})
				if err == nil {
					time.Sleep(time.Duration(size) * time.Millisecond / 2)
					slot.Release()
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		const left = 200 * time.Millisecond
		long, short, second := wait(300, left), wait(60, left), wait(80, left) // 150 + 30 ms, and 40 more do not fit
		var r *Rejection
		if err := <-long; !errors.As(err, &r) || r.Reason != Displaced || r.Knob() != sizeKnob || !strings.Contains(err.Error(), "gave its place to a shorter request,") {
			t.Errorf("the longest: %v by %s, want displaced by its size", err, r.Knob())
		}
		// 140 ms would be in time, being due first, but then 30 and 40 would not.
		err := <-wait(280, 190*time.Millisecond)
		if !errors.As(err, &r) || r.Reason != NoBudget || !strings.Contains(err.Error(), "within its deadline together with others that take less;") {
			t.Errorf("one in the way of others: %v", err)
		}
		running.Release()
		for _, done := range []chan error{short, second} {
			if err := <-done; err != nil {
				t.Errorf("a short one: %v", err)
			}
		}
	})
}
