package accesslog

import (
	"fmt"
	"regexp"
	"time"
)

// A parser reads the lines of one file. One that has seen a header remembers it;
// nothing else of a line matters to the next.
type parser interface {
	// parse reads a line, which is not empty, into r, which is as blank leaves it,
	// and sets its verdict. It says
	// why where the verdict is not OK. An error is about the file: what it logs
	// is not enough, whatever follows.
	parse(line []byte, r *row) (why string, err error)

	// rule is the sentence of File.Rule.
	rule() string
}

// A row is a record with what only reading needs of the line.
type row struct {
	Record
	stamp int64  // as written, before a duration is taken off
	path  []byte // of the request, inside the line
	class []byte // from a column

	tenant   []byte
	priority uint8 // index into priorities
}

// blank makes r the row of a line that says nothing.
func (r *row) blank() {
	*r = row{Record: Record{
		Queue: Absent, Service: Absent, LastService: Absent, Total: Absent, Budget: Absent,
		Cost: 1, Status: NoStatus,
	}}
}

// bad gives up on a line.
func (r *row) bad(why string) (string, error) {
	r.Verdict = Malformed
	return why, nil
}

// sample sets the service time of a request with one attempt.
func (r *row) sample(d time.Duration) { r.Service, r.LastService, r.Attempts = d, d, 1 }

// end closes a row: an arrival whose request line may not be readable, with or
// without a sample.
func (r *row) end(request string, sampled bool, unsampled string) (why string, err error) {
	switch {
	case request != "":
		r.Verdict = MalformedRequest
		return request, nil
	case !sampled:
		r.Verdict = NoSample
		return unsampled, nil
	}
	r.Verdict = OK
	return "", nil
}

// outcomeOf is what a status alone says. 400, 408 and their like are requests
// that the server could not read, so they failed; 404 is an answer.
func outcomeOf(status int) Outcome {
	switch status {
	case NoStatus:
		return Unknown
	case 0, 499, 460: // nothing sent; client closed: nginx, ALB
		return Cancelled
	case 101:
		return Stream
	case 400, 408, 413, 414, 417, 431:
		return Failed
	case 429:
		return Rejected
	}
	if status >= 500 {
		return Failed
	}
	return Served
}

// A maker makes the parsers of a run.
type maker struct {
	o       *Options
	columns *mapping
	pattern *regexp.Regexp
}

// newMaker reads what the options say about columns.
func newMaker(o *Options) (*maker, error) {
	k := &maker{o: o}
	columns := o.Columns
	if o.Pattern != "" {
		var err error
		if k.pattern, err = regexp.Compile(o.Pattern); err != nil {
			return nil, fmt.Errorf("the pattern is not a regular expression: %w", err)
		}
		if columns == "" {
			columns = columnsOf(k.pattern)
		}
		if columns == "" {
			return nil, fmt.Errorf("the pattern has no named group, such as (?P<arrival>...)")
		}
	}
	if columns == "" {
		return k, nil
	}
	var err error
	if k.columns, err = parseColumns(columns); err != nil {
		return nil, err
	}
	if k.pattern != nil {
		for _, name := range k.columns.names {
			if k.pattern.SubexpIndex(name) < 0 {
				return nil, fmt.Errorf("the pattern has no group named %q", name)
			}
		}
	}
	return k, nil
}

// make returns a parser for a file of format f.
func (k *maker) make(f Format) parser {
	switch f {
	case Trace:
		return &traceParser{only: k.o.Only}
	case Goodput:
		return newGoodput(k.o.Only)
	case Nginx:
		return &nginxParser{stamps: stampCache{zone: k.o.Zone}}
	case Apache:
		p := &apacheParser{stamps: stampCache{zone: k.o.Zone}, unit: k.o.Unit, given: k.o.Unit != 0}
		if !p.given {
			p.unit = time.Microsecond
		}
		return p
	case Envoy:
		return &envoyParser{zone: k.o.Zone}
	case HAProxy:
		return &haproxyParser{zone: k.o.Zone}
	case ALB:
		return &albParser{}
	case CloudFront, IIS:
		return &w3cParser{cloudfront: f == CloudFront}
	case GCP:
		return newGCP()
	}
	m := mapped{mapping: k.columns, zone: k.o.Zone, values: make([][]byte, len(k.columns.names))}
	switch f {
	case JSON:
		return &jsonParser{mapped: m, fields: newJSONFields(k.columns.names)}
	case CSV:
		return &csvParser{mapped: m}
	case Pattern:
		p := &patternParser{mapped: m, pattern: k.pattern}
		for _, name := range k.columns.names {
			p.group = append(p.group, k.pattern.SubexpIndex(name))
		}
		return p
	}
	panic("accesslog: no parser for format " + string(f))
}
