package goodputhttp

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// rejectedHeader marks a request that was not executed, with the reason as its
// value: it is safe to send again, whatever its method.
const rejectedHeader = "Goodput-Rejected"

// slow_body and bad_body are the two reasons that no limiter gives: such a
// request was never offered to one.

// A refusal is what a caller is answered for one reason. One table for HTTP and
// gRPC, so that they cannot disagree.
type refusal struct {
	reason   string
	status   int
	grpc     string // code
	overload bool   // Server.OverloadStatus applies
	again    again
	text     string
}

// What a refusal says about sending the request again.
type again uint8

const (
	retryNever     again = iota // it cannot win within the same limits: no Retry-After, pushback -1
	retryAfter                  // Retry-After, pushback in milliseconds
	retryElsewhere              // at once, on another connection: no Retry-After, no pushback
)

const (
	busy     = "Overloaded: the request was not started. Try again later."
	absent   = "Unavailable: there is nothing to run it on. The request was not started. Try again later."
	hopeless = "Overloaded: the request was not started, and could not have been answered in time."
)

// refusals is the table. gRPC codes: DEADLINE_EXCEEDED 4, RESOURCE_EXHAUSTED 8,
// UNAVAILABLE 14, and INVALID_ARGUMENT 3 for a body that is none.
//
//   - too_large is 413 (RFC 9110 15.5.14: more than the server is willing to
//     process) and not 503, because the same body never fits.
//   - quota is 429 (RFC 6585) whatever the status of an overload is: it says that this
//     client sent too much, and the others go on.
//   - replaced needs no retry: what it said is out of date.
//   - doomed is not 504 and DEADLINE_EXCEEDED: it had time left, and those
//     would hide that it is safe to send again.
var refusals = map[goodput.Reason]*refusal{
	goodput.QueueFull:   {"queue_full", 503, "14", true, retryAfter, busy},
	goodput.BytesFull:   {"bytes_full", 503, "14", true, retryAfter, busy},
	goodput.Shed:        {"shed", 503, "14", true, retryAfter, busy},
	goodput.Displaced:   {"displaced", 503, "14", true, retryAfter, busy},
	goodput.WaitBound:   {"wait_bound", 503, "14", true, retryAfter, busy},
	goodput.Unavailable: {"unavailable", 503, "14", false, retryAfter, absent},
	goodput.OverQuota:   {"quota", 429, "8", false, retryAfter, "The quota is used up for now. The request was not started."},
	goodput.Replaced:    {"replaced", 503, "14", false, retryNever, "A newer request has taken its place. It was not started."},
	goodput.NoBudget:    {"no_budget", 503, "14", false, retryNever, hopeless},
	goodput.Doomed:      {"doomed", 503, "14", false, retryNever, hopeless},
	goodput.TooCostly:   {"too_costly", 503, "8", false, retryNever, "The request costs more than may run at once. It was not started."},
	goodput.TooLarge:    {"too_large", 413, "8", false, retryNever, "The body is larger than what may wait. The request was not started."},
	goodput.Deadline:    {"deadline", 504, "4", false, retryNever, "The time limit of the request passed before it could start."},
	goodput.Draining:    {"draining", 503, "14", false, retryElsewhere, "Shutting down: the request was not started."},
}

var (
	// largeBody has the reason of a body that a limiter has no room for: the same one never fits.
	largeBody = &refusal{"too_large", 413, "8", false, retryNever, "The body is longer than is allowed. The request was not started."}
	cutBody   = &refusal{"too_large", 413, "8", false, retryNever, "The body is longer than is allowed. A part of the work may have been done."}
	slowBody  = &refusal{"slow_body", 408, "14", false, retryNever, "The body arrived too slowly. The request was not started."}
	badBody   = &refusal{"bad_body", 400, "3", false, retryNever, "The body is malformed. The request was not started."}
)

// noPlace is the refusal of an upgrade for Server.MaxUpgraded: there is no
// connection to run it on. Connections last, so a second is the least that
// makes sense.
func noPlace(lim *goodput.Limiter) *goodput.Rejection {
	return &goodput.Rejection{
		Limiter: lim.Name(), Outcome: goodput.Rejected, Reason: goodput.Unavailable, RetryAfter: time.Second,
	}
}

// refuse answers a request that a limiter did not admit.
func (v *visit) refuse(err error) {
	var rej *goodput.Rejection
	if !errors.As(err, &rej) {
		panic("goodputhttp: AcquireWork returned " + err.Error())
	}
	v.response.holds.refused(rej)
	if rej.Outcome == goodput.Cancelled {
		v.abort()
		return
	}
	f, ok := refusals[rej.Reason]
	if !ok {
		panic("goodputhttp: no answer for the reason " + rej.Reason.String())
	}
	var after time.Duration
	if f.again == retryAfter {
		after = retryIn(rej, v.grpc)
	}
	if v.server.ServerTiming {
		timing(v.w.Header(), rej.Waited)
	}
	v.answer(f, after)
}

// timing says in Server-Timing (W3C) how long a request waited for a slot. What the header
// has of others stays.
func timing(h http.Header, waited time.Duration) {
	const name = "Server-Timing"
	ms := float64(waited) / float64(time.Millisecond)
	h[name] = append(h[name], "queue;dur="+strconv.FormatFloat(ms, 'f', 1, 64))
}

// Header values that never change, so that a refusal does not allocate them.
// Their capacity is 1: who appends to one gets a copy.
var (
	noStore     = []string{"no-store"}
	closeConn   = []string{"close"}
	plainText   = []string{"text/plain; charset=utf-8"}
	problemJSON = []string{"application/problem+json"}
	grpcType    = []string{"application/grpc"}
)

// retryIn returns the time in Retry-After, which has whole seconds, or the pushback,
// which has milliseconds. That of a quota is exact, so it is rounded up and no more.
func retryIn(rej *goodput.Rejection, grpc bool) time.Duration {
	switch {
	case rej.Reason == goodput.OverQuota && grpc:
		return rej.RetryAfter + time.Millisecond - 1 // cut to milliseconds when written
	case rej.Reason == goodput.OverQuota:
		return rej.Jittered()
	case grpc:
		return min(rej.RetryAfter+rand.N(rej.RetryAfter/2+1), maxRetryAfter)
	}
	return min(rej.Jittered(), maxRetryAfter)
}

// maxRetryAfter bounds what is said of a limiter that has gone wrong: the core
// says 20 s at most, and jitter makes 30 of it. A quota may take longer.
const maxRetryAfter = 30 * time.Second

// answer answers a request that was not executed, and says so. after is the time in
// Retry-After.
func (v *visit) answer(f *refusal, after time.Duration) {
	v.response.holds.turnedAway(f)
	h := v.w.Header()
	h[rejectedHeader] = []string{f.reason}
	if v.unread || f.again == retryElsewhere {
		h["Connection"] = closeConn // HTTP/2 sends GOAWAY for it
	}
	v.write(f, after)
	if v.unread {
		v.linger()
	}
}

// write writes f, and promises nothing.
func (v *visit) write(f *refusal, after time.Duration) {
	h := v.w.Header()
	h["Cache-Control"] = noStore
	if v.grpc {
		v.answerGRPC(h, f, after)
	} else {
		v.answerHTTP(h, f, after)
	}
}

func (v *visit) answerHTTP(h http.Header, f *refusal, after time.Duration) {
	status := f.status
	if f.overload {
		status = v.server.overloadStatus()
	}
	if f.again == retryAfter {
		seconds := max(after/time.Second, 1) // Jittered gives whole ones
		h["Retry-After"] = []string{strconv.Itoa(int(seconds))}
	}
	v.mark(h, f, status)
	text, kind := f.text+"\n", plainText
	if wantsProblem(v.r.Header) {
		text, kind = f.problem(status), problemJSON
	}
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	v.response.holds.answered(status, len(text))
	v.w.WriteHeader(status)
	_, _ = v.w.Write([]byte(text)) // to HEAD, net/http sends none of it
}

// problem is RFC 9457. The texts have nothing that JSON escapes.
func (f *refusal) problem(status int) string {
	return `{"type":"about:blank","title":"` + http.StatusText(status) + `","status":` + strconv.Itoa(status) +
		`,"detail":"` + f.text + `","reason":"` + f.reason + `"}` + "\n"
}

func wantsProblem(h http.Header) bool {
	for _, accept := range h["Accept"] {
		if strings.Contains(accept, problemJSON[0]) {
			return true
		}
	}
	return false
}

// answerGRPC answers with trailers only: a status of 200 and everything else in
// the one header frame. The client of gRPC waits as long as the pushback says,
// to the millisecond, so it is the server that has to spread them.
func (v *visit) answerGRPC(h http.Header, f *refusal, after time.Duration) {
	code := f.grpc
	if f.overload && v.server.overloadStatus() == http.StatusTooManyRequests {
		code = "8"
	}
	kind := grpcType
	if strings.HasPrefix(v.r.Header["Content-Type"][0], "application/grpc-web") {
		kind = v.r.Header["Content-Type"]
	}
	h["Content-Type"] = kind
	v.mark(h, f, http.StatusOK)
	h["Grpc-Status"] = []string{code}
	h["Grpc-Message"] = []string{f.text} // printable ASCII without %, so nothing to encode
	switch f.again {
	case retryAfter:
		h["Grpc-Retry-Pushback-Ms"] = []string{strconv.FormatInt(max(after.Milliseconds(), 1), 10)}
	case retryNever:
		h["Grpc-Retry-Pushback-Ms"] = []string{"-1"}
	}
	v.response.holds.answered(http.StatusOK, 0)
	v.w.WriteHeader(http.StatusOK)
}
