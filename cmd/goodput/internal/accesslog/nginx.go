package accesslog

import (
	"bytes"
	"time"
)

// An nginxParser reads the combined format with the times behind it.
type nginxParser struct {
	stamps          stampCache
	total, upstream bool // a line had it
}

func (p *nginxParser) rule() string {
	switch {
	case p.upstream:
		return "the stamp is the end of the request, arrival = stamp - $request_time; service time = the sum of $upstream_response_time, in seconds"
	case p.total:
		return "the stamp is the end of the request, arrival = stamp - $request_time, in seconds; only this total is logged, it stands for the service time"
	}
	return "the stamp is the end of the request; no duration is logged, so arrival = stamp"
}

func (p *nginxParser) parse(line []byte, r *row) (string, error) {
	var l clf
	if why := l.split(line, &p.stamps); why != "" {
		return r.bad(why)
	}
	request := l.fill(r)
	var t nginxTimes
	if why := t.read(l.tail); why != "" {
		return r.bad(why)
	}
	p.total = p.total || t.hasTotal
	p.upstream = p.upstream || t.hasUpstream
	switch {
	case !t.hasTotal:
		return r.end(request, false, whyNoTime)
	case t.total > maxSpan:
		return r.bad(whySpan)
	}
	r.Total, r.Arrival, r.Attempts = t.total, r.stamp-int64(t.total), t.attempts
	switch {
	case r.Outcome == Stream:
		return r.end(request, false, whyStream)
	case !t.hasUpstream:
		return r.end(request, true, "")
	case !t.answered:
		if r.Status == 503 { // limit_req and limit_conn refuse with it before any upstream
			r.Outcome = Rejected
		}
		return r.end(request, false, whyNoUpstream)
	}
	r.Service, r.LastService = t.sum, t.last
	// Whoever left, or was given up, had not been answered yet.
	r.ServiceAtLeast = r.Status == 499 || r.Status == 504
	return r.end(request, true, "")
}

// nginxTimes are what follows the agent.
type nginxTimes struct {
	total                 time.Duration
	sum, last             time.Duration
	hasTotal, hasUpstream bool
	attempts              int
	answered              bool // at least one attempt has a time
}

// read takes the first number with three decimals for $request_time, and the
// list behind it for $upstream_response_time: nginx writes both with three.
// Quoted fields before them and words behind them are passed; one number more
// would be a guess. "rt=0.024 urt=0.001" says by name what is what.
func (t *nginxTimes) read(tail []byte) (why string) {
	c := cursor{b: tail}
	for c.spaces(); !c.done(); c.spaces() {
		start := c.i
		if c.b[c.i] == '"' {
			field, ok := c.quoted()
			if !ok {
				return whyAgent
			}
			why = t.field(&cursor{b: field}, true)
		} else if word := c.word(); t.hasTotal || !allDigits(word) {
			end := c.i
			c.i = start
			why = t.field(&c, false)
			c.i = max(c.i, end)
		} else {
			why = t.ingress(&c)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// field reads the one that begins at c, which is all of c if it was quoted.
func (t *nginxTimes) field(c *cursor, quoted bool) (why string) {
	start := c.i
	word := c.word()
	if n := bytes.IndexByte(word, '='); n > 0 && !quoted {
		c.i = start + n + 1
		return t.named(c, word[:n])
	}
	first := bytes.TrimSuffix(word, []byte(","))
	switch {
	case !t.hasTotal && isSeconds(word):
		t.total, t.hasTotal = seconds(word), true
	case !t.hasTotal:
		// A number of another kind, and Apache's %T/%D, are not to be passed.
		if n := bytes.IndexByte(word, '/'); !quoted && (isNumber(word) || n > 0 && allDigits(word[:n])) {
			return whyTimes
		}
	case !t.hasUpstream && (isSeconds(first) || len(word) > 0 && isDash(first)):
		c.i = start
		if !t.list(c) || quoted && !c.done() {
			return whyTimes
		}
	case isNumber(first) && !quoted:
		return whyTimes
	}
	return ""
}

// named reads the value of name, which begins at c. Other times than the two
// (uct, uht) are passed with their lists.
func (t *nginxTimes) named(c *cursor, name []byte) (why string) {
	in := c
	if !c.done() && c.b[c.i] == '"' {
		value, ok := c.quoted()
		if !ok {
			return whyAgent
		}
		in = &cursor{b: value}
	}
	switch string(name) {
	case "rt", "request_time":
		word := in.word()
		if !isSeconds(word) {
			return whyTimes
		}
		t.total, t.hasTotal = seconds(word), true
	case "urt", "upstream_response_time":
		if !t.list(in) {
			return whyTimes
		}
	default:
		passList(in)
	}
	return ""
}

// list reads "0.000, 0.016 : -": a comma stands between attempts, a colon where
// an internal redirect began. A dash is an attempt without an answer, and alone
// it is none at all.
func (t *nginxTimes) list(c *cursor) bool {
	t.hasUpstream = true
	for {
		word := c.word()
		trimmed := bytes.TrimSuffix(word, []byte(","))
		switch {
		case string(trimmed) == "-":
			t.last = Absent
		case isSeconds(trimmed):
			t.last = seconds(trimmed)
			t.sum += t.last
			t.answered = true
		default:
			return false
		}
		t.attempts++
		if t.sum > maxSpan {
			return false
		}
		if len(trimmed) < len(word) {
			continue
		}
		if save := c.i; string(c.word()) != ":" {
			c.i = save
			break
		}
	}
	if t.attempts == 1 && !t.answered {
		t.attempts = 0
	}
	return true
}

// passList passes "a, b, c".
func passList(c *cursor) {
	for {
		word := c.word()
		if len(word) == 0 || word[len(word)-1] != ',' {
			return
		}
	}
}

// ingress reads from behind a first number without decimals, $request_length.
// ingress-nginx then writes
//
//	request_time [name] [alternative] addr length response_time status id
//
// and others the two times.
func (t *nginxTimes) ingress(c *cursor) (why string) {
	total := c.word()
	if len(total) == 0 {
		return whyInteger
	}
	if !isSeconds(total) {
		return whyTimes
	}
	t.total, t.hasTotal = seconds(total), true
	if c.spaces(); c.done() || c.b[c.i] != '[' {
		return ""
	}
	c.word()    // name
	c.word()    // alternative
	passList(c) // addresses
	passList(c) // lengths
	if !t.list(c) {
		return whyTimes
	}
	passList(c) // statuses: no times
	c.word()    // the id
	return ""
}
