package attempts

import "time"

// A Budget bounds how many retries there are: a share of the requests, or a few for a
// client that has hardly any. It is not safe for concurrent use.
//
//	retries <= max(Ratio x requests, Reserve)
//
// It holds at every grant, counted over the last Window. Up to a tenth of that may be
// forgotten: there are ten buckets.
//
// What follows for any longer time T: go backwards from the last grant, window by
// window, each from its own last grant. Those windows do not overlap, have every grant
// in them, and start at least a Window apart, so there are at most T/Window + 1, and
//
//	retries <= Ratio x requests + Reserve x (T/Window + 1)
//
// of which the second part counts only for windows with fewer than Reserve/Ratio
// requests: at 10 per 10 s and a tenth, those below 100 in 9 s. A client above that, of
// 12/s and more, makes at most 1 + Ratio attempts per request; one below adds at most Reserve/Window = 1/s,
// whatever its rate. So a thousand clients that send little add up to 1,000/s in an
// outage: give them a smaller Reserve.
type Budget struct {
	Ratio   float64       // retries per request: 0 to 1
	Reserve int           // retries per window that need no requests: 0 and more
	Window  time.Duration // how long a request counts: above 0

	window window // of requests and retries
}

// The kinds that the window of a Budget counts.
const (
	requested = 0
	retried   = 1
)

// Request counts a first attempt at now.
func (b *Budget) Request(now time.Duration) { b.window.add(now, b.Window, requested) }

// Unsent takes back the latest request, or with again the latest retry, that still counts at
// now: it was not sent. Retries that were granted for such a request meanwhile stay.
func (b *Budget) Unsent(now time.Duration, again bool) {
	kind := requested
	if again {
		kind = retried
	}
	b.window.drop(now, b.Window, kind)
}

// Spend takes one retry at now and reports whether there was one.
func (b *Budget) Spend(now time.Duration) bool {
	if b.Left(now) < 1 {
		return false
	}
	b.window.add(now, b.Window, retried)
	return true
}

// Left returns how many retries there are at now: 0 and more, with a fraction that the
// next requests complete.
func (b *Budget) Left(now time.Duration) float64 {
	requests, retries := b.Counts(now)
	return max(0, max(b.Ratio*float64(requests), float64(b.Reserve))-float64(retries))
}

// Counts returns what the window has at now.
func (b *Budget) Counts(now time.Duration) (requests, retries uint64) {
	b.window.advance(now, b.Window)
	return b.window.sums[requested], b.window.sums[retried]
}
