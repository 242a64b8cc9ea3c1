package verify

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// The bounds of Settings. A run of the longest steps, twelve of 5 m each and their calm, is
// an hour and a half; beyond the bounds of rate and number package load does not go.
const (
	MinLoad, MaxLoad = 0.1, 20
	maxLoads         = 12

	minLength, maxLength     = time.Second, 5 * time.Minute
	minDeadline, maxDeadline = 10 * time.Millisecond, time.Minute

	maxMaxRate     = 100_000
	maxMaxRequests = 10_000_000

	// DefaultCalm is the half load after a step above 1: longer than the 2 s in which a
	// service is to recover and the second that shows it.
	DefaultCalm = 5 * time.Second

	// MaxBody is the largest body of a request: 65,536 of them in flight share one copy, but
	// the connections do not.
	MaxBody = 1 << 20
)

// A Config is a run: its settings, the target, and what surrounds it.
type Config struct {
	Settings

	Target *Target
	Header http.Header
	Body   []byte
	HTTP   string // "auto", "1.1" or "2"

	Capacity float64         // requests per second; 0: it is found
	Trace    []time.Duration // arrivals, from any origin on; nil: as Settings.Arrivals says

	Program, Command string // of the report

	Progress io.Writer // nil: none
	Redraw   bool      // Progress is a terminal
	Columns  int       // that it has, at the beginning; 0: 80
}

// Validate returns one sentence about the first setting that is out of range, named as the
// flag that sets it, or nil.
func (s *Settings) Validate() error {
	switch {
	case len(s.Loads) == 0 || len(s.Loads) > maxLoads:
		return fmt.Errorf("--steps has %d loads: 1 to %d, such as 0.5,1,1.5,3,10", len(s.Loads), maxLoads)
	case s.Length < minLength || s.Length > maxLength:
		return fmt.Errorf("--duration %v is out of range: 1s to 5m", s.Length)
	case s.Deadline < minDeadline || s.Deadline > maxDeadline:
		return fmt.Errorf("--deadline %v is out of range: 10ms to 1m", s.Deadline)
	case s.Objective <= 0 || s.Objective > s.Deadline:
		return fmt.Errorf("--objective %v is out of range: more than 0, at most the deadline, %v, at which callers leave", s.Objective, s.Deadline)
	case s.Attempts < 1 || s.Attempts > 10:
		return fmt.Errorf("--attempts %d is out of range: 1 to 10", s.Attempts)
	case s.Obey && s.Attempts == 1:
		return errors.New("--obey is about callers who try again: it needs --attempts 2 or more")
	case !(s.MaxRate >= 1 && s.MaxRate <= maxMaxRate):
		return fmt.Errorf("--max-rate %v is out of range: 1 to %d requests per second", s.MaxRate, maxMaxRate)
	case s.MaxRequests < 1 || s.MaxRequests > maxMaxRequests:
		return fmt.Errorf("--max-requests %d is out of range: 1 to %d", s.MaxRequests, maxMaxRequests)
	case s.Method != strings.ToUpper(s.Method) && slices.Contains(methods, strings.ToUpper(s.Method)):
		return fmt.Errorf("--method %s is another method than %s: they are told apart by case", s.Method, strings.ToUpper(s.Method))
	case !validMethod(s.Method):
		return fmt.Errorf("--method %q is no method of HTTP, such as GET or POST", s.Method)
	}
	for i, l := range s.Loads {
		switch {
		case !(l >= MinLoad && l <= MaxLoad): // NaN fails too
			return fmt.Errorf("--steps: %v is out of range: %v to %v times the capacity", l, MinLoad, MaxLoad)
		case i > 0 && l <= s.Loads[i-1]:
			return fmt.Errorf("--steps: %v comes after %v: they must ascend, since each is compared with the one before", l, s.Loads[i-1])
		}
	}
	for _, status := range s.Expect {
		if status < 200 || status > 499 || status == http.StatusTooManyRequests {
			return fmt.Errorf("--expect %d is out of range: 200 to 499, without 429, which is a refusal", status)
		}
	}
	return nil
}

// Judgeable returns one sentence about why loads as these cannot be judged, whatever comes of
// them, or nil: the same as is said of a run without them.
func (s *Settings) Judgeable() error {
	top := s.Loads[len(s.Loads)-1]
	switch queue := time.Duration((top - 1) * float64(s.Length)); {
	case s.Loads[0] > halfLoad:
		return fmt.Errorf("--steps begins at %v: one of at most %v shows that nobody is refused where there is room for everybody", s.Loads[0], halfLoad)
	case top <= 1:
		return fmt.Errorf("--steps ends at %v: one above 1 shows what an overload does", top)
	case queue < s.Deadline:
		return fmt.Errorf("--steps ends at %v, and --duration %v of that are a queue of %v without a bound, less than the deadline of %v: nobody would notice. It takes --duration %v",
			top, s.Length, queue.Round(time.Millisecond), s.Deadline, time.Duration(math.Ceil(s.Deadline.Seconds()/(top-1)))*time.Second)
	}
	return nil
}

// methods are those that nobody writes in lower case on purpose: for a server it is an unknown one.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// validMethod: a token, and not CONNECT, after which there is no HTTP.
func validMethod(m string) bool {
	return m != "CONNECT" && m != "" && httpguts.ValidHeaderFieldName(m)
}

// ours are headers that are of one connection (RFC 9110, 7.6.1), or which the generator sets.
var ours = map[string]string{
	"Connection": "of a connection", "Proxy-Connection": "of a connection", "Keep-Alive": "of a connection",
	"Te": "of a connection", "Trailer": "of a connection", "Transfer-Encoding": "of a connection", "Upgrade": "of a connection",
	"Content-Length":                 "that of --body",
	"Host":                           "that of the URL",
	"User-Agent":                     "goodput-load, so that a log shows what this was",
	"X-Envoy-Expected-Rq-Timeout-Ms": "that of --deadline",
}

// Header reads lines of the form "K: V", or says what is wrong with the first that is none.
func Header(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(key) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("--header %q is no header, such as 'Accept: text/html'", hushed(line))
		}
		key = http.CanonicalHeaderKey(key)
		if why := ours[key]; why != "" {
			return nil, fmt.Errorf("--header %s cannot be set: it is %s", key, why)
		}
		h.Add(key, value)
	}
	return h, nil
}

// hushed is a line that was meant to be a header, without what may be a secret.
func hushed(line string) string {
	if name := strings.TrimRight(line[:min(strings.IndexAny(line+" ", ":= "), len(line))], " :"); Secret(name) {
		return name + " ..."
	}
	return line
}

// fits reports, in a sentence, which step does not fit into the caps at that capacity, after
// sent requests; "" if all do. Each caller may send as often as Attempts says.
func (s *Settings) fits(capacity float64, sent int64) string {
	top, each := slices.Max(s.Loads), s.each()
	if rate := top * capacity * float64(s.Attempts); rate > s.MaxRate {
		return fmt.Sprintf("%gx of %s%s are %s, more than --max-rate %s allows: lower the highest of --steps%s",
			top, aSecond(capacity), each, aSecond(rate), aSecond(s.MaxRate), orRaise(s.MaxRate < maxMaxRate))
	}
	total := float64(sent)
	for _, l := range s.Loads {
		total += calmRequests // before it
		total += l * capacity * s.Length.Seconds() * float64(s.Attempts)
		if l > 1 {
			total += 0.5 * capacity * s.Calm.Seconds() * float64(s.Attempts)
		}
	}
	if total = math.Ceil(total); total > float64(s.MaxRequests) {
		return fmt.Sprintf("the steps at a capacity of %s%s are %s requests in all, more than --max-requests %s allows: make --duration or --steps smaller%s",
			aSecond(capacity), each, grouped(total), grouped(float64(s.MaxRequests)), orRaise(s.MaxRequests < maxMaxRequests))
	}
	return ""
}

// each is how often a caller asks, where that is more than once.
func (s *Settings) each() string {
	if s.Attempts <= 1 {
		return ""
	}
	return fmt.Sprintf(" with %d attempts each", s.Attempts)
}

// orRaise is the other way out, if the cap is not the highest that there is.
func orRaise(may bool) string {
	if may {
		return ", or raise it"
	}
	return ""
}

// aSecond writes a rate: 1,200/s, 12.5/s.
func aSecond(rate float64) string { return grouped(rate) + "/s" }

// grouped writes a number in groups of three digits, with a decimal below 100 if it has one.
func grouped(n float64) string {
	if n < 100 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
	}
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
