package goodputhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// The headers in which callers say how long they will wait. Every one of them
// is relative: the clock starts when the header of the request is complete.
//
//	grpc-timeout                     1-8 digits and one of H M S m u n; read only
//	                                 if the content type is application/grpc*
//	connect-timeout-ms               1-10 digits, milliseconds
//	x-envoy-expected-rq-timeout-ms   1-19 digits, milliseconds
//	Expect-Within                    decimal seconds, 1-19 digits either side of the point
//
// Zero differs. In Envoy's header 0 means that it will wait for ever, so it is
// no deadline. In the others the time is over on arrival. The Connect protocol
// asks for a positive integer, but its servers take 0 as over at once, and
// taking it for endless would be the one dangerous reading.
//
// A value that is too large for a time.Duration is not an error: it is taken
// for maxBudget. Anything else (signs, spaces, exponents, lower-case units, one
// digit too many) is malformed: ignored and counted, and never a reason to fail
// the request.
const (
	grpcTimeout = iota
	connectTimeout
	envoyTimeout
	expectWithin
	numDialects
)

// forever is the value of a header that says: no deadline.
const forever time.Duration = math.MaxInt64

// maxBudget is 146 years: very long, and far enough from the 292 years of a
// time.Duration that adding it to the time or taking a margin off cannot overflow.
const maxBudget time.Duration = 1 << 62

// A dialect is one header: its name in canonical form, how a value is read, and
// how one is written.
type dialect struct {
	header string
	parse  func(value string) (time.Duration, bool)
	format func(left time.Duration) string
}

var dialects = [numDialects]dialect{
	grpcTimeout:    {"Grpc-Timeout", parseGRPC, formatGRPC},
	connectTimeout: {"Connect-Timeout-Ms", parseConnect, formatConnect},
	envoyTimeout:   {"X-Envoy-Expected-Rq-Timeout-Ms", parseEnvoy, formatMillis},
	expectWithin:   {"Expect-Within", parseSeconds, formatSeconds},
}

// read returns the shortest valid value; ok is false if there is none. clean is
// false if a value was malformed or the header came more than once.
func (d *dialect) read(values []string) (left time.Duration, ok, clean bool) {
	left, clean = forever, len(values) == 1
	for _, v := range values {
		t, valid := d.parse(v)
		if !valid {
			clean = false
			continue
		}
		left, ok = min(left, t), true
	}
	return left, ok, clean
}

// digits reads a number of 1 to most digits, at most 19: those fit a uint64.
func digits(s string, most int) (uint64, bool) {
	if len(s) == 0 || len(s) > most {
		return 0, false
	}
	var n uint64
	for i := 0; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, true
}

// scale returns n units, at most maxBudget.
func scale(n uint64, unit time.Duration) time.Duration {
	if n > uint64(maxBudget/unit) {
		return maxBudget
	}
	return time.Duration(n) * unit
}

// grpcUnits go from the finest to the coarsest, as formatGRPC tries them.
var grpcUnits = [...]struct {
	letter byte
	unit   time.Duration
}{
	{'n', time.Nanosecond},
	{'u', time.Microsecond},
	{'m', time.Millisecond},
	{'S', time.Second},
	{'M', time.Minute},
	{'H', time.Hour},
}

func parseGRPC(s string) (time.Duration, bool) {
	if len(s) < 2 {
		return 0, false
	}
	last := len(s) - 1
	n, ok := digits(s[:last], 8)
	if !ok {
		return 0, false
	}
	for _, u := range grpcUnits {
		if u.letter == s[last] {
			return scale(n, u.unit), true
		}
	}
	return 0, false
}

func parseConnect(s string) (time.Duration, bool) {
	n, ok := digits(s, 10)
	return scale(n, time.Millisecond), ok
}

func parseEnvoy(s string) (time.Duration, bool) {
	n, ok := digits(s, 19)
	if ok && n == 0 {
		return forever, true
	}
	return scale(n, time.Millisecond), ok
}

func parseSeconds(s string) (time.Duration, bool) {
	whole, fraction, point := s, "", false
	for i := 0; i < len(s); i++ {
		if s[i] == '.' {
			whole, fraction, point = s[:i], s[i+1:], true
			break
		}
	}
	n, ok := digits(whole, 19)
	if !ok {
		return 0, false
	}
	left := scale(n, time.Second)
	if !point {
		return left, true
	}
	if _, ok := digits(fraction, 19); !ok {
		return 0, false
	}
	fraction = (fraction + "000000000")[:9] // what is below a nanosecond is cut off
	nanos, _ := digits(fraction, 9)
	return min(left+time.Duration(nanos), maxBudget), true
}

// The formats round down, so that nobody downstream works for longer than the
// caller waits, and write at least 1 unit, because 0 means for ever to one
// reader and too late to another. Below 1 ms left a header in milliseconds
// therefore says up to 1 ms too much; grpc-timeout, in nanoseconds, never does.

func formatGRPC(left time.Duration) string {
	left = max(left, 1)
	for _, u := range grpcUnits {
		if n := int64(left / u.unit); n <= 99_999_999 {
			return strconv.FormatInt(n, 10) + string(u.letter)
		}
	}
	panic("goodputhttp: 292 years are 2.6 million hours, which are 7 digits")
}

func millis(left time.Duration) int64 { return max(left.Milliseconds(), 1) }

func formatConnect(left time.Duration) string {
	return formatMillis(min(left, 9_999_999_999*time.Millisecond))
}

func formatMillis(left time.Duration) string {
	n := millis(left)
	if n >= int64(len(thousands)/4) {
		return strconv.FormatInt(n, 10)
	}
	digits := int64(1)
	for limit := int64(10); n >= limit; limit *= 10 {
		digits++
	}
	return thousands[4*n+4-digits : 4*n+4]
}

// thousands are the numbers from 0000 to 9999 in a row, so that most budgets are written
// without an allocation: 40 KB for one per request to a dependency.
var thousands = func() string {
	b := make([]byte, 0, 4*10_000)
	for n := range 10_000 {
		b = append(b, byte('0'+n/1000), byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
	}
	return string(b)
}()

func formatSeconds(left time.Duration) string {
	ms := millis(left)
	fraction := strconv.FormatInt(1000+ms%1000, 10)[1:] // three digits
	return strconv.FormatInt(ms/1000, 10) + "." + fraction
}

// isGRPC reports whether the content type is application/grpc, with or without
// a suffix: +proto, ;charset, -web.
func isGRPC(h http.Header) bool {
	const base = "application/grpc"
	v := h["Content-Type"]
	if len(v) == 0 || len(v[0]) < len(base) || v[0][:len(base)] != base {
		return false
	}
	rest := v[0][len(base):]
	return rest == "" || rest[0] == '+' || rest[0] == ';' || rest[0] == '-'
}
