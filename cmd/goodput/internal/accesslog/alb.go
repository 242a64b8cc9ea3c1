package accesslog

import (
	"bytes"
	"time"
)

// Why a line is of no use, or no sample.
const (
	whyALBType    = "the first field is neither a type (http, https, h2, grpcs, ws, wss) nor a stamp"
	whyALBStamp   = "the stamp is missing or not 2006-01-02T15:04:05.999999Z"
	whyALBTimes   = "the three times behind the target are missing or not seconds"
	whyALBCreated = "the creation time is after the stamp, or a year before it"
	whyALBTarget  = "nothing was forwarded, or the target never answered"
)

// An albParser reads the lines of AWS load balancers:
//
//	type end name client target request_time target_time response_time status target_status
//	received sent "request" "agent" cipher protocol group "trace" "name" "certificate" rule creation ...
//
// in seconds, -1 for what did not happen. Quotes rule the split. Lines before
// 2018 end sooner; those of a Classic balancer have no type, and their stamp is
// the start.
type albParser struct{ classic bool }

func (p *albParser) rule() string {
	if p.classic {
		return "the stamp is the start of the request (Classic Load Balancer), arrival = stamp; service time = backend_processing_time, in seconds"
	}
	return "the stamp is the end of the request, arrival = creation time (stamp - the three times where it is missing); service time = target_processing_time, in seconds"
}

func (p *albParser) parse(line []byte, r *row) (string, error) {
	c := cursor{b: line}
	kind := c.word()
	var ok bool
	classic := len(kind) > 0 && isDigit(kind[0])
	stamp := kind
	if !classic {
		switch string(kind) {
		case "http", "https", "h2", "grpcs", "ws", "wss":
		default:
			return r.bad(whyALBType)
		}
		stamp = c.word()
	}
	if r.stamp, ok = readISO(stamp, nil); !ok {
		return r.bad(whyALBStamp)
	}
	times, sum, all, why := albNumbers(&c, r)
	if why != "" {
		return r.bad(why)
	}
	text, ok := c.quoted()
	if !ok {
		return r.bad(whyQuotes)
	}
	path, request := requestLine(text)
	r.path = path
	created, ok := albCreation(&c)
	if !ok {
		return r.bad(whyAgent)
	}
	switch {
	case classic:
		r.Arrival = r.stamp
		if p.classic = true; string(text) == "- - - " { // a TCP listener knows no request
			request = ""
		}
	case created != 0:
		if r.Arrival = created; created > r.stamp || r.stamp-created > int64(maxSpan) {
			return r.bad(whyALBCreated)
		}
	case all:
		r.Arrival = r.stamp - int64(sum)
	default:
		r.Arrival = r.stamp
	}
	r.Outcome = outcomeOf(r.Status)
	if bytes.HasPrefix(kind, []byte("ws")) {
		r.Outcome = Stream
	}
	if r.Outcome == Stream {
		return r.end(request, false, whyStream)
	}
	if all {
		r.Total = sum
	}
	if times[1] < 0 {
		return r.end(request, false, whyALBTarget)
	}
	r.sample(times[1])
	return r.end(request, true, "")
}

// albNumbers reads from the name to the bytes: the three times, their sum, and
// whether all of them happened.
func albNumbers(c *cursor, r *row) (times [3]time.Duration, sum time.Duration, all bool, why string) {
	c.word() // name
	c.word() // client
	c.word() // target
	all = true
	var ok bool
	for i := range times {
		word := c.word()
		if string(word) == "-1" || string(word) == "-" {
			times[i], all = Absent, false
			continue
		}
		if times[i], ok = readSpan(word, time.Second); !ok {
			return times, 0, false, whyALBTimes
		}
		sum += times[i]
	}
	word := c.word()
	if r.Status, ok = readStatus(word); !ok || len(word) == 0 {
		return times, 0, false, whyStatus
	}
	c.word() // status of the target
	for range 2 {
		if word = c.word(); !isNumber(word) && string(word) != "-" {
			return times, 0, false, whyBytes
		}
	}
	return times, sum, all, ""
}

// albCreation returns the creation time, the ninth field behind the request, or
// 0 if the line ends before it. It is not ok if a quote has no end.
func albCreation(c *cursor) (created int64, ok bool) {
	for i := 0; ; i++ {
		if c.spaces(); c.done() {
			return created, true
		}
		if c.b[c.i] == '"' {
			if _, ok = c.quoted(); !ok {
				return 0, false
			}
			continue
		}
		if word := c.word(); i == 8 {
			created, _ = readISO(word, nil)
		}
	}
}
