package retry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

// Of several errors in one, that nothing was executed counts only if each says so: a
// fan-out of which one part could not dial, and another failed after its commit, is not
// made again. A mark around them knows better.
func TestPartsOfAnError(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	refused := &goodput.Rejection{RetryAfter: time.Second}
	shortfall := func(errs ...error) error {
		_, err := goodput.Gather(context.Background(), goodput.Gathering[int]{Min: len(errs), Parallel: 1}, len(errs),
			func(_ context.Context, i int) (int, error) { return i, errs[i] })
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want Verdict
	}{
		{"one dial", dial, VerdictRetry},
		{"wrapped", fmt.Errorf("shard 7: %w", dial), VerdictRetry},
		{"two dials", errors.Join(dial, dial), VerdictRetry},
		{"a dial and a refusal", errors.Join(dial, refused), VerdictRetry},
		{"a dial and what is not known", errors.Join(dial, errTest), VerdictFinal},
		{"wrapped", fmt.Errorf("of two: %w", errors.Join(errTest, dial)), VerdictFinal},
		{"a mark inside", errors.Join(NotExecuted(errTest), errTest), VerdictFinal},
		{"marks inside", errors.Join(NotExecuted(errTest), NotExecuted(errTest)), VerdictRetry},
		{"a mark around", NotExecuted(errors.Join(dial, errTest)), VerdictRetry},
		{"a dial after something was done", Executed(dial), VerdictFinal},
		{"a refusal after it", fmt.Errorf("step 2: %w", Executed(refused)), VerdictFinal},
		{"a hint around that", After(Executed(dial), time.Second), VerdictFinal},
		{"a mark that knows less", Executed(NotExecuted(errTest)), VerdictFinal},
		{"a mark that knows better", NotExecuted(Executed(errTest)), VerdictRetry},
		{"a call inside, after something was done", Executed(&Error{Err: dial, fault: Fault{NotExecuted: true}}), VerdictFinal},
		{"a part that was done", errors.Join(dial, Executed(dial)), VerdictFinal},
		{"parts of parts", errors.Join(errors.Join(dial, errTest), dial), VerdictFinal},
		{"a fan-out that could not dial, and what it had not begun", shortfall(dial, errTest), VerdictRetry},
		{"a fan-out that was refused, and what it had not begun", shortfall(refused, nil), VerdictRetry},
		{"a fan-out of which a part failed", shortfall(errTest, dial), VerdictFinal},
		{"a fan-out of which a part came", shortfall(nil, dial), VerdictFinal},
		{"a fan-out of which a part came, and the other was refused", shortfall(nil, refused), VerdictFinal},
		{"a part that did not return", &goodput.Shortfall{Missing: []goodput.Missing{
			{Outcome: goodput.Failed, Err: dial}, {Outcome: goodput.Late, Err: dial},
		}}, VerdictFinal},
		{"a part that nobody waited for", &goodput.Shortfall{Missing: []goodput.Missing{
			{Outcome: goodput.Failed, Err: dial}, {Outcome: goodput.Abandoned, Err: dial},
		}}, VerdictFinal},
		{"a part that was not begun in time", &goodput.Shortfall{Missing: []goodput.Missing{
			{Outcome: goodput.Failed, Err: dial}, {Outcome: goodput.Expired, Err: errTest},
		}}, VerdictRetry},
	} {
		if got := (Fault{Err: c.err}).Verdict(); got != c.want {
			t.Errorf("%s (%v): %v, want %v", c.name, c.err, got, c.want)
		}
		if got := (Fault{Err: c.err, Idempotent: true}).Verdict(); got != VerdictRetry {
			t.Errorf("%s, idempotent: %v", c.name, got)
		}
	}
}

// Who is told ErrRejected may send the whole again, so a call of which an attempt may have
// been executed does not match it, whatever its last attempt was.
func TestRejectedAfterExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name     string
			first    error
			last     error
			rejected bool
		}{
			{"refused twice", &goodput.Rejection{RetryAfter: 1}, &goodput.Rejection{}, true},
			{"not known, then refused", errTest, &goodput.Rejection{}, false},
			{"a part of it done, then refused", NotExecuted(errTest), Executed(&goodput.Rejection{}), false},
		} {
			call := func(ctx context.Context) error {
				return (&Policy{}).Do(Idempotent(ctx), func(_ context.Context, attempt int) error {
					if attempt == 1 {
						return c.first
					}
					return c.last
				})
			}
			err := call(t.Context())
			var rej *goodput.Rejection
			if errors.Is(err, goodput.ErrRejected) != c.rejected || errors.As(err, &rej) != c.rejected {
				t.Errorf("%s: %v, want ErrRejected %v", c.name, err, c.rejected)
			}
			if e := stopOf(t, err); e.Attempts != 2 || !errors.Is(e.Err, goodput.ErrRejected) {
				t.Errorf("%s: %d attempts, the last of which ended as %v", c.name, e.Attempts, e.Err)
			}
			_, err = goodput.Gather(t.Context(), goodput.Gathering[int]{}, 1, func(ctx context.Context, _ int) (int, error) { return 0, call(ctx) })
			if errors.Is(err, goodput.ErrRejected) != c.rejected {
				t.Errorf("%s, in a fan-out: %v, want ErrRejected %v", c.name, err, c.rejected)
			}
		}
	})
}

// A timer that comes late leaves no time for an attempt.
func TestNoAttemptAfterTheDeadline(t *testing.T) {
	c := (&Policy{Total: time.Hour}).Begin(context.Background())
	c.end = time.Now().Add(-time.Nanosecond)
	if got := c.pause(0); got != StopTooLate {
		t.Errorf("after the deadline: %v, want %v", got, StopTooLate)
	}
	c.end = time.Time{}
	if got := c.pause(0); got != NoStop {
		t.Errorf("without a deadline: %v, want %v", got, NoStop)
	}
}

// Calls that were over before they began are calls and no attempts.
func TestUntried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Attempts: 2}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		for range 3 {
			_ = p.Do(gone, func(context.Context, int) error { return nil })
		}
		_ = p.Do(context.Background(), func(context.Context, int) error { return NotExecuted(errTest) })
		if s := p.Stats(); s.Calls != 4 || s.Untried != 3 || s.Attempts != 2 || s.Retries() != 1 {
			t.Errorf("%d calls, %d untried, %d attempts, %d retries; want 4, 3, 2, 1", s.Calls, s.Untried, s.Attempts, s.Retries())
		}
	})
}

// What was not sent was not executed, whether or not it pays to try again; and what says
// that it was not admitted was not executed either.
func TestUnsentIsNotExecuted(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"kept by a throttle", (&Throttle{}).Err(), false},
		{"no such host", &net.DNSError{IsNotFound: true}, false},
		{"no address", &net.AddrError{Err: "missing port"}, false},
		{"no dial", &net.OpError{Op: "dial", Err: errTest}, false},
		{"not admitted", fmt.Errorf("here: %w", goodput.ErrRejected), false},
		{"not known", errTest, true},
		{"cancelled", context.Canceled, true},
	} {
		if got := mayBeExecuted(c.err); got != c.want {
			t.Errorf("%s (%v): may have been executed %v, want %v", c.name, c.err, got, c.want)
		}
	}
}

// A verdict that does not exist allows nothing, and words that do not exist are no panic.
func TestWordsThatDoNotExist(t *testing.T) {
	p := &Policy{Classify: func(Fault) Verdict { return 7 }}
	n := 0
	err := p.Do(Idempotent(context.Background()), func(context.Context, int) error { n++; return errTest })
	var e *Error
	if n != 1 || !errors.As(err, &e) || e.Stop != StopPermanent {
		t.Errorf("%d attempts, %v", n, err)
	}
	if v, s := Verdict(7).String(), Stop(200).String(); v != "verdict(7)" || s != "stop(200)" {
		t.Errorf("%q, %q", v, s)
	}
}

// Who leaves during the wait has not used up the retry that the wait was for.
func TestLeavingGivesTheRetryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Backoff: time.Hour, MaxBackoff: time.Hour, draw: func() float64 { return 0.5 }}
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			_ = p.Do(ctx, func(context.Context, int) error { return NotExecuted(errTest) })
		}
		if s := p.Stats(); s.Stops[StopGone] != 50 || s.Budget.Left != 10 || s.Retries() != 0 {
			t.Errorf("%d left during the wait; %v retries left of 10, %d made", s.Stops[StopGone], s.Budget.Left, s.Retries())
		}
	})
}
