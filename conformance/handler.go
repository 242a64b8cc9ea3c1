package conformance

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// HandlerOptions say how a handler is checked. The zero value is right for most.
type HandlerOptions struct {
	// NoQueue makes a handler like the one that is checked in which nobody waits, for the
	// checks of refusals. nil: the handler itself is sent so many requests that a queue of
	// 200 overflows; if none of them is refused, those checks are skipped.
	NoQueue func(limit int, next http.Handler) http.Handler

	// Server changes the server before it starts, for a handler that needs more of it:
	// ConnContext, for example. It serves HTTP/1.1 and HTTP/2 without TLS.
	Server func(*http.Server)

	// DeadlineHeader is one in which a caller may say how long it waits, and Milliseconds
	// writes so many into it. Default: there is none. Whatever it is, hostile-headers sends
	// nonsense in a dozen known ones.
	DeadlineHeader string
	Milliseconds   func(ms int) string

	// Samples returns how many service times the limit has been taught so far, of all
	// handlers together. nil: client-abort does not look whether one that was cut short is
	// one.
	Samples func() int

	// Part is for tests that must be quick: each check makes a Part-th of its rounds, 1 to
	// 100. Default 1.
	Part int

	// Skip maps names of checks that are not run to the reason: what is documented
	// otherwise. The reason is in the result.
	Skip map[string]string

	// Seed makes what is random the same again. Default: another one each time, which
	// TestHandler logs.
	Seed uint64

	// Patience is how long one step may take, or nobody of many get on, before it counts as a
	// deadlock. It is not for a whole check: one that has taken 10 s makes at least 8 of its
	// rounds, and says how many. Default 10 s.
	Patience time.Duration
}

func (o *HandlerOptions) settings() settings {
	s := settings{seed: o.Seed, patience: o.Patience, part: o.Part, skip: o.Skip}
	s.fill(handlerChecks)
	if (o.DeadlineHeader == "") != (o.Milliseconds == nil) {
		panic("conformance: DeadlineHeader and Milliseconds go together")
	}
	return s
}

// HandlerChecks returns the checks for handlers, in the order in which they run.
func HandlerChecks() []Check { return append([]Check(nil), handlerChecks...) }

// TestHandler runs each of HandlerChecks as a subtest, one after the other, most of them
// over HTTP/1.1 and over HTTP/2 on a port of this machine. handlers returns a handler that
// lets so many requests into next at once, always a new one. Others may wait, for a minute,
// or be refused; for 0, and only for 0, it may panic with what it says of such a limit. A
// handler that cannot be made, or is nil, ends the test in one sentence.
func TestHandler(t *testing.T, handlers func(limit int, next http.Handler) http.Handler, opts HandlerOptions) {
	s := opts.settings()
	t.Logf("seed %d", s.seed)
	if why := opts.usable(s, handlers); why != "" {
		t.Fatal(why)
	}
	for _, c := range handlerChecks {
		t.Run(c.Name, func(t *testing.T) {
			tell(t, runHandler(c, s, handlers, &opts))
		})
	}
}

// RunHandler is TestHandler without a test: it returns what became of each check, for a
// table over several handlers. Of one that cannot be made the first check says so and the
// others are skipped.
func RunHandler(handlers func(limit int, next http.Handler) http.Handler, opts HandlerOptions) []Result {
	s := opts.settings()
	return table(handlerChecks, opts.usable(s, handlers), func(c Check) Result {
		return runHandler(c, s, handlers, &opts)
	})
}

// usable returns how it is that no check could run, or "": a handler is not made.
func (o *HandlerOptions) usable(s settings, handlers func(int, http.Handler) http.Handler) string {
	s.skip = nil
	return runHandler(Check{Name: "usable", missing: needsNothing, run: func(e *env) error {
		e.site(1)
		return nil
	}}, s, handlers, o).Detail
}

// runHandler runs c over each protocol that it is about. The first failure counts; a skip
// over one protocol does not hide what the other has shown.
func runHandler(c Check, s settings, handlers func(int, http.Handler) http.Handler, opts *HandlerOptions) Result {
	protocols := c.over
	if protocols == nil {
		protocols = []string{""}
	}
	var last Result
	for i, protocol := range protocols {
		e := &env{settings: s, web: &web{handlers: handlers, opts: opts, protocol: protocol}}
		r := e.run(c)
		e.web.close()
		if r.Verdict == Failed {
			if protocol != "" {
				r.Detail = fmt.Sprintf("%s: %s", protocol, r.Detail)
			}
			return r
		}
		if i == 0 || last.Verdict == Skipped {
			last = r
		}
	}
	return last
}

var both = []string{http1, http2}

var handlerChecks = []Check{
	{
		Name:   "limit",
		Proves: "As many as the limit are in the handler at once, and never one more.",
		Seen:   []string{"Netflix/concurrency-limits#140", "zalando/skipper#2579"},
		over:   both, missing: needsNothing, run: checkHandlerLimit,
	},
	{
		Name:   "methods",
		Proves: "A request of any method, with a body or without, and of HTTP/1.0 takes a slot and needs one. Not asked for of OPTIONS, CONNECT and TRACE.",
		over:   both, missing: needsNothing, run: checkMethods,
	},
	{
		Name:    "limit-zero",
		Proves:  "A limit of 0 lets nobody in, or is refused as a configuration; it does not mean unlimited.",
		Seen:    []string{"kubernetes/kubernetes#134213"},
		missing: needsNothing, run: checkHandlerLimitZero,
	},
	{
		Name:    "panic",
		Proves:  "A handler that panics a thousand times gives back a thousand slots.",
		Seen:    []string{"Netflix/concurrency-limits#190", "zalando/skipper#1054"},
		missing: needsNothing, run: checkHandlerPanic,
	},
	{
		Name:    "panic-goes-on",
		Proves:  "The panic of a handler reaches the server with the value that it had, http.ErrAbortHandler among them.",
		missing: needsNothing, run: checkPanicGoesOn,
	},
	{
		Name:    "deadline-waiting",
		Proves:  "A request whose context is over while it waits is answered and never run.",
		Seen:    []string{"kubernetes/kubernetes#119799", "zalando/skipper#2266"},
		missing: needsNothing, run: checkHandlerDeadline,
	},
	{
		Name:    "deadline-header",
		Proves:  "A deadline that came in a header ends the wait, and the handler is given it, or less.",
		missing: needsDeadlineHeader, over: both, run: checkDeadlineHeader,
	},
	{
		Name:   "client-abort",
		Proves: "A client that leaves ends the context of its request and frees the slot; one that waited is never run.",
		Seen:   []string{"Netflix/concurrency-limits#146", "zalando/skipper#685"},
		over:   both, missing: needsNothing, run: checkClientAbort,
	},
	{
		Name:   "streaming",
		Proves: "A response that streams holds its slot to its end, not to its header.",
		Seen:   []string{"zalando/skipper#2579", "e2b-dev/E2B#1666", "block/buzz#1916"},
		over:   both, missing: needsNothing, run: checkStreaming,
	},
	{
		Name:   "controller",
		Proves: "Through http.ResponseController the handler can do all that it can without a limiter: flush, deadlines, full duplex; and its trailers go out.",
		Seen:   []string{"slok/go-http-metrics#28", "jtdowney/tsbridge#19"},
		over:   both, missing: needsNothing, run: checkController,
	},
	{
		Name:   "interfaces",
		Proves: "The http.Flusher and, over HTTP/1.1, the http.Hijacker and io.ReaderFrom of the writer are still there for those that ask it by type.",
		Seen:   []string{"slok/go-http-metrics#28", "jtdowney/tsbridge#19"},
		over:   both, missing: needsNothing, run: checkInterfaces,
	},
	{
		Name:    "hijack",
		Proves:  "A connection can be hijacked, and once it is closed its slot is free.",
		Seen:    []string{"slok/go-http-metrics#28"},
		missing: needsNothing, over: []string{http1}, run: checkHijack,
	},
	{
		Name:   "early-hints",
		Proves: "An informational response goes out before the final one, which keeps its status.",
		over:   both, missing: needsNothing, run: checkEarlyHints,
	},
	{
		Name:   "continue",
		Proves: "A request with Expect: 100-continue gets its 100 when its body is read, and none when it is refused.",
		over:   []string{http1}, missing: needsNothing, run: checkContinue,
	},
	{
		Name:   "hostile-headers",
		Proves: "Deadlines and priorities in headers that are negative, huge, NaN, twice there or long do no harm: no crash, no wait without end, nothing over the limit.",
		Seen:   []string{"llm-d/llm-d-router#2097"},
		over:   both, missing: needsNothing, run: checkHostileHeaders,
	},
	{
		Name:   "refusal",
		Proves: "Who finds no place is told 429 or 503 while the slots are still held, and is not run.",
		Seen:   []string{"zalando/skipper#1728", "llm-d/llm-d-router#2162"},
		over:   both, missing: needsNothing, run: checkRefusal,
	},
	{
		Name:   "retry-after",
		Proves: "A refusal has a Retry-After of 1 s to 1 h, or none.",
		Seen:   []string{"kubernetes/kubernetes#79805", "go-chi/chi#474"},
		over:   []string{http1}, missing: needsNothing, run: checkRetryAfter,
	},
}

func needsDeadlineHeader(e *env) string {
	if e.web.opts.DeadlineHeader == "" {
		return "it reads no deadline from a header"
	}
	return ""
}
