package load

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A Send performs one request to its end, the body of the answer included, or
// until ctx is cancelled. It is called from many goroutines at once.
type Send func(ctx context.Context) Answer

// An Answer is what a request ended with.
type Answer struct {
	Status int    // of HTTP
	Reason string // why it was refused; "" if it was not
	Err    error  // there was no answer

	Marked     bool   // Reason is the word of Goodput-Rejected, and not of the status
	RetryAfter string // the header as it came; "" without one
	Date       string // the header as it came, of an answer with RetryAfter; "" without one
	Content    Content
}

// A Content is what is told of the body of an answer, to compare it with that of others.
type Content struct {
	Type string // media type in lower case, without parameters
	Size int64  // bytes of the body as they came
	Sum  uint64 // of the body, by one seed for the life of the process; 0 of an empty one
}

// Refused reports whether the request was told no, and not executed.
func (a Answer) Refused() bool { return a.Err == nil && a.Reason != "" }

// Failed reports whether there was no answer, or one of a service that could not.
func (a Answer) Failed() bool { return a.Err != nil || a.Reason == "" && a.Status >= 500 }

// Wait returns how long RetryAfter asks to wait, 0 for a date in the past, and false if it is
// absent or malformed. RFC 9110, section 10.2.3: seconds, or a date. A date counts from that
// of the answer, so that the clocks of the two sides need not agree; from now on without one.
func (a Answer) Wait() (time.Duration, bool) {
	if a.RetryAfter == "" {
		return 0, false
	}
	if wait, ok := wholeSeconds(a.RetryAfter); ok {
		return wait, true
	}
	then, err := http.ParseTime(a.RetryAfter)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(a.Date)
	if err != nil {
		from = time.Now()
	}
	return max(then.Sub(from), 0), true
}

// wholeSeconds reads a number of digits alone; one that no Duration holds is the longest.
func wholeSeconds(s string) (time.Duration, bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(math.MaxInt64/time.Second) {
		return math.MaxInt64, true // out of range: digits have no other fault
	}
	return time.Duration(n) * time.Second, true
}
