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

	failureKinds = int(TimedOut) + 1
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
	}
	return "unknown"
}

// fail answers a request that the upstream did not. Five cases, told apart by
// who is to blame, because only some of them count against the service:
//
//	the client left         nothing to say, nobody to say it to
//	the client's body broke 400, 408 if it was cut off for being slow, or 413 for its length
//	the deadline passed     504
//	no server was reached   refused as unavailable: the request was not executed
//	everything else         502: it hung up
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	cause := r.Context().Err()
	if errors.Is(cause, context.Canceled) {
		// Half-closed connections look the same, and their client still reads:
		// an empty 200 would be a lie, so the connection ends without a word.
		panic(http.ErrAbortHandler)
	}
	if cause != nil {
		p.failures.add(TimedOut, err)
		http.Error(w, "goodput: the deadline passed before the upstream answered", http.StatusGatewayTimeout)
		return
	}
	body, ok := r.Body.(*clientBody)
	if ok && body.slow.Load() {
		w.Header().Set("Connection", "close")
		http.Error(w, "goodput: the request body did not arrive in time", http.StatusRequestTimeout)
		return
	}
	if ok && body.large.Load() {
		w.Header().Set("Connection", "close")
		http.Error(w, "goodput: the request body is longer than may be sent", http.StatusRequestEntityTooLarge)
		return
	}
	if ok && body.broken.Load() {
		http.Error(w, "goodput: the request body ended early or is malformed", http.StatusBadRequest)
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
	p.failures.add(Broken, err)
	http.Error(w, "goodput: the upstream closed the connection before it answered", http.StatusBadGateway)
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
