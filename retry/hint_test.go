package retry

import (
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The time of the client in these tests: an hour after that of the server, whose Date
// is an hour wrong.
var (
	serverTime = time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	clientTime = serverTime.Add(time.Hour)
)

// A hint that is longer than an int32, an int64 or a Duration can hold is the cap, and
// what was sent is still there to see: hashicorp/go-retryablehttp#297,
// urllib3/urllib3#3743, meeb/whoisit#60.
func TestC062C063Seconds(t *testing.T) {
	for _, row := range []struct {
		text   string
		after  time.Duration
		said   bool
		capped bool
	}{
		{"120", 2 * time.Minute, true, false},
		{"0", 0, true, false},
		{"00000012", 12 * time.Second, true, false},
		{" \t7 ", 7 * time.Second, true, false},
		{"1.5", 1500 * time.Millisecond, true, false},
		{"0.000000001", 1, true, false},
		{"0.0000000019999999999999999999", 1, true, false},
		{"31536000", longest, true, false},
		{"31536001", longest, true, true},
		{"31536000.1", longest, true, true},
		{"2147483648", longest, true, true},
		{"9999999999", longest, true, true},
		{"9223372037", longest, true, true},
		{"9223372036854775807", longest, true, true},
		{"18446744073709551616.9", longest, true, true},
		{strings.Repeat("9", 4000), longest, true, true},
		{"-1", 0, false, false},
		{"+1", 0, false, false},
		{"1e3", 0, false, false},
		{"5s", 0, false, false},
		{".5", 0, false, false},
		{"5.", 0, false, false},
		{"1.5.2", 0, false, false},
		{"1,5", 0, false, false},
		{"٣", 0, false, false},
		{"", 0, false, false},
	} {
		got := HTTPHint(http.Header{"Retry-After": {row.text}}, clientTime)
		want := Hint{After: row.after, Said: row.said, Capped: row.capped, Text: strings.Trim(row.text, " \t")}
		if got != want {
			t.Errorf("%.40q: %+v, want %+v", row.text, got, want)
		}
		if got.Capped && !strings.Contains(got.String(), row.text[:8]) {
			t.Errorf("%.40q: says %v, want what was sent", row.text, got)
		}
	}
	if got := HTTPHint(nil, clientTime); got != (Hint{}) {
		t.Errorf("no header: %+v", got)
	}
}

// Both legal forms, and the date in three: NousResearch/hermes-agent#84738.
func TestC065Dates(t *testing.T) {
	for _, row := range []struct {
		text, date string
		after      time.Duration
		said       bool
		capped     bool
	}{
		{"Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", time.Minute, true, false},
		{"Sunday, 06-Nov-94 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", time.Minute, true, false},
		{"Sun Nov  6 08:50:37 1994", "Sun, 06 Nov 1994 08:49:37 GMT", time.Minute, true, false},
		{"Sun, 06 Nov 1994 08:50:37 GMT", "Sun Nov  6 08:49:37 1994", time.Minute, true, false},
		{"Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0, true, false},
		{"Sun, 06 Nov 1994 08:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0, true, false},
		{"Sun, 06 Nov 1994 09:49:47 GMT", "", 10 * time.Second, true, false},
		{"Sun, 06 Nov 1994 09:49:47 GMT", "yesterday", 10 * time.Second, true, false},
		{"Sun, 06 Nov 1994 08:50:37 GMT", "", 0, true, false}, // past, for the client
		{"Fri, 31 Dec 9999 23:59:59 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", longest, true, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", longest, true, true},
		{"Sun, 06 Nov 1994 08:50:37 CET", "", 0, false, false},
		{"1994-11-06T08:50:37Z", "", 0, false, false},
		{"soon", "", 0, false, false},
	} {
		h := http.Header{"Retry-After": {row.text}}
		if row.date != "" {
			h.Set("Date", row.date)
		}
		want := Hint{After: row.after, Said: row.said, Capped: row.capped, Text: row.text}
		if got := HTTPHint(h, clientTime); got != want {
			t.Errorf("%q, Date %q: %+v, want %+v", row.text, row.date, got, want)
		}
	}
}

func TestSeveralHints(t *testing.T) {
	for _, row := range []struct {
		values []string
		want   string
	}{
		{[]string{"1", "3", "2"}, "3"},
		{[]string{"soon", "2"}, "2"},
		{[]string{"2", "soon"}, "2"},
		{[]string{"soon", "later"}, "soon"},
		{[]string{"", "0"}, "0"},
		{[]string{"1", "Sun, 06 Nov 1994 09:49:39 GMT"}, "Sun, 06 Nov 1994 09:49:39 GMT"},
	} {
		if got := HTTPHint(http.Header{"Retry-After": row.values}, clientTime); got.Text != row.want {
			t.Errorf("%q: takes %q, want %q", row.values, got.Text, row.want)
		}
	}
}

// One parser: the same hint is the same number by HTTP, by gRPC and for Do, whose error
// of a limiter and whose mark go another way. NousResearch/hermes-agent#84738.
func TestC073SameNumbersEverywhere(t *testing.T) {
	for _, seconds := range []int64{0, 1, 60, 31536000, 31536001, 9223372037, 1 << 53} {
		s := strconv.FormatInt(seconds, 10)
		all := []Hint{
			HTTPFault(503, http.Header{"Retry-After": {s}}, clientTime).Hint,
			HTTPFault(429, http.Header{"Retry-After": {s + ".0"}}, clientTime).Hint,
			HTTPFault(200, http.Header{"Grpc-Status": {"14"}, "Grpc-Retry-Pushback-Ms": {s + "000"}}, clientTime).Hint,
			GRPCHint(s + "000"),
			Fault{Err: After(errTest, cut(seconds))}.filled().Hint,
		}
		for i, h := range all {
			if h.After != min(cut(seconds), longest) || !h.Said || h.Never || h.Capped != (seconds > 31536000) {
				t.Errorf("%s s by way %d: %+v", s, i, h)
			}
		}
	}
	for value, want := range map[string]Hint{
		"":                     {},
		"0":                    {Said: true, Exact: true},
		"300":                  {Said: true, Exact: true, After: 300 * time.Millisecond},
		"-1":                   {Never: true},
		"-99999999999999":      {Never: true},
		"x":                    {Never: true},
		"1.5":                  {Never: true},
		" 1":                   {Never: true},
		"99999999999999999999": {Said: true, Exact: true, After: longest, Capped: true},
	} {
		want.Text = value
		if got := GRPCHint(value); got != want {
			t.Errorf("pushback %q: %+v, want %+v", value, got, want)
		}
	}
}

func cut(seconds int64) time.Duration {
	if seconds > int64(2*longest/time.Second) {
		return 2 * longest
	}
	return time.Duration(seconds) * time.Second
}

var plain = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// FuzzHTTPHint compares with arithmetic that has no limits.
func FuzzHTTPHint(f *testing.F) {
	for _, s := range []string{"1", "00012", "1.5", "9223372037", "-1", "Sun, 06 Nov 1994 08:49:37 GMT", "", "1e9", "."} {
		f.Add(s, "Sun, 06 Nov 1994 08:49:37 GMT")
	}
	f.Fuzz(func(t *testing.T, text, date string) {
		got := HTTPHint(http.Header{"Retry-After": {text}, "Date": {date}}, clientTime)
		if got.After < 0 || got.After > longest || got.Capped && got.After != longest || !got.Said && got.After != 0 || got.Never {
			t.Fatalf("%q, %q: %+v", text, date, got)
		}
		_ = got.String()
		if bare := strings.Trim(text, " \t"); plain.MatchString(bare) {
			exact, _ := new(big.Rat).SetString(bare)
			exact.Mul(exact, big.NewRat(int64(time.Second), 1))
			ns := new(big.Int).Quo(exact.Num(), exact.Denom())
			want := longest
			if exact.Cmp(big.NewRat(int64(longest), 1)) <= 0 {
				want = time.Duration(ns.Int64())
			}
			if !got.Said || got.After != want {
				t.Fatalf("%q: %+v, want %v", text, got, want)
			}
		} else if _, err := http.ParseTime(bare); (err == nil) != got.Said {
			t.Fatalf("%q: %+v, but as a date: %v", text, got, err)
		}
	})
}

func FuzzGRPCHint(f *testing.F) {
	for _, s := range []string{"1", "-1", "", "300", "1.5", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := GRPCHint(text)
		if got.Said && got.Never || got.After < 0 || got.After > longest || (got == Hint{}) != (text == "") {
			t.Fatalf("%q: %+v", text, got)
		}
		if n, err := strconv.ParseUint(text, 10, 32); err == nil && !strings.Contains(text, "_") && got.After != time.Duration(n)*time.Millisecond {
			t.Fatalf("%q: %+v", text, got)
		}
	})
}

// The usual hints allocate nothing.
func TestHintAllocatesNothing(t *testing.T) {
	for _, h := range []http.Header{
		{},
		{"Retry-After": {"12"}},
		{"Retry-After": {"1.5"}, "Goodput-Rejected": {"queue_full"}},
		{"Retry-After": {"9999999999"}, "X-Envoy-Overloaded": {"true"}},
		{"Grpc-Status": {"14"}, "Grpc-Retry-Pushback-Ms": {"300"}},
		{"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}},
	} {
		var f Fault
		if n := testing.AllocsPerRun(100, func() { f = HTTPFault(503, h, clientTime) }); n != 0 && len(h["Date"]) == 0 {
			t.Errorf("%v: %v allocations", h, n)
		}
		_ = f
	}
}
