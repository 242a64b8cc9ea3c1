package accesslog

import (
	"bytes"
	"time"
)

// nginx and Apache share the combined format,
//
//	addr - user [02/Jan/2006:15:04:05 +0000] "GET / HTTP/1.1" 200 12 "referrer" "agent"
//
// and differ in what follows it, and in what the stamp is: the end for nginx, the
// start for Apache.

// Why a line of these is of no use, or no sample.
const (
	whyStamp      = "the stamp [02/Jan/2006:15:04:05 +0000] is missing or wrong"
	whyQuotes     = "the quoted request is missing or has no end"
	whyStatus     = "the status is missing or not a number"
	whyBytes      = "the bytes are missing or not a number"
	whyAgent      = "a quoted field has no end"
	whyTimes      = "what follows the agent is not $request_time and $upstream_response_time: give a pattern"
	whyInteger    = "the number at the end has no decimals: Apache's %D?"
	whyDecimals   = "the number at the end has decimals: nginx's $request_time?"
	whyNoTime     = "no time is logged"
	whyNoUpstream = "no upstream was asked"
	whySpan       = "a duration is longer than a year"
	whyStream     = "a stream: its length is no service time"
)

// A clf is the part that both have.
type clf struct {
	request, bytes, tail []byte
	stamp                int64
	status               int
}

// split reads a line up to its tail.
func (l *clf) split(line []byte, stamps *stampCache) (why string) {
	n := bytes.Index(line, []byte(" ["))
	if n < 0 {
		return whyStamp
	}
	c := cursor{b: line, i: n + 2}
	n = bytes.IndexByte(c.rest(), ']')
	if n < 0 {
		return whyStamp
	}
	var ok bool
	if l.stamp, ok = stamps.clf(c.rest()[:n]); !ok {
		return whyStamp
	}
	c.i += n + 1
	if l.request, ok = c.quoted(); !ok {
		return whyQuotes
	}
	if word := c.word(); len(word) == 0 {
		return whyStatus
	} else if l.status, ok = readStatus(word); !ok {
		return whyStatus
	}
	l.bytes = c.word()
	if _, ok = readDecimal(l.bytes); !ok && string(l.bytes) != "-" {
		return whyBytes
	}
	for range 2 { // referrer and agent, absent in the older common format
		if c.spaces(); c.done() || c.b[c.i] != '"' {
			break
		}
		if _, ok = c.quoted(); !ok {
			return whyAgent
		}
	}
	l.tail = c.rest()
	return ""
}

// fill copies what both formats mean the same by.
func (l *clf) fill(r *row) (request string) {
	r.stamp, r.Arrival, r.Status, r.Outcome = l.stamp, l.stamp, l.status, outcomeOf(l.status)
	r.path, request = requestLine(l.request)
	return request
}

// isSeconds says whether b is as nginx writes seconds: 30.004.
func isSeconds(b []byte) bool {
	n := len(b) - 4
	return n > 0 && n < 9 && b[n] == '.' && allDigits(b[:n]) && allDigits(b[n+1:])
}

// seconds reads what isSeconds accepts: at most three years.
func seconds(b []byte) time.Duration {
	var ms int64
	for _, c := range b {
		if c != '.' {
			ms = ms*10 + int64(c-'0')
		}
	}
	return time.Duration(ms) * time.Millisecond
}

func isNumber(b []byte) bool {
	_, ok := readDecimal(b)
	return ok
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) > 0
}
