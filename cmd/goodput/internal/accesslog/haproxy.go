package accesslog

import (
	"bytes"
	"time"
)

// Why a line is of no use, or no sample.
const (
	whyHAStamp  = "the stamp [02/Jan/2006:15:04:05.999] is missing or wrong"
	whyHAServer = "the field backend/server is missing or has no slash"
	whyHATimers = "the timers are not the five of httplog, TR/Tw/Tc/Tr/Ta: give a pattern"
	whyHABytes  = "the bytes behind the status are missing or not a number"
	whyHAState  = "the termination state is missing or not the four letters of httplog: give a pattern"
	whyHAConns  = "the connections are not the five numbers of httplog: give a pattern"
	whyHAQueues = "the queues are not two numbers: give a pattern"
	whyHABraces = "between the queues and the quoted request stands something else than captured headers: give a pattern"
	whyHANone   = "no server answered"
	whyHABad    = "no full request was seen"
	whyOther    = "not a request"
)

// A haproxyParser reads "option httplog",
//
//	client [start] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes - - ---- a/f/b/s/retries s/b {request} {response} "GET / HTTP/1.1"
//
// in milliseconds, behind a syslog prefix or not. -1 is what did not happen, a
// plus sign is a lower bound: the line was written before the end. What stands
// behind the request (option httpslog) is not needed.
type haproxyParser struct{ zone *time.Location }

func (p *haproxyParser) rule() string {
	zone := "UTC"
	if p.zone != nil {
		zone = p.zone.String()
	}
	return "the stamp is the start of the request, in " + zone + " as the line has no zone, arrival = stamp; service time = Tr, queue = Tw, in milliseconds"
}

func (p *haproxyParser) parse(line []byte, r *row) (string, error) {
	c := cursor{b: line}
	if !p.stamp(&c, r) {
		if bytes.Contains(line, []byte("haproxy[")) || line[0] == '[' {
			r.Verdict = Skip
			return whyOther, nil
		}
		return r.bad(whyHAStamp)
	}
	frontend := c.word()
	if len(frontend) > 0 && frontend[len(frontend)-1] == ':' { // "fe/1: SSL handshake failure"
		r.Verdict = Skip
		return whyOther, nil
	}
	server := c.word()
	if bytes.IndexByte(server, '/') < 0 {
		return r.bad(whyHAServer)
	}
	var timers [5]int64
	if early, ok := readSlashed(c.word(), timers[:]); !ok {
		return r.bad(whyHATimers)
	} else if r.TotalAtLeast = early; timers[4] < 0 {
		r.TotalAtLeast = false
	}
	word := c.word()
	var ok bool
	if r.Status, ok = readStatus(word); !ok || len(word) == 0 {
		return r.bad(whyStatus)
	}
	if sent := c.word(); !isNumber(bytes.TrimPrefix(sent, []byte("+"))) {
		return r.bad(whyHABytes)
	}
	c.word() // captured cookies
	c.word()
	state := c.word()
	if len(state) != 4 || !isState(state) {
		return r.bad(whyHAState)
	}
	var conns [5]int64
	if _, ok = readSlashed(c.word(), conns[:]); !ok {
		return r.bad(whyHAConns)
	}
	var queues [2]int64
	if _, ok = readSlashed(c.word(), queues[:]); !ok {
		return r.bad(whyHAQueues)
	}
	request, why := haproxyRequest(&c, r)
	if why != "" {
		return r.bad(why)
	}
	return p.times(r, timers, conns[4], state, server, request)
}

// stamp finds the stamp, which is behind the first bracket that holds one.
func (p *haproxyParser) stamp(c *cursor, r *row) (ok bool) {
	for range 4 { // a syslog prefix may have brackets of its own
		n := bytes.Index(c.rest(), []byte(" ["))
		if n < 0 {
			return false
		}
		c.i += n + 2
		if n = bytes.IndexByte(c.rest(), ']'); n < 0 {
			return false
		}
		if r.stamp, ok = readCLF(c.rest()[:n], p.zone); ok {
			c.i += n + 1
			r.Arrival = r.stamp
			return true
		}
	}
	return false
}

// times sets what the timers and the state say.
func (p *haproxyParser) times(r *row, timers [5]int64, retries int64, state, server []byte, request string) (string, error) {
	ms := func(n int64) time.Duration {
		if n < 0 {
			return Absent
		}
		return time.Duration(n) * time.Millisecond
	}
	r.Queue, r.Total = ms(timers[1]), ms(timers[4])
	r.Outcome = haproxyOutcome(r.Status, state)
	if !bytes.HasSuffix(server, []byte("/<NOSRV>")) {
		r.Attempts = int(max(retries, 0)) + 1
	}
	switch {
	case r.Outcome == Stream:
		return r.end(request, false, whyStream)
	case timers[3] < 0 && request == whyHABad:
		return r.end("", false, whyHABad)
	case timers[3] < 0:
		return r.end(request, false, whyHANone)
	}
	r.Service, r.LastService = ms(timers[3]), ms(timers[3])
	if request == whyHABad {
		request = ""
	}
	return r.end(request, true, "")
}

// haproxyRequest reads the captured headers and the request, which may be cut:
// HAProxy writes at most 1024 bytes a line unless told otherwise. It escapes
// quotes as #22.
func haproxyRequest(c *cursor, r *row) (request, why string) {
	for c.spaces(); !c.done() && c.b[c.i] == '{'; c.spaces() {
		n := bytes.Index(c.rest(), []byte("} "))
		if n < 0 {
			return whyCut, ""
		}
		c.i += n + 1
	}
	if c.done() {
		return whyCut, ""
	}
	if c.b[c.i] != '"' {
		return "", whyHABraces
	}
	text := c.b[c.i+1:]
	n := bytes.IndexByte(text, '"')
	if n < 0 {
		if bytes.HasPrefix(text, []byte("<BADREQ>")) {
			return whyHABad, ""
		}
		r.path, _ = cutPath(text)
		return whyCut, ""
	}
	text = text[:n]
	if string(text) == "<BADREQ>" {
		return whyHABad, ""
	}
	r.path, request = requestLine(text)
	if request == whyCut {
		r.path, _ = cutPath(text)
	}
	return request, ""
}

// cutPath returns the path of a request line without its end. It is whole if a
// query or a blank follows it.
func cutPath(text []byte) (path []byte, whole bool) {
	n := bytes.IndexByte(text, ' ')
	if n < 0 || n+1 == len(text) {
		return nil, false
	}
	path = text[n+1:]
	if n = bytes.IndexAny(path, "? "); n > 0 {
		return path[:n], true
	}
	return nil, false
}

// haproxyOutcome reads the first two letters of the termination state: who ended
// the session, and when. C is a client that left, Q is in the queue.
func haproxyOutcome(status int, state []byte) Outcome {
	switch {
	case state[0] == 'C':
		return Cancelled
	case state[1] == 'Q':
		return ExpiredInQueue
	case status == NoStatus && state[0] == 'c':
		return Cancelled
	}
	return outcomeOf(status)
}

// isState says whether b has only what a termination state has.
func isState(b []byte) bool {
	for _, c := range b {
		if c != '-' && !(c|0x20 >= 'a' && c|0x20 <= 'z') {
			return false
		}
	}
	return true
}

// readSlashed reads "1/-1/+3" into all of v, numbers of at most ten digits. plus
// says whether the last has a plus sign.
func readSlashed(b []byte, v []int64) (plus, ok bool) {
	for i := range v {
		part := b
		n := bytes.IndexByte(b, '/')
		if (n < 0) != (i == len(v)-1) {
			return false, false
		}
		if n >= 0 {
			part, b = b[:n], b[n+1:]
		}
		if len(part) == 0 {
			return false, false
		}
		if string(part) == "-1" {
			v[i] = -1
			continue
		}
		plus = part[0] == '+'
		if plus {
			part = part[1:]
		}
		k, ok := readInt(part)
		if !ok {
			return false, false
		}
		v[i] = int64(k)
	}
	return plus, true
}
