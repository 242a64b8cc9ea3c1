package attempts

import "time"

// A Throttle keeps calls at home that the server would most likely refuse, with the
// probability
//
//	max(0, (requests - K x accepts) / (requests + 1))
//
// over the last Window (Google, "Site Reliability Engineering", chapter 21, "Client-Side
// Throttling": K = 2 over two minutes). It is not safe for concurrent use.
type Throttle struct {
	K      float64 // above 1: how many calls are sent for each that is accepted
	Window time.Duration
}

// Refuses reports whether the call at now is kept at home, draw being uniform in
// [0, 1), and counts it.
func (t *Throttle) Refuses(now time.Duration, draw float64) bool { panic("not built") }

// Accepted counts that the server did not refuse a call that was sent.
func (t *Throttle) Accepted(now time.Duration) { panic("not built") }

// Chance returns the probability in force at now.
func (t *Throttle) Chance(now time.Duration) float64 { panic("not built") }
