package accesslog

import (
	"bytes"
	"time"
)

// Why a line is of no use, or no sample.
const (
	whyJSON       = "the line is not one JSON object"
	whyGCP        = "httpRequest is missing: not a request of a Google Cloud load balancer"
	whyGCPStamp   = "timestamp is missing or not RFC 3339"
	whyLatency    = "httpRequest.latency is not a number of seconds"
	whyNoLatency  = "httpRequest.latency is missing"
	whyClientLeft = "the client left before any response"
)

// A gcpParser reads the log entries of Google Cloud load balancers, one JSON
// object a line. A latency is a string of seconds, with or without the s.
type gcpParser struct{ fields *jsonFields }

const (
	gcpStamp = iota
	gcpStatus
	gcpLatency
	gcpURL
	gcpDetails
	gcpMethod
)

func newGCP() *gcpParser {
	return &gcpParser{newJSONFields([]string{
		gcpStamp: "timestamp", gcpStatus: "httpRequest.status", gcpLatency: "httpRequest.latency",
		gcpURL: "httpRequest.requestUrl", gcpDetails: "jsonPayload.statusDetails", gcpMethod: "httpRequest.requestMethod",
	})}
}

func (p *gcpParser) rule() string {
	return "the timestamp is taken as the arrival; httpRequest.latency (seconds) is the total, it stands for the service time"
}

func (p *gcpParser) parse(line []byte, r *row) (string, error) {
	if !p.fields.find(line) {
		return r.bad(whyJSON)
	}
	v := p.fields.values
	if v[gcpStatus] == nil && v[gcpLatency] == nil && v[gcpURL] == nil && v[gcpMethod] == nil {
		return r.bad(whyGCP)
	}
	var ok bool
	if r.stamp, ok = readISO(v[gcpStamp], nil); !ok {
		return r.bad(whyGCPStamp)
	}
	r.Arrival = r.stamp
	if r.Status, ok = readStatus(v[gcpStatus]); !ok {
		return r.bad(whyStatus)
	}
	if latency := bytes.TrimSuffix(v[gcpLatency], []byte("s")); len(latency) > 0 {
		if r.Total, ok = readSpan(latency, time.Second); !ok {
			return r.bad(whyLatency)
		}
	}
	request := ""
	if len(v[gcpURL]) > 0 {
		r.path, request = targetPath(v[gcpURL])
	}
	details := v[gcpDetails]
	r.Outcome = outcomeOf(r.Status)
	switch {
	case bytes.HasPrefix(details, []byte("client_")):
		r.Outcome = Cancelled
	case bytes.HasPrefix(details, []byte("websocket")):
		r.Outcome = Stream
	}
	switch {
	case r.Total < 0:
		return r.end(request, false, whyNoLatency)
	case r.Outcome == Stream:
		return r.end(request, false, whyStream)
	case r.Outcome == Cancelled:
		return r.end(request, false, whyClientLeft)
	}
	return r.end(request, true, "")
}
