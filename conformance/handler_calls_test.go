package conformance

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// oneOver runs a check of handlers over HTTP/1.1.
func oneOver(t *testing.T, name string, handlers func(int, http.Handler) http.Handler, opts HandlerOptions) Result {
	t.Helper()
	i := slices.IndexFunc(handlerChecks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s", name)
	}
	c := handlerChecks[i]
	if c.over != nil {
		c.over = c.over[:1]
	}
	opts.Part = maxPart
	return runHandler(c, opts.settings(), handlers, &opts)
}

// Whatever panics or ends its goroutine, with a server or without, in the handler or in what
// the server calls: the check fails and says so.
func TestEndsOfHandlersAreFailures(t *testing.T) {
	right := brokenHandlers(handlerFaults{}, false, nil)
	// late calls f with a request whose context is over, early with any.
	late := func(f func()) func(int, http.Handler) http.Handler {
		return func(n int, next http.Handler) http.Handler {
			h := right(n, next)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				if r.Context().Err() != nil {
					f()
				}
			})
		}
	}
	early := func(f func()) func(int, http.Handler) http.Handler {
		return func(int, http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f() })
		}
	}
	bug := func() { panic("a bug") }
	server := func(set func(*http.Server)) HandlerOptions { return HandlerOptions{Server: set} }
	for _, tt := range []struct {
		check    string
		handlers func(int, http.Handler) http.Handler
		opts     HandlerOptions
		want     string
	}{
		{"limit", early(bug), HandlerOptions{}, "the handler panicked at handler_calls_test.go:"},
		{"limit", early(runtime.Goexit), HandlerOptions{}, "the handler ended its goroutine with runtime.Goexit"},
		{"streaming", early(bug), HandlerOptions{}, "the handler panicked at handler_calls_test.go:"},
		{"panic", early(bug), HandlerOptions{}, "the handler panicked at handler_calls_test.go:"},
		{"panic", early(runtime.Goexit), HandlerOptions{}, "the handler ended its goroutine with runtime.Goexit"},
		{"deadline-waiting", late(bug), HandlerOptions{}, "the handler panicked at handler_calls_test.go:"},
		{"deadline-waiting", late(runtime.Goexit), HandlerOptions{}, "the handler ended its goroutine with runtime.Goexit"},
		{"limit", func(int, http.Handler) http.Handler { panic("a bug") }, HandlerOptions{}, "what the check called panicked at handler_calls_test.go:"},
		{"limit-zero", func(int, http.Handler) http.Handler { runtime.Goexit(); return nil }, HandlerOptions{}, "what the check called ended its goroutine"},
		{"limit", func(int, http.Handler) http.Handler { return nil }, HandlerOptions{}, "a handler with the limit 10 is nil"},
		{"limit", right, server(func(*http.Server) { panic("a bug") }), "what the check called panicked at handler_calls_test.go:"},
		{"limit", right, server(func(s *http.Server) {
			s.ConnContext = func(context.Context, net.Conn) context.Context { panic("a bug") }
		}), "ConnContext panicked at handler_calls_test.go:"},
		{"limit", right, server(func(s *http.Server) {
			s.ConnContext = func(context.Context, net.Conn) context.Context { return nil }
		}), "ConnContext returned a nil context"},
		{"limit", right, server(func(s *http.Server) {
			s.BaseContext = func(net.Listener) context.Context { panic("a bug") }
		}), "BaseContext panicked at handler_calls_test.go:"},
		{"limit", right, server(func(s *http.Server) {
			s.ConnState = func(net.Conn, http.ConnState) { panic("a bug") }
		}), "ConnState panicked at handler_calls_test.go:"},
	} {
		if r := oneOver(t, tt.check, tt.handlers, tt.opts); r.Verdict != Failed || !strings.Contains(r.Detail, tt.want) {
			t.Errorf("%q is not in %v", tt.want, r)
		}
	}
}

// A handler that is none is one sentence and not one of each check.
func TestUnusableHandlerIsOneSentence(t *testing.T) {
	for want, handlers := range map[string]func(int, http.Handler) http.Handler{
		"a handler with the limit 1 is nil":                                func(int, http.Handler) http.Handler { return nil },
		"what the check called panicked at handler_calls_test.go:":         func(int, http.Handler) http.Handler { panic("a bug") },
		"what the check called ended its goroutine with runtime.Goexit, a": func(int, http.Handler) http.Handler { runtime.Goexit(); return nil },
	} {
		for i, r := range RunHandler(handlers, HandlerOptions{}) {
			if i == 0 && (r.Verdict != Failed || !strings.Contains(r.Detail, want)) || i > 0 && r.Verdict != Skipped {
				t.Errorf("%s: %v", want, r)
			}
		}
	}
}

// What is told that all is well, and was not run, is no answer; and whoever is not let in is
// not waited for.
func TestAnswersOfNobody(t *testing.T) {
	says := func(status int, body string) func(int, http.Handler) http.Handler {
		return func(int, http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			})
		}
	}
	for _, tt := range []struct {
		handlers func(int, http.Handler) http.Handler
		check    string
		want     string
	}{
		{says(200, ""), "limit", "it is answered 200 with 0 bytes that the handler has not written"},
		{says(202, "later"), "limit", "it is answered 202 with 5 bytes that the handler has not written"},
		{says(302, ""), "limit-zero", "a request at a limit of 0: it is answered 302"},
		{says(200, "ok"), "controller", "a request that was answered is run: nothing for"},
		{says(503, "busy"), "limit", `request 1 of 10 does not get into the handler: it is answered 503, "busy"`},
		{says(503, "busy"), "methods", `a POST does not get into an idle handler: it is answered 503, "busy"`},
		{says(500, ""), "hostile-headers", "answered 500"},
	} {
		r := oneOver(t, tt.check, tt.handlers, HandlerOptions{Patience: 300 * time.Millisecond})
		if r.Verdict != Failed || !strings.Contains(r.Detail, tt.want) {
			t.Errorf("%q is not in %v", tt.want, r)
		}
	}
}
