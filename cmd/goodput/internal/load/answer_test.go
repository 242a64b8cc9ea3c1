package load

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:37 GMT" // the example of RFC 9110, section 5.6.7
	for _, tc := range []struct {
		after, date string
		want        time.Duration
		ok          bool
	}{
		{"", "", 0, false},
		{"0", "", 0, true},
		{"000", "", 0, true},
		{"1", "", time.Second, true},
		{"007", "", 7 * time.Second, true},
		{"3600", "", time.Hour, true},
		{"9223372036", "", 9223372036 * time.Second, true},
		{"9223372037", "", math.MaxInt64, true}, // longer than a Duration
		{strings.Repeat("9", 400), "", math.MaxInt64, true},
		{"1.5", "", 0, false},
		{"-1", "", 0, false},
		{"+1", "", 0, false},
		{"1s", "", 0, false},
		{"soon", "", 0, false},
		{"١", "", 0, false}, // a digit, not of ASCII
		{"Sun, 06 Nov 1994 08:49:47 GMT", date, 10 * time.Second, true},
		{"Sunday, 06-Nov-94 08:49:47 GMT", date, 10 * time.Second, true}, // RFC 850
		{"Sun Nov  6 08:49:47 1994", date, 10 * time.Second, true},       // asctime
		{date, date, 0, true},
		{"Sun, 06 Nov 1994 08:49:36 GMT", date, 0, true}, // in the past
		{date, "", 0, true},                              // in the past of this machine
		{date, "yesterday", 0, true},                     // no date: as if there was none
		{"Sun, 06 Nov 1994 08:49:47 CET", date, 0, false},
	} {
		a := Answer{Status: 503, Reason: "status_503", RetryAfter: tc.after, Date: tc.date}
		if got, ok := a.Wait(); got != tc.want || ok != tc.ok {
			t.Errorf("%q at %q: %v, %v, want %v, %v", tc.after, tc.date, got, ok, tc.want, tc.ok)
		}
	}
	soon := Answer{RetryAfter: time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")}
	if got, ok := soon.Wait(); !ok || got > time.Hour || got < 50*time.Minute {
		t.Errorf("a date an hour from now: %v, %v", got, ok)
	}
}

func TestRetryAfterIsCounted(t *testing.T) {
	r := newResult(Plan{Duration: time.Second})
	for _, header := range []string{"", "", "5", "1", "3", "3", "0", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "-1", "never"} {
		r.said(Answer{Status: 503, Reason: "status_503", RetryAfter: header})
	}
	got := r.RetryAfter
	if got.Absent != 2 || got.Zero != 2 || got.Malformed != 3 || got.Min != time.Second || got.Max != 5*time.Second ||
		len(got.Values) != 3 || got.Values[3*time.Second] != 2 || got.FirstOdd != "0" {
		t.Errorf("%+v", got)
	}
}

// Retry-After comes from the wire, like the reasons.
func TestRetryAfterIsBounded(t *testing.T) {
	var r RetryAfter
	r.Values = map[time.Duration]int64{}
	for i := range 1000 {
		r.add(Answer{RetryAfter: fmt.Sprint(2 * (i + 1))})
	}
	if len(r.Values) != maxReasons || total(r.Values) != 1000 || r.Min != 2*time.Second || r.Max != 2000*time.Second {
		t.Errorf("%d values, %d in all, %v to %v", len(r.Values), total(r.Values), r.Min, r.Max)
	}
	r.add(Answer{RetryAfter: "9"}) // between 8 and 10: the shorter
	r.add(Answer{RetryAfter: "1"})
	if r.Values[8*time.Second] != 2 || r.Values[2*time.Second] != 2 || r.Min != time.Second {
		t.Errorf("%v, min %v", r.Values, r.Min)
	}
	r.add(Answer{RetryAfter: strings.Repeat("x", 1<<20)})
	if len(r.FirstOdd) != maxWord {
		t.Errorf("%d bytes of a header are kept", len(r.FirstOdd))
	}
}
