package accesslog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Why a row of mapped columns is of no use, or no sample.
const (
	whyMapArrival = "the arrival is missing or not a date; of a number, give the unit, as in arrival=1ms*timestamp_ms"
	whyMapSpan    = "a duration is not a number, or a number without a unit"
	whyMapStatus  = "the status is not a number of three digits"
	whyMapCount   = "the cost or the size is not a number"
	whyMapNoTime  = "the service time is missing"
	whyRow        = "the number of columns is not that of the first row"
	whyCSVQuote   = "a quoted column has no end"
	whyPattern    = "the pattern does not fit"
)

// A mapped is a mapping applied to lines. Formats differ in how they find the
// values of the columns.
type mapped struct {
	*mapping
	zone   *time.Location
	values [][]byte
}

func (p *mapped) rule() string {
	stamp := "arrival = the column named so"
	if p.sums["end"] != nil {
		stamp = "the stamp is the end of the request, arrival = stamp - duration"
	}
	switch {
	case p.sums["service"] != nil:
		return stamp + "; service time = the sum given as service"
	case p.sums["total"] != nil:
		return stamp + "; only the total is given, it stands for the service time"
	}
	return stamp + "; no duration is given"
}

// fill makes a row of the values.
func (p *mapped) fill(r *row) (string, error) {
	stamp := p.sums["arrival"]
	if stamp == nil {
		stamp = p.sums["end"]
	}
	var ok bool
	if r.stamp, ok = stamp.instant(p.values, p.zone); !ok {
		return r.bad(whyMapArrival)
	}
	var is [3]state
	r.Queue, is[0] = p.sums["queue"].span(p.values)
	r.Service, is[1] = p.sums["service"].span(p.values)
	r.Total, is[2] = p.sums["total"].span(p.values)
	if slices.Contains(is[:], wrong) {
		return r.bad(whyMapSpan)
	}
	r.LastService = r.Service
	if a := p.sums["service"].attempts(p.values); a.ok && a.n > 1 {
		r.Attempts, r.LastService = a.n, time.Duration(a.last)
	}
	r.TotalAtLeast = r.Total >= 0 && p.sums["total"].early(p.values)
	r.Arrival = r.stamp
	if p.sums["end"] != nil {
		if r.Total >= 0 {
			r.Arrival -= int64(r.Total)
		} else {
			r.Arrival -= int64(max(r.Service, 0)) + int64(max(r.Queue, 0))
		}
	}
	if r.Status, ok = readStatus(p.sums["status"].text(p.values)); !ok {
		return r.bad(whyMapStatus)
	}
	if n, is := p.sums["cost"].count(p.values); is == wrong {
		return r.bad(whyMapCount)
	} else if is == present {
		r.Cost = max(n, 1)
	}
	if n, is := p.sums["size"].count(p.values); is == wrong {
		return r.bad(whyMapCount)
	} else if is == present {
		r.Size = n
	}
	r.class = p.sums["class"].text(p.values)
	if target := p.sums["path"].text(p.values); len(target) > 0 {
		r.path, _ = targetPath(target)
	}
	r.Outcome = outcomeOf(r.Status)
	switch {
	case r.Outcome == Stream:
		r.Service, r.LastService = Absent, Absent
		return r.end("", false, whyStream)
	case r.Service < 0 && (p.sums["service"] != nil || r.Total < 0):
		return r.end("", false, whyMapNoTime)
	}
	return r.end("", true, "")
}

// A jsonParser maps fields of JSON lines.
type jsonParser struct {
	mapped
	fields *jsonFields
}

func (p *jsonParser) parse(line []byte, r *row) (string, error) {
	if !p.fields.find(line) {
		return r.bad(whyJSON)
	}
	p.values = p.fields.values
	return p.fill(r)
}

// A csvParser maps the columns of rows. The first line is the header, unless the
// columns are mapped by number alone.
type csvParser struct {
	mapped
	separator byte
	at        []int  // of each name
	columns   int    // of the first line
	first     []byte // the header
	cells     [][]byte
}

// maxCells bounds the columns of a CSV.
const maxCells = 4096

func (p *csvParser) parse(line []byte, r *row) (string, error) {
	if p.columns == 0 {
		p.separator = separatorOf(line)
		if !p.cut(line) {
			return r.bad(whyCSVQuote)
		}
		header, err := p.header()
		if header || err != nil {
			p.first = bytes.Clone(line)
			r.Verdict = Header
			return "", err
		}
	} else if p.first != nil && bytes.Equal(line, p.first) { // of the next of several files in one
		r.Verdict = Header
		return "", nil
	} else if !p.cut(line) {
		return r.bad(whyCSVQuote)
	}
	if len(p.cells) != p.columns {
		return r.bad(whyRow)
	}
	for i, at := range p.at {
		p.values[i] = p.cells[at]
	}
	return p.fill(r)
}

// separatorOf returns the separator that the first line has most of.
func separatorOf(line []byte) byte {
	best := byte(',')
	for _, c := range []byte(";\t|") {
		if bytes.Count(line, []byte{c}) > bytes.Count(line, []byte{best}) {
			best = c
		}
	}
	return best
}

// header finds the columns of the mapping in the cells of the first line. It is
// no header if all of the mapping are numbers.
func (p *csvParser) header() (is bool, err error) {
	p.at, p.values = make([]int, len(p.names)), make([][]byte, len(p.names))
	p.columns = len(p.cells)
	for i, name := range p.names {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "#"))
		if err == nil && name[0] == '#' {
			if n < 1 || n > p.columns {
				return false, fmt.Errorf("column %s does not exist: the first row has %d columns", name, p.columns)
			}
			p.at[i] = n - 1
			continue
		}
		is = true
		p.at[i] = slices.IndexFunc(p.cells, func(cell []byte) bool { return string(bytes.TrimSpace(cell)) == name })
		if p.at[i] < 0 {
			return true, fmt.Errorf("column %q is not in the header %q", name, clip(bytes.Join(p.cells, []byte{p.separator})))
		}
	}
	return is, nil
}

// cut splits a row as RFC 4180 does, but for a line break inside quotes.
func (p *csvParser) cut(line []byte) bool {
	p.cells = p.cells[:0]
	for len(p.cells) < maxCells {
		var cell []byte
		end := 0
		if len(line) > 0 && line[0] == '"' {
			doubled := false
			for end = 1; ; end += 2 {
				n := bytes.IndexByte(line[end:], '"')
				if n < 0 {
					return false
				}
				if end += n; end+1 == len(line) || line[end+1] != '"' {
					break
				}
				doubled = true
			}
			if cell = line[1:end]; doubled {
				cell = bytes.ReplaceAll(cell, []byte(`""`), []byte(`"`))
			}
			if end++; end < len(line) && line[end] != p.separator {
				return false
			}
		} else {
			if end = bytes.IndexByte(line, p.separator); end < 0 {
				end = len(line)
			}
			cell = line[:end]
		}
		p.cells = append(p.cells, cell)
		if end == len(line) {
			return true
		}
		line = line[end+1:]
	}
	return false
}

// A patternParser maps the named groups of a regular expression.
type patternParser struct {
	mapped
	pattern *regexp.Regexp
	group   []int // of each name
}

func (p *patternParser) parse(line []byte, r *row) (string, error) {
	m := p.pattern.FindSubmatchIndex(line)
	if m == nil {
		return r.bad(whyPattern)
	}
	for i, g := range p.group {
		p.values[i] = nil
		if m[2*g] >= 0 {
			p.values[i] = line[m[2*g]:m[2*g+1]]
		}
	}
	return p.fill(r)
}

// columnsOf makes the columns of a pattern whose groups are named like fields:
// arrival, service_ms, status.
func columnsOf(pattern *regexp.Regexp) string {
	var items []string
	for _, name := range pattern.SubexpNames() {
		field, unit, _ := strings.Cut(name, "_")
		switch {
		case name == "":
		case unit != "":
			items = append(items, fmt.Sprintf("%s=1%s*%s", field, unit, name))
		default:
			items = append(items, field+"="+name)
		}
	}
	return strings.Join(items, ",")
}
