package accesslog

import (
	"bytes"
	"fmt"
	"time"
)

type apacheParser struct {
	stamps stampCache
	unit   time.Duration
	given  bool // the unit
	timed  bool // a line had a duration
}

func (p *apacheParser) rule() string {
	if !p.timed {
		return "the stamp is the start of the request; no duration is logged"
	}
	how := "given"
	if !p.given {
		how = "Apache's %D; Tomcat before 10.1 writes milliseconds, say so with the unit"
	}
	return fmt.Sprintf("the stamp is the start of the request, arrival = stamp; the last number is the total in units of %v (%s), it stands for the service time", p.unit, how)
}

func (p *apacheParser) parse(line []byte, r *row) (string, error) {
	var l clf
	if why := l.split(line, &p.stamps); why != "" {
		return r.bad(why)
	}
	request := l.fill(r)
	c := cursor{b: l.tail}
	for c.spaces(); !c.done(); c.spaces() {
		if c.b[c.i] == '"' {
			if _, ok := c.quoted(); !ok {
				return r.bad(whyAgent)
			}
			continue
		}
		word := c.word()
		if n := bytes.IndexByte(word, '/'); n > 0 && allDigits(word[:n]) { // %T/%D
			word = word[n+1:]
		}
		switch {
		case allDigits(word) && r.Total < 0:
			var ok bool
			if r.Total, ok = readSpan(word, p.unit); !ok {
				return r.bad(whySpan)
			}
		case allDigits(word):
			return r.bad("more than one number follows the agent: give a pattern")
		case isNumber(word):
			return r.bad(whyDecimals)
		}
	}
	if r.Total < 0 {
		return r.end(request, false, whyNoTime)
	}
	p.timed = true
	if r.Outcome == Stream {
		return r.end(request, false, whyStream)
	}
	return r.end(request, true, "")
}
