package goodputhttp

import (
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// C061 (grpc/grpc-dotnet#46), C048 (grpc-ecosystem/grpc-gateway#7382). grpc-go
// answers a malformed grpc-timeout with INTERNAL; we ignore and count it and
// pass it on, so that the same server gives the same answer. Which values are
// malformed must therefore be the same: the column is what decodeTimeout of
// grpc-go's internal/transport/http_util.go does.
func TestC061GRPCTimeoutReadsLikeGRPCGo(t *testing.T) {
	for _, c := range []struct {
		value string
		want  time.Duration
		grpc  string
	}{
		{"0S", 0, "0"},
		{"5X", -1, "unit is not recognized"},
		{"5s", -1, "unit is not recognized"},
		{"123456789m", -1, "too long"},
		{"m5", -1, "unit is not recognized"},
		{"00000005S", 5 * time.Second, "5s"},
		{"", -1, "too short"},
		{"S", -1, "too short"},
		{"-5S", -1, "ParseUint: invalid syntax"},
		{"+5S", -1, "ParseUint: invalid syntax"},
		{"5.0S", -1, "ParseUint: invalid syntax"},
		{"5 S", -1, "ParseUint: invalid syntax"},
		{"1e3S", -1, "ParseUint: invalid syntax"},
		{"NaNS", -1, "ParseUint: invalid syntax"},
		{"1H", time.Hour, "1h"},
		{"1M", time.Minute, "1m"},
		{"1m", time.Millisecond, "1ms"},
		{"1u", time.Microsecond, "1µs"},
		{"1n", 1, "1ns"},
		{"99999999S", 99_999_999 * time.Second, "99999999s"},
		{"99999999M", maxBudget, "190 years; we stop at 146"},
		{"99999999H", maxBudget, "11,415 years, clamped to 292"},
	} {
		got, ok := parseGRPC(c.value)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("grpc-timeout %q: %v, want %v (grpc-go: %s)", c.value, got, c.want, c.grpc)
		}
	}
}

func TestHeaderValues(t *testing.T) {
	const bad = -1
	for _, c := range []struct {
		dialect int
		value   string
		want    time.Duration
	}{
		{connectTimeout, "1500", 1500 * time.Millisecond},
		{connectTimeout, "0", 0}, // over at once: see the comment on the headers
		{connectTimeout, "9999999999", 9999999999 * time.Millisecond},
		{connectTimeout, "10000000000", bad}, // 11 digits
		{connectTimeout, "-1", bad},
		{connectTimeout, "1.5", bad},
		{envoyTimeout, "0", forever},
		{envoyTimeout, "000", forever},
		{envoyTimeout, "250", 250 * time.Millisecond},
		{envoyTimeout, "9999999999999999999", maxBudget},
		{envoyTimeout, "99999999999999999999", bad}, // 20 digits
		{envoyTimeout, "-1", bad},
		{envoyTimeout, "1s", bad},
		{envoyTimeout, "0x10", bad},
		{envoyTimeout, "1,2", bad},
		{envoyTimeout, "٣", bad}, // an Arabic digit
		{expectWithin, "0", 0},
		{expectWithin, "0.0", 0},
		{expectWithin, "1.5", 1500 * time.Millisecond},
		{expectWithin, "0.0000000019", 1}, // cut off, not rounded up
		{expectWithin, "0.30000000000000004", 300 * time.Millisecond},
		{expectWithin, "9999999999999999999.9", maxBudget},
		{expectWithin, "99999999999999999999", bad},
		{expectWithin, "NaN", bad},
		{expectWithin, "Infinity", bad},
		{expectWithin, "1e9", bad},
		{expectWithin, ".5", bad},
		{expectWithin, "5.", bad},
		{expectWithin, "1.2.3", bad},
		{expectWithin, "-0", bad},
		{expectWithin, "", bad},
	} {
		got, ok := dialects[c.dialect].parse(c.value)
		if !ok {
			got = bad
		}
		if got != c.want {
			t.Errorf("%s %q: %v, want %v", dialects[c.dialect].header, c.value, got, c.want)
		}
	}
}

// The smallest valid value counts; several lines or a bad one are noted.
func TestDuplicateHeaders(t *testing.T) {
	for _, c := range []struct {
		values    []string
		left      time.Duration
		ok, clean bool
	}{
		{[]string{"200"}, 200 * time.Millisecond, true, true},
		{[]string{"300", "200"}, 200 * time.Millisecond, true, false},
		{[]string{"x", "200", "-5"}, 200 * time.Millisecond, true, false},
		{[]string{"0", "200"}, 200 * time.Millisecond, true, false}, // 0 is for ever
		{[]string{"0"}, forever, true, true},
		{[]string{"x"}, forever, false, false},
	} {
		left, ok, clean := dialects[envoyTimeout].read(c.values)
		if left != c.left || ok != c.ok || clean != c.clean {
			t.Errorf("%q: %v %v %v, want %v %v %v", c.values, left, ok, clean, c.left, c.ok, c.clean)
		}
	}
}

// C049 (grpc/grpc#17079): at most 8 digits, a coarser unit when needed, never
// longer than what is left. Rounded down; at least 1 unit.
func TestC049Formats(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		left                          time.Duration
		grpc, connect, envoy, seconds string
	}{
		{-time.Second, "1n", "1", "1", "0.001"},
		{0, "1n", "1", "1", "0.001"},
		{1, "1n", "1", "1", "0.001"},
		{99 * time.Millisecond, "99000000n", "99", "99", "0.099"},
		{100 * time.Millisecond, "100000u", "100", "100", "0.100"},
		{1999999 * time.Nanosecond, "1999999n", "1", "1", "0.001"},
		{time.Hour, "3600000m", "3600000", "3600000", "3600.000"},
		{100_080 * time.Second, "100080S", "100080000", "100080000", "100080.000"}, // 27.8 h
		{30 * day, "2592000S", "2592000000", "2592000000", "2592000.000"},
		// 300 years do not fit a time.Duration; the longest that does:
		{1<<63 - 1, "2562047H", "9999999999", "9223372036854", "9223372036.854"},
	} {
		got := [4]string{formatGRPC(c.left), formatConnect(c.left), formatMillis(c.left), formatSeconds(c.left)}
		if want := [4]string{c.grpc, c.connect, c.envoy, c.seconds}; got != want {
			t.Errorf("%v: %q, want %q", c.left, got, want)
		}
	}
}

func TestIsGRPC(t *testing.T) {
	for kind, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x": true,
		"application/grpc-web+proto": true, "application/grpcx": false, "application/json": false, "": false,
	} {
		if got := isGRPC(http.Header{"Content-Type": {kind}}); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
	if isGRPC(nil) {
		t.Error("no content type is gRPC")
	}
}

// model reads a value the slow way: a pattern for the syntax and big numbers
// for the arithmetic.
func model(dialect int, value string) (*big.Rat, bool) {
	syntax := [...]string{`^[0-9]{1,8}[HMSmun]$`, `^[0-9]{1,10}$`, `^[0-9]{1,19}$`, `^[0-9]{1,19}(\.[0-9]{1,19})?$`}
	if !regexp.MustCompile(syntax[dialect]).MatchString(value) {
		return nil, false
	}
	unit := int64(1e6)
	switch dialect {
	case grpcTimeout:
		last := len(value) - 1
		unit = map[byte]int64{'H': 3600e9, 'M': 60e9, 'S': 1e9, 'm': 1e6, 'u': 1e3, 'n': 1}[value[last]]
		value = value[:last]
	case expectWithin:
		unit = 1e9
	}
	n, ok := new(big.Rat).SetString(value)
	if !ok {
		panic(value)
	}
	return n.Mul(n, big.NewRat(unit, 1)), true
}

func FuzzDeadlineHeaders(f *testing.F) {
	for d := range numDialects {
		for _, v := range []string{"0S", "99999999H", "00000005S", "123456789m", "15", "0", "1.5", "-1", "NaN", "1e300", "9223372036854775808", "0.0000000001"} {
			f.Add(uint8(d), v)
		}
	}
	most := new(big.Rat).SetInt64(int64(maxBudget))
	f.Fuzz(func(t *testing.T, which uint8, value string) {
		d := int(which) % numDialects
		got, ok := dialects[d].parse(value)
		want, valid := model(d, value)
		if ok != valid {
			t.Fatalf("%s %q: valid %v, want %v", dialects[d].header, value, ok, valid)
		}
		if !ok {
			return
		}
		if d == envoyTimeout && want.Sign() == 0 {
			if got != forever {
				t.Fatalf("%q is %v, want for ever", value, got)
			}
			return
		}
		whole := new(big.Int).Quo(want.Num(), want.Denom()) // down
		if want.Cmp(most) > 0 {
			whole = big.NewInt(int64(maxBudget))
		}
		if whole.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("%s %q: %d ns, want %v", dialects[d].header, value, got, whole)
		}
	})
}

// FuzzForwarded: whatever is written can be read again, is not longer than what
// is left (but for the least unit), and is short of it by less than one unit.
func FuzzForwarded(f *testing.F) {
	for _, left := range []int64{-1, 0, 1, 99e6, 1e8, 3600e9, 100080e9, 1<<63 - 1} {
		f.Add(left)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		left := time.Duration(ns)
		for i := range dialects {
			d := &dialects[i]
			value := d.format(left)
			got, ok := d.parse(value)
			least := time.Millisecond
			if i == grpcTimeout {
				least = 1
				if len(value) > 9 {
					t.Fatalf("%v: %q has more than 8 digits", left, value)
				}
			}
			if !ok || got == 0 || got == forever {
				t.Fatalf("%s: %v is written as %q, which reads as %v %v", d.header, left, value, got, ok)
			}
			if got > max(left, least) {
				t.Fatalf("%s: %v is written as %q, which is longer", d.header, left, value)
			}
			unit := least
			if i == grpcTimeout {
				unit = map[byte]time.Duration{
					'n': 1, 'u': 1e3, 'm': 1e6, 'S': time.Second, 'M': time.Minute, 'H': time.Hour,
				}[value[strings.IndexAny(value, "numSMH")]]
			}
			clamped := got == maxBudget || value == "9999999999"
			if !clamped && left-got >= unit {
				t.Fatalf("%s: %v is written as %q, which gives away %v", d.header, left, value, left-got)
			}
		}
	})
}
