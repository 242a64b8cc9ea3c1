package strictyaml

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/flags"
)

// Day is the longest duration in a file, as in flags.
const Day = 24 * time.Hour

// A Node is a value of the file, or its absence. Absent, every method returns the
// zero value without an error: Map.Need is where absence is one. name is how its
// errors call it: its key.
type Node struct {
	f    *File
	tree *tree // nil if absent
	name string
}

// Present reports whether the value is in the file.
func (n Node) Present() bool { return n.tree != nil }

// IsMap, IsList and IsText say what the value is, for those that may be several.
func (n Node) IsMap() bool  { return n.tree != nil && n.tree.kind == mapping }
func (n Node) IsList() bool { return n.tree != nil && n.tree.kind == list }
func (n Node) IsText() bool { return n.tree != nil && n.tree.kind == scalar }

// Name returns the key.
func (n Node) Name() string { return n.name }

// Fail adds a sentence about the value. It should start with what is wrong.
func (n Node) Fail(format string, args ...any) {
	if n.tree != nil {
		n.f.fail(n.tree.at, format, args...)
	}
}

// Clash adds a sentence about two values that contradict each other.
func (n Node) Clash(other Node, format string, args ...any) {
	if n.tree == nil {
		return
	}
	p := n.f.fail(n.tree.at, format, args...)
	if other.tree == nil {
		return
	}
	if at := (Place{other.tree.at.line, other.tree.at.column}); !slices.Contains(p.Other, at) {
		p.Other = append(p.Other, at)
	}
}

// raw returns the text of a scalar; anything else is an error that says what is
// wanted.
func (n Node) raw(want string) (text string, ok bool) {
	switch {
	case n.tree == nil:
		return "", false
	case n.tree.kind == null:
		n.Fail("%s has no value: %s is wanted", n.name, want)
		return "", false
	case n.tree.kind != scalar:
		n.Fail("%s is %s: %s is wanted", n.name, n.tree.kind, want)
		return "", false
	}
	return n.tree.text, true
}

// number returns the text of a scalar that is not in quotes.
func (n Node) number(want string) (text string, ok bool) {
	text, ok = n.raw(want)
	if ok && n.tree.quoted {
		n.Fail("%s %q is text: %s is wanted, without quotes", n.name, text, want)
		return "", false
	}
	return text, ok
}

// Text returns one or more lines of text, of at most longest bytes.
func (n Node) Text(longest int) string {
	text, ok := n.raw("text")
	text = strings.TrimSpace(text)
	switch {
	case !ok:
		return ""
	case text == "":
		n.Fail("%s is empty", n.name)
	case len(text) > longest:
		n.Fail("%s has %d bytes, at most %d", n.name, len(text), longest)
		return ""
	}
	return text
}

// Bool returns true or false.
func (n Node) Bool() bool {
	text, ok := n.number("true or false")
	if ok && text != "true" && text != "false" {
		n.Fail("%s %q is neither true nor false", n.name, text)
	}
	return text == "true"
}

// Whole returns a whole number from low to high.
func (n Node) Whole(low, high int64) int64 { return n.WholeOr(low, high, "") }

// WholeOr is Whole for a key that also takes words, which its error adds.
func (n Node) WholeOr(low, high int64, words string) int64 {
	want := fmt.Sprintf("a whole number of %d to %d", low, high)
	if low == high {
		want = strconv.FormatInt(low, 10)
	}
	if words != "" {
		want += ", " + words
	}
	text, ok := n.number(want)
	if !ok {
		return 0
	}
	if digits := strings.TrimLeft(text, "+-"); len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789") == "" {
		n.Fail("%s %q begins with 0, which some take for octal: %s is wanted", n.name, text, want)
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < low || v > high {
		n.Fail("%s %q is not %s", n.name, text, want)
		return 0
	}
	return v
}

// Number returns a number from low to high.
func (n Node) Number(low, high float64) float64 {
	want := fmt.Sprintf("a number of %s to %s", plainly(low), plainly(high))
	text, ok := n.number(want)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	// The negation refuses NaN as well.
	if err != nil || !(v >= low && v <= high) || strings.ContainsAny(text, "xX_") {
		n.Fail("%s %q is not %s", n.name, text, want)
		return 0
	}
	return v
}

// Part returns a part of a whole, low to 1: 0.2, or 20%.
func (n Node) Part(low float64) float64 {
	want := fmt.Sprintf("a part of %s to 1, such as 0.2 or 20%%", plainly(low))
	text, ok := n.number(want)
	if !ok {
		return 0
	}
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= low && v <= 1) || strings.ContainsAny(text, "xX_") {
		n.Fail("%s %q is not %s", n.name, text, want)
		return 0
	}
	return v
}

// Rate returns a number per second from low to high, such as 1200/s.
func (n Node) Rate(low, high float64) float64 {
	text, ok := n.raw("a rate such as 1200/s")
	if !ok {
		return 0
	}
	v, err := ParseRate(text)
	switch {
	case err != nil:
		n.Fail("%s %v", n.name, err)
		return 0
	case v < low || v > high:
		n.Fail("%s %q is out of range: %g/s to %.0e/s", n.name, text, low, high)
		return 0
	}
	return v
}

// plainly is a number without an exponent.
func plainly(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Span returns a duration from low to high, such as 400ms.
func (n Node) Span(low, high time.Duration) time.Duration { return n.SpanOr(low, high, "") }

// SpanOr is Span for a key that also takes words, which its error adds.
func (n Node) SpanOr(low, high time.Duration, words string) time.Duration {
	if words != "" {
		words = ", or " + words
	}
	text, ok := n.raw("a duration such as 400ms" + words)
	if !ok {
		return 0
	}
	d, err := ParseSpan(text, low, high)
	if err != nil {
		n.Fail("%s %v%s", n.name, err, words)
		return 0
	}
	return d
}

// ParseSpan parses a duration from low to high; the error begins with the text, in
// quotes.
func ParseSpan(text string, low, high time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if _, bare := strconv.ParseFloat(text, 64); err != nil && bare == nil {
		return 0, fmt.Errorf("%q has no unit: write %sms or %ss", text, text, text)
	}
	if err != nil || d < low || d > high {
		return 0, fmt.Errorf("%q is not a duration of %s to %s, such as 400ms, 2s or 1m30s", text, Short(low), Short(high))
	}
	return d, nil
}

// Short prints a duration as a person writes it: 24h, not 24h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size returns a number of bytes, 1 to 1 PiB, such as 64MiB.
func (n Node) Size() int64 {
	text, ok := n.raw("a size such as 64MiB")
	if !ok {
		return 0
	}
	var s flags.Size
	if err := s.UnmarshalText([]byte(text)); err != nil {
		n.Fail("%s %v", n.name, err)
	}
	return int64(s)
}

// Word returns the index of the value among words.
func (n Node) Word(words ...string) int {
	text, ok := n.raw(Either(words))
	if !ok {
		return 0
	}
	i := slices.Index(words, text)
	if i < 0 {
		n.Fail("%s %q is unknown%s", n.name, text, Unknown(text, words))
		return 0
	}
	return i
}

// Either is "a, b or c".
func Either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// maxRate is the most that comes in a second: one request a nanosecond is what
// virtual time can tell apart.
const maxRate = 1e9

// ParseRate parses "1200/s", "90/min" or "10/h" into a number per second.
func ParseRate(text string) (perSecond float64, err error) {
	for _, u := range []struct {
		suffix  string
		seconds float64
	}{{"/s", 1}, {"/min", 60}, {"/h", 3600}} {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) || v/u.seconds > maxRate {
			break
		}
		return v / u.seconds, nil
	}
	return 0, fmt.Errorf("%q is not a rate, such as 1200/s, 90/min or 10/h", text)
}

// Raw returns the text of the value, or nothing if it is none. Reading it is no
// check.
func (n Node) Raw() string {
	if !n.IsText() {
		return ""
	}
	return n.tree.text
}
