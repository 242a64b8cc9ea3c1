package retry

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// A Hint is what a server said about when to come back; the zero Hint is nothing.
type Hint struct {
	After  time.Duration // 0 to 365 days
	Said   bool          // After counts
	Never  bool          // do not try again
	Exact  bool          // it was spread where it was made, or is of this client alone: it gets no jitter
	Capped bool          // more was said than After
	Text   string        // as it came, also what could not be read
}

// longest is the cap of a hint: far above any Policy.MaxAfter, and far from overflow,
// jitter included.
const longest = 365 * 24 * time.Hour

// String returns the hint in words.
func (h Hint) String() string {
	text := h.Text
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	switch {
	case h.Never && h.Text != "":
		return fmt.Sprintf("not to come back (%q)", text)
	case h.Never:
		return "not to come back"
	case h.Said && h.Capped:
		return fmt.Sprintf("to come back in %q, taken as %v", text, h.After)
	case h.Said && h.Text != "":
		return fmt.Sprintf("to come back in %v (%q)", h.After, text)
	case h.Said:
		return fmt.Sprintf("to come back in %v", h.After)
	case h.Text != "":
		return fmt.Sprintf("what cannot be read (%q)", text)
	}
	return "nothing"
}

// HTTPHint reads Retry-After of a response (RFC 9110, 10.2.3):
//
//	120                              seconds, also 00120
//	1.5                              a part of a second, which is not standard and in use
//	Sun, 06 Nov 1994 08:49:37 GMT    and the two obsolete forms of an HTTP-date
//
// A date counts from the Date of the response, so that it does not matter what time
// the server believes it is, or from now if there is none that can be read. One that is
// past is 0: come back, after the usual backoff. What is longer than 365 days is that,
// and Capped. A negative number, a unit or anything else is no hint, but in Text. Of
// several values the longest counts that can be read: none of those who said it is
// asked too early.
func HTTPHint(h http.Header, now time.Time) (best Hint) {
	for _, text := range h["Retry-After"] {
		text = strings.Trim(text, " \t")
		hint, ok := seconds(text)
		if !ok {
			hint, ok = date(text, h, now)
		}
		hint.Text, hint.Said = text, ok
		if best.Text == "" || ok && (!best.Said || hint.After > best.After) {
			best = hint
		}
	}
	return best
}

// GRPCHint reads grpc-retry-pushback-ms: milliseconds, where a negative number and
// what is none mean never (gRFC A6). "" is no header. The server is to spread it, so
// it is exact.
func GRPCHint(value string) Hint {
	if value == "" {
		return Hint{}
	}
	ms, fraction, ok := number(value)
	if !ok || fraction != 0 {
		return Hint{Never: true, Text: value}
	}
	h := scaled(ms, time.Millisecond)
	h.Said, h.Exact, h.Text = true, true, value
	return h
}

func seconds(text string) (Hint, bool) {
	whole, fraction, ok := number(text)
	if !ok {
		return Hint{}, false
	}
	h := scaled(whole, time.Second)
	if h.Capped || h.After+fraction > longest {
		return Hint{After: longest, Capped: true}, true
	}
	h.After += fraction
	return h, true
}

// scaled is n units, at most longest.
func scaled(n uint64, unit time.Duration) Hint {
	if n > uint64(longest/unit) {
		return Hint{After: longest, Capped: true}
	}
	return Hint{After: time.Duration(n) * unit}
}

// number reads digits, with a point and more digits if there is a part. whole stops at
// MaxUint64; fraction is that part of a second, cut after the ninth digit.
func number(s string) (whole uint64, fraction time.Duration, ok bool) {
	digits, part, pointed := strings.Cut(s, ".")
	if digits == "" || pointed && part == "" {
		return 0, 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		if whole > (math.MaxUint64-9)/10 {
			whole = math.MaxUint64
			continue
		}
		whole = whole*10 + uint64(c-'0')
	}
	unit := time.Second
	for _, c := range []byte(part) {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		unit /= 10 // 0 after the ninth digit
		fraction += time.Duration(c-'0') * unit
	}
	return whole, fraction, true
}

// date is the distance of an HTTP-date from the Date of the response.
func date(text string, h http.Header, now time.Time) (Hint, bool) {
	at, err := http.ParseTime(text)
	if err != nil {
		return Hint{}, false
	}
	if v := h["Date"]; len(v) > 0 {
		if t, err := http.ParseTime(v[0]); err == nil {
			now = t
		}
	}
	wait := at.Sub(now) // Sub stops at the ends of a Duration
	return Hint{After: min(max(wait, 0), longest), Capped: wait > longest}, true
}
