package retry

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that takes a call each 50 ms, of 100 per second, is sent 40, within the noise
// of a choice by chance: 60 s of 100 calls, kept with 0.6, have a standard error of
// sqrt(0.24 x 6000)/60 = 0.63/s, and what is sent feeds back into the chance, which
// doubles that at most; where a call goes out less often than it would be taken, and with
// the steps of the window, it is a few per cent more.
func TestThrottleSendsTwiceWhatIsAccepted(t *testing.T) {
	rng := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct{ k, want float64 }{{2, 40}, {1.5, 30}, {4, 80}} {
			th := &Throttle{K: row.k, draw: rng.Float64}
			var free, start time.Time
			sent := 0
			for i := range 9000 {
				if i == 3000 {
					start = time.Now()
				}
				time.Sleep(10 * time.Millisecond)
				if th.Refuses() {
					continue
				}
				if !start.IsZero() {
					sent++
				}
				if now := time.Now(); now.Before(free) {
					th.Refused()
				} else {
					free = free.Add(50 * time.Millisecond)
					if free.Before(now) {
						free = now // it saves up one
					}
					th.Accepted()
				}
			}
			if got := float64(sent) / time.Since(start).Seconds(); math.Abs(got-row.want) > 5 {
				t.Errorf("K %v: sends %.1f/s, want %v within 5", row.k, got, row.want)
			} else {
				t.Logf("K %v: sends %.1f/s", row.k, got)
			}
		}
	})
}

// A call whose end nobody knows counts for nothing, and so do those that run: the first
// ones to a slow server all go out.
func TestThrottleWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := &Throttle{}
		for i := range 1000 {
			if th.Refuses() {
				t.Fatalf("call %d is kept, and nothing was refused", i)
			}
		}
		for range 500 {
			th.Accepted()
		}
		if s := th.Stats(); s.Chance != 0 || s.Requests != 500 || s.Accepts != 500 || s.Accepted != 500 {
			t.Errorf("%+v", s)
		}
	})
}

func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := &Throttle{draw: func() float64 { return 0.8 }}
		for range 99 {
			th.Refused()
		}
		if !th.Refuses() {
			t.Fatal("not kept with a chance of 0.9 and a draw of 0.8")
		}
		err := th.Err()
		var kept *Throttled
		if !errors.Is(err, ErrThrottled) || !errors.As(err, &kept) || kept.Kept != 1 || kept.Chance != 0.9 {
			t.Errorf("%+v", err)
		}
		want := "retry: kept at home, because the server refuses too many: 0 of 100 calls in 10s were accepted: " +
			"chance max(0, min(0.9, (100 - 2 x 0) / 101)) = 0.900 to be kept"
		if err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		time.Sleep(10 * time.Second)
		if th.Refuses() {
			t.Error("kept after an idle window")
		}
		wide := &Throttle{Window: time.Minute, draw: func() float64 { return 0.8 }}
		for range 99 {
			wide.Refused()
		}
		time.Sleep(10 * time.Second)
		if !wide.Refuses() {
			t.Error("Window: forgotten after a sixth of it")
		}
		if strings.Contains((&Throttle{}).Stats().String(), "NaN") {
			t.Error("nothing counted is not a number")
		}
	})
}
