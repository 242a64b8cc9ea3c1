package conformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// handlerFaults are bugs of a handler to switch on.
type handlerFaults struct {
	overAdmits    bool // 11 of 10
	noTrailers    bool // a writer with a header of its own
	noController  bool // a writer with everything but deadlines
	zeroUnlimited bool // a limit of 0 is no limit
	panicLoses    bool // no defer around the handler
	swallows      bool // a panic is answered 500
	wrapsPanic    bool // a panic goes on with another value
	ignoresLeft   bool // who waits is not told that its context is over
	forgetsAfter  bool // a select takes the slot or the end of the context, whichever: both are there at times
	noDeadline    bool // a deadline of a header is read and not handed on
	longer        bool // a deadline of a header is read as seconds and is milliseconds
	runsLate      bool // a deadline of a header does not end the wait
	detached      bool // the handler gets a context that does not end with its client
	countsLeft    bool // a client that left is a service time
	untilHeader   bool // the slot is free at the first byte
	bare          bool // a writer around the writer, without Unwrap
	hidden        bool // a writer around the writer, with Unwrap and no more
	keepsHijacked bool // a hijacked connection keeps its slot for ever
	dropsHints    bool // 1xx are taken for the status
	continues     bool // the body is read before the slot is there
	believes      bool // a priority in a header of more than 9 runs at once
	crashes       bool // a deadline that is no number panics
	refusesOK     bool // a refusal is a 200
	runsRefused   bool // a refusal has run
	now           bool // Retry-After: 0
	long          bool // Retry-After: -1
	getOnly       bool // what is not a GET runs at once
	newOnly       bool // so does what is of HTTP/1.0
	silent        bool // whoever's deadline passes is answered by nothing, which is a 200
	losesBody     bool // the body of a request is not handed on
}

// brokenHandlers waits for a slot unless it is to refuse.
func brokenHandlers(f handlerFaults, refuse bool, samples *atomic.Int64) func(int, http.Handler) http.Handler {
	return func(limit int, next http.Handler) http.Handler {
		if f.zeroUnlimited && limit == 0 {
			limit = 1 << 16
		}
		if f.overAdmits && limit == 10 {
			limit = 11
		}
		slots := make(chan struct{}, limit)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := &brokenHandler{f, slots, next, samples}
			if f.believes && len(r.Header.Get("X-Priority")) > 9 {
				next.ServeHTTP(w, r)
				return
			}
			if f.getOnly && r.Method != http.MethodGet || f.newOnly && !r.ProtoAtLeast(1, 1) {
				next.ServeHTTP(w, r)
				return
			}
			if f.losesBody && r.Method == http.MethodPut {
				r.Body = http.NoBody
			}
			if v := r.Header.Get("Expect-Within"); v != "" {
				d, err := time.ParseDuration(v)
				if f.longer && d == time.Minute {
					d *= 1000
				}
				if err == nil && d > 0 {
					ctx, cancel := context.WithTimeout(r.Context(), d)
					defer cancel()
					r = r.WithContext(ctx)
				} else if f.crashes {
					panic(err)
				}
			}
			if f.continues {
				b, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(b)))
			}
			h.serve(w, r, refuse)
		})
	}
}

type brokenHandler struct {
	handlerFaults
	slots   chan struct{}
	next    http.Handler
	samples *atomic.Int64
}

func (h *brokenHandler) serve(w http.ResponseWriter, r *http.Request, refuse bool) {
	if refuse {
		select {
		case h.slots <- struct{}{}:
			if r.Context().Err() != nil && !h.ignoresLeft {
				<-h.slots
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			h.run(w, r)
		default:
			h.refuse(w, r)
		}
		return
	}
	left := r.Context().Done()
	_, deadline := r.Context().Deadline()
	header := r.Header.Get("Expect-Within") != ""
	if h.ignoresLeft && deadline && !header || h.runsLate && header {
		left = nil
	}
	select {
	case h.slots <- struct{}{}:
		if left != nil && r.Context().Err() != nil && !h.forgetsAfter {
			<-h.slots
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.run(w, r)
	case <-left:
		if h.silent && !header {
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (h *brokenHandler) refuse(w http.ResponseWriter, r *http.Request) {
	if h.runsRefused {
		h.next.ServeHTTP(w, r)
	}
	switch {
	case h.now:
		w.Header().Set("Retry-After", "0")
	case h.long:
		w.Header().Set("Retry-After", "-1")
	}
	if h.refusesOK {
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

func (h *brokenHandler) run(w http.ResponseWriter, r *http.Request) {
	gave := false
	free := func() {
		if !gave {
			gave = true
			<-h.slots
		}
	}
	ww := w
	switch {
	case h.bare:
		ww = struct{ http.ResponseWriter }{w}
	case h.hidden:
		ww = unwraps{w}
	case h.untilHeader, h.dropsHints:
		ww = &early{w, h, free}
	case h.noTrailers:
		ww = &copied{early: early{w, h, func() {}}, header: http.Header{}}
	case h.noController:
		ww = opaque{w, w.(http.Flusher)}
		if _, ok := w.(http.Hijacker); ok {
			ww = opaque1{ww.(opaque), w.(http.Hijacker), w.(io.ReaderFrom)}
		}
	}
	if h.detached && r.Header.Get("Expect-Within") == "" {
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	if h.noDeadline && r.Header.Get("Expect-Within") != "" {
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	if h.panicLoses {
		h.next.ServeHTTP(ww, r)
		free()
		return
	}
	defer func() {
		if h.keepsHijacked && r.URL.Path == "/hijack" {
			return
		}
		free()
		if h.samples != nil && (r.Context().Err() == nil || h.countsLeft) {
			h.samples.Add(1)
		}
		if !h.swallows && !h.wrapsPanic {
			return
		}
		if v := recover(); v != nil && h.wrapsPanic {
			panic(fmt.Sprintf("in a handler: %v", v))
		}
	}()
	h.next.ServeHTTP(ww, r)
}

type unwraps struct{ w http.ResponseWriter }

func (u unwraps) Header() http.Header         { return u.w.Header() }
func (u unwraps) Write(b []byte) (int, error) { return u.w.Write(b) }
func (u unwraps) WriteHeader(code int)        { u.w.WriteHeader(code) }
func (u unwraps) Unwrap() http.ResponseWriter { return u.w }

// early is the full writer but for its fault.
type early struct {
	http.ResponseWriter
	h    *brokenHandler
	free func()
}

func (w *early) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	if w.h.untilHeader {
		w.free()
	}
}

func (w *early) WriteHeader(code int) {
	if w.h.dropsHints && code < 200 {
		code = http.StatusOK
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *early) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }
func (w *early) Unwrap() http.ResponseWriter         { return w.ResponseWriter }

func (w *early) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// copied is the full writer with a header that is copied once.
type copied struct {
	early
	header http.Header
	once   sync.Once
}

func (w *copied) Header() http.Header { return w.header }

func (w *copied) send() { w.once.Do(func() { maps.Copy(w.ResponseWriter.Header(), w.header) }) }

func (w *copied) WriteHeader(code int)        { w.send(); w.early.WriteHeader(code) }
func (w *copied) Write(b []byte) (int, error) { w.send(); return w.early.Write(b) }
func (w *copied) Flush()                      { w.send(); w.early.Flush() }

type opaque struct {
	http.ResponseWriter
	http.Flusher
}

type opaque1 struct {
	opaque
	http.Hijacker
	io.ReaderFrom
}

func durations(ms int) string { return fmt.Sprintf("%dms", ms) }

func TestRightHandlersPass(t *testing.T) {
	for name, refuse := range map[string]bool{"waits": false, "refuses": true} {
		t.Run(name, func(t *testing.T) {
			opts := HandlerOptions{Part: 4}
			if refuse {
				opts.NoQueue = brokenHandlers(handlerFaults{}, true, nil)
			}
			TestHandler(t, brokenHandlers(handlerFaults{}, refuse, nil), opts)
		})
	}
}

// brokenByFault name the checks that fail, in their order.
var brokenByFault = []struct {
	name  string
	fault handlerFaults
	fails []string
}{
	{"11 of 10", handlerFaults{overAdmits: true}, []string{"limit"}},
	{"whatever is not a GET", handlerFaults{getOnly: true}, []string{"methods", "continue"}},
	{"whatever is of HTTP/1.0", handlerFaults{newOnly: true}, []string{"methods"}},
	{"no body", handlerFaults{losesBody: true}, []string{"methods"}},
	{"nothing is said at the deadline", handlerFaults{silent: true}, []string{"limit-zero", "deadline-waiting"}},
	{"0 is unlimited", handlerFaults{zeroUnlimited: true}, []string{"limit-zero"}},
	{"a panic keeps its slot", handlerFaults{panicLoses: true}, []string{"panic"}},
	{"a panic is swallowed", handlerFaults{swallows: true}, []string{"panic-goes-on"}},
	{"a panic changes", handlerFaults{wrapsPanic: true}, []string{"panic-goes-on"}},
	{"the dead wait", handlerFaults{ignoresLeft: true}, []string{"deadline-waiting"}},
	{"a select at the deadline", handlerFaults{forgetsAfter: true}, []string{"deadline-waiting"}},
	{"a deadline is kept back", handlerFaults{noDeadline: true}, []string{"deadline-header"}},
	{"a deadline of other units", handlerFaults{longer: true}, []string{"deadline-header"}},
	{"a deadline is for the handler only", handlerFaults{runsLate: true}, []string{"deadline-header"}},
	{"the handler goes on", handlerFaults{detached: true}, []string{"client-abort"}},
	{"a client that left counts", handlerFaults{countsLeft: true}, []string{"client-abort"}},
	{"until the header", handlerFaults{untilHeader: true}, []string{"streaming"}},
	{"a bare writer", handlerFaults{bare: true}, []string{"streaming", "controller", "interfaces", "hijack"}},
	{"no deadlines", handlerFaults{noController: true}, []string{"controller"}},
	{"no trailers", handlerFaults{noTrailers: true}, []string{"controller"}},
	{"a hidden writer", handlerFaults{hidden: true}, []string{"interfaces"}},
	{"hijacked for ever", handlerFaults{keepsHijacked: true}, []string{"hijack"}},
	{"an early hint is the status", handlerFaults{dropsHints: true}, []string{"early-hints"}},
	{"continues too early", handlerFaults{continues: true}, []string{"continue"}},
	{"believes a header", handlerFaults{believes: true}, []string{"hostile-headers"}},
	{"crashes over a header", handlerFaults{crashes: true}, []string{"hostile-headers"}},
	{"refuses with 200", handlerFaults{refusesOK: true}, []string{"refusal"}},
	{"runs what it refuses", handlerFaults{runsRefused: true}, []string{"continue", "refusal"}},
	{"again at once", handlerFaults{now: true}, []string{"retry-after"}},
	{"again in the past", handlerFaults{long: true}, []string{"retry-after"}},
}

// Each fault fails the check that is for it, and no other but those that it names: a writer
// that can nothing shows wherever something is asked of it.
func TestBrokenHandlersFail(t *testing.T) {
	for _, tt := range brokenByFault {
		t.Run(tt.name, func(t *testing.T) {
			var failed []string
			for _, c := range handlerChecks {
				var samples atomic.Int64
				opts := HandlerOptions{
					Patience: 10 * time.Second, Part: maxPart, DeadlineHeader: "Expect-Within", Milliseconds: durations,
					NoQueue: brokenHandlers(tt.fault, true, nil), Samples: func() int { return int(samples.Load()) },
				}
				if slices.Contains(tt.fails, c.Name) {
					opts.Patience, opts.Part = 300*time.Millisecond, 1
				} else if len(c.over) > 1 {
					c.over = c.over[:1] // one protocol is enough to see that nothing else fails
				}
				s := opts.settings()
				if !slices.Contains(tt.fails, c.Name) {
					s.grace /= 10 // there is nothing to miss
				}
				r := runHandler(c, s, brokenHandlers(tt.fault, false, &samples), &opts)
				for try := 1; try < tries && r.Verdict != Failed && slices.Contains(tt.fails, c.Name); try++ {
					r = runHandler(c, s, brokenHandlers(tt.fault, false, &samples), &opts)
				}
				if r.Verdict == Failed {
					failed = append(failed, c.Name)
					first, _, _ := strings.Cut(r.Detail, "\n")
					t.Logf("%s: %s", c.Name, first)
				}
			}
			if !slices.Equal(failed, tt.fails) {
				t.Errorf("fails %v, want %v", failed, tt.fails)
			}
		})
	}
}
