package retry

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that takes a call each 50 ms at most, of 100 per second, is sent K calls for
// each that it takes, within the noise of a choice by chance: if 750 of 6,000 calls are
// sent, at K = 1.5, the standard error is sqrt(0.11 x 6000) = 26, or 3.4 %. Three of them.
func TestThrottleSendsKTimesWhatIsAccepted(t *testing.T) {
	rng := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		for _, k := range []float64{0, 1.5, 4} {
			th := &Throttle{K: k, draw: rng.Float64}
			var free time.Time
			var before ThrottleStats
			for i := range 9000 {
				if i == 3000 {
					before = th.Stats()
				}
				time.Sleep(10 * time.Millisecond)
				switch now := time.Now(); {
				case th.Refuses():
				case now.Before(free):
					th.Refused()
				default:
					free = now.Add(50 * time.Millisecond)
					th.Accepted()
				}
			}
			s := th.Stats()
			took := float64(s.Accepted - before.Accepted)
			sent := took + float64(s.Refused-before.Refused)
			t.Logf("K %v: %v sent for %v that were accepted: x %.3f", s.K, sent, took, sent/took)
			if math.Abs(sent/took-s.K) > 0.1*s.K {
				t.Errorf("K %v: sends %.3f for each, want %v within 10 %%", s.K, sent/took, s.K)
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

// A fresh client keeps nothing at home after nine refusals, and says why.
func TestThrottleOfFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := &Throttle{draw: func() float64 { return 0 }}
		for i := range 10 {
			if th.Refuses() {
				t.Fatalf("kept after %d refusals", i)
			}
			if i == 9 {
				want := "0 of 9 calls in 10s were accepted: nothing is kept while there are fewer than 10"
				if got := th.Stats().String(); got != want {
					t.Errorf("%s\nwant %s", got, want)
				}
			}
			th.Refused()
		}
		if !th.Refuses() {
			t.Error("sent after ten refusals and a draw of 0")
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
		time.Sleep(2 * time.Second)
		for range 100 {
			th.Accepted()
		}
		want = "100 of 200 calls in 10s were accepted: chance max(0, min(0.9, (200 - 2 x 100) / 201)) = 0.000 to be kept"
		if got := th.Stats().String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for range 20 {
			th.Refused()
		}
		want = "100 of 220 calls in 10s were accepted: chance max(0, min(0.9, (220 - 2 x 100) / 221)) = 0.090 to be kept, 0.000 because the latest of them did better"
		if got := th.Stats().String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
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
