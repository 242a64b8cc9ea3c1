package load

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A service that answers after 3 s to callers who leave after 1 s: of 320 who leave, 20 are
// left on the wire, and all 20 are answered late. The others are told off at the deadline.
func TestFollowSeesLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Plan{Rate: 320, Duration: time.Second, Constant: true, Deadline: time.Second, Follow: 5 * time.Second}
		var mu sync.Mutex
		cancelled := 0
		start := time.Now()
		r := offer(t, p, func(ctx context.Context) Answer {
			a := answerAfter(3 * time.Second)(ctx)
			if a.Err != nil {
				mu.Lock()
				cancelled++
				mu.Unlock()
			}
			return a
		})
		if want := (Followed{Asked: 20, Served: 20}); r.Followed != want || r.TimedOut != 320 || cancelled != 300 {
			t.Errorf("%+v of %d, %d cancelled, want %+v of 320, 300 cancelled", r.Followed, r.TimedOut, cancelled, want)
		}
		if r.Completed != 0 || len(r.Status) != 0 {
			t.Errorf("completed %d, status %v: they have left", r.Completed, r.Status)
		}
		if took := time.Since(start); took > p.Duration+3*time.Second {
			t.Errorf("took %v, but the last answer came after 4 s", took)
		}
	})
}

// One that never answers is waited for as long as was said, and no more than 64 are at once.
func TestFollowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Plan{Rate: 2000, Duration: 2 * time.Second, Constant: true, Deadline: 500 * time.Millisecond, Follow: time.Minute}
		start := time.Now()
		r := offer(t, p, answerAfter(time.Hour))
		if want := (Followed{Asked: maxFollowed, Never: maxFollowed}); r.Followed != want || r.TimedOut != 4000 {
			t.Errorf("%+v of %d, want %+v of 4000", r.Followed, r.TimedOut, want)
		}
		if took, most := time.Since(start), p.Duration+p.Deadline+p.Follow+reapEvery; took > most {
			t.Errorf("took %v, more than %v", took, most)
		}
	})
}

// Who is followed is in flight no more: there is room for others.
func TestFollowedAreNotInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Plan{Rate: 10, Duration: 10 * time.Second, Constant: true, Deadline: 150 * time.Millisecond, Follow: time.Minute, MaxInFlight: 2}
		g, err := New(p, answerAfter(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(13 * time.Second)
			if l := g.Live(); l.InFlight != 0 || l.TimedOut != 100 {
				t.Errorf("%d in flight and %d timed out, when all have left", l.InFlight, l.TimedOut)
			}
		}()
		r := g.Run(t.Context())
		balanced(t, r)
		if r.Dropped != 0 || r.Followed.Asked != 7 { // the 1st, 17th, ... 97th
			t.Errorf("dropped %d, followed %+v", r.Dropped, r.Followed)
		}
	})
}

func TestInterruptedRunLeavesTheFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		p := Plan{Rate: 100, Duration: time.Second, Constant: true, Deadline: time.Second, Follow: time.Hour}
		start := time.Now()
		g, err := New(p, answerAfter(2*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		r := g.Run(ctx)
		balanced(t, r)
		if took := time.Since(start); took != 3*time.Second || r.Followed.Never != 7 || r.TimedOut != 100 {
			t.Errorf("took %v, followed %+v, timed out %d", took, r.Followed, r.TimedOut)
		}
	})
}

// Who waits to try again when the run is interrupted has the answer that it had.
func TestInterruptedBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		p := constant(10, time.Second)
		p.Attempts, p.Backoff = 3, func(int, Answer) time.Duration { return 20 * time.Second }
		start := time.Now()
		g, err := New(p, func(context.Context) Answer { return Answer{Status: 503, Reason: "queue_full"} })
		if err != nil {
			t.Fatal(err)
		}
		r := g.Run(ctx)
		balanced(t, r)
		if took := time.Since(start); took != 5*time.Second || r.Refused != 10 || r.Attempts != 10 || !r.Interrupted {
			t.Errorf("took %v, refused %d, %d attempts, interrupted %v", took, r.Refused, r.Attempts, r.Interrupted)
		}
	})
}
