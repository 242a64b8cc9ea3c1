package limit

import (
	"fmt"
	"math"
	"time"
)

// What the published laws, AIMD, Vegas and Gradient2, have in common: they look at one
// number for each second, the mean service time in it, and only if there were ten. So says
// WindowedLimit of github.com/Netflix/concurrency-limits, whose constants they have. A
// law that moved with every completion would fall by 0.9^n in the time that n requests
// take to come out of one stall.

const (
	publishedWindow  = time.Second
	publishedSamples = 10 // fewer in a window, and the window is thrown away

	publishedFrom = 20
)

// shortestWindow is the least that Netflix allows for a window, and longestWindow a day's
// sanity: a limit that moves once an hour does not follow anything.
const (
	shortestWindow = 100 * time.Millisecond
	longestWindow  = time.Hour
)

// A spell adds windows up until they are as long as a law wants them.
type spell struct {
	length  time.Duration
	samples float64
	sum     float64 // of the service times, seconds
	peak    int
	dropped float64
}

// A reading is what a spell showed.
type reading struct {
	mean    float64 // service time, seconds; 0 if all that ended was dropped
	samples float64
	peak    int // the most units in use at once
	dropped float64
}

// add counts w. ok is true when the spell is over and has enough in it; the next one
// begins then, and also when it has not. What is not a number of anything counts as 0.
func (s *spell) add(w *Window, over time.Duration) (r reading, ok bool) {
	s.length += min(max(w.Length, 0), over)
	if w.Own > 0 && w.Samples > 0 {
		s.samples += float64(w.Samples)
		s.sum += float64(w.Samples) * w.Own.Seconds()
	}
	s.peak = max(s.peak, w.Peak)
	s.dropped += float64(max(w.Dropped, 0))
	if s.length < over {
		return r, false
	}
	r = reading{samples: s.samples, peak: s.peak, dropped: s.dropped}
	if s.samples > 0 {
		r.mean = s.sum / s.samples
	}
	*s = spell{}
	return r, r.samples+r.dropped >= publishedSamples
}

// A course is the limit of a published law on its way.
type course struct {
	law   string
	exact float64 // before it is rounded down. Invariant: from low to high
	low   int
	high  int
	spell spell
	why   string
}

// begin takes the limit in force: someone may have set another one.
func (c *course) begin(current int) {
	if current != int(c.exact) {
		c.exact = float64(min(max(current, c.low), c.high))
	}
}

// to moves the limit, within its bounds, and notes why: the format is of what comes after
// the law and the two limits.
func (c *course) to(exact float64, format string, of ...any) Move {
	if math.IsNaN(exact) {
		return c.stay()
	}
	was := int(c.exact)
	c.exact = min(max(exact, float64(c.low)), float64(c.high))
	if is := int(c.exact); is != was {
		c.why = fmt.Sprintf("%s: %d -> %d: %s", c.law, was, is, fmt.Sprintf(format, of...))
	}
	return c.stay()
}

func (c *course) stay() Move { return Move{Limit: int(c.exact)} }

// Why says why the limit last moved.
func (c *course) Why() string { return c.why }

// A span is where a limit starts and what it stays within.
type span struct{ from, low, high int }

// or fills in what is 0, with d, or with what the rest leaves of it.
func (s span) or(d span) span {
	if s.high == 0 {
		s.high = max(d.high, s.low, s.from)
	}
	if s.low == 0 {
		s.low = min(d.low, s.high)
		if s.from > 0 {
			s.low = min(s.low, s.from)
		}
	}
	if s.from == 0 {
		s.from = min(max(d.from, s.low), s.high)
	}
	return s
}

// check returns what is wrong with s, whose zeros are the defaults d.
func (s span) check(law string, d span) error {
	for _, f := range []struct {
		name string
		n    int
	}{{"start", s.from}, {"min", s.low}, {"max", s.high}} {
		if f.n < 0 || f.n > Max {
			return fmt.Errorf("%s %d of the %s limit is out of range: 1 to %d, or 0 for the default", f.name, f.n, law, Max)
		}
	}
	switch s = s.or(d); {
	case s.low > s.high:
		return fmt.Errorf("min %d of the %s limit is above its max %d", s.low, law, s.high)
	case s.from < s.low || s.from > s.high:
		return fmt.Errorf("start %d of the %s limit is not within its min and max, %d to %d", s.from, law, s.low, s.high)
	}
	return nil
}

// A constant is one of a law, 0 for its default.
type constant struct {
	name   string
	v      float64
	lo, hi float64 // what is allowed, both included
}

// checkAll returns the sentence about the first constant that is out of range. Not a
// number is.
func checkAll(law string, of ...constant) error {
	for _, c := range of {
		if c.v != 0 && !(c.v >= c.lo && c.v <= c.hi) {
			return fmt.Errorf("%s %v of the %s limit is out of range: %v to %v, or 0 for the default", c.name, c.v, law, c.lo, c.hi)
		}
	}
	return nil
}

func checkTime(law, name string, d, lo, hi time.Duration) error {
	if d != 0 && (d < lo || d > hi) {
		return fmt.Errorf("%s %v of the %s limit is out of range: %v to %v, or 0 for the default", name, d, law, lo, hi)
	}
	return nil
}

// first returns the first error there is.
func first(of ...error) error {
	for _, err := range of {
		if err != nil {
			return err
		}
	}
	return nil
}

// or returns v, or its default.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// ms is a time in the words of Why.
func ms(seconds float64) string { return fmt.Sprintf("%.3gms", seconds*1e3) }

// decade is log10 of a limit, rounded down, and at least 1, which is how the published
// laws take it.
func decade(limit float64) float64 {
	n := 1.0
	for limit >= 100 {
		limit /= 10
		n++
	}
	return n
}
