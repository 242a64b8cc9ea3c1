package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What is said of the idle service is what it was: how many requests, what they were answered with,
// and how long was waited for it.
func TestIdleInWords(t *testing.T) {
	for want, i := range map[string]Idle{
		"":                            {},
		"one request, and no answer.": {Requests: 1},
		"2 requests one after another, and no answer.":                                    {Requests: 2},
		"50 requests one after another, and no answer of the service: 500 × 49, 503 × 1.": {Requests: 50, Status: map[int]int{500: 49, 503: 1}},
		"one request, answered within 1 s.":                                               {Requests: 1, Status: map[int]int{200: 1}, P50: time.Second, Max: time.Second},
	} {
		if got := (&Report{Idle: i}).idle(); got != want {
			t.Errorf("%+v: %q, want %q", i, got, want)
		}
	}
	for want, s := range map[string]*sample{
		"the target takes requests and does not answer while it is idle: one request had no answer within 10 s. If it was under load just now it may still be busy with that":                         {Idle: Idle{Requests: 1}, lost: 1, err: context.DeadlineExceeded},
		"the target takes requests and does not answer while it is idle: 5 of 6 requests, one after another, had no answer within 10 s. If it was under load just now it may still be busy with that": {Idle: Idle{Requests: 6}, lost: 5, err: fmt.Errorf("%w", context.DeadlineExceeded)},
		"the target answers nothing while it is idle: 50 of 50 requests, one after another, had no answer: EOF":                                                                                       {Idle: Idle{Requests: 50}, lost: 50, err: fmt.Errorf("EOF")},
	} {
		if got := s.void(nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A service that fails is not told to mend its bound, and one that refuses is.
func TestErrorsAreNoOverload(t *testing.T) {
	for broken, want := range map[int64]string{40: "A bound is smaller", 41: "no bound mends those"} {
		r := good()
		takes(at(r, 0.5), broken, &at(r, 0.5).Failed)
		takes(at(r, 0.5), 40, &at(r, 0.5).Refused)
		if Judge(r); r.Criteria[0].Met || !strings.Contains(r.Criteria[0].Why, want) {
			t.Errorf("%d failed and 40 refused: %s", broken, r.Criteria[0].Why)
		}
		r = good()
		x := at(r, 3)
		takes(x, 25*broken, &x.Failed)
		x.Refused = 25 * 40
		x.Offered = x.InTime + x.Failed + x.Refused
		if Judge(r); !strings.Contains(r.Criteria[1].Why, map[int64]string{40: "It refuses what it could do", 41: "no bound mends those"}[broken]) {
			t.Errorf("%d failed and %d refused: %s", x.Failed, x.Refused, r.Criteria[1].Why)
		}
	}
}

// The rate that misses the bound is not the one in the table where a queue has been filled or is
// left, and the sentence says whose it is.
func TestGoodputSaysOfWhichPart(t *testing.T) {
	for drained, want := range map[int64]string{
		0:   "at 3x 378/s came in time, and the service can do 400/s",
		200: "at 3x 360/s came in time from 300 ms after the begin on to the end of the load, and the service can do 400/s",
	} {
		r := good()
		x := at(r, 3)
		takes(x, 100, &x.Refused) // 1,890 in 5 s are 378/s, and less 200 and those of the first 300 ms 1,690 in 4.7 s
		x.Drained = drained
		if drained == 0 {
			x.Early = 100
		}
		if Judge(r); !strings.Contains(r.Criteria[1].Why, want) {
			t.Errorf("%d came after it: %s", drained, r.Criteria[1].Why)
		}
	}
}

func TestFatesOfOne(t *testing.T) {
	r := result(10, 4)
	takes(r, 1, &r.Aborted)
	r.Completed++ // one just after the deadline, of those that were refused
	r.Refused--
	if got, want := fates(r), "5 were refused, 1 was answered just after the deadline, 1 was interrupted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What was measured of Retry-After names those that have none where there are any.
func TestRetryAfterMeasured(t *testing.T) {
	for absent, want := range map[int64]string{0: "1 s to 3 s in ", 7: " refusals, none in 7"} {
		r := good()
		at(r, 3).RetryAfter.Absent = absent
		Judge(r)
		c := r.Criteria[8]
		if c.Name != RetryAfter || !strings.Contains(c.Measured, want) || strings.Contains(c.Measured, "none in") != (absent > 0) {
			t.Errorf("%d absent: %+v", absent, c)
		}
	}
}
