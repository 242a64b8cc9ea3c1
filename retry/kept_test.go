package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/goodput/goodput"
)

// What was kept here is neither a call that earns retries nor an attempt that was sent, and
// is said so.
func TestKept(t *testing.T) {
	refused := &goodput.Rejection{Limiter: "own", Reason: goodput.QueueFull, RetryAfter: 1}
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Budget: &Budget{Ratio: 1, Reserve: 1}}
		for range 3 {
			c := p.Begin(t.Context())
			if got := c.Kept(refused); got != StopKept || c.Kept(refused) != StopKept {
				t.Errorf("%v, want kept", got)
			}
			err := c.Err(refused)
			if want := "retry: not tried, kept here: " + refused.Error(); err.Error() != want || !errors.Is(err, goodput.ErrRejected) {
				t.Errorf("%v, want %s", err, want)
			}
			if v := (Fault{Err: err}).Verdict(); v != VerdictRetry {
				t.Errorf("for a call outside: %v, want retryable, because nothing was executed", v)
			}
		}
		c := p.Begin(t.Context())
		if got := c.Again(Fault{Err: errTest, NotExecuted: true}); got != NoStop {
			t.Fatalf("%v, want retry", got)
		}
		c.Kept(refused) // its second attempt
		if e := stopOf(t, c.Err(errTest)); e.Attempts != 1 || e.Stop != StopKept {
			t.Errorf("%d attempts, %v, want 1 that was made and kept", e.Attempts, e.Stop)
		}
		p.Begin(t.Context()).Done()
		inside, _ := p.Begin(t.Context()).Context()
		(&Policy{Budget: p.Budget}).Begin(inside).Kept(refused) // had not been counted

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := p.Begin(ctx).Kept(ctx.Err()); got != StopGone {
			t.Errorf("the caller has left: %v", got)
		}

		s := p.Stats()
		got := fmt.Sprint(s.Calls, s.Unsent, s.Attempts, s.Kept, s.Budget.Calls, s.Budget.Retries, s.Stops[StopKept], s.Stops[StopGone])
		// 7 calls: 4 never sent; a second attempt and 4 first ones kept, of 8; 3 count, and no retry.
		if want := "7 4 8 5 3 0 4 1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		want := "so far: 7 calls, 3 attempts made by 3 of them (x 1.000), 5 attempts kept here and not sent\n" +
			"calls ended: 1 gone, 1 answered, 4 kept\n"
		if text := p.Explain(); text[len(text)-min(len(text), len(want)):] != want {
			t.Errorf("%s\nwant at its end\n%s", text, want)
		}
	})
}
