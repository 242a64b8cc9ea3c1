package conformance

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fallible is a right limiter in which fail is called by one of its functions.
func fallible(function string, fail func()) func(int) Limiter {
	at := func(name string) {
		if name == function {
			fail()
		}
	}
	return func(limit int) Limiter {
		at("making a limiter")
		l := broken(faults{})(limit)
		g := l
		taken := func(release func()) func() {
			return func() { at("release"); release() }
		}
		g.AcquireCost = func(ctx context.Context, cost int) (func(), error) {
			at("AcquireCost")
			release, err := l.AcquireCost(ctx, cost)
			return taken(release), err
		}
		g.Acquire = func(ctx context.Context) (func(), error) {
			at("Acquire")
			release, err := l.Acquire(ctx)
			return taken(release), err
		}
		g.Try = func() (func(), bool) {
			at("Try")
			release, ok := l.Try()
			return taken(release), ok
		}
		g.Do = func(ctx context.Context, fn func(context.Context) error) error {
			at("Do")
			return l.Do(ctx, fn)
		}
		g.Resize = func(limit int) { at("Resize"); l.Resize(limit) }
		g.InUse = func() int { at("InUse"); return l.InUse() }
		g.Waiting = func() int { at("Waiting"); return l.Waiting() }
		g.Close = func() { at("Close"); l.Close() }
		return g
	}
}

// Whichever function panics or ends its goroutine, and on whichever goroutine that is: a
// check that calls it fails and says so, and the others pass.
func TestEndsOfGoroutinesAreFailures(t *testing.T) {
	calls := map[string]int{ // how many checks of those in a bubble call it, at least
		"making a limiter": 19, "Acquire": 15, "AcquireCost": 2, "Try": 2, "Do": 2, "release": 12, "Resize": 2, "InUse": 8, "Waiting": 8, "Close": 19,
	}
	for function, least := range calls {
		for how, fail := range map[string]func(){
			" panicked at calls_test.go:":                               func() { panic("a bug") },
			" ended its goroutine with runtime.Goexit, as t.FailNow, t": runtime.Goexit,
			" ended its goroutine with runtime.Goexit, as t.FailNow, ":  func() { new(testing.T).SkipNow() },
		} {
			failed := 0
			for _, c := range limiterChecks {
				if c.real {
					continue
				}
				r := inBubble(t, c, fallible(function, fail), nil)
				switch {
				case r.Verdict == Passed && r.Check.Name == "limit-zero" && strings.Contains(r.Detail, "a bug"): // it may refuse
				case r.Verdict != Failed:
					continue
				case !strings.Contains(r.Detail, function) || !strings.Contains(r.Detail, how):
					t.Errorf("%s%s: %v", function, how, r)
				}
				failed++
			}
			if failed < least {
				t.Errorf("%s%s: it fails %d checks, and at least %d call it", function, how, failed, least)
			}
		}
	}
}

// A function that hangs is a failure of its check with the goroutines that hang, and so is
// one that gives a slot nobody could give back.
func TestHangsAreFailures(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	hang := func() { <-over }
	for _, tt := range []struct {
		name    string
		release func()
		acquire func()
		want    []string
	}{
		{name: "release hangs", release: hang, want: []string{"no end after", "goroutine ", "conformance.checkLimit"}},
		{name: "Acquire hangs", acquire: hang, want: []string{"nothing for", "goroutine ", "conformance.start"}},
		{name: "no release", want: []string{"Acquire gave a slot and no function to release it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limiters := func(limit int) Limiter {
				l := channel(limit)
				return Limiter{Acquire: func(ctx context.Context) (func(), error) {
					if tt.acquire != nil {
						tt.acquire()
					}
					_, err := l.Acquire(ctx)
					return tt.release, err
				}}
			}
			opts := LimiterOptions{Seed: 7, Patience: 50 * time.Millisecond}
			r := opts.env(opts.settings(), limiters).run(one(t, "limit"))
			if r.Verdict != Failed || !strings.HasPrefix(r.Detail, "seed 7: ") {
				t.Errorf("%v", r)
			}
			for _, want := range tt.want {
				if !strings.Contains(r.Detail, want) {
					t.Errorf("%q is not in %s", want, r.Detail)
				}
			}
		})
	}
}

// A limiter that is none is one sentence and not one of each check.
func TestUnusableIsOneSentence(t *testing.T) {
	for want, limiters := range map[string]func(int) Limiter{
		"a Limiter needs Acquire or Try, and this one has neither":      func(int) Limiter { return Limiter{Close: func() {}} },
		"making a limiter of 1 panicked at calls_test.go:":              func(int) Limiter { panic("no such limiter") },
		"making a limiter of 1 ended its goroutine with runtime.Goexit": func(int) Limiter { runtime.Goexit(); return Limiter{} },
	} {
		for i, r := range RunLimiter(limiters, LimiterOptions{Skip: map[string]string{"limit": "no"}}) {
			if i == 0 && (r.Verdict != Failed || !strings.Contains(r.Detail, want)) || i > 0 && r.Verdict != Skipped {
				t.Errorf("%s: %v", want, r)
			}
		}
	}
}

// Each limiter that was made is closed, once, however the check ends.
func TestEachIsClosed(t *testing.T) {
	for _, f := range []faults{{}, {overAdmits: true, tryNever: true, frontSleeps: true, downForgets: true}} {
		for _, c := range limiterChecks {
			made := 0
			var closed atomic.Int64 // they are closed side by side
			limiters := func(limit int) Limiter {
				l := broken(f)(limit)
				end := l.Close
				made++
				l.Close = func() { closed.Add(1); end() }
				return l
			}
			if !c.real {
				inBubble(t, c, limiters, nil)
			}
			if made != int(closed.Load()) {
				t.Errorf("%s: %d limiters were made, and %d calls of Close", c.Name, made, closed.Load())
			}
		}
	}
}

// One that never waits is closed too.
func TestCloseWithoutAcquire(t *testing.T) {
	for name, f := range map[string]faults{"passed": {}, "failed": {closeTries: true}} {
		r := inBubble(t, one(t, "close"), func(limit int) Limiter {
			l := broken(f)(limit)
			return Limiter{Try: l.Try, Close: l.Close}
		}, nil)
		if r.Verdict.String() != name {
			t.Errorf("%v, want %s", r, name)
		}
	}
}
