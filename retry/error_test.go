package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One sentence for each end of a call.
func TestErrorSentences(t *testing.T) {
	const name = "billing"
	retryAfter := func(status int, value string) func() Fault {
		return func() Fault {
			f := HTTPFault(status, http.Header{"Retry-After": {value}}, time.Now())
			f.Idempotent = true
			return f
		}
	}
	refused := func(f Fault) func() Fault { return func() Fault { f.NotExecuted = true; return f } }
	for _, row := range []struct {
		p    *Policy
		f    func() Fault
		want string
	}{
		{
			&Policy{}, refused(Fault{Status: 503}),
			"retry: billing: tried 3 times in 75ms, and not again: 3 attempts are all there are: boom",
		},
		{
			&Policy{}, func() Fault { return Fault{Status: 502} },
			"retry: billing: tried once in 0s, and not again: a server in between got no answer that it understood: it may have been executed, and it is not marked idempotent: boom",
		},
		{
			&Policy{}, func() Fault { return Fault{Status: 501, Idempotent: true} },
			"retry: billing: tried once in 0s, and not again: the server cannot do this: boom",
		},
		{
			&Policy{}, retryAfter(503, "120"),
			`retry: billing: tried once in 0s, and not again: the server says to come back in 2m0s ("120"), and no more than 1m0s is waited for: boom`,
		},
		{
			&Policy{}, retryAfter(503, "9999999999"),
			`retry: billing: tried once in 0s, and not again: the server says to come back in "9999999999", taken as 8760h0m0s, and no more than 1m0s is waited for: boom`,
		},
		{
			&Policy{Total: time.Second}, retryAfter(429, "1.5"),
			`retry: billing: tried once in 0s, and not again: the wait would take 1.5s and 1s are left; the server says to come back in 1.5s ("1.5"): boom`,
		},
		{
			&Policy{Attempts: 1}, retryAfter(503, "-1"),
			`retry: billing: tried once in 0s, and not again: one attempt is all there is; the server says what cannot be read ("-1"): boom`,
		},
		{
			&Policy{}, func() Fault { return Fault{Code: 14, Hint: GRPCHint("-1")} },
			`retry: billing: tried once in 0s, and not again: the server says not to come back ("-1"): boom`,
		},
		{
			&Policy{}, refused(Fault{Status: 503, Hint: Hint{Never: true}}),
			"retry: billing: tried once in 0s, and not again: the server says not to come back: boom",
		},
		{
			&Policy{}, refused(Fault{Status: 503, NoRewind: true}),
			"retry: billing: tried once in 0s, and not again: the body of the request cannot be sent a second time: boom",
		},
		{
			&Policy{Budget: &Budget{Reserve: 1}}, refused(Fault{Status: 503}),
			"retry: billing: tried 2 times in 25ms, and not again: the retry budget is spent (1 of max(0.1 x 1 call, 1) retries in 10s): boom",
		},
		{
			&Policy{Classify: func(Fault) Verdict { return VerdictFinal }}, refused(Fault{Status: 503}),
			"retry: billing: tried once in 0s, and not again: Policy.Classify says so: boom",
		},
		{
			&Policy{Total: time.Second}, func() Fault { time.Sleep(time.Second); return Fault{Status: 503, NotExecuted: true} },
			"retry: billing: tried once in 1s, and not again: its deadline has passed: boom",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			row.p.Name, row.p.draw = name, func() float64 { return 0.5 }
			_, _, err := answered(row.p, t.Context(), row.f)
			if err.Error() != row.want {
				t.Errorf("%s\nwant %s", err, row.want)
			}
			if passed := strings.Contains(row.want, "has passed"); !errors.Is(err, errTest) || errors.Is(err, context.DeadlineExceeded) != passed {
				t.Errorf("%s: wraps its deadline: %v", err, !passed)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := fixed(0.5)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := p.Do(ctx, fails)
		if want := "retry: not tried, and not again: the caller has left: context canceled"; err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
		err = p.Do(t.Context(), func(ctx context.Context, _ int) error { return Never(p.Do(ctx, fails)) })
		want := "retry: tried once in 0s, and not again: it is said not to come back: " +
			"retry: tried once in 0s, and not again in here: the call outside makes the attempts (see Policy.Multiply): boom"
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	})
}

// The marks of fn, also two of them, and around what was wrapped.
func TestMarks(t *testing.T) {
	if Never(nil) != nil || NotExecuted(nil) != nil || After(nil, 1) != nil || Executed(nil) != nil {
		t.Error("a mark of nil is not nil")
	}
	both := After(errors.Join(NotExecuted(errTest)), 400*24*time.Hour)
	f := Fault{Err: both}.filled()
	if !f.NotExecuted || f.Hint != (Hint{After: longest, Said: true, Capped: true}) {
		t.Errorf("two marks: %+v", f)
	}
	if f := (Fault{Err: After(Never(errTest), -1)}).filled(); f.Hint != (Hint{Said: true}) {
		t.Errorf("the outer mark counts: %+v", f.Hint)
	}
	if f := (Fault{Err: NotExecuted(Never(errTest))}).filled(); !f.Hint.Never || !f.NotExecuted {
		t.Errorf("the inner mark counts too: %+v", f)
	}
	if !errors.Is(both, errTest) || both.Error() != "boom" {
		t.Errorf("a mark hides its error: %v", both)
	}
	if f := (Fault{Err: NotExecuted(&Error{Err: errTest, fault: Fault{executed: true}})}).filled(); f.executed || !f.NotExecuted {
		t.Errorf("a mark around a call knows better: %+v", f)
	}
	// The table knows the status, with its headers, and the code.
	f = Fault{Err: HTTPFault(404, nil, time.Now()).Mark(errTest)}.filled()
	if v, _ := f.judge(); v != VerdictAnswer || f.Status != 404 {
		t.Errorf("404: %v %+v", v, f)
	}
	for status, want := range map[int]Verdict{200: VerdictRetry, 304: VerdictRetry, 399: VerdictRetry, 400: VerdictAnswer} { // a body that broke
		f := Fault{Err: HTTPFault(status, nil, time.Now()).Mark(io.ErrUnexpectedEOF), Idempotent: true}
		if v := f.Verdict(); v != want {
			t.Errorf("%d with an error: %v, want %v", status, v, want)
		}
	}
	f = Fault{Err: Fault{Code: 14, Unsent: true}.Mark(After(errTest, time.Second))}.filled()
	if v, _ := f.judge(); v != VerdictRetry || f.Code != 14 || f.Hint.After != time.Second {
		t.Errorf("UNAVAILABLE: %v %+v", v, f)
	}
	if got := (&Policy{}).Do(t.Context(), func(context.Context, int) error { return Fault{Status: 404}.Mark(errTest) }); got.Error() != "boom" {
		t.Errorf("404 of Do: %v, want the error as it is", got)
	}
}
