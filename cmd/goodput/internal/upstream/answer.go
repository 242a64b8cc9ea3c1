package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// What a server may answer, of what its transport lets through: no change of protocol that
// nobody asked for, no status that is none, and no end of responses before the last.

// ErrSwitched is the error of a request whose server changed the protocol of its connection
// where nobody had asked for that, or to another one. Nobody could speak it.
var ErrSwitched = errors.New("the server answered with a change of protocol that nobody asked for")

// maxInformational is how many responses before the last (100, 102, 103) of one request are
// passed on: a page has one or two with early hints, and an answer that is put together from a
// dozen others as many as those. Those beyond it are dropped.
const maxInformational = 16

// screen keeps what may not pass from who passes on the responses before the last of r, if
// somebody does. With a trace of its own a transport has no bound for them, and HTTP/2 has 101
// among them.
func screen(r *http.Request) *informational {
	trace := httptrace.ContextClientTrace(r.Context())
	if trace == nil || trace.Got1xxResponse == nil {
		return nil
	}
	// The trace is of this request alone, and nobody else has it yet: one that is put around
	// it could not keep it from hearing what it hears.
	in := &informational{pass: trace.Got1xxResponse}
	trace.Got1xxResponse = in.got
	trace.WroteHeaders = func() { in.wrote.Store(true) }
	return in
}

// informational are the responses before the last of one request. A server that was left for
// another one may still be sending.
type informational struct {
	pass     func(int, textproto.MIMEHeader) error
	n        atomic.Int32
	switched atomic.Bool // there was one that none may be
	wrote    atomic.Bool // the request was sent, to any server
}

// sent returns err, or one that promises less: a request that was sent may have been executed,
// whatever became of it afterwards. net/http sends one that may be repeated once more, by itself,
// if the connection ends before the answer, and then tells of the connect that failed.
func (in *informational) sent(err error) error {
	if in != nil && in.wrote.Load() && unexecuted(err) {
		return fmt.Errorf("the connection broke before the answer, and then: %v", err) // not wrapped: it would be taken for a dial alone
	}
	return err
}

func (in *informational) got(code int, h textproto.MIMEHeader) error {
	if code == http.StatusSwitchingProtocols {
		in.switched.Store(true)
		return ErrSwitched
	}
	if in.n.Add(1) > maxInformational {
		return nil
	}
	return in.pass(code, h)
}

// why returns err, or what made the transport of HTTP/2 end a request: it has its own error
// for that.
func (in *informational) why(err error) error {
	if in != nil && in.switched.Load() {
		return ErrSwitched
	}
	return err
}

// amiss closes res if it may not be passed on, and says why.
func amiss(r *http.Request, res *http.Response) (err error) {
	switch {
	case res.StatusCode < 100:
		// net/http reads it, and panics when it is to write it.
		err = fmt.Errorf("malformed HTTP status code %q", res.Status)
	case res.StatusCode == http.StatusSwitchingProtocols && !agreed(protocol(r.Header), protocol(res.Header)):
		err = ErrSwitched
	default:
		return nil
	}
	res.Body.Close() // of a change of protocol it is the connection
	return err
}

func agreed(want, got string) bool { return want != "" && strings.EqualFold(want, got) }

// protocol returns the one to which a header would change the connection, or "".
func protocol(h http.Header) string {
	if !httpguts.HeaderValuesContainsToken(h["Connection"], "Upgrade") {
		return ""
	}
	return h.Get("Upgrade")
}

// Malformed reports whether err means that a server answered with what is no HTTP, or with a
// header that is too long.
func Malformed(err error) bool {
	if errors.As(err, new(textproto.ProtocolError)) {
		return true
	}
	// net/http has no types for the others.
	text := err.Error()
	for _, part := range [...]string{"malformed", "Content-Length", "transfer encoding", "response headers exceeded"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
