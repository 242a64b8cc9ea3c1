package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// Why a line of goodput is of no use, or no sample.
const (
	whyGoodput     = "outcome or queue_seconds is missing: not a line of goodput's access log"
	whyGoodputTime = "time is missing or not RFC 3339"
	whyNotStarted  = "the request did not start, so it has no service time"
	whyProbe       = "of a probe, which no limiter limits"
	whyOtherClass  = "of another class"
)

// The words of an outcome, for both formats.
func (r *row) ended(outcome []byte) (known bool) {
	switch string(outcome) {
	case "completed", "late":
		r.Outcome = Served
	case "failed":
		r.Outcome = Failed
	case "abandoned": // it would have gone on, who knows how long
		r.Outcome, r.ServiceAtLeast, r.TotalAtLeast = Cancelled, true, true
	case "rejected":
		r.Outcome = Rejected
	case "expired":
		r.Outcome = ExpiredInQueue
	case "cancelled":
		r.Outcome, r.TotalAtLeast = Cancelled, true
	default:
		return false
	}
	return true
}

// started reports whether a request of that outcome had a slot.
func started(outcome []byte) bool {
	switch string(outcome) {
	case "rejected", "expired", "cancelled":
		return false
	}
	return true
}

// priorities are those that a line may name.
var priorities = []string{"", "critical", "default", "sheddable", "background"}

// priorityOf numbers a word; what is none is as usual.
func priorityOf(word []byte) uint8 {
	return uint8(max(slices.Index(priorities, string(word)), 0))
}

// A goodputParser reads the access log of goodput serve, one JSON object a line. The service
// time is how long the slot was held, because that is what a slot is for: the header of an
// answer may come long before its end.
type goodputParser struct {
	fields *jsonFields
	only   string
}

const (
	ownTime = iota
	ownClass
	ownStatus
	ownQueue
	ownHeld
	ownDuration
	ownOutcome
	ownReason
	ownBudget
	ownTenant
	ownPriority
	ownCost
	ownSize
	ownPath
	ownExempt
	ownObserved
)

func newGoodput(only string) *goodputParser {
	return &goodputParser{only: only, fields: newJSONFields([]string{
		ownTime: "time", ownClass: "limiter", ownStatus: "status", ownQueue: "queue_seconds", ownHeld: "held_seconds",
		ownDuration: "duration_seconds", ownOutcome: "outcome", ownReason: "reason", ownBudget: "budget_seconds",
		ownTenant: "tenant", ownPriority: "priority", ownCost: "cost", ownSize: "size", ownPath: "path", ownExempt: "exempt",
		ownObserved: "observed",
	})}
}

func (p *goodputParser) rule() string {
	return "the time is the arrival; service time = held_seconds, how long the slot was held"
}

func (p *goodputParser) parse(line []byte, r *row) (string, error) {
	if !p.fields.find(line) {
		return r.bad(whyJSON)
	}
	v := p.fields.values
	if v[ownQueue] == nil || v[ownDuration] == nil {
		return r.bad(whyGoodput)
	}
	var ok bool
	if r.stamp, ok = readISO(v[ownTime], nil); !ok {
		return r.bad(whyGoodputTime)
	}
	r.Arrival = r.stamp
	if r.Status, ok = readStatus(v[ownStatus]); !ok {
		return r.bad(whyStatus)
	}
	for _, d := range []struct {
		text []byte
		to   *time.Duration
	}{{v[ownQueue], &r.Queue}, {v[ownHeld], &r.Service}, {v[ownDuration], &r.Total}, {v[ownBudget], &r.Budget}} {
		if d.text == nil {
			continue
		}
		n, ok := readNumber(d.text)
		ns, fits := n.times(int64(time.Second))
		if !ok || !fits || ns > int64(maxSpan) {
			return r.bad(whyMapSpan)
		}
		*d.to = time.Duration(ns)
	}
	if r.Cost, r.Size, ok = counts(v[ownCost], v[ownSize]); !ok {
		return r.bad(whyMapCount)
	}
	r.class, r.tenant, r.priority = v[ownClass], v[ownTenant], priorityOf(v[ownPriority])
	r.Observed = string(v[ownObserved]) == "true"
	if len(v[ownPath]) > 0 {
		r.path, _ = targetPath(v[ownPath])
	}
	outcome := p.outcome()
	switch {
	case len(r.class) == 0 && len(outcome) == 0:
		r.Verdict = Skip
		return whyOtherClass, nil
	case len(outcome) == 0:
		r.Outcome, r.Service = Stream, Absent // of a class of connections: it is not limited
		return r.end("", false, whyStream)
	case !r.ended(outcome):
		return r.bad(whyGoodput)
	case p.only != "" && p.only != string(r.class):
		r.Verdict = Skip
		return whyOtherClass, nil
	case string(v[ownExempt]) == "true":
		r.Verdict = Skip
		return whyProbe, nil
	case !started(outcome):
		switch string(v[ownReason]) {
		case "too_large", "slow_body", "bad_body": // whatever the policy of its limiter
			r.Outcome = Failed
		}
		r.Service = Absent
		return r.end("", false, whyNotStarted)
	}
	if r.Service < 0 && r.Outcome == Cancelled { // its caller left at the moment of its slot
		return r.end("", false, whyNotStarted)
	}
	r.sample(max(r.Service, 0)) // shorter than a microsecond, and so not there
	return r.end("", true, "")
}

// outcome is that of a line: what has none and was turned away all the same, before its limiter
// was asked, was rejected.
func (p *goodputParser) outcome() []byte {
	v := p.fields.values
	if len(v[ownOutcome]) == 0 && len(v[ownClass]) > 0 && len(v[ownReason]) > 0 {
		return []byte("rejected")
	}
	return v[ownOutcome]
}

// counts reads a cost, which is 1 if it is not there, and a size, which is 0 then.
func counts(cost, size []byte) (c, s int, ok bool) {
	c = 1
	if len(cost) > 0 {
		if c, ok = readInt(cost); !ok {
			return 1, 0, false
		}
	}
	if len(size) > 0 {
		if s, ok = readInt(size); !ok {
			return 1, 0, false
		}
	}
	return max(c, 1), s, true
}

// A traceParser reads what goodput serve --record writes: see the comment at the columns in
// package record, which has the same words.
type traceParser struct {
	only  string
	base  int64 // microseconds since 1970; of the last header
	begun bool
	whole bool  // the last file has its end
	lost  int64 // requests that are missing
}

const (
	traceMagic   = "#goodput-trace "
	traceVersion = "1"
	traceEnd     = "#end"
	traceLost    = "#dropped "
	traceColumns = 10

	whyTraceHead   = "it stands before the first line of a trace, so nobody knows when it was"
	whyTraceRow    = "it has not the ten columns of a trace"
	whyTraceTime   = "a time is not a number of microseconds"
	whyTraceEnd    = "the outcome is none"
	whyTraceMarker = "the line begins as none of a trace does"
)

func (p *traceParser) rule() string {
	return "the arrival is that of the line; service time = how long the slot was held"
}

func (p *traceParser) parse(line []byte, r *row) (string, error) {
	if line[0] == '#' {
		return p.marker(line, r)
	}
	var cells [traceColumns][]byte
	n := 0
	for rest, more := line, true; more; n++ {
		if n == traceColumns {
			return r.bad(whyTraceRow)
		}
		cells[n], rest, more = bytes.Cut(rest, []byte{','})
	}
	switch {
	case n < traceColumns:
		return r.bad(whyTraceRow)
	case string(cells[0]) == "arrival":
		r.Verdict = Header
		return "", nil
	case !p.begun:
		return r.bad(whyTraceHead)
	}
	return p.row(&cells, r)
}

func (p *traceParser) row(cells *[traceColumns][]byte, r *row) (string, error) {
	before := len(cells[0]) > 0 && cells[0][0] == '-'
	since, ok := micros(bytes.TrimPrefix(cells[0], []byte("-")))
	if before {
		since = -since
	}
	if !ok || len(cells[0]) == 0 {
		return r.bad(whyTraceTime)
	}
	r.stamp = p.base*1000 + int64(since)
	r.Arrival = r.stamp
	held, okHeld := micros(cells[2])
	budget, okBudget := micros(cells[6])
	if !okHeld || !okBudget {
		return r.bad(whyTraceTime)
	}
	r.Budget = budget
	if r.Cost, r.Size, ok = counts(cells[3], cells[4]); !ok {
		return r.bad(whyMapCount)
	}
	outcome := cells[8]
	if len(outcome) == 0 {
		outcome = []byte("completed")
	}
	if !r.ended(outcome) {
		return r.bad(whyTraceEnd)
	}
	r.class, r.tenant, r.priority = cells[1], cells[5], priorityOf(cells[7])
	r.Observed = len(cells[9]) > 0
	switch {
	case p.only != "" && p.only != string(r.class):
		r.Verdict = Skip
		return whyOtherClass, nil
	case held < 0 || !started(outcome):
		return r.end("", false, whyNotStarted)
	}
	r.sample(held)
	return r.end("", true, "")
}

// marker reads a line that is none of a request.
func (p *traceParser) marker(line []byte, r *row) (string, error) {
	r.Verdict = Header
	if rest, ok := bytes.CutPrefix(line, []byte(traceMagic)); ok {
		version, base, _ := bytes.Cut(rest, []byte{' '})
		if string(version) != traceVersion {
			return "", fmt.Errorf("the trace is of version %q: this program reads %s", clip(version), traceVersion)
		}
		us, ok := readDecimal(base)
		if !ok || us.nanos != 0 || us.whole > maxBase {
			return r.bad(whyTraceTime)
		}
		p.base, p.begun, p.whole = us.whole, true, false
		return "", nil
	}
	if n, ok := bytes.CutPrefix(line, []byte(traceLost)); ok {
		d, ok := readDecimal(n)
		if !ok || d.nanos != 0 {
			return r.bad(whyTraceMarker)
		}
		p.lost += d.whole
		return "", nil
	}
	if string(line) == traceEnd {
		p.whole = true
		return "", nil
	}
	return r.bad(whyTraceMarker)
}

// maxBase is in microseconds: half of what 63 bits of nanoseconds hold is the year 2116.
const maxBase = 4.6e15

// micros reads a number of microseconds, of up to a year; nothing is Absent.
func micros(b []byte) (time.Duration, bool) {
	if len(b) == 0 {
		return Absent, true
	}
	d, ok := readDecimal(b)
	if !ok || d.nanos != 0 || d.whole > int64(maxSpan/time.Microsecond) {
		return Absent, false
	}
	return time.Duration(d.whole) * time.Microsecond, true
}
