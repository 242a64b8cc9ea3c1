package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Why a line is of no use.
const (
	whyNoFields  = "no #Fields line stands above"
	whyCount     = "the number of columns is not that of the #Fields line above"
	whyW3CStamp  = "date and time are not 2006-01-02 and 15:04:05"
	whyTimeTaken = "time-taken is not a number"
)

// The columns that a replay needs, by their names in lower case.
const (
	colDate = iota
	colTime
	colTaken
	colStatus
	colSub
	colWin32
	colResult
	colPath
	w3cColumns
)

var w3cNames = [w3cColumns][]string{
	colDate:   {"date"},
	colTime:   {"time"},
	colTaken:  {"time-taken", "timetakenms"}, // the second is that of Advanced Logging
	colStatus: {"sc-status"},
	colSub:    {"sc-substatus"},
	colWin32:  {"sc-win32-status"},
	colResult: {"x-edge-result-type"},
	colPath:   {"cs-uri-stem"},
}

// maxW3CColumns bounds a header: CloudFront has 33 columns, IIS 22.
const maxW3CColumns = 256

// A w3cParser reads the extended log format of IIS and CloudFront. Its #Fields
// line says which columns there are; a new one takes effect below it.
type w3cParser struct {
	cloudfront bool
	columns    int // 0 before the first header
	at         [w3cColumns]int
	day        []byte // of a #Date line, where there is no date column
}

func (p *w3cParser) rule() string {
	if p.cloudfront {
		return "the stamp is the end of the request, arrival = stamp - time-taken (seconds); only this total is logged, and what the edge answered is in it"
	}
	return "the stamp is taken as the end of the request, in UTC, arrival = stamp - time-taken (milliseconds); only this total is logged, it stands for the service time"
}

func (p *w3cParser) parse(line []byte, r *row) (string, error) {
	if line[0] == '#' {
		r.Verdict = Header
		if fields, ok := cutFold(line, "#Fields:"); ok {
			return "", p.header(fields)
		}
		if day, ok := cutFold(line, "#Date:"); ok && len(bytes.TrimSpace(day)) >= 10 {
			p.day = append(p.day[:0], bytes.TrimSpace(day)[:10]...)
		}
		return "", nil
	}
	if p.columns == 0 {
		return r.bad(whyNoFields)
	}
	var v [w3cColumns][]byte
	if !p.split(line, &v) {
		return r.bad(whyCount)
	}
	if p.at[colDate] < 0 {
		v[colDate] = p.day
	}
	var ok bool
	if r.stamp, ok = w3cStamp(v[colDate], v[colTime]); !ok {
		return r.bad(whyW3CStamp)
	}
	if r.Status, ok = readStatus(v[colStatus]); !ok {
		return r.bad(whyStatus)
	}
	unit := time.Millisecond
	if p.cloudfront {
		unit = time.Second
	}
	if r.Total, ok = readSpan(v[colTaken], unit); !ok {
		if !isDash(v[colTaken]) {
			return r.bad(whyTimeTaken)
		}
		r.Total = Absent
	}
	r.Arrival = r.stamp - int64(max(r.Total, 0))
	r.Outcome = p.outcome(r.Status, &v)
	request := ""
	if target := v[colPath]; len(target) > 0 {
		r.path, request = targetPath(target)
	}
	switch {
	case r.Total < 0:
		return r.end(request, false, whyNoTime)
	case r.Outcome == Stream:
		return r.end(request, false, whyStream)
	}
	return r.end(request, true, "")
}

// header reads the names of a #Fields line.
func (p *w3cParser) header(fields []byte) error {
	names := strings.Fields(strings.ToLower(string(fields)))
	if len(names) > maxW3CColumns {
		return fmt.Errorf("the #Fields line has %d columns: at most %d are read", len(names), maxW3CColumns)
	}
	if edge := bytes.Contains(fields, []byte("x-edge-")); edge && !p.cloudfront {
		return errors.New("the #Fields are those of cloudfront, not of iis")
	} else if !edge && p.cloudfront {
		return errors.New("the #Fields are not those of cloudfront: no column is named like x-edge-location")
	}
	for i := range p.at {
		p.at[i] = -1
		for at, name := range names {
			for _, n := range w3cNames[i] {
				if name == n && p.at[i] < 0 {
					p.at[i] = at
				}
			}
		}
	}
	p.columns = len(names)
	switch where := "IIS Manager > Logging > Select Fields"; {
	case p.at[colTaken] < 0 && p.cloudfront:
		return fmt.Errorf("time-taken is not among the #Fields: add it to the fields of the distribution's standard log")
	case p.at[colTaken] < 0:
		return fmt.Errorf("time-taken is not among the #Fields, so no duration is known: switch on Time Taken (time-taken) in %s", where)
	case p.at[colTime] < 0:
		return fmt.Errorf("time is not among the #Fields, so no arrival is known: switch on Time (time) in %s", where)
	case p.at[colDate] < 0 && len(p.day) == 0:
		return fmt.Errorf("date is not among the #Fields, so no arrival is known: switch on Date (date) in %s", where)
	}
	return nil
}

// split finds the columns of a line: CloudFront has tabs alone between them, IIS
// blanks, with quotes around a column that contains some.
func (p *w3cParser) split(line []byte, v *[w3cColumns][]byte) bool {
	separator := byte(' ')
	if p.cloudfront {
		separator = '\t'
	}
	var all [maxW3CColumns][]byte
	n := 0
	for ; n < p.columns && line != nil; n++ {
		end := -1
		if !p.cloudfront && len(line) > 0 && line[0] == '"' {
			if k := bytes.Index(line[1:], []byte(`" `)); k >= 0 {
				end = k + 2
			} else if line[len(line)-1] == '"' {
				end = len(line)
			}
		}
		if end < 0 {
			end = bytes.IndexByte(line, separator)
		}
		if end < 0 || end == len(line) {
			all[n], line = line, nil
		} else {
			all[n], line = line[:end], line[end+1:]
		}
	}
	if n < p.columns || len(bytes.TrimSpace(line)) > 0 {
		return false
	}
	for i, at := range p.at {
		if at >= 0 {
			v[i] = unquote(all[at])
		}
	}
	return true
}

// outcome reads the status and what stands beside it.
func (p *w3cParser) outcome(status int, v *[w3cColumns][]byte) Outcome {
	switch string(v[colResult]) {
	case "LimitExceeded", "CapacityExceeded":
		return Rejected
	}
	switch string(v[colWin32]) {
	case "64", "995", "1229", "1236", "10053", "10054": // the connection of the client is gone
		return Cancelled
	}
	if status == 503 && (string(v[colSub]) == "2" || string(v[colSub]) == "3") { // too many concurrent requests, the queue of ASP.NET is full
		return Rejected
	}
	return outcomeOf(status)
}

// w3cStamp reads a date and a time of day in UTC.
func w3cStamp(day, clock []byte) (ns int64, ok bool) {
	var m moment
	if len(day) != 10 || day[4] != '-' || day[7] != '-' {
		return 0, false
	}
	var okY, okM, okD bool
	m.year, okY = digits(day, 0, 4)
	m.month, okM = digits(day, 5, 2)
	m.day, okD = digits(day, 8, 2)
	end, okC := m.clock(clock, 0)
	if !okY || !okM || !okD || !okC || end != len(clock) {
		return 0, false
	}
	return m.unix(nil)
}

func unquote(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}

// cutFold is bytes.CutPrefix without regard to case.
func cutFold(b []byte, prefix string) (rest []byte, ok bool) {
	if len(b) < len(prefix) || !strings.EqualFold(string(b[:len(prefix)]), prefix) {
		return nil, false
	}
	return b[len(prefix):], true
}
