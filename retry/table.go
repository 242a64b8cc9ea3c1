package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// This is the one table that says what a fault allows. A row has the rule and the
// reason, which is part of the sentence of an Error. What a status does not say, a
// marker may: NotExecuted makes every status and code retryable, Hint.Never none.

// A rule says what a row allows.
type rule uint8

const (
	answer  rule = iota // Answer
	final               // Final
	careful             // Retryable if idempotent, not executed or unsent: it may have been executed
	hinted              // careful, and only if the server said when
	always              // Retryable: it was certainly not executed
)

// A row is one line of the table.
type row struct {
	rule   rule
	why    string
	unsent bool // nothing was sent, whether or not it pays to try again
}

// statuses are those of HTTP that have a rule of their own; the others are those of
// their class (RFC 9110, 15: what is not known is the x00 of its class).
var statuses = map[int]row{
	408: {careful, "the server gave up waiting for the request, or for its body while it ran", false},
	425: {always, "the server would not risk an early request (RFC 8470) and did not process it", false},
	429: {careful, "the rate limit may be that of a service further down, after some of the work", false},
	// 500 is a defect more often than a moment: the same request fails again, on more
	// instances. Whoever knows better says so in Policy.Classify.
	500: {final, "the server failed on this request, and would again", false},
	501: {final, "the server cannot do this", false},
	502: {careful, "a server in between got no answer that it understood", false},
	503: {careful, "the service is unavailable, which does not say what it did before", false},
	504: {careful, "a server in between got no answer in time", false},
	505: {final, "the server does not speak this version of HTTP", false},
	511: {final, "the network wants a login", false},
}

var (
	noFault      = row{answer, "there is no fault", false}
	callersFault = row{answer, "the server answered that the request is wrong", false}
	othersFault  = row{final, "the server failed in a way that is not known to pass", false}
)

func statusRow(status int) row {
	if r, ok := statuses[status]; ok {
		return r
	}
	switch {
	case status < 400:
		return noFault
	case status < 500:
		return callersFault
	}
	return othersFault
}

// grpcRows are the codes of gRPC (grpc/grpc, doc/statuscodes.md).
var grpcRows = [...]row{
	0:  noFault,
	1:  {final, "the call was cancelled, by its caller as a rule", false},
	2:  {final, "the server failed in a way that it cannot say", false},
	3:  callersFault,                                                                    // INVALID_ARGUMENT
	4:  {final, "its deadline has passed, and another attempt has no later one", false}, // but see OwnTime
	5:  callersFault,                                                                    // NOT_FOUND
	6:  callersFault,                                                                    // ALREADY_EXISTS
	7:  callersFault,                                                                    // PERMISSION_DENIED
	8:  {hinted, "something is used up, and the server does not say until when", false},
	9:  callersFault, // FAILED_PRECONDITION
	10: {final, "a transaction was aborted: it is to be begun anew, with what it read before", false},
	11: callersFault, // OUT_OF_RANGE
	12: {final, "the server cannot do this", false},
	13: {final, "the server failed on this request, and would again", false},
	14: {careful, "the service is unavailable, which does not say what it did before", false},
	15: {final, "data is lost", false},
	16: callersFault, // UNAUTHENTICATED
}

func codeRow(c Code) row {
	if int(c) < len(grpcRows) {
		return grpcRows[c]
	}
	return grpcRows[2]
}

// ownTime is the row of a timeout that was the attempt's and not the call's.
var ownTime = row{careful, "the attempt took longer than it may", false}

// errorRows are asked from the top; the last one takes what is left.
var errorRows = [...]struct {
	is func(err error) bool
	row
}{
	// Before the request: nothing was sent, whatever its method is.
	{is[*Throttled], row{final, "it was kept at home, and would be again", true}},
	{noSuchHost, row{final, "there is no such host", true}},
	{isError(context.Canceled), row{final, "it was cancelled", false}},
	{is[*net.DNSError], row{always, "the name could not be looked up", true}},
	{badAddress, row{final, "the address is none", true}},
	{untrusted, row{final, "the two do not agree on TLS, or do not trust each other", true}},
	{handshakeTimeout, row{always, "the TLS handshake took too long", true}},
	{dialing, row{always, "no connection was made", true}},
	{unprocessed, row{always, "the server said that it did not process the request", true}},

	// After it.
	{isError(context.DeadlineExceeded), row{final, "its deadline has passed, and another attempt has no later one", false}},
	{timeout, row{careful, "no answer came in time", false}},
	{broken, row{careful, "the connection broke before the answer was complete", false}},
	{func(error) bool { return true }, row{careful, "what became of it is not known", false}},
}

func errorRow(err error) row {
	for i := range errorRows {
		if errorRows[i].is(err) {
			return errorRows[i].row
		}
	}
	panic("retry: the last row takes everything")
}

// row returns the line that f is judged by.
func (f *Fault) row() row {
	switch {
	case f.byError():
		if f.OwnTime && errors.Is(f.Err, context.DeadlineExceeded) && !dialing(f.Err) {
			return ownTime
		}
		return errorRow(f.Err)
	case f.Code != 0:
		if f.Code == 4 && f.OwnTime {
			return ownTime
		}
		return codeRow(f.Code)
	}
	return statusRow(f.Status)
}

// judge returns the verdict with its reason. f is filled.
func (f *Fault) judge() (Verdict, string) {
	r := f.row()
	switch {
	case r == noFault:
		return VerdictAnswer, r.why
	case f.Hint.Never && f.byError():
		return VerdictFinal, "it is not to be tried again"
	case f.Hint.Never:
		return VerdictFinal, "the server says not to come back"
	case r.rule == final && f.byError():
		return VerdictFinal, r.why
	case f.safe(r):
		return VerdictRetry, r.why
	case r.rule == answer:
		return VerdictAnswer, r.why
	case r.rule == final, r.rule == hinted && !f.Hint.Said:
		return VerdictFinal, r.why
	case f.Idempotent, f.Unsent && !f.executed:
		return VerdictRetry, r.why
	}
	return VerdictFinal, r.why + ": it may have been executed, and it is not marked idempotent"
}

// byError reports whether f is judged by its error: there was no answer, or a good one whose
// body broke.
func (f *Fault) byError() bool { return f.Err != nil && f.Status < 400 && f.Code == 0 }

// safe reports whether it was certainly not executed, r being the row of f.
func (f *Fault) safe(r row) bool {
	return !f.executed && (f.NotExecuted || r.unsent || r.rule == always)
}

func is[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func noSuchHost(err error) bool {
	var d *net.DNSError
	return errors.As(err, &d) && d.IsNotFound
}

func badAddress(err error) bool {
	return is[*net.AddrError](err) || is[*net.ParseError](err) || is[net.UnknownNetworkError](err) || is[net.InvalidAddrError](err)
}

// untrusted are failures of the handshake that a second one repeats.
func untrusted(err error) bool {
	return is[*tls.CertificateVerificationError](err) || is[tls.AlertError](err) || is[tls.RecordHeaderError](err) ||
		is[x509.UnknownAuthorityError](err) || is[x509.CertificateInvalidError](err) ||
		is[x509.HostnameError](err) || is[x509.SystemRootsError](err)
}

// handshakeTimeout knows the error of net/http by its text: it has no name.
func handshakeTimeout(err error) bool {
	return strings.Contains(err.Error(), "net/http: TLS handshake timeout")
}

// dialing: the connection to the server, or to the proxy before it, was not made.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// A streamError is what net/http lets others see of the error of an HTTP/2 stream: its
// own has a method As that fills any struct of these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream error" }

// refusedStream is REFUSED_STREAM: the stream was closed before any processing (RFC
// 9113, 8.7).
const refusedStream = 0x7

// goneAway is what net/http says about a request on a stream above the last one of a
// GOAWAY, which the server did not process (RFC 9113, 6.8), and repeats after it if
// the body has no GetBody. The errors have no names.
const (
	goneAway = "http2: Transport received Server's graceful shutdown GOAWAY"
	noBody   = "http2: Transport: cannot retry err ["
)

func unprocessed(err error) bool {
	var s streamError
	if errors.As(err, &s) {
		return s.Code == refusedStream
	}
	text := err.Error()
	return strings.Contains(text, goneAway) || strings.Contains(text, noBody) && strings.Contains(text, "REFUSED_STREAM")
}

func timeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
