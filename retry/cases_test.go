package retry

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An answer is the response of a server to an adapter's attempt.
func answered(p *Policy, ctx context.Context, f func() Fault) (stop Stop, attempts int, err error) {
	c := p.Begin(ctx)
	for {
		if stop = c.Again(f()); stop != NoStop {
			return stop, c.Attempt(), c.Err(errTest)
		}
	}
}

// hashicorp/go-retryablehttp#297, urllib3/urllib3#3743: a hint that is out of all
// bounds is neither no wait nor an endless one. The call ends at once, and its error
// says what the server sent.
func TestC062C063AbsurdHintEndsTheCall(t *testing.T) {
	for _, text := range []string{"9223372037", "9223372036854775807", "9999999999", "2147483648"} {
		for _, deadline := range []time.Duration{0, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				ctx := Idempotent(t.Context())
				if deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, deadline)
					defer cancel()
				}
				start := time.Now()
				stop, n, err := answered(&Policy{}, ctx, func() Fault {
					return HTTPFault(503, http.Header{"Retry-After": {text}}, time.Now())
				})
				if stop != StopTooLong || n != 1 || time.Since(start) != 0 || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v after %d attempts and %v: %v", text, stop, n, time.Since(start), err)
				}
				var e *Error
				if !errors.As(err, &e) || e.Hint.After != longest || !e.Hint.Capped || e.Hint.Text != text {
					t.Errorf("%s: %+v", text, e.Hint)
				}
			})
		}
	}
}

// A hint is obeyed, and never shortens the backoff. It gets up to half of it as jitter,
// unless it was spread by whoever said it.
func TestHintsAreObeyed(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name     string
		hint     Hint
		draw     float64
		deadline time.Duration
		stop     Stop
		want     time.Duration
	}{
		{"C063: 00000012", HTTPHint(http.Header{"Retry-After": {"00000012"}}, time.Now()), 0, 0, StopExhausted, 12 * time.Second},
		{"no jitter", Hint{After: time.Second, Said: true}, 0, 0, StopExhausted, time.Second},
		{"half of the jitter", Hint{After: time.Second, Said: true}, 0.5, 0, StopExhausted, 1250 * ms},
		{"exact", Hint{After: time.Second, Said: true, Exact: true}, 0.5, 0, StopExhausted, time.Second},
		{"0: the backoff", Hint{Said: true}, 0.5, 0, StopExhausted, 25 * ms},
		{"below the backoff", Hint{After: 10 * ms, Said: true, Exact: true}, 0.5, 0, StopExhausted, 25 * ms},
		{"nothing said", Hint{Text: "soon"}, 0.5, 0, StopExhausted, 25 * ms},
		{"as long as it may be", Hint{After: time.Minute, Said: true, Exact: true}, 0, 0, StopExhausted, time.Minute},
		{"longer than that", Hint{After: time.Minute + 1, Said: true}, 0, 0, StopTooLong, 0},
		{"fits, and some jitter too", Hint{After: time.Second, Said: true}, 0.5, 1200 * ms, StopExhausted, 1050 * ms},
		{"fits just not", Hint{After: time.Second, Said: true}, 0.5, time.Second, StopTooLate, 0},
		{"longer than is left", Hint{After: 2 * time.Second, Said: true}, 0, time.Second, StopTooLate, 0},
		{"never", Hint{Never: true}, 0, 0, StopPushback, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := fixed(row.draw)
			p.Attempts, p.Total = 2, row.deadline
			start := time.Now()
			stop, _, err := answered(p, Idempotent(t.Context()), func() Fault { return Fault{Status: 503, Hint: row.hint} })
			if got := time.Since(start); stop != row.stop || got < row.want || got > row.want+2 {
				t.Errorf("%s: %v after %v, want %v after %v: %v", row.name, stop, got, row.stop, row.want, err)
			}
		})
	}
}

// onosproject/onos-lib-go#127: through a policy, with the longest backoff there is.
func TestC067LongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(0)
		p.Attempts, p.Backoff, p.MaxBackoff = 10, time.Hour, 24*time.Hour
		before := time.Now()
		_ = p.Do(t.Context(), func(_ context.Context, attempt int) error {
			if now := time.Now(); attempt > 1 && !now.After(before) {
				t.Errorf("attempt %d: no wait", attempt)
			}
			before = time.Now()
			return NotExecuted(errTest)
		})
	})
}

// codesculptor.uk, archcrux.com: attempts of layers multiply, 4 x 4 x 4 = 64. Inside an
// attempt there is one, so it is 4.
func TestC069LayersDoNotMultiply(t *testing.T) {
	for _, row := range []struct {
		multiply bool
		want     int
	}{{false, 4}, {true, 64}} {
		synctest.Test(t, func(t *testing.T) {
			var layers [3]*Policy
			for i := range layers {
				layers[i] = &Policy{Attempts: 4, Multiply: row.multiply, Budget: &Budget{Reserve: 1000}}
			}
			sent, highest := 0, 0
			err := layers[0].Do(t.Context(), func(ctx context.Context, _ int) error {
				return layers[1].Do(ctx, func(ctx context.Context, _ int) error {
					return layers[2].Do(ctx, func(ctx context.Context, _ int) error {
						sent++
						highest = max(highest, AttemptFrom(ctx))
						return NotExecuted(errTest)
					})
				})
			})
			if sent != row.want || stopOf(t, err).Stop != StopExhausted {
				t.Errorf("multiply %v: %d attempts, want %d: %v", row.multiply, sent, row.want, err)
			}
			if want := map[bool]int{false: 4, true: 10}[row.multiply]; highest != want {
				t.Errorf("multiply %v: the last one has the number %d, want %d", row.multiply, highest, want)
			}
			inner := layers[2].Stats()
			if !row.multiply && (inner.Stops[StopNested] != 4 || inner.Budget.Calls != 0 || inner.Budget.Granted != 0) {
				t.Errorf("the innermost: %+v, want 4 nested calls that its budget does not know", inner)
			}
		})
	}
}

// The budgets of layers in different processes: 1.1 each, where everything fails.
func TestC069BudgetsOfLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var layers [3]*Policy
		for i := range layers {
			layers[i] = &Policy{Attempts: 4, Backoff: time.Millisecond}
		}
		sent := 0
		var call func(i int) error
		call = func(i int) error {
			if i == len(layers) {
				sent++
				return NotExecuted(errTest)
			}
			// The context of another process: that of the attempt does not go along.
			return layers[i].Do(t.Context(), func(context.Context, int) error {
				if err := call(i + 1); err != nil {
					return NotExecuted(errTest)
				}
				return nil
			})
		}
		const requests = 3000 // 100/s for 30 s
		for range requests {
			_ = call(0)
			time.Sleep(10 * time.Millisecond)
		}
		// 1.1^3 = 1.331 in each window, and the budget of a window that begins anew.
		if got := float64(sent) / requests; got > 1.331 || got < 1.25 {
			t.Errorf("%d attempts for %d requests: x %.3f, want at most 1.331", sent, requests, got)
		}
	})
}

// archcrux.com: a POST that timed out after the backend had committed counts twice.
func TestC072TimeoutAfterCommit(t *testing.T) {
	for _, row := range []struct {
		name      string
		err       error
		mark      bool
		committed int
	}{
		{"not marked", context.DeadlineExceeded, false, 1},
		{"marked", context.DeadlineExceeded, true, 3},
		{"refused before execution", NotExecuted(errTest), false, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if row.mark {
				ctx = Idempotent(ctx)
			}
			done := 0
			_ = new(Policy).Do(ctx, func(context.Context, int) error { done++; return row.err })
			if done != row.committed {
				t.Errorf("%s: done %d times, want %d", row.name, done, row.committed)
			}
		})
	}
	// gRPC UNAVAILABLE after the headers were sent.
	sent := Fault{Code: 14}
	unsent := Fault{Code: 14, Unsent: true}
	if sent.Verdict() != VerdictFinal || unsent.Verdict() != VerdictRetry {
		t.Errorf("UNAVAILABLE: %v if sent, %v if not", sent.Verdict(), unsent.Verdict())
	}
}

// A call inside that may have been executed once is not "not executed" for the one
// outside, whatever its last attempt was.
func TestExecutedInsideIsExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, inner := &Policy{}, &Policy{Multiply: true}
		done := 0
		err := outer.Do(t.Context(), func(ctx context.Context, _ int) error {
			return inner.Do(Idempotent(ctx), func(_ context.Context, attempt int) error {
				if done++; attempt == 1 {
					return errTest // nobody knows
				}
				return NotExecuted(errTest)
			})
		})
		if e := stopOf(t, err); e.Stop != StopPermanent || done != 3 {
			t.Errorf("%d attempts, want the 3 of the inner call: %v", done, err)
		}
		done = 0
		_ = outer.Do(t.Context(), func(ctx context.Context, _ int) error {
			return inner.Do(ctx, func(context.Context, int) error { done++; return NotExecuted(errTest) })
		})
		if done != 9 {
			t.Errorf("%d attempts, want 3 x 3: none was executed", done)
		}
	})
}
