package accesslog

import (
	"bytes"
	"time"
)

// Why a line is of no use.
const (
	whyISO     = "the stamp [2006-01-02T15:04:05.999Z] is missing or wrong"
	whyNumbers = "bytes, duration and service time are not the numbers of Envoy's default format"
)

// An envoyParser reads the default format of Envoy:
//
//	[start] "GET /path HTTP/2" code flags received sent duration service "forwarded" "agent" ...
//
// in milliseconds. Istio writes up to three fields of words between the flags and
// the bytes. service is x-envoy-upstream-service-time, to the header of the
// response; "-" if no upstream answered. What follows it is not needed.
type envoyParser struct{ zone *time.Location }

func (p *envoyParser) rule() string {
	return "the stamp is the start of the request, arrival = stamp; service time = x-envoy-upstream-service-time, in milliseconds"
}

func (p *envoyParser) parse(line []byte, r *row) (string, error) {
	open := bytes.IndexByte(line, '[')
	n := bytes.IndexByte(line[open+1:], ']')
	if open < 0 || n < 0 {
		return r.bad(whyISO)
	}
	var ok bool
	if r.stamp, ok = readISO(line[open+1:open+1+n], p.zone); !ok {
		return r.bad(whyISO)
	}
	r.Arrival = r.stamp
	c := cursor{b: line, i: open + n + 2}
	text, ok := envoyRequest(&c)
	if !ok {
		return r.bad(whyQuotes)
	}
	path, request := requestLine(text)
	r.path = path
	if word := c.word(); len(word) == 0 {
		return r.bad(whyStatus)
	} else if r.Status, ok = readStatus(word); !ok {
		return r.bad(whyStatus)
	}
	flags := c.word()
	if len(flags) == 0 || isDigit(flags[0]) || !envoyDetails(&c) {
		return r.bad(whyNumbers)
	}
	received, sent, duration, service := c.word(), c.word(), c.word(), c.word()
	if !isNumber(received) || !isNumber(sent) {
		return r.bad(whyNumbers)
	}
	if c.spaces(); c.done() || c.b[c.i] != '"' { // cut, or of another layout
		return r.bad(whyNumbers)
	}
	if r.Total, ok = dashOrSpan(duration); !ok {
		return r.bad(whyNumbers)
	}
	span, ok := dashOrSpan(service)
	if !ok {
		return r.bad(whyNumbers)
	}
	r.Outcome = envoyOutcome(r.Status, flags)
	switch {
	case r.Outcome == Stream:
		return r.end(request, false, whyStream)
	case r.Status == 0:
		return r.end(request, false, "no response had begun")
	case span < 0:
		return r.end(request, false, "no upstream answered")
	}
	r.sample(span)
	return r.end(request, true, "")
}

// envoyRequest reads the quoted request. Envoy does not escape a quote inside
// it, so the end is the first quote that a status follows.
func envoyRequest(c *cursor) (text []byte, ok bool) {
	if c.spaces(); c.done() || c.b[c.i] != '"' {
		return nil, false
	}
	start := c.i + 1
	for end := start; ; end++ {
		n := bytes.IndexByte(c.b[end:], '"')
		if n < 0 {
			return nil, false
		}
		end += n
		if after := c.b[end+1:]; len(after) > 1 && after[0] == ' ' && (isDigit(after[1]) || after[1] == '-') {
			c.i = end + 1
			return c.b[start:end], true
		}
	}
}

// envoyDetails passes Istio's fields: details of the response, of the end of the
// connection, and the failure of the transport in quotes.
func envoyDetails(c *cursor) bool {
	for range 4 {
		if c.spaces(); c.done() {
			return false
		}
		switch first := c.b[c.i]; {
		case isDigit(first):
			return true
		case first == '"':
			if _, ok := c.quoted(); !ok {
				return false
			}
		default:
			c.word()
		}
	}
	return false
}

// envoyOutcome reads the response flags, a list between commas.
func envoyOutcome(status int, flags []byte) Outcome {
	outcome := outcomeOf(status)
	for len(flags) > 0 {
		var flag []byte
		flag, flags, _ = bytes.Cut(flags, []byte(","))
		switch string(flag) {
		case "UO", "RL", "OM": // upstream overflow, rate limited, overload manager
			return Rejected
		case "DC", "DR": // downstream: connection closed, remote reset
			outcome = Cancelled
		case "UT", "UF", "UC", "UH", "UR", "LR", "LH", "NR", "URX", "SI", "DT", "UPE", "NC", "DPE", "UMSDR":
			if outcome != Cancelled {
				outcome = Failed
			}
		}
	}
	return outcome
}

// dashOrSpan reads milliseconds, "-" is absent.
func dashOrSpan(b []byte) (time.Duration, bool) {
	if string(b) == "-" {
		return Absent, true
	}
	return readSpan(b, time.Millisecond)
}
