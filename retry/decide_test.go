package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Between Decide and Wait a caller puts down what it must not hold: the decision takes no
// time, and the wait is all there is of it.
func TestDecideDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{Attempts: 2, Backoff: time.Second, draw: func() float64 { return 0.5 }}
		c := p.Begin(Idempotent(context.Background()))
		start := time.Now()
		if stop := c.Decide(Fault{Status: 503}); stop != NoStop || time.Since(start) != 0 || c.Attempt() != 1 {
			t.Errorf("%v after %v, attempt %d", stop, time.Since(start), c.Attempt())
		}
		if stop := c.Wait(); stop != NoStop || time.Since(start) == 0 || c.Attempt() != 2 {
			t.Errorf("%v after %v, attempt %d", stop, time.Since(start), c.Attempt())
		}
		waited := time.Since(start)
		if stop := c.Decide(Fault{Status: 503}); stop != StopExhausted || time.Since(start) != waited {
			t.Errorf("%v after %v", stop, time.Since(start)-waited)
		}
		if st := p.Stats(); st.Attempts != 2 || st.Stops[StopExhausted] != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A caller that leaves during the wait ends the call.
func TestWaitEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(Idempotent(context.Background()))
		p := &Policy{Backoff: time.Second, draw: func() float64 { return 0.5 }}
		c := p.Begin(ctx)
		if stop := c.Decide(Fault{Err: errors.New("broken")}); stop != NoStop {
			t.Fatal(stop)
		}
		cancel()
		if stop := c.Wait(); stop != StopGone || c.Attempt() != 1 {
			t.Errorf("%v, attempt %d", stop, c.Attempt())
		}
		if st := p.Stats(); st.Attempts != 1 || st.Stops[StopGone] != 1 {
			t.Errorf("%+v", st)
		}
	})
}
