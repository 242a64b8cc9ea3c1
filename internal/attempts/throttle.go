package attempts

import (
	"math"
	"time"
)

// MostKept is the highest chance with which a Throttle keeps a call at home: one in ten
// goes out whatever was refused before.
//
// The formula alone leaves 1 of requests + 1, which is one probe per window for a
// client that is fully refused, at any rate; from there the number of accepts can only
// multiply by e^2 per window, so that at 100/s and a window of 120 s a server that has
// recovered is back to its traffic after five to six windows: 600 s and more. With one
// in ten, and each probe accepted, the accepts reach a twentieth of the requests in half
// a window, which is where 2 x accepts is that tenth, and grow by e^2 per window from
// there: 0.5 + ln(10)/2 = 1.65 windows, 1.8 with the steps of the buckets, at any rate.
// TestThrottleRecovery shows both.
const MostKept = 0.9

// Fewest is how many calls the window must have before one is kept at home. Of fewer than
// ten, one in ten that goes out is less than one in all, so nothing would be learned from
// them; and the formula would judge by single refusals: after the first one of a fresh
// client, 1/2, and half of the retries of a server that was busy for a moment would stay at
// home. Ten refusals per window cost a server nothing.
const Fewest = 10

// A Throttle keeps calls at home that the server would most likely refuse, with the
// probability
//
//	p = (requests - K x accepts) / (requests + 1), 0 at least, MostKept at most
//
// over the last Window, and 0 while that has fewer than Fewest requests (Google, "Site Reliability Engineering", chapter 21, "Client-Side
// Throttling"). requests are the calls that were kept at home and those that were
// answered; accepts are those that the server did not refuse. A call that runs counts
// once its end is known: counted at its start, as the book has it, the first calls to a
// slow server would be kept at home because none of them has been accepted yet.
//
// Once the latest two buckets have 100 calls, the same is computed of them alone, and two
// standard deviations are added unless it is 0, so that luck does not lower it. The smaller
// of the two counts. A server that has recovered takes all that it is sent, and a third of
// a Window later (1.65 times two tenths) no more than that margin is kept for what was
// before. Over all of the Window alone a stall of half of it, at K = 2, keeps calls for
// another half, and a longer one for 1.65 windows, of a server that would take them.
//
// So a server that accepts A calls per second is sent K x A of them, for the others cost
// it what a refusal costs, and one that accepts none is sent a tenth. After an idle
// Window all is forgotten, and p is 0: of the calls that come then the first Fewest go out,
// and one in ten of the others if all of those were refused.
//
// It is not safe for concurrent use.
type Throttle struct {
	K      float64       // above 1: how many calls are sent for each that is accepted
	Window time.Duration // how long a call counts, in ten buckets: above 0

	window window // of requests and accepts
}

// The kind that the window of a Throttle counts beside requested.
const accepted = 1

// Refuses reports whether the call at now is kept at home, draw being uniform in
// [0, 1), and counts it if so. A call that is not is followed by Accepted or Refused,
// or by neither if nobody will know what became of it.
func (t *Throttle) Refuses(now time.Duration, draw float64) bool {
	if draw >= t.Chance(now) {
		return false
	}
	t.window.add(now, t.Window, requested)
	return true
}

// Accepted counts a call that was sent and that the server did not refuse.
func (t *Throttle) Accepted(now time.Duration) {
	t.window.add(now, t.Window, requested)
	t.window.add(now, t.Window, accepted)
}

// Refused counts a call that was sent and that the server refused.
func (t *Throttle) Refused(now time.Duration) { t.window.add(now, t.Window, requested) }

// recent is how many calls the latest two buckets need to be judged by themselves.
const recent = 100

// Chance returns the probability in force at now.
func (t *Throttle) Chance(now time.Duration) float64 {
	requests, accepts := t.Counts(now)
	p := Chance(t.K, requests, accepts)
	if p == 0 {
		return 0
	}
	w := &t.window
	last, before := &w.counts[place(w.latest)], &w.counts[place(w.latest-1)]
	if n := last[requested] + before[requested]; n >= recent {
		q := Chance(t.K, n, last[accepted]+before[accepted])
		if q > 0 {
			q += t.K / math.Sqrt(float64(n)) // two standard deviations at most: 2 K sqrt(.25/n)
		}
		p = min(p, q)
	}
	return p
}

// Chance is the formula of a Throttle for so many requests and accepts.
func Chance(k float64, requests, accepts uint64) float64 {
	if requests < Fewest {
		return 0
	}
	return min(max(0, (float64(requests)-k*float64(accepts))/float64(requests+1)), MostKept)
}

// Counts returns what the window has at now; accepts <= requests.
func (t *Throttle) Counts(now time.Duration) (requests, accepts uint64) {
	t.window.advance(now, t.Window)
	return t.window.sums[requested], t.window.sums[accepted]
}
