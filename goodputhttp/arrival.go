package goodputhttp

import (
	"net/http"
	"strings"
	"time"
)

// A hop in front of us may have held a request for a while: in its queue, or in the
// backlog of our listener. It says when the request came to it in X-Request-Start or
// X-Queue-Start, and its caller has been waiting since then. Four dialects are in use:
//
//	1764518400123             milliseconds since 1970 (Heroku)
//	t=1764518400.123          seconds (nginx, t=${msec})
//	t=1764518400123456        microseconds (Apache)
//	t=1764518400123           milliseconds (Caddy, thruster)
//
// so the unit is read off the magnitude: the four do not overlap between the years 1973
// and 5138. Whoever is believed could shorten the time of its own requests, and no more.
const (
	requestStart = "X-Request-Start"
	queueStart   = "X-Queue-Start"
)

// starts are those headers, in the order of the counters.
var starts = [...]string{requestStart, queueStart}

// maxAge bounds what a stamp is believed: a hop whose clock is behind would otherwise
// make every request late. Nobody who means to be answered queues for longer in front of
// a queue.
const maxAge = 10 * time.Second

// age returns how long before now the request of h entered the system, 0 to maxAge, as
// its trusted hop has stamped it; the earliest of several. What cannot be read is counted.
//
// It is here, and for deadlines that are instants, that the wall clock is read: both
// stamps are of it. The result is a duration, so its later steps change nothing.
func (c *counts) age(h http.Header, now time.Time) (age time.Duration) {
	for i, name := range starts {
		clean := true
		for _, line := range h[name] {
			for stamp := range strings.SplitSeq(line, ",") {
				at, ok := parseStamp(strings.TrimSpace(stamp))
				since := now.Sub(at) // at has no monotonic reading
				if !ok || since.Abs() > wrongUnit {
					clean = false
					continue
				}
				age = max(age, since) // the future is a clock that is ahead
			}
		}
		if !clean {
			c.startErrors[i].Add(1)
		}
	}
	return min(age, maxAge)
}

// parseStamp reads an instant of any of the dialects. Its unit is the one in which it is
// of our time.
func parseStamp(s string) (time.Time, bool) {
	s = strings.TrimPrefix(s, "t=")
	whole, fraction, point := strings.Cut(s, ".")
	n, ok := digits(whole, 19)
	if !ok {
		return time.Time{}, false
	}
	if _, ok := digits(fraction, 19); point && !ok {
		return time.Time{}, false
	}
	unit := time.Second
	switch {
	case n > 1e17:
		unit = time.Nanosecond
	case n > 1e14:
		unit = time.Microsecond
	case n > 1e11:
		unit = time.Millisecond
	}
	at := time.UnixMilli(0).Add(scale(n, unit))
	billionths, _ := digits((fraction + "000000000")[:9], 9) // of a unit
	return at.Add(time.Duration(billionths) * unit / time.Second), true
}
