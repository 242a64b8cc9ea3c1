package retry

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		p    *Policy
		want string
	}{
		{&Policy{}, ""},
		{&Policy{Attempts: 1}, ""},
		{&Policy{Attempts: 10}, ""},
		{&Policy{Attempts: -1}, "retry: Policy.Attempts is -1, want 1 to 10"},
		{&Policy{Attempts: 11}, "retry: Policy.Attempts is 11, want 1 to 10"},
		{&Policy{Backoff: 1}, ""},
		{&Policy{Backoff: time.Hour}, ""},
		{&Policy{Backoff: -1}, "retry: Policy.Backoff is -1ns, want 1ns to 1h0m0s"},
		{&Policy{Backoff: time.Hour + 1}, "retry: Policy.Backoff is 1h0m0.000000001s, want 1ns to 1h0m0s"},
		{&Policy{MaxBackoff: 24 * time.Hour}, ""},
		{&Policy{MaxBackoff: -1}, "retry: Policy.MaxBackoff is -1ns, want 1ns to 24h0m0s"},
		{&Policy{MaxBackoff: 24*time.Hour + 1}, "retry: Policy.MaxBackoff is 24h0m0.000000001s, want 1ns to 24h0m0s"},
		{&Policy{MaxBackoff: 50 * time.Millisecond}, ""},
		{&Policy{MaxBackoff: time.Millisecond}, "retry: Policy.MaxBackoff is 1ms, want at least Backoff, which is 50ms"},
		{&Policy{PerAttempt: mostTime, Total: mostTime}, ""},
		{&Policy{PerAttempt: -1}, "retry: Policy.PerAttempt is -1ns, want 0 to 168h0m0s"},
		{&Policy{PerAttempt: mostTime + 1}, "retry: Policy.PerAttempt is 168h0m0.000000001s, want 0 to 168h0m0s"},
		{&Policy{Total: -1}, "retry: Policy.Total is -1ns, want 0 to 168h0m0s"},
		{&Policy{Total: mostTime + 1}, "retry: Policy.Total is 168h0m0.000000001s, want 0 to 168h0m0s"},
		{&Policy{MaxAfter: 1}, ""},
		{&Policy{MaxAfter: longest}, ""},
		{&Policy{MaxAfter: -1}, "retry: Policy.MaxAfter is -1ns, want 1ns to 8760h0m0s"},
		{&Policy{MaxAfter: longest + 1}, "retry: Policy.MaxAfter is 8760h0m0.000000001s, want 1ns to 8760h0m0s"},
		{&Policy{Budget: &Budget{Ratio: 0.001, Reserve: 1, Window: time.Second}}, ""},
		{&Policy{Budget: &Budget{Ratio: 1, Reserve: 1000, Window: 10 * time.Minute}}, ""},
		{&Policy{Budget: &Budget{Ratio: 0.0009}}, "retry: Budget.Ratio is 0.0009, want 0.001 to 1"},
		{&Policy{Budget: &Budget{Ratio: 1.1}}, "retry: Budget.Ratio is 1.1, want 0.001 to 1"},
		{&Policy{Budget: &Budget{Ratio: math.NaN()}}, "retry: Budget.Ratio is NaN, want 0.001 to 1"},
		{&Policy{Budget: &Budget{Reserve: -1}}, "retry: Budget.Reserve is -1, want 1 to 1000"},
		{&Policy{Budget: &Budget{Reserve: 1001}}, "retry: Budget.Reserve is 1001, want 1 to 1000"},
		{&Policy{Budget: &Budget{Window: time.Second - 1}}, "retry: Budget.Window is 999.999999ms, want 1s to 10m0s"},
		{&Policy{Budget: &Budget{Window: 10*time.Minute + 1}}, "retry: Budget.Window is 10m0.000000001s, want 1s to 10m0s"},
	} {
		if got := sentence(row.p.Validate()); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
		if row.want != "" {
			panics(t, row.want, func() { row.p.Begin(t.Context()) })
		}
	}
	for _, row := range []struct {
		th   *Throttle
		want string
	}{
		{&Throttle{K: 1.1, Window: time.Second}, ""},
		{&Throttle{K: 100, Window: 10 * time.Minute}, ""},
		{&Throttle{K: 1}, "retry: Throttle.K is 1, want 1.1 to 100"},
		{&Throttle{K: 101}, "retry: Throttle.K is 101, want 1.1 to 100"},
		{&Throttle{K: math.NaN()}, "retry: Throttle.K is NaN, want 1.1 to 100"},
		{&Throttle{Window: 1}, "retry: Throttle.Window is 1ns, want 1s to 10m0s"},
		{&Throttle{Window: time.Hour}, "retry: Throttle.Window is 1h0m0s, want 1s to 10m0s"},
	} {
		if got := sentence(row.th.Validate()); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
		if row.want != "" {
			panics(t, row.want, func() { row.th.Refuses() })
		}
	}
	panics(t, "retry: Budget.Reserve is -1, want 1 to 1000", func() { (&Budget{Reserve: -1}).Left() })
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func panics(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panics with %v, want %q", got, want)
		}
	}()
	f()
}

// Each knob changes what happens to a call that fails for as long as it may.
func TestKnobs(t *testing.T) {
	outcome := func(t *testing.T, p *Policy) (got string) {
		synctest.Test(t, func(t *testing.T) {
			p.draw = func() float64 { return 0.5 }
			start := time.Now()
			stop, n, _ := answered(p, Idempotent(t.Context()), func() Fault {
				return Fault{Status: 503, Hint: Hint{After: 30 * time.Millisecond, Said: true, Exact: true}}
			})
			got = fmt.Sprintf("%v after %d in %v", stop, n, time.Since(start).Round(time.Millisecond))
		})
		return got
	}
	for _, row := range []struct {
		name string
		p    *Policy
		want string
	}{
		{"none", &Policy{}, "exhausted after 3 in 80ms"}, // 30 (25 drawn) + 50
		{"Attempts", &Policy{Attempts: 4}, "exhausted after 4 in 180ms"},
		{"Backoff", &Policy{Backoff: 100 * time.Millisecond}, "exhausted after 3 in 150ms"},
		{"MaxBackoff", &Policy{MaxBackoff: 80 * time.Millisecond}, "exhausted after 3 in 70ms"},
		{"Total", &Policy{Total: 79 * time.Millisecond}, "too_late after 2 in 30ms"},
		{"MaxAfter", &Policy{MaxAfter: 29 * time.Millisecond}, "too_long after 1 in 0s"},
		{"Budget", &Policy{Budget: &Budget{Reserve: 1}}, "retries_spent after 2 in 30ms"},
		{"Classify", &Policy{Classify: func(Fault) Verdict { return VerdictFinal }}, "permanent after 1 in 0s"},
		{"Classify, answer", &Policy{Classify: func(Fault) Verdict { return VerdictAnswer }}, "answered after 1 in 0s"},
	} {
		if got := outcome(t, row.p); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
	// PerAttempt: TestPerAttempt. Multiply: TestC069LayersDoNotMultiply. Name: TestErrorSentences.
}

// What Classify calls an answer is the error of fn, as it is.
func TestClassify(t *testing.T) {
	p := &Policy{Classify: func(f Fault) Verdict {
		if f.Err == errTest {
			return VerdictAnswer
		}
		return f.Verdict()
	}}
	if err := p.Do(t.Context(), func(context.Context, int) error { return errTest }); err != errTest {
		t.Errorf("%v, want the error itself", err)
	}
}

// A call that the server does not want back is not made by Classify either: a hint is
// obeyed.
func TestHintBeforeClassify(t *testing.T) {
	p := &Policy{Classify: func(Fault) Verdict { return VerdictRetry }}
	if stop, n, _ := answered(p, t.Context(), func() Fault { return Fault{Status: 503, Hint: Hint{Never: true}} }); stop != StopPushback || n != 1 {
		t.Errorf("%v after %d", stop, n)
	}
	if stop, n, _ := answered(p, t.Context(), func() Fault { return Fault{Status: 503, NoRewind: true} }); stop != StopNoRewind || n != 1 {
		t.Errorf("%v after %d", stop, n)
	}
}

func TestAttemptNumbers(t *testing.T) {
	ctx := t.Context()
	if got := AttemptFrom(ctx); got != 0 {
		t.Errorf("no attempt: %d", got)
	}
	for n, want := range map[int]int{math.MinInt: 1, 0: 1, 2: 2, 999: 999, 1000: 999, math.MaxInt: 999} {
		if got := AttemptFrom(WithAttempt(ctx, n)); got != want {
			t.Errorf("%d is attempt %d, want %d", n, got, want)
		}
	}
	// A server that is asked a second time asks on, and counts on.
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{}
		var got []int
		_ = p.Do(WithAttempt(t.Context(), 2), func(ctx context.Context, attempt int) error {
			got = append(got, attempt, AttemptFrom(context.WithValue(ctx, errTest, 1)))
			return NotExecuted(errTest)
		})
		if want := "[1 2 2 3 3 4]"; fmt.Sprint(got) != want {
			t.Errorf("attempts and numbers %v, want %v", got, want)
		}
		if s := p.Stats(); s.Budget.Calls != 1 {
			t.Errorf("%d calls: the retry of somebody else is a call here", s.Budget.Calls)
		}
		// What is called inside an attempt is inside it, whatever number it is given.
		sent := 0
		_ = (&Policy{}).Do(t.Context(), func(ctx context.Context, attempt int) error {
			return (&Policy{}).Do(WithAttempt(ctx, attempt), func(context.Context, int) error { sent++; return NotExecuted(errTest) })
		})
		if sent != 3 {
			t.Errorf("%d attempts inside, want one for each of the 3 outside", sent)
		}
		// A call that repeats by itself is one for its budget in the first attempt of the call
		// outside, and a part of a retry in the others.
		inner := &Policy{Multiply: true, Attempts: 1}
		_ = (&Policy{}).Do(t.Context(), func(ctx context.Context, _ int) error {
			return NotExecuted(inner.Do(ctx, fails))
		})
		if s := inner.Stats(); s.Calls != 3 || s.Budget.Calls != 1 {
			t.Errorf("%d calls inside, %d of them for the budget, want 3 and 1", s.Calls, s.Budget.Calls)
		}
	})
}

// A hedge comes out of the attempts and the budget of its call.
func TestHedge(t *testing.T) {
	p := &Policy{Attempts: 2, Budget: &Budget{Reserve: 2}}
	c := p.Begin(t.Context())
	first, cancel := c.Context()
	defer cancel()
	if !c.Hedge() || c.Hedge() {
		t.Error("want one hedge of two attempts")
	}
	second, cancel := c.Context()
	defer cancel()
	if a, b := AttemptFrom(first), AttemptFrom(second); a != 1 || b != 2 {
		t.Errorf("attempts %d and %d", a, b)
	}
	if got := c.Again(Fault{Err: errTest, Idempotent: true}); got != StopExhausted {
		t.Errorf("after both: %v", got)
	}
	if !p.Begin(t.Context()).Hedge() || p.Begin(t.Context()).Hedge() {
		t.Error("want two hedges in the budget")
	}
	inner := (&Policy{}).Begin(mustContext(p.Begin(t.Context())))
	if inner.Hedge() {
		t.Error("a nested call is hedged")
	}
	inner.Done()
	inner.Done()
	if s := inner.policy.Stats(); s.Stops[StopAnswered] != 1 {
		t.Errorf("done twice counts %d", s.Stops[StopAnswered])
	}
}

// A call that has ended, or whose caller or deadline has, is not hedged, and nothing is
// counted or spent.
func TestHedgeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			end  func(c *Call, leave func())
			want bool
		}{
			{"in time", func(*Call, func()) { time.Sleep(time.Second - 1) }, true},
			{"after the deadline", func(*Call, func()) { time.Sleep(time.Second) }, false},
			{"after the caller has left", func(_ *Call, leave func()) { leave() }, false},
			{"after the answer", func(c *Call, _ func()) { c.Done() }, false},
		} {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			p := &Policy{Total: time.Second}
			call := p.Begin(ctx)
			c.end(call, leave)
			got, s, n := call.Hedge(), p.Stats(), uint64(0)
			if c.want {
				n = 1
			}
			if got != c.want || s.Attempts != 1+n || s.Budget.Granted != n {
				t.Errorf("%s: %v, %d attempts, %d of the budget; want %v", c.name, got, s.Attempts, s.Budget.Granted, c.want)
			}
		}
	})
}

func mustContext(c *Call) context.Context {
	ctx, _ := c.Context()
	return ctx
}

func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for s := range Stops {
		if w := s.String(); w == "" || seen[w] || strings.ToLower(w) != w {
			t.Errorf("stop %d is %q", s, w)
		}
		seen[s.String()] = true
	}
	if VerdictAnswer.String() != "answer" || VerdictRetry.String() != "retryable" || VerdictFinal.String() != "final" {
		t.Error("verdicts")
	}
}
