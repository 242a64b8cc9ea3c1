package accesslog

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A mapping is Options.Columns: sums of terms, each a unit times a column. Times,
// sizes and costs are the same sums, with units in nanoseconds and in 1e-9.
//
//	columns = field "=" sum { "," field "=" sum }
//	sum     = term { "+" term }
//	term    = unit "*" column | unit | column
//	unit    = duration | number
type mapping struct {
	names []string // the columns that are used
	sums  map[string]sum
}

type sum []term

// A term is unit x column, or the unit itself without a column (-1). A unit of 0
// is a column that is not a number.
type term struct {
	unit   int64
	column int
}

// The fields, and what their units are.
var (
	spanFields  = []string{"arrival", "end", "queue", "service", "total"}
	countFields = []string{"cost", "size"}
	textFields  = []string{"status", "class", "path"}
)

// parseColumns reads the language above.
func parseColumns(text string) (*mapping, error) {
	m := &mapping{sums: map[string]sum{}}
	items, err := cut(text, ',')
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		parts, _ := cut(item, '=')
		field := strings.TrimSpace(parts[0])
		if len(parts) != 2 {
			return nil, fmt.Errorf("columns: %q is not field=column, such as %q", item, exampleColumns)
		}
		if m.sums[field] != nil {
			return nil, fmt.Errorf("columns: %s is given twice", field)
		}
		if m.sums[field], err = m.sum(field, parts[1]); err != nil {
			return nil, err
		}
	}
	switch arrival, end := m.sums["arrival"], m.sums["end"]; {
	case arrival == nil && end == nil:
		return nil, fmt.Errorf("columns: neither arrival nor end is given, so nobody knows when a request came")
	case arrival != nil && end != nil:
		return nil, fmt.Errorf("columns: both arrival and end are given: one of them is the stamp")
	case end != nil && m.sums["total"] == nil && m.sums["service"] == nil:
		return nil, fmt.Errorf("columns: end is given without total or service, so the arrival is not known")
	case arrival.constant() && end.constant():
		return nil, fmt.Errorf("columns: the stamp names no column, so all requests would come at once")
	case len(m.names) > maxFields:
		return nil, fmt.Errorf("columns: %d columns are used: at most %d", len(m.names), maxFields)
	}
	return m, nil
}

// constant says whether no column is in a sum.
func (s sum) constant() bool {
	return !slices.ContainsFunc(s, func(t term) bool { return t.column >= 0 })
}

// sum reads the right side of a field.
func (m *mapping) sum(field, text string) (s sum, err error) {
	isText := slices.Contains(textFields, field)
	isSpan := slices.Contains(spanFields, field)
	if !isText && !isSpan && !slices.Contains(countFields, field) {
		return nil, fmt.Errorf("columns: %q is not a field: it is one of %s", field,
			strings.Join(slices.Concat(spanFields, countFields, textFields), ", "))
	}
	terms, err := cut(text, '+')
	if err != nil {
		return nil, err
	}
	for _, text := range terms {
		factors, _ := cut(text, '*')
		first := strings.TrimSpace(factors[0])
		switch {
		case first == "" || len(factors) > 2 || isText && len(factors) > 1:
			return nil, fmt.Errorf("columns: %s: %q is not a term: it is a column, or a unit and a column as in %q", field, text, "1ms*duration")
		case len(factors) == 2:
			unit, err := readUnit(field, first, isSpan)
			if err != nil {
				return nil, err
			}
			column, err := m.column(field, factors[1])
			if err != nil {
				return nil, err
			}
			s = append(s, term{unit, column})
		case isDigit(first[0]) && !isText:
			unit, err := readUnit(field, first, isSpan)
			if err != nil {
				return nil, err
			}
			s = append(s, term{unit, -1})
		default:
			column, err := m.column(field, first)
			if err != nil {
				return nil, err
			}
			bare := term{0, column}
			if !isSpan && !isText {
				bare.unit = nano
			}
			s = append(s, bare)
		}
	}
	if len(s) > 1 && slices.ContainsFunc(s, func(t term) bool { return t.unit == 0 }) {
		return nil, fmt.Errorf("columns: %s: a column in a sum needs a unit, as in %q", field, "1ms*queue+1ms*service")
	}
	return s, nil
}

// readUnit reads "0.1ms" for a time and "0.1" for a count.
func readUnit(field, text string, span bool) (int64, error) {
	if span {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > maxSpan {
			return 0, fmt.Errorf("columns: %s: %q is not a unit: it is a duration from 1ns to a year, such as 1ms or 0.1ms", field, text)
		}
		return int64(d), nil
	}
	d, ok := readDecimal([]byte(text))
	n, fits := d.times(nano)
	if !ok || !fits || n == 0 {
		return 0, fmt.Errorf("columns: %s: %q is not a number above 0", field, text)
	}
	return n, nil
}

// column returns the number of a name among those in use.
func (m *mapping) column(field, name string) (int, error) {
	name = strings.TrimSpace(name)
	if n := len(name); n >= 2 && name[0] == '"' && name[n-1] == '"' {
		name = name[1 : n-1]
	}
	if name == "" {
		return 0, fmt.Errorf("columns: %s: the name of a column is missing", field)
	}
	if i := slices.Index(m.names, name); i >= 0 {
		return i, nil
	}
	m.names = append(m.names, name)
	return len(m.names) - 1, nil
}

// cut splits at a separator outside of quotes.
func cut(text string, separator byte) (parts []string, err error) {
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	if quoted {
		return nil, fmt.Errorf("columns: a quote in %q has no end", text)
	}
	return append(parts, text[start:]), nil
}

// A state says whether a value could be had.
type state uint8

const (
	absent state = iota
	present
	wrong
)

// amount evaluates a sum of numbers with units. One absent column makes the sum
// absent, and so does -1, with which programs say that something did not happen.
func (s sum) amount(values [][]byte) (n int64, is state) {
	if len(s) == 0 {
		return 0, absent
	}
	for _, t := range s {
		part := t.unit
		if t.column >= 0 {
			v := values[t.column]
			if isDash(v) || string(v) == "-1" {
				return 0, absent
			}
			a := readAttempts(v, t.unit)
			if !a.ok {
				return 0, wrong
			}
			if part = a.sum; a.answered == 0 {
				return 0, absent
			}
		}
		if n > math.MaxInt64-part {
			return 0, wrong
		}
		n += part
	}
	return n, present
}

// attempts are the numbers of a column: nginx writes "0.000, 0.016 : -" where it
// asked several upstreams, into JSON as well.
type attempts struct {
	sum, last   int64 // last is -1 if the last one had no answer
	n, answered int
	ok          bool
}

// readAttempts reads one number or several, in units. A plus sign, with which
// HAProxy says "at least", is passed.
func readAttempts(v []byte, unit int64) (a attempts) {
	c := cursor{b: v}
	for {
		word := bytes.TrimSuffix(c.word(), []byte(","))
		switch {
		case string(word) == ":":
			continue
		case string(word) == "-":
			a.n, a.last = a.n+1, -1
		default:
			d, ok := readNumber(bytes.TrimPrefix(word, []byte("+")))
			if a.last, a.ok = d.times(unit); !ok || !a.ok || a.sum > math.MaxInt64-a.last {
				return attempts{}
			}
			a.n, a.answered, a.sum = a.n+1, a.answered+1, a.sum+a.last
		}
		if c.spaces(); c.done() {
			a.ok = true
			return a
		}
	}
}

// attempts returns those of a sum that is one column in units.
func (s sum) attempts(values [][]byte) (a attempts) {
	if len(s) != 1 || s[0].column < 0 || s[0].unit == 0 || isDash(values[s[0].column]) {
		return a
	}
	return readAttempts(values[s[0].column], s[0].unit)
}

// early says whether a column of the sum has a plus sign.
func (s sum) early(values [][]byte) bool {
	return slices.ContainsFunc(s, func(t term) bool {
		return t.column >= 0 && bytes.HasPrefix(values[t.column], []byte("+"))
	})
}

// span evaluates a duration: a sum of numbers, or a column with its own unit.
func (s sum) span(values [][]byte) (time.Duration, state) {
	n, is := int64(0), absent
	if len(s) == 1 && s[0].unit == 0 {
		v := values[s[0].column]
		if isDash(v) || string(v) == "-1" {
			return Absent, absent
		}
		d, err := time.ParseDuration(string(v))
		if err != nil || d < 0 {
			return Absent, wrong
		}
		n, is = int64(d), present
	} else {
		n, is = s.amount(values)
	}
	switch {
	case is != present:
		return Absent, is
	case n > int64(maxSpan):
		return Absent, wrong
	}
	return time.Duration(n), present
}

// instant evaluates an arrival: a date, or a sum of numbers since 1970 or since
// the start of the trace.
func (s sum) instant(values [][]byte, zone *time.Location) (ns int64, ok bool) {
	if len(s) == 1 && s[0].unit == 0 {
		return readStamp(values[s[0].column], zone)
	}
	n, is := s.amount(values)
	// Half of what 63 bits hold leaves room for a duration on either side.
	return n, is == present && n < math.MaxInt64-2*int64(maxSpan)
}

// count evaluates a cost or a size, rounded, at most 31 bits.
func (s sum) count(values [][]byte) (n int, is state) {
	v, is := s.amount(values)
	return int(min((v+nano/2)/nano, math.MaxInt32)), is
}

// text returns a column as it stands.
func (s sum) text(values [][]byte) []byte {
	if len(s) == 0 || isDash(values[s[0].column]) {
		return nil
	}
	return values[s[0].column]
}
