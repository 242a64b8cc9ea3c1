package accesslog

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A jsonFields finds some fields in a line of JSON, without an allocation for
// the rest of it. A name is a path with dots; a key that has the dots itself,
// {"http.status": 200}, is found too.
type jsonFields struct {
	names []string
	keys  [][]string // keys[i][d] is what remains of names[i] at depth d

	// values are those of the last line: strings without their quotes, and
	// nothing for null and for what is missing.
	values [][]byte
	b      []byte
	i      int
}

const (
	// maxFields bounds how many fields are looked for: one bit each.
	maxFields = 32
	// maxDepth bounds how deep values may be nested.
	maxDepth = 64
)

func newJSONFields(names []string) *jsonFields {
	f := &jsonFields{names: names, values: make([][]byte, len(names))}
	for _, name := range names {
		var keys []string
		for rest, more := name, true; more; {
			keys = append(keys, rest)
			_, rest, more = strings.Cut(rest, ".")
		}
		f.keys = append(f.keys, keys)
	}
	return f
}

// find reads a line, which must be one object. It says whether it is.
func (f *jsonFields) find(line []byte) bool {
	clear(f.values)
	f.b, f.i = line, 0
	f.blank()
	if f.peek() != '{' || !f.object(0, 1<<len(f.names)-1) {
		return false
	}
	f.blank()
	return f.i == len(f.b)
}

func (f *jsonFields) peek() byte {
	if f.i < len(f.b) {
		return f.b[f.i]
	}
	return 0
}

func (f *jsonFields) blank() {
	for f.i < len(f.b) && (f.b[f.i] == ' ' || f.b[f.i] == '\t' || f.b[f.i] == '\r') {
		f.i++
	}
}

// object reads one, in which the fields of mask may be found.
func (f *jsonFields) object(depth int, mask uint64) bool {
	if depth == maxDepth {
		return false
	}
	f.i++
	if f.blank(); f.peek() == '}' {
		f.i++
		return true
	}
	for {
		f.blank()
		key, ok := f.text()
		if f.blank(); !ok || f.peek() != ':' {
			return false
		}
		f.i++
		f.blank()
		whole, inside := f.match(key, depth, mask)
		start, quoted := f.i, f.peek() == '"'
		if !f.value(depth+1, inside) {
			return false
		}
		if whole != 0 {
			f.keep(whole, f.b[start:f.i], quoted)
		}
		f.blank()
		switch f.peek() {
		case ',':
			f.i++
		case '}':
			f.i++
			return true
		default:
			return false
		}
	}
}

// match returns which fields of mask have their value at key, and which may have
// it inside.
func (f *jsonFields) match(key []byte, depth int, mask uint64) (whole, inside uint64) {
	for i := 0; mask != 0; i, mask = i+1, mask>>1 {
		if mask&1 == 0 || depth >= len(f.keys[i]) {
			continue
		}
		rest := f.keys[i][depth]
		switch {
		case string(key) == rest:
			whole |= 1 << i
		case len(key) < len(rest) && rest[len(key)] == '.' && string(key) == rest[:len(key)] && bytes.IndexByte(key, '.') < 0:
			inside |= 1 << i
		}
	}
	return whole, inside
}

// keep sets the value of fields: the last of equal keys wins, as in most readers.
func (f *jsonFields) keep(whole uint64, value []byte, quoted bool) {
	switch {
	case string(value) == "null":
		value = nil
	case quoted:
		value = value[1 : len(value)-1]
		if bytes.IndexByte(value, '\\') >= 0 {
			value = unescape(value)
		}
	}
	for i := range f.values {
		if whole&(1<<i) != 0 {
			f.values[i] = value
		}
	}
}

// value reads any value.
func (f *jsonFields) value(depth int, mask uint64) bool {
	switch c := f.peek(); {
	case c == '"':
		_, ok := f.text()
		return ok
	case c == '{':
		return f.object(depth, mask)
	case c == '[':
		return f.array(depth)
	default:
		return f.scalar()
	}
}

// array reads one. No field is looked for inside.
func (f *jsonFields) array(depth int) bool {
	if depth == maxDepth {
		return false
	}
	f.i++
	if f.blank(); f.peek() == ']' {
		f.i++
		return true
	}
	for {
		f.blank()
		if !f.value(depth+1, 0) {
			return false
		}
		f.blank()
		c := f.peek()
		f.i++
		if c != ',' {
			return c == ']'
		}
	}
}

// text reads a string.
func (f *jsonFields) text() (s []byte, ok bool) {
	c := cursor{b: f.b, i: f.i}
	if f.peek() != '"' {
		return nil, false
	}
	s, ok = c.quoted()
	f.i = c.i
	return s, ok
}

// scalar reads a number, true, false or null.
func (f *jsonFields) scalar() bool {
	start := f.i
	for f.i < len(f.b) && bytes.IndexByte([]byte(" \t\r,]}"), f.b[f.i]) < 0 {
		f.i++
	}
	switch s := f.b[start:f.i]; string(s) {
	case "true", "false", "null":
		return true
	default:
		digit := false
		for _, c := range s {
			if !isDigit(c) && bytes.IndexByte([]byte("+-.eE"), c) < 0 {
				return false
			}
			digit = digit || isDigit(c)
		}
		return digit
	}
}

// unescape resolves the escapes of a string. A wrong one stays as it is.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			if i+4 < len(s) {
				if n, err := strconv.ParseUint(string(s[i+1:i+5]), 16, 16); err == nil {
					out = utf8.AppendRune(out, rune(n))
					i += 4
					continue
				}
			}
			out = append(out, '\\', 'u')
		default:
			out = append(out, c)
		}
	}
	return out
}
