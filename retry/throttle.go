package retry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goodput/goodput/internal/attempts"
)

// Defaults and ranges of a Throttle.
const (
	defaultK = 2 // SRE, chapter 21: the server hears of it when it could take more, at the cost of one refusal per answer
	leastK   = 1.1
	mostK    = 100
)

// ErrThrottled is matched by every *Throttled.
var ErrThrottled = errors.New("retry: kept at home")

// A Throttle keeps calls at home that the server would most likely refuse, so that a
// client that is refused stops costing the server. A call is kept with the chance
//
//	(requests - K x accepts) / (requests + 1), 0 to 0.9; 0 below 10 requests
//
// over the last Window: requests are the calls that were answered and those that were
// kept, accepts those that the server did not refuse (Google, "Site Reliability
// Engineering", chapter 21, "Client-Side Throttling"). If the last fifth of the Window went
// better, the chance of that fifth counts.
//
// A server that accepts A calls per second is sent K x A. One that accepts none is sent
// one in ten, which is how its recovery is noticed. However long the outage was, a third
// of a Window after its end, 3 s, hardly anything is kept of a client that makes 50 calls
// per second or more, and 1.8 windows after it nothing of any. With the two minutes and the
// formula of the book alone that would be ten minutes at 100 calls per second. An outage
// shorter than half a window is not noticed at all.
//
// With fewer than 10 requests in the window nothing is kept: a client that has just begun,
// was idle for a window, or makes less than a call per second, is not judged by single
// refusals, of which the formula alone would keep half of what follows at home.
//
// The zero value is ready to use. It is safe for concurrent use, belongs to one
// dependency, and out of range it panics with the sentence of Validate.
//
//	if t.Refuses() {
//		return t.Err()
//	}
//	err := send()
//	switch {
//	case shed(err):
//		t.Refused()
//	case err == nil:
//		t.Accepted()
//	}
type Throttle struct {
	K      float64       // calls sent for each that is accepted: 1.1 to 100, default 2
	Window time.Duration // how long a call counts: 1 s to 10 min, default 10 s

	mu                      sync.Mutex
	core                    attempts.Throttle
	epoch                   time.Time
	draw                    func() float64 // of tests
	kept, accepted, refused uint64
}

// Validate returns one sentence about the first field that is out of range, or nil.
func (t *Throttle) Validate() error {
	if t.K != 0 && !(t.K >= leastK && t.K <= mostK) { // NaN too
		return fmt.Errorf("retry: Throttle.K is %v, want %v to %v", t.K, leastK, mostK)
	}
	return checkWindow("Throttle", t.Window)
}

// enter locks t and returns the time for its core, which it makes at first.
func (t *Throttle) enter() time.Duration {
	t.mu.Lock()
	if t.epoch.IsZero() {
		if err := t.Validate(); err != nil {
			t.mu.Unlock()
			panic(err.Error())
		}
		t.core = attempts.Throttle{K: t.K, Window: t.Window}
		if t.core.K == 0 {
			t.core.K = defaultK
		}
		if t.core.Window == 0 {
			t.core.Window = defaultWindow
		}
		if t.draw == nil {
			t.draw = rand.Float64
		}
		t.epoch = time.Now()
	}
	return time.Since(t.epoch)
}

// Refuses reports whether this call is kept at home. One that is not is followed by
// Accepted or Refused once it is known which, or by neither: a call whose caller left
// says nothing about the server.
func (t *Throttle) Refuses() bool {
	now := t.enter()
	defer t.mu.Unlock()
	if !t.core.Refuses(now, t.draw()) {
		return false
	}
	t.kept++
	return true
}

// Accepted counts that the server did not refuse a call: any answer that is no refusal,
// an error too.
func (t *Throttle) Accepted() {
	now := t.enter()
	defer t.mu.Unlock()
	t.core.Accepted(now)
	t.accepted++
}

// Refused counts that the server refused a call for load (Fault.Shed), or that there
// was no answer although the caller stayed.
func (t *Throttle) Refused() {
	now := t.enter()
	defer t.mu.Unlock()
	t.core.Refused(now)
	t.refused++
}

// ThrottleStats is what a Throttle shows of itself. Kept, Accepted and Refused only grow.
type ThrottleStats struct {
	K      float64
	Window time.Duration

	Requests uint64  // in the window: answered or kept
	Accepts  uint64  // in the window
	Chance   float64 // with which the next call is kept: 0 to 0.9

	Kept     uint64 // calls since the start
	Accepted uint64
	Refused  uint64
}

// Stats returns the state of t.
func (t *Throttle) Stats() ThrottleStats {
	now := t.enter()
	defer t.mu.Unlock()
	s := ThrottleStats{
		K: t.core.K, Window: t.core.Window, Chance: t.core.Chance(now),
		Kept: t.kept, Accepted: t.accepted, Refused: t.refused,
	}
	s.Requests, s.Accepts = t.core.Counts(now)
	return s
}

// String returns the arithmetic.
func (s ThrottleStats) String() string {
	all := attempts.Chance(s.K, s.Requests, s.Accepts)
	if s.Requests < attempts.Fewest {
		return fmt.Sprintf("%d of %d calls in %v were accepted: nothing is kept while there are fewer than %d", s.Accepts, s.Requests, s.Window, attempts.Fewest)
	}
	text := fmt.Sprintf("%d of %d calls in %v were accepted: chance max(0, min(%v, (%d - %.6g x %d) / %d)) = %.3f to be kept",
		s.Accepts, s.Requests, s.Window, attempts.MostKept, s.Requests, s.K, s.Accepts, s.Requests+1, all)
	if s.Chance < all {
		text += fmt.Sprintf(", %.3f because the latest of them did better", s.Chance)
	}
	return text
}

// Err returns the error of a call that Refuses has kept.
func (t *Throttle) Err() error { return &Throttled{t.Stats()} }

// A Throttled is a call that was kept at home: it was not sent. Do does not try it
// again. errors.Is: ErrThrottled.
type Throttled struct {
	ThrottleStats
}

// Error returns one sentence with the numbers that decided.
func (e *Throttled) Error() string {
	return "retry: kept at home, because the server refuses too many: " + e.String()
}

// Is makes errors.Is match ErrThrottled.
func (e *Throttled) Is(target error) bool { return target == ErrThrottled }
