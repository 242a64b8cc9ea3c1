package limit

import (
	"math"
	"time"
)

// AIMD is the law that only looks at losses: what the resource itself refused. It adds one
// while there are none, and takes a tenth away when there are. Constants and rule are
// those of AIMDLimit in github.com/Netflix/concurrency-limits, behind its WindowedLimit:
//
//	once a second, if at least 10 requests ended in it:
//	something was dropped, or the mean service time is above Timeout:  limit x Backoff, rounded down
//	else, if half of the limit was in use at once:                      limit + 1
//
// Use it before a resource that says when it has had enough: a database with a limit
// on connections, an API that answers 429. Their answers count as dropped when the code
// that calls them says so (Slot.Dropped).
//
// Known failure: a resource that queues what it cannot serve, as most do, drops
// nothing, so the limit climbs to Max, at one a second, and so many are in flight. 60
// slots of 50 ms at 3 times their capacity, without a bound: all that was served came within
// 2 s and 1 % within 400 ms. In the first 20 s from a start at 10 it is the other way
// round, and .33 of the capacity is used.
type AIMD struct {
	From int // before anything has been measured: 1 to Max, default 20
	Min  int // default 20, or From if that is lower
	Max  int // default 200, or From if that is higher

	Backoff float64       // what is left of the limit after a drop: 0.5 to 0.99, default 0.9
	Timeout time.Duration // a mean above it is as bad as a drop: to an hour, default 5 s
	Window  time.Duration // between two moves: 100 ms to an hour, default 1 s
}

var aimdSpan = span{publishedFrom, 20, 200}

func (a AIMD) withDefaults() AIMD {
	s := span{a.From, a.Min, a.Max}.or(aimdSpan)
	return AIMD{
		From: s.from, Min: s.low, Max: s.high,
		Backoff: or(a.Backoff, 0.9),
		Timeout: or(a.Timeout, 5*time.Second),
		Window:  or(a.Window, publishedWindow),
	}
}

// Start returns the limit before anything has been measured.
func (a AIMD) Start() (int, error) {
	err := first(
		span{a.From, a.Min, a.Max}.check("aimd", aimdSpan),
		checkAll("aimd", constant{"backoff", a.Backoff, 0.5, 0.99}),
		checkTime("aimd", "timeout", a.Timeout, time.Millisecond, time.Hour),
		checkTime("aimd", "window", a.Window, shortestWindow, longestWindow),
	)
	if err != nil {
		return 0, err
	}
	return a.withDefaults().From, nil
}

// Begin returns the state of one limiter. Nothing in it is random.
func (a AIMD) Begin(uint64) State {
	a = a.withDefaults()
	return &aimd{AIMD: a, course: course{law: "aimd", exact: float64(a.From), low: a.Min, high: a.Max}}
}

// String returns "aimd".
func (a AIMD) String() string { return "aimd" }

// An aimd is an AIMD at work.
type aimd struct {
	AIMD
	course
}

func (s *aimd) Next(current int, w *Window) Move {
	s.begin(current)
	r, ok := s.spell.add(w, s.Window)
	if !ok {
		return s.stay()
	}
	down := math.Floor(s.exact * s.Backoff) // at least one less
	switch {
	case r.dropped > 0:
		return s.to(down, "%.0f of %.0f dropped, x %v", r.dropped, r.dropped+r.samples, s.Backoff)
	case r.mean > s.Timeout.Seconds():
		return s.to(down, "mean %s of %.0f samples is above the timeout %v, x %v", ms(r.mean), r.samples, s.Timeout, s.Backoff)
	case 2*float64(r.peak) >= s.exact:
		return s.to(s.exact+1, "nothing dropped of %.0f, %d in use at once", r.samples, r.peak)
	}
	return s.stay()
}
