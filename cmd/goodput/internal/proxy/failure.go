package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/upstream"
	"github.com/goodput/goodput/goodputhttp"
)

// A Failure is why the upstream gave no answer.
type Failure uint8

const (
	Unreachable Failure = iota // no connection: the request was not executed
	Broken                     // the connection broke before a response: nobody knows
	TimedOut                   // the deadline passed while the upstream worked
	Malformed                  // what it answered is no answer: nobody knows

	failureKinds = int(Malformed) + 1
)

// String returns the word used in logs and metrics.
func (f Failure) String() string {
	switch f {
	case Unreachable:
		return "unreachable"
	case Broken:
		return "broken"
	case TimedOut:
		return "timed_out"
	case Malformed:
		return "malformed"
	}
	return "unknown"
}

// fail answers a request that the upstream did not. Six cases, told apart by
// who is to blame, because only some of them count against the service:
//
//	the client left         nothing to say, nobody to say it to
//	the client's body broke 400, 408 if it was cut off for being slow, or 413 for its length
//	the deadline passed     504
//	no server was reached   refused as unavailable: the request was not executed
//	its answer is none      502
//	everything else         502: it hung up
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if goodputhttp.SlowClient(r.Context()) {
		// Over HTTP/1 the context is cancelled too, as if the client had left: net/http does
		// that when a read fails. It is there, and may be told.
		w.Header().Set("Connection", "close")
		say(w, r, http.StatusRequestTimeout, "1", "the request body did not arrive in time")
		return
	}
	cause := r.Context().Err()
	if errors.Is(cause, context.Canceled) {
		// Half-closed connections look the same, and their client still reads:
		// an empty 200 would be a lie, so the connection ends without a word.
		panic(http.ErrAbortHandler)
	}
	if cause != nil {
		p.failures.add(TimedOut, err)
		say(w, r, http.StatusGatewayTimeout, "4", "the deadline passed before the upstream answered")
		return
	}
	body, ok := r.Body.(*clientBody)
	if ok && body.large.Load() {
		w.Header().Set("Connection", "close")
		say(w, r, http.StatusRequestEntityTooLarge, "8", "the request body is longer than may be sent")
		return
	}
	if ok && body.broken.Load() {
		say(w, r, http.StatusBadRequest, "13", "the request body ended early or is malformed")
		return
	}
	if op := (*net.OpError)(nil); errors.Is(err, upstream.ErrAbsent) || errors.As(err, &op) && op.Op == "dial" {
		p.failures.add(Unreachable, err)
		if dns := (*net.DNSError)(nil); op != nil && !errors.As(err, &dns) {
			// Nobody listens, or nobody takes more: an adaptive limit begins low
			// when the upstream is back.
			goodputhttp.Dropped(r.Context())
		}
		goodputhttp.ProxyError(w, r, unreached)
		return
	}
	if text := notAnswer(err); text != "" {
		p.failures.add(Malformed, err)
		say(w, r, http.StatusBadGateway, "2", text)
		return
	}
	p.failures.add(Broken, err)
	say(w, r, http.StatusBadGateway, "2", "the upstream closed the connection before it answered")
}

// notAnswer says what was wrong with an answer, or "" if there was none.
func notAnswer(err error) string {
	switch {
	case errors.Is(err, upstream.ErrSwitched):
		return "the upstream answered with a change of protocol that nobody asked for"
	case upstream.Malformed(err):
		return "the upstream's answer is malformed, or its header is too long"
	}
	return ""
}

// say answers with a status and a sentence, and a call of gRPC with its own status in trailers
// only: a client of gRPC takes 502, 503 and 504 for UNAVAILABLE, which it may repeat, and here
// nobody knows whether the call was executed. So a connection that broke is UNKNOWN (2), and a
// deadline DEADLINE_EXCEEDED (4).
func say(w http.ResponseWriter, r *http.Request, status int, grpc, text string) {
	kind := r.Header.Get("Content-Type")
	if !typeIs(kind, "application/grpc") {
		http.Error(w, "goodput: "+text, status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Grpc-Status", grpc)
	h.Set("Grpc-Message", "goodput: "+text) // printable ASCII without %: nothing to encode
	w.WriteHeader(http.StatusOK)
}

// unreached is the refusal of a request that was admitted and could be sent to no server. A
// second is the least that makes sense: they are tried again by then.
var unreached = &goodput.Rejection{Outcome: goodput.Rejected, Reason: goodput.Unavailable, RetryAfter: time.Second}

// failures counts, and logs at most once a second: an upstream that is down
// fails every request.
type failures struct {
	log *slog.Logger

	mu     sync.Mutex
	count  [failureKinds]uint64
	told   time.Time
	untold int // since then
}

func (f *failures) add(kind Failure, err error) {
	now := time.Now()
	f.mu.Lock()
	f.count[kind]++
	f.untold++
	n := f.untold
	tell := now.Sub(f.told) >= time.Second
	if tell {
		f.told, f.untold = now, 0
	}
	f.mu.Unlock()
	if tell {
		f.log.Warn("upstream failed", "kind", kind.String(), "err", err, "failures", n)
	}
}

func (f *failures) counts() map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[string]uint64, failureKinds)
	for kind, n := range f.count {
		counts[Failure(kind).String()] = n
	}
	return counts
}
