package conformance

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs the check of one limiter in a bubble, which must not be left by a hang.
func inBubble(t *testing.T, c Check, limiters func(int) Limiter, change func(*env)) (r Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		opts := LimiterOptions{Part: maxPart}
		e := opts.env(opts.settings(), limiters)
		e.bubble = true
		if change != nil {
			change(e)
		}
		r = e.run(c)
	})
	return r
}

// slow needs 3 ms for each slot.
func slow(limit int) Limiter {
	l := channel(limit)
	return Limiter{Acquire: func(ctx context.Context) (func(), error) {
		time.Sleep(3 * time.Millisecond)
		return l.Acquire(ctx)
	}}
}

// narrow is slow for one caller after the other.
func narrow(limit int) Limiter {
	l := channel(limit)
	door := make(chan struct{}, 1)
	return Limiter{Acquire: func(ctx context.Context) (func(), error) {
		door <- struct{}{}
		time.Sleep(3 * time.Millisecond)
		<-door
		return l.Acquire(ctx)
	}}
}

// polls looks every 20 ms whether a slot is free.
func polls(limit int) Limiter {
	l := channel(limit)
	return Limiter{Acquire: func(ctx context.Context) (func(), error) {
		for {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if release, ok := l.Try(); ok {
				return release, nil
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}}
}

// What is slow and right passes: no step takes a second, though all of them take minutes.
func TestSlowLimitersPass(t *testing.T) {
	for name, limiters := range map[string]func(int) Limiter{"slow": slow, "narrow": narrow, "polls": polls} {
		for _, c := range limiterChecks {
			if c.real {
				continue
			}
			r := inBubble(t, c, limiters, func(e *env) {
				e.part, e.patience, e.timed = 1, time.Second, true
			})
			if r.Verdict == Failed {
				t.Errorf("%s: %v", name, r)
			}
			if c.Name == "lost-wakeup" && (!strings.HasPrefix(r.Detail, "only ") || !strings.HasSuffix(r.Detail, " of 4000 bursts, in 10s")) {
				t.Errorf("%s: %v, which does not say how many bursts there were", name, r)
			}
		}
	}
}

// However few rounds a slow one is given, what is wrong in each of them is seen.
func TestSlowAndBrokenLimitersFail(t *testing.T) {
	for check, f := range map[string]faults{
		"cancelled-front": {frontSleeps: true}, "cancelled-before": {ignoresBefore: true}, "starvation": {newestFirst: true},
		"try": {tryNever: true}, "panic": {panicLoses: true},
	} {
		r := inBubble(t, one(t, check), func(limit int) Limiter {
			l := broken(f)(limit)
			g := l
			g.Acquire = func(ctx context.Context) (func(), error) {
				time.Sleep(3 * time.Millisecond)
				return l.Acquire(ctx)
			}
			return g
		}, func(e *env) { e.part, e.timed = 1, true })
		if r.Verdict != Failed {
			t.Errorf("%v", r)
		}
	}
}
