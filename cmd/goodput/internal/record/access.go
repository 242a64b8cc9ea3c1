package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

const (
	// accessBuffer is how many bytes of lines wait for the disk: at 400 bytes a line 10,000,
	// which is a fifth of a second at 50,000 requests a second. There are two of them.
	accessBuffer = 4 << 20

	// maxPath is how much of a path, and of a header, a line has. A client may send a megabyte.
	maxPath = 2 << 10

	// maxWord is that for a host, a method and the name of a tenant.
	maxWord = 256
)

// An Access is an access log: a line of JSON for each request that arrived at a class. See
// line for the fields. There is no query in it unless it is asked for: that is where secrets
// and names are.
type Access struct {
	worker
	state
	query bool
	out   handle
	open  func() (handle, error) // nil: what is open stays, as stdout
	again atomic.Bool            // open is to be called
	torn  bool                   // the last line has no end

	mu    sync.Mutex
	lines int
	buf   []byte // up to accessBuffer
	spare []byte // of the writer
}

// OpenAccess begins an access log: what is at path is appended to, and "-" is stdout. With
// query the lines have the query of a request as well. The error is one sentence about path.
func OpenAccess(path string, query bool, stdout io.Writer, log *slog.Logger) (*Access, error) {
	a := newAccess(path, query, log)
	if path == "-" {
		a.out = writeOnly{stdout}
	} else {
		a.open = func() (handle, error) { return appendTo(path) }
		var err error
		if a.out, err = a.open(); err != nil {
			return nil, err
		}
		a.torn = endsInside(path)
	}
	go a.run(a.flush)
	return a, nil
}

func newAccess(path string, query bool, log *slog.Logger) *Access {
	return &Access{
		worker: newWorker(), query: query,
		state: state{log: log.With("component", "access_log"), what: "access log", path: path},
		buf:   make([]byte, 0, accessBuffer), spare: make([]byte, 0, accessBuffer),
	}
}

// appendTo opens a file to append to. O_NONBLOCK is for a named pipe: nobody waits for a reader
// that is not there.
func appendTo(path string) (handle, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, mode)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, fmt.Errorf("cannot write %s: it is a pipe that nobody reads", path)
	case err != nil:
		if why := (*os.PathError)(nil); errors.As(err, &why) {
			err = why.Err
		}
		return nil, fmt.Errorf("cannot write %s: %w", path, err)
	}
	return f, nil
}

// writeOnly is what is not ours to close or to cut.
type writeOnly struct{ io.Writer }

func (writeOnly) Truncate(int64) error { return errors.ErrUnsupported }
func (writeOnly) Close() error         { return nil }

// A line has the fields in this order; those without a value are not there. Times are seconds.
type line struct {
	Time     string      `json:"time"`               // arrival, RFC 3339 in UTC with microseconds
	Limiter  string      `json:"limiter"`            // the class; "": it was answered before one was known
	Method   string      `json:"method"`             //
	Host     string      `json:"host"`               //
	Path     string      `json:"path"`               // as it was sent, without the query
	Query    string      `json:"query,omitempty"`    // if it was asked for
	Status   int         `json:"status,omitempty"`   // 499: the client left. None: the connection was cut, or is not limited one by one
	Bytes    int64       `json:"bytes"`              // of the body of the answer
	Remote   string      `json:"remote,omitempty"`   // the client, as far as proxies are trusted
	Upstream string      `json:"upstream,omitempty"` // the server that answered
	Queue    float64     `json:"queue_seconds"`
	Service  float64     `json:"service_seconds,omitempty"` // from the slot to the header of the answer
	Held     float64     `json:"held_seconds,omitempty"`    // from the slot to its end
	Duration float64     `json:"duration_seconds"`          // from the arrival to the end
	Outcome  string      `json:"outcome,omitempty"`         // none: no limiter was asked
	Reason   string      `json:"reason,omitempty"`          // why it did not start
	Budget   float64     `json:"budget_seconds,omitempty"`  // how long its caller waits, at its arrival
	Tenant   string      `json:"tenant,omitempty"`
	Priority string      `json:"priority,omitempty"`     // if it is not default
	Cost     int         `json:"cost,omitempty"`         // if it is not 1
	Size     int         `json:"size,omitempty"`         // if it was said
	Exempt   bool        `json:"exempt,omitempty"`       // a probe
	Upgraded bool        `json:"upgraded,omitempty"`     // a WebSocket
	Observed bool        `json:"observed,omitempty"`     // it ran because observe mode was on
	Would    bool        `json:"would_refuse,omitempty"` // it would have been refused at the door otherwise
	GRPC     json.Number `json:"grpc_status,omitempty"`  // of the answer to a call
	Trace    string      `json:"trace_id,omitempty"`     // of traceparent
}

// A pencil is what a line is written with.
type pencil struct {
	line line
	text bytes.Buffer
	json *json.Encoder

	escaped []byte // see plain
}

var pencils = sync.Pool{New: func() any {
	p := new(pencil)
	p.json = json.NewEncoder(&p.text)
	p.json.SetEscapeHTML(false)
	return p
}}

// plain is the line with nothing in it that moves a terminal or turns its text around: what JSON
// leaves as it is beyond ASCII, and DEL, is escaped. All of it is in strings.
func (p *pencil) plain() []byte {
	b := p.text.Bytes()
	if !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x7f }) {
		return b
	}
	p.escaped = p.escaped[:0]
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		if c == 0x7f || unicode.In(c, unicode.Cc, unicode.Bidi_Control) && c > 0x7f {
			p.escaped = fmt.Appendf(p.escaped, `\u%04x`, c)
		} else {
			p.escaped = append(p.escaped, b[:n]...)
		}
		b = b[n:]
	}
	return p.escaped
}

// A Where is what the proxy knows of a request beside its end.
type Where struct{ Class, Remote, Upstream string }

// Add writes the line of a request into the buffer, or drops it if that is full.
func (a *Access) Add(r *http.Request, e *goodputhttp.Ended, where Where) {
	p := pencils.Get().(*pencil)
	p.line.set(r, e, where)
	if a.query {
		p.line.Query = clip(r.URL.RawQuery, maxPath)
	}
	p.text.Reset()
	if err := p.json.Encode(&p.line); err != nil {
		panic("record: a line that is no JSON: " + err.Error()) // it has strings and finite numbers
	}
	a.put(p.plain())
	p.line = line{}
	pencils.Put(p)
}

// put copies a line into the buffer.
func (a *Access) put(text []byte) {
	a.mu.Lock()
	fits := len(a.buf)+len(text) <= cap(a.buf)
	if fits {
		a.buf = append(a.buf, text...)
		a.lines++
	}
	half := len(a.buf) > cap(a.buf)/2
	a.mu.Unlock()
	if !fits {
		a.dropped.Add(1)
	}
	if half {
		a.hurry()
	}
}

func (l *line) set(r *http.Request, e *goodputhttp.Ended, where Where) {
	*l = line{
		Time: e.Arrival.UTC().Format("2006-01-02T15:04:05.000000Z"), Limiter: where.Class,
		Method: clip(r.Method, maxWord), Host: clip(r.Host, maxWord), Path: clip(r.URL.EscapedPath(), maxPath),
		Status: e.Status, Bytes: e.Bytes, Remote: where.Remote, Upstream: where.Upstream,
		Queue: seconds(e.Waited), Service: seconds(e.Service), Held: seconds(e.Held), Duration: seconds(e.Total),
		Reason: e.Reason, Tenant: clip(e.Work.Tenant, maxWord), Size: max(e.Work.Size, 0),
		Exempt: e.Exempt, Upgraded: e.Upgraded, Observed: e.Observed, Would: e.WouldRefuse,
		GRPC: grpcStatus(e.GRPC), Trace: traceID(r.Header),
	}
	if e.Offered { // else no limiter has counted it
		l.Outcome = e.Outcome.String()
	}
	if e.Outcome == goodput.Cancelled || e.Outcome == goodput.Abandoned {
		l.Status = 499 // as nginx has it
	}
	if !e.Deadline.IsZero() {
		l.Budget = max(seconds(e.Deadline.Sub(e.Arrival)), 1e-6) // 0 is none
	}
	if e.Work.Priority != 0 && e.Work.Priority != goodput.Default {
		l.Priority = e.Work.Priority.String()
	}
	if e.Work.Cost > 1 {
		l.Cost = e.Work.Cost
	}
}

// grpcStatus is a number of up to two digits, of which gRPC has 17; of anything else nothing.
func grpcStatus(text string) json.Number {
	if n, err := strconv.ParseUint(text, 10, 8); err == nil && n < 100 {
		return json.Number(strconv.FormatUint(n, 10))
	}
	return ""
}

// seconds are d in microseconds, which is what the digits of a line say.
func seconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e6 }

// clip is the beginning of a text, to the end of a letter.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// traceID is that of a traceparent (W3C): version, 32 digits, 16 digits, flags.
func traceID(h http.Header) string {
	v := h["Traceparent"]
	if len(v) != 1 || len(v[0]) < 55 || v[0][2] != '-' || v[0][35] != '-' {
		return ""
	}
	id := v[0][3:35]
	if strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// Reopen has the writer open its path again, soon: a log that was renamed goes on in a new file.
func (a *Access) Reopen() {
	a.again.Store(true)
	a.hurry()
}

// flush writes what is in the buffer.
func (a *Access) flush(bool) {
	if a.open != nil && a.again.Swap(false) {
		if f, err := a.open(); err != nil {
			a.log.Error("access log cannot be opened again: the file until now is written to", "err", err)
		} else {
			_ = a.out.Close()
			a.out, a.torn = f, endsInside(a.path)
		}
	}
	a.mu.Lock()
	a.buf, a.spare = a.spare[:0], a.buf
	lines := a.lines
	a.lines = 0
	a.mu.Unlock()
	if len(a.spare) > 0 {
		a.write(a.spare, lines)
	}
	a.lost(a.dropped.Load())
}

// write writes lines. A line of which a part was written before has an end first.
func (a *Access) write(text []byte, lines int) {
	if a.torn {
		if _, err := a.out.Write([]byte{'\n'}); err != nil {
			a.is(err)
			a.dropped.Add(uint64(lines))
			return
		}
		a.torn = false
	}
	n, err := a.out.Write(text)
	a.is(err)
	if err == nil {
		a.written.Add(uint64(lines))
		return
	}
	whole := bytes.Count(text[:n], []byte{'\n'})
	a.torn = n > 0 && text[n-1] != '\n'
	a.written.Add(uint64(whole))
	a.dropped.Add(uint64(lines - whole))
}

// Close writes what is left. What is added after that is lost.
func (a *Access) Close() error {
	if err := a.end("access log " + a.path); err != nil {
		return err
	}
	return a.out.Close()
}
