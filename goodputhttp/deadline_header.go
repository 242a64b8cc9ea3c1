package goodputhttp

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A DeadlineFormat is how a header says how long its caller waits. It is the word that a
// policy file has for it.
//
//	""         as ms
//	ms         1-19 digits, milliseconds
//	s          decimal seconds, 1-19 digits either side of the point
//	go         a duration of Go: 1m30s, 250ms
//	grpc       1-8 digits and one of H M S m u n
//	epoch_ms   1-19 digits: the instant itself, in milliseconds since 1970
//	finagle    <when it was said> <the instant>: nanoseconds since 1970, 1-19 digits each
//
// The last two are instants by the clock of the caller. Where the clocks differ by a
// second, so does the deadline: prefer the others. One that is more than a day over is
// taken for a wrong unit, as seconds in place of milliseconds are, and is malformed.
//
// Zero is over on arrival, but for a header of Envoy in milliseconds, X-Envoy-*: there it
// is for ever, as in the one that is always read.
type DeadlineFormat string

// Formats of a deadline.
const (
	FormatMillis      DeadlineFormat = "ms"
	FormatSeconds     DeadlineFormat = "s"
	FormatGo          DeadlineFormat = "go"
	FormatGRPC        DeadlineFormat = "grpc"
	FormatEpochMillis DeadlineFormat = "epoch_ms"
	FormatFinagle     DeadlineFormat = "finagle"
)

// A DeadlineHeader is a header in which callers say how long they wait.
type DeadlineHeader struct {
	Name   string
	Format DeadlineFormat
}

const (
	// maxFurther is what a bit set of 16 has room for beside the headers that are
	// always read.
	maxFurther = 16 - numDialects

	// maxDuration is the longest text of a duration of Go that is read:
	// 2562047h47m16.854775807s, the longest that it writes, has 24 bytes.
	maxDuration = 32

	// wrongUnit: a deadline so long ago is none. Clocks of machines are seconds apart, or
	// hours with a wrong time zone; a unit is wrong by a thousand, which is decades.
	wrongUnit = 24 * time.Hour
)

// notDeadlines are the headers that say something else to HTTP itself, or to us.
var notDeadlines = map[string]bool{
	"Connection": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true, "Date": true,
	"Expect": true, "Host": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
	requestStart: true, queueStart: true, attemptHeader: true, grpcAttemptHeader: true, rejectedHeader: true,
}

// Validate says what is wrong with h, in one sentence.
func (h DeadlineHeader) Validate() error {
	name := http.CanonicalHeaderKey(h.Name)
	switch {
	case !isToken(h.Name):
		return fmt.Errorf("deadline header %q is no name of a header: letters, digits and !#$%%&'*+-.^_`|~ are allowed", h.Name)
	case notDeadlines[name]:
		return fmt.Errorf("deadline header %s has a meaning of its own: name another", name)
	case known(name):
		return fmt.Errorf("deadline header %s is read anyway: leave it out", name)
	}
	switch h.Format {
	case "", FormatMillis, FormatSeconds, FormatGo, FormatGRPC, FormatEpochMillis, FormatFinagle:
		return nil
	}
	return fmt.Errorf("deadline header %s has the format %q: ms, s, go, grpc, epoch_ms and finagle are known", name, h.Format)
}

func known(name string) bool {
	for i := range dialects {
		if dialects[i].header == name {
			return true
		}
	}
	return false
}

// isToken reports whether s may be the name of a header, RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// A further header is one of Server.DeadlineHeaders, ready to be read.
type further struct {
	name   string // canonical
	format DeadlineFormat
	errors *atomic.Uint64
}

// isInstant reports whether the header says until when and not for how long.
func (f *further) isInstant() bool {
	return f.format == FormatEpochMillis || f.format == FormatFinagle
}

// read returns the shortest time that values leave at now; ok is false if none is valid.
// clean is false if one was malformed or the header came more than once.
func (f *further) read(values []string, now time.Time) (left time.Duration, ok, clean bool) {
	left, clean = forever, len(values) == 1
	for _, v := range values {
		t, valid := f.parse(v, now)
		if !valid {
			clean = false
			continue
		}
		left, ok = min(left, t), true
	}
	return left, ok, clean
}

func (f *further) parse(s string, now time.Time) (time.Duration, bool) {
	switch f.format {
	case FormatSeconds:
		return parseSeconds(s)
	case FormatGo:
		return parseGo(s)
	case FormatGRPC:
		return parseGRPC(s)
	case FormatEpochMillis:
		n, ok := digits(s, 19)
		left, sane := untilInstant(time.UnixMilli(int64(min(n, math.MaxInt64))), now)
		return left, ok && sane
	case FormatFinagle:
		said, instant, _ := strings.Cut(s, " ")
		_, first := digits(said, 19)
		n, second := digits(instant, 19)
		left, sane := untilInstant(time.Unix(0, int64(min(n, math.MaxInt64))), now)
		return left, first && second && sane
	}
	if strings.HasPrefix(f.name, "X-Envoy-") {
		return parseEnvoy(s)
	}
	n, ok := digits(s, 19)
	return scale(n, time.Millisecond), ok
}

func parseGo(s string) (time.Duration, bool) {
	if s == "" || len(s) > maxDuration || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	t, err := time.ParseDuration(s)
	return min(t, maxBudget), err == nil
}

// formatGo writes whole milliseconds, or nanoseconds where there are less: String writes
// microseconds with a letter that is not ASCII.
func formatGo(left time.Duration) string {
	if left < time.Millisecond {
		return strconv.FormatInt(int64(max(left, 1)), 10) + "ns"
	}
	return left.Truncate(time.Millisecond).String()
}

// untilInstant returns the time from now to an instant, by the wall clock: it comes from
// another machine. What comes of it is a duration, and steps of the wall clock after that
// change nothing.
func untilInstant(instant, now time.Time) (time.Duration, bool) {
	left := instant.Sub(now) // instant has no monotonic reading; saturates
	return min(max(left, 0), maxBudget), left >= -wrongUnit
}

// text returns what is left at now as the header says it: rounded down, at least one unit.
func (f *further) text(left time.Duration, now time.Time) string {
	switch f.format {
	case FormatSeconds:
		return formatSeconds(left)
	case FormatGo:
		return formatGo(left)
	case FormatGRPC:
		return formatGRPC(left)
	case FormatEpochMillis:
		// Up to a millisecond is cut off, which may be the one that is left: none is over.
		return strconv.FormatInt(now.Add(max(left, time.Millisecond)).UnixMilli(), 10)
	case FormatFinagle:
		said := max(now.UnixNano(), 0)
		return strconv.FormatInt(said, 10) + " " + strconv.FormatInt(said+min(max(left, 1), math.MaxInt64-time.Duration(said)).Nanoseconds(), 10)
	}
	return formatMillis(left)
}
