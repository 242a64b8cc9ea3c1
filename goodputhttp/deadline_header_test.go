package goodputhttp

import (
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/goodput/goodput"
)

// noon is an instant with both readings, and its milliseconds since 1970.
var noon = time.Now()

func millisAt(d time.Duration) string { return strconv.FormatInt(noon.Add(d).UnixMilli(), 10) }
func nanosAt(d time.Duration) string  { return strconv.FormatInt(noon.Add(d).UnixNano(), 10) }

// C048, C061 for the headers that a configuration names: a huge value is very long, what is
// malformed is ignored, and zero means what it means in Envoy's and elsewhere.
func TestC061FurtherHeaders(t *testing.T) {
	const bad = -1
	sub := time.Duration(noon.Nanosecond() % 1e6) // what milliseconds cut off
	for _, c := range []struct {
		format DeadlineFormat
		value  string
		want   time.Duration
	}{
		{FormatMillis, "1500", 1500 * time.Millisecond},
		{FormatMillis, "0", 0},
		{FormatMillis, "9999999999999999999", maxBudget},
		{FormatMillis, "99999999999999999999", bad},
		{FormatMillis, "-1", bad},
		{FormatMillis, "+1", bad},
		{FormatMillis, " 1", bad},
		{FormatMillis, "1.5", bad},
		{FormatMillis, "", bad},
		{"", "1500", 1500 * time.Millisecond},
		{FormatSeconds, "1.5", 1500 * time.Millisecond},
		{FormatSeconds, "0", 0},
		{FormatSeconds, "1e3", bad},
		{FormatGo, "1m30s", 90 * time.Second},
		{FormatGo, "250ms", 250 * time.Millisecond},
		{FormatGo, "1.5h", 90 * time.Minute},
		{FormatGo, "0", 0},
		{FormatGo, "2562047h47m16.854775807s", maxBudget},
		{FormatGo, "2562048h", bad}, // Go says so too
		{FormatGo, "-5s", bad},
		{FormatGo, "+5s", bad},
		{FormatGo, "5", bad},
		{FormatGo, "5S", bad},
		{FormatGo, "NaN", bad},
		{FormatGo, "Inf", bad},
		{FormatGo, "", bad},
		{FormatGo, strings.Repeat("0", 40) + "1s", bad},
		{FormatGRPC, "99999999H", maxBudget},
		{FormatGRPC, "99999999M", maxBudget},
		{FormatGRPC, "99999999S", 99_999_999 * time.Second},
		{FormatGRPC, "0S", 0},
		{FormatGRPC, "5X", bad},
		{FormatGRPC, "5s", bad},
		{FormatGRPC, "123456789m", bad},
		{FormatGRPC, "m5", bad},
		{FormatGRPC, "00000005S", 5 * time.Second},
		{FormatEpochMillis, millisAt(time.Minute), time.Minute - sub},
		{FormatEpochMillis, millisAt(-2 * time.Second), 0}, // C056: over, and never negative
		{FormatEpochMillis, millisAt(-23 * time.Hour), 0},
		{FormatEpochMillis, millisAt(-25 * time.Hour), bad},
		{FormatEpochMillis, "0", bad},
		{FormatEpochMillis, strconv.FormatInt(noon.Unix()+60, 10), bad}, // seconds
		{FormatEpochMillis, nanosAt(time.Minute), maxBudget},            // nanoseconds
		{FormatEpochMillis, "9999999999999999999", maxBudget},           // C048
		{FormatEpochMillis, "-" + millisAt(0), bad},                     // C051
		{FormatEpochMillis, millisAt(time.Minute) + ".5", bad},          // no such format
		{FormatFinagle, nanosAt(0) + " " + nanosAt(time.Minute), time.Minute},
		{FormatFinagle, nanosAt(0) + " " + nanosAt(-time.Minute), 0},
		{FormatFinagle, nanosAt(0) + " 9223372036854775807", maxBudget}, // Time.Top of Finagle
		{FormatFinagle, nanosAt(0) + " " + nanosAt(-48*time.Hour), bad},
		{FormatFinagle, nanosAt(0), bad},
		{FormatFinagle, nanosAt(0) + " ", bad},
		{FormatFinagle, " " + nanosAt(0), bad},
		{FormatFinagle, nanosAt(0) + "  " + nanosAt(time.Minute), bad},
		{FormatFinagle, "x " + nanosAt(time.Minute), bad},
	} {
		f := further{name: "X-Mine", format: c.format}
		got, ok := f.parse(c.value, noon)
		if !ok {
			got = bad
		}
		if got != c.want {
			t.Errorf("%s %q: %v, want %v", c.format, c.value, got, c.want)
		}
	}
	envoy := further{name: "X-Envoy-Upstream-Rq-Timeout-Ms", format: FormatMillis}
	if got, ok := envoy.parse("0", noon); got != forever || !ok {
		t.Errorf("0 of Envoy is %v, %v", got, ok)
	}
}

// A wall-clock step, C058: the deadline of an absolute header is an instant of the wall clock once, at the
// door. What comes of it, and of a stamp, has a monotonic reading, so that it does not move
// when the wall clock does.
func TestWallClockStepOfHeaders_C058(t *testing.T) {
	s := &Server{
		DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatEpochMillis}},
		Trusted:         func(*http.Request) bool { return true },
	}
	r := request("X-Mine: "+millisAt(time.Hour), "X-Request-Start: "+millisAt(-5*time.Second))
	v := s.visit(nil, r)
	if d := v.budget.Deadline; d == d.Round(0) {
		t.Errorf("the deadline %v has no monotonic reading", d)
	}
	if a := v.work().Arrival; a.IsZero() || a == a.Round(0) {
		t.Errorf("the arrival %v has no monotonic reading", a)
	}

	// The wall clock is stepped while the request waits: what is left is what is left. An
	// instant is told by the clock as it is then, since that is what others compare it with.
	header := []string{"Expect-Within: 3600", "X-Mine: " + millisAt(2*time.Hour)}
	b := s.budget(request(header...), noon, false)
	for _, step := range []time.Duration{0, -time.Hour, time.Hour} {
		later := noon.Add(10 * time.Minute)
		stepWall(t, &later, step)
		h := request(header...).Header
		b.Forward(h, later, 0)
		if got := h.Get("Expect-Within"); got != "3000.000" {
			t.Errorf("step %v: %s s left of 3600 after 600", step, got)
		}
		if got := h.Get("X-Mine"); got != millisAt(time.Hour+step) {
			t.Errorf("step %v: until %s, want %s", step, got, millisAt(time.Hour+step))
		}
	}
}

// stepWall moves the wall clock of t and leaves its monotonic reading, which no
// method of time.Time does. It relies on the layout of time.Time: the seconds of
// the wall clock begin at bit 30 of its first word.
func stepWall(t *testing.T, at *time.Time, d time.Duration) {
	t.Helper()
	before := *at
	*(*uint64)(unsafe.Pointer(at)) += uint64(int64(d/time.Second) << 30)
	if at.Sub(before) != 0 || at.Unix()-before.Unix() != int64(d/time.Second) {
		t.Skip("time.Time is laid out differently")
	}
}

// C049 for every format: never longer than what is left, rounded down by less than a unit,
// at least one, and read back by ourselves.
func FuzzFurtherForwarded(f *testing.F) {
	for _, left := range []int64{-1, 0, 1, 99e6, 1e8, 999_999, 1_000_001, 3600e9, 100080e9, int64(maxBudget)} {
		f.Add(left)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		left := min(time.Duration(ns), maxBudget)
		for _, format := range []DeadlineFormat{"", FormatMillis, FormatSeconds, FormatGo, FormatGRPC, FormatEpochMillis, FormatFinagle} {
			h := further{name: "X-Mine", format: format}
			value := h.text(left, noon)
			got, ok := h.parse(value, noon)
			unit := time.Millisecond
			switch {
			case format == FormatFinagle, format == FormatGo && left < time.Millisecond:
				unit = 1
			case format == FormatGRPC:
				unit = map[byte]time.Duration{'n': 1, 'u': 1e3, 'm': 1e6, 'S': time.Second, 'M': time.Minute, 'H': time.Hour}[value[len(value)-1]]
			}
			if !ok || got <= 0 || got > max(left, unit) {
				t.Errorf("%s: %v is written as %q, which reads as %v, %v", format, left, value, got, ok)
			}
			if left-got >= unit && got != maxBudget && format != FormatFinagle {
				t.Errorf("%s: %v is written as %q, which gives away %v", format, left, value, left-got)
			}
			for i := range len(value) {
				if value[i] < ' ' || value[i] > '~' {
					t.Errorf("%s: %q is not ASCII", format, value)
				}
			}
		}
	})
}

// FuzzFurtherHeaders reads like a slow model: a pattern for the syntax and big numbers.
func FuzzFurtherHeaders(f *testing.F) {
	for _, v := range []string{"1500", "1.5", "0", "-1", "99999999H", "1764518400123", "1764518400000000000 1764518460000000000", "1h2m3s", "9999999999999999999", "1e300"} {
		f.Add(v)
	}
	most := new(big.Rat).SetInt64(int64(maxBudget))
	f.Fuzz(func(t *testing.T, value string) {
		for _, c := range []struct {
			format DeadlineFormat
			syntax string
			unit   int64
			since  bool
		}{
			{FormatMillis, `^([0-9]{1,19})$`, 1e6, false},
			{FormatSeconds, `^([0-9]{1,19}(?:\.[0-9]{1,19})?)$`, 1e9, false},
			{FormatEpochMillis, `^([0-9]{1,19})$`, 1e6, true},
			{FormatFinagle, `^[0-9]{1,19} ([0-9]{1,19})$`, 1, true},
		} {
			h := further{name: "X-Mine", format: c.format}
			got, ok := h.parse(value, noon)
			m := regexp.MustCompile(c.syntax).FindStringSubmatch(value)
			if m == nil {
				if ok {
					t.Errorf("%s %q is valid: %v", c.format, value, got)
				}
				continue
			}
			want, _ := new(big.Rat).SetString(m[1])
			want.Mul(want, new(big.Rat).SetInt64(c.unit))
			if c.since {
				want.Sub(want, new(big.Rat).SetInt64(noon.UnixNano()))
				if want.Cmp(new(big.Rat).SetInt64(int64(-wrongUnit))) < 0 {
					if ok {
						t.Errorf("%s %q is a wrong unit, and valid: %v", c.format, value, got)
					}
					continue
				}
			}
			if want.Cmp(most) > 0 {
				want.Set(most)
			}
			whole := new(big.Int).Quo(want.Num(), want.Denom())
			if whole.Sign() < 0 {
				whole.SetInt64(0)
			}
			if !ok || whole.Cmp(big.NewInt(int64(got))) != 0 {
				t.Errorf("%s %q: %v %v, want %v ns", c.format, value, got, ok, whole)
			}
		}
	})
}

// Several values of a header: the shortest counts, and that there were several is noted.
func TestFurtherDuplicates(t *testing.T) {
	s := &Server{DeadlineHeaders: []DeadlineHeader{{"x-mine", FormatSeconds}, {"X-Other", FormatMillis}}}
	b := s.budget(request("X-Mine: 5", "X-Mine: 3", "X-Mine: x", "X-Other: 4000"), noon, false)
	if b.Deadline.Sub(noon) != 3*time.Second || b.Source != "X-Mine" {
		t.Errorf("%v by %q", b.Deadline.Sub(noon), b.Source)
	}
	if n := s.Stats().DeadlineErrors; n["X-Mine"] != 1 || n["X-Other"] != 0 || len(n) != numDialects+2 {
		t.Errorf("%v", n)
	}
	h := http.Header{"X-Mine": {"5", "3", "x"}, "X-Other": {"4000"}}
	b.Forward(h, noon.Add(time.Second), 5*time.Millisecond)
	if h.Get("X-Mine") != "1.995" || len(h["X-Mine"]) != 1 || h.Get("X-Other") != "1995" || len(h) != 2 {
		t.Errorf("%v", h)
	}
	// A Server that takes its place counts on, and has headers of its own.
	next := &Server{DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatMillis}}}
	next.Succeed(s)
	next.budget(request("X-Mine: x"), noon, false)
	if n := next.Stats().DeadlineErrors; n["X-Mine"] != 2 {
		t.Errorf("%v", n)
	}
}

func TestValidate(t *testing.T) {
	headers := func(h ...DeadlineHeader) *Server { return &Server{DeadlineHeaders: h} }
	var many []DeadlineHeader
	for i := range maxFurther + 1 {
		many = append(many, DeadlineHeader{Name: "X-" + strconv.Itoa(i)})
	}
	for _, c := range []struct {
		s    *Server
		want string
	}{
		{&Server{}, ""},
		{headers(many[:maxFurther]...), ""},
		{headers(many...), "Server.DeadlineHeaders has 13 headers: up to 12 are read"},
		{headers(DeadlineHeader{Name: "X Y"}), `deadline header "X Y" is no name of a header: letters, digits and !#$%&'*+-.^_` + "`|~ are allowed"},
		{headers(DeadlineHeader{}), `deadline header "" is no name of a header: letters, digits and !#$%&'*+-.^_` + "`|~ are allowed"},
		{headers(DeadlineHeader{Name: "transfer-encoding"}), "deadline header Transfer-Encoding has a meaning of its own: name another"},
		{headers(DeadlineHeader{Name: "x-request-start"}), "deadline header X-Request-Start has a meaning of its own: name another"},
		{headers(DeadlineHeader{Name: "grpc-timeout"}), "deadline header Grpc-Timeout is read anyway: leave it out"},
		{headers(DeadlineHeader{Name: "X-A", Format: "min"}), `deadline header X-A has the format "min": ms, s, go, grpc, epoch_ms and finagle are known`},
		{headers(DeadlineHeader{Name: "X-A"}, DeadlineHeader{Name: "x-a", Format: "s"}), "deadline header X-A is there twice: say in which format it is"},
		{&Server{HopMargin: -1}, "Server.HopMargin -1ns is out of range: 1ns to 1m, or 0 for 5ms"},
		{&Server{HopMargin: time.Hour}, "Server.HopMargin 1h0m0s is out of range: 1ns to 1m, or 0 for 5ms"},
		{&Server{HopMargin: time.Minute}, ""},
		{&Server{Forward: DialectNone + 1}, "Server.Forward 6 does not exist: 0 to 5"},
		{&Server{ForwardOnly: true}, "Server.ForwardOnly needs Server.Forward: name the header that takes the place of those of the caller"},
		{&Server{ForwardOnly: true, Forward: DialectNone}, ""},
		{&Server{Markers: 4}, "Server.Markers 4 has unknown bits: EnvoyMarkers and FinagleMarkers are known"},
		{&Server{MaxBody: -1}, "Server.MaxBody -1 is negative: say how many bytes a body may have, or 0 for any"},
		{&Server{Deadline: -1}, "Server.Deadline -1ns is negative: say how long a request may take that brings no deadline, or 0 for ever"},
		{&Server{DeadlineCap: -time.Second}, "Server.DeadlineCap -1s is negative: say what the longest deadline is, or 0 for any"},
		{&Server{Deadline: time.Minute, DeadlineCap: time.Minute}, ""},
		{&Server{Deadline: time.Minute + 1, DeadlineCap: time.Minute}, "Server.Deadline 1m0.000000001s is longer than Server.DeadlineCap 1m0s: no request may have it"},
		{&Server{Stream: true, Deadline: time.Minute, DeadlineCap: time.Hour}, ""},
		{&Server{PrereadTimeout: -1}, "Server.PrereadTimeout -1ns is negative: say how long a body may take to arrive, or 0 for the default"},
		{&Server{SlowClient: -time.Second}, "Server.SlowClient -1s is negative: say how long a client may be waited for, 0 for 10s, or PatientClient for ever"},
		{&Server{SlowClient: PatientClient}, ""},
		{&Server{OverloadStatus: 500}, "Server.OverloadStatus 500 is neither 503 nor 429: clients take no other for an overload"},
		{&Server{OverloadStatus: 429}, ""},
		{&Server{OverloadStatus: 503}, ""},
		{&Server{MaxPreread: -2}, "Server.MaxPreread -2 is negative: say how many bytes of a body are read in advance, 0 for 1048576, or NoPreread"},
		{&Server{MaxPreread: NoPreread}, ""},
		{&Server{MaxBuffered: -1}, "Server.MaxBuffered -1 is negative: say how many bytes all bodies may have, or 0 for 67108864; NoPreread as MaxPreread reads none"},
		{&Server{MaxUpgraded: -1}, "Server.MaxUpgraded -1 is negative: say how many connections may be upgraded, or 0 for 65536"},
	} {
		c.s.Limiter, c.s.Next = one(limiter(1, goodput.Config{})), nothing
		got := ""
		if err := c.s.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		// Who did not ask hears it from the first request, and from each.
		for range 2 {
			func() {
				defer func() {
					if p := recover(); (p != nil) != (c.want != "") || p != nil && p != "goodputhttp: "+c.want {
						t.Errorf("panics with %v, want %q", p, c.want)
					}
				}()
				status(c.s, from("192.0.2.1:80"))
			}()
		}
	}
	for _, s := range []*Server{{}, {Limiter: one(nil)}} {
		if s.Validate() == nil {
			t.Error("nothing is missing")
		}
	}
}
