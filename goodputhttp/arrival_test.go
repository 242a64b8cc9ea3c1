package goodputhttp

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

// The dialects of a stamp, and what is none. Every row is 3 s before noon, but for the last.
func TestStamps(t *testing.T) {
	then := noon.Add(-3 * time.Second).Truncate(time.Millisecond)
	ms, sec := then.UnixMilli(), then.Unix()
	whole := noon.Sub(then)
	for _, c := range []struct {
		stamps []string // of X-Request-Start, X-Queue-Start
		want   time.Duration
		errors [2]uint64
	}{
		{[]string{strconv.FormatInt(ms, 10), ""}, whole, [2]uint64{}},                                 // Heroku
		{[]string{fmt.Sprintf("t=%d.%03d", sec, ms%1000), ""}, whole, [2]uint64{}},                    // nginx
		{[]string{fmt.Sprintf("%d.%03d", sec, ms%1000), ""}, whole, [2]uint64{}},                      //
		{[]string{"", fmt.Sprintf("t=%d", then.UnixMicro())}, whole, [2]uint64{}},                     // Apache
		{[]string{fmt.Sprintf("t=%d", ms), ""}, whole, [2]uint64{}},                                   // Caddy
		{[]string{strconv.FormatInt(then.UnixNano(), 10), ""}, whole, [2]uint64{}},                    // nanoseconds
		{[]string{strconv.FormatInt(ms+2000, 10), strconv.FormatInt(ms, 10)}, whole, [2]uint64{}},     // the earliest
		{[]string{fmt.Sprintf("t=%d, t=%d", ms+2000, ms), ""}, whole, [2]uint64{}},                    // of several hops
		{[]string{strconv.FormatInt(ms-60_000, 10), ""}, maxAge, [2]uint64{}},                         // clamped
		{[]string{strconv.FormatInt(ms+60_000, 10), ""}, 0, [2]uint64{}},                              // the future
		{[]string{strconv.FormatInt(ms+60_000, 10), strconv.FormatInt(ms, 10)}, whole, [2]uint64{}},   //
		{[]string{"soon", strconv.FormatInt(ms, 10)}, whole, [2]uint64{1, 0}},                         // malformed
		{[]string{"", "t="}, 0, [2]uint64{0, 1}},                                                      //
		{[]string{"-5", "t=1.2.3"}, 0, [2]uint64{1, 1}},                                               //
		{[]string{"0", "1"}, 0, [2]uint64{1, 1}},                                                      // 1970 is no arrival
		{[]string{strconv.FormatInt(ms-25*3600_000, 10), "99999999999999999999"}, 0, [2]uint64{1, 1}}, //
		{[]string{"9999999999999999999", ""}, 0, [2]uint64{1, 0}},                                     // year 2286
		{[]string{fmt.Sprintf("%d,%d,x", ms, ms+1), ""}, whole, [2]uint64{1, 0}},                      // and counted once
	} {
		h := http.Header{}
		for i, name := range starts {
			if c.stamps[i] != "" {
				h[name] = []string{c.stamps[i]}
			}
		}
		var n counts
		if got := n.age(h, noon); got != c.want {
			t.Errorf("%q: %v, want %v", c.stamps, got, c.want)
		}
		for i := range starts {
			if got := n.startErrors[i].Load(); got != c.errors[i] {
				t.Errorf("%q: %d errors of %s", c.stamps, got, starts[i])
			}
		}
	}
}

// The age shortens every time that a request is given for so long, and none that ends at an
// instant; it is when the work arrived, unless Work says otherwise.
func TestStampShortens(t *testing.T) {
	stamp := "X-Request-Start: t=" + millisAt(-4*time.Second)
	sub := time.Duration(noon.Nanosecond() % 1e6)
	for _, c := range []struct {
		name   string
		s      *Server
		header []string
		want   time.Duration
		source string
	}{
		{"a header", &Server{}, []string{"Expect-Within: 9"}, 5 * time.Second, "Expect-Within"},
		{"a further one", &Server{DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatGo}}}, []string{"X-Mine: 9s"}, 5 * time.Second, "X-Mine"},
		{"the default", &Server{Deadline: 9 * time.Second}, nil, 5 * time.Second, "default"},
		{"the cap", &Server{DeadlineCap: 9 * time.Second}, []string{"Expect-Within: 60"}, 5 * time.Second, "cap"},
		{"over", &Server{}, []string{"Expect-Within: 3"}, -1 * time.Second, "Expect-Within"},
		{"an instant", &Server{DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatEpochMillis}}}, []string{"X-Mine: " + millisAt(9*time.Second)}, 9 * time.Second, "X-Mine"},
	} {
		for _, trusted := range []bool{true, false} {
			c.s.Trusted = func(*http.Request) bool { return trusted }
			b := c.s.budget(request(append(c.header, stamp)...), noon, false)
			want := c.want
			if c.name == "an instant" {
				want -= sub
			} else if trusted {
				want -= sub
			} else {
				want += 4 * time.Second
			}
			if got := b.Deadline.Sub(noon); got != want || b.Source != c.source || b.stamped != trusted {
				t.Errorf("%s, trusted %v: %v by %q, want %v by %q", c.name, trusted, got, b.Source, want, c.source)
			}
		}
	}
	other := noon.Add(-time.Hour)
	s := &Server{Trusted: func(*http.Request) bool { return true }}
	if a := s.visit(nil, request(stamp)).work().Arrival; a.Sub(noon) > -4*time.Second || a.Sub(noon) < -4*time.Second-time.Millisecond {
		t.Errorf("it arrived %v after the stamp", a.Sub(noon))
	}
	s.Work = func(*http.Request) goodput.Work { return goodput.Work{Arrival: other} }
	if a := s.visit(nil, request(stamp)).work().Arrival; !a.Equal(other) {
		t.Errorf("Work says %v and not %v", other, a)
	}
}

// Without a deadline, in time is judged from the stamp: 400 ms in another queue and 200 of
// work are more than an objective of 500.
func TestStampCountsAsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			trusted bool
			want    goodput.Outcome
		}{{true, goodput.Late}, {false, goodput.Completed}} {
			lim := limiter(1, goodput.Config{Objective: 500 * time.Millisecond})
			s := &Server{Limiter: one(lim), Trusted: func(*http.Request) bool { return c.trusted }, Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				time.Sleep(200 * time.Millisecond)
			})}
			r := from("192.0.2.1:80")
			r.Header.Set("X-Request-Start", strconv.FormatInt(time.Now().Add(-400*time.Millisecond).UnixMilli(), 10))
			status(s, r)
			outcomes(t, lim, map[goodput.Outcome]uint64{c.want: 1})
		}
	})
}

// What the next hop is told of the arrival: what the first hop said, if it said something,
// also for a request without a deadline; the arrival itself, behind a hop that stamps by
// another name.
func TestForwardStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		want   string // of X-Request-Start
	}{
		{"nobody said", nil, "t=" + millisAt(0)},
		{"somebody said", []string{"X-Request-Start: 17"}, "17"},
		{"Heroku", []string{"X-Queue-Start: " + millisAt(-4*time.Second)}, "t=" + millisAt(-4*time.Second)},
	} {
		s := &Server{ForwardStart: true, Trusted: func(*http.Request) bool { return true }}
		r := request(c.header...)
		b := s.budget(r, noon, false)
		for range 2 { // a retry says the same
			b.Forward(r.Header, noon.Add(time.Second), HopMargin)
			if got := r.Header["X-Request-Start"]; len(got) != 1 || got[0] != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	}
	h := http.Header{}
	new(Server).budget(request(), noon, false).Forward(h, noon, HopMargin)
	if len(h) != 0 {
		t.Errorf("%v, and nobody asked for it", h)
	}
}

// The margin of the Server is taken off, and 5 ms without one.
func TestServerHopMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for margin, want := range map[time.Duration]string{0: "8.995", 2 * time.Second: "7.000", 1: "8.999"} {
			s := &Server{Limiter: one(limiter(1, goodput.Config{})), HopMargin: margin}
			s.Next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ForwardDeadline(r.Context(), r.Header)
				if got := r.Header.Get("Expect-Within"); got != want {
					t.Errorf("margin %v: %s left, want %s", margin, got, want)
				}
			})
			r := from("192.0.2.1:80")
			r.Header.Set("Expect-Within", "9")
			status(s, r)
		}
	})
}

// FuzzStamp: whatever a trusted hop says, a request is 0 to 10 s old.
func FuzzStamp(f *testing.F) {
	for _, v := range []string{"t=1764518400.123", "1764518400123", "t=1764518400123456,x", "-1", "t=t=1", "9999999999999999999.9999999999999999999"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var n counts
		if age := n.age(http.Header{requestStart: {value}}, noon); age < 0 || age > maxAge {
			t.Errorf("%q: %v", value, age)
		}
	})
}
