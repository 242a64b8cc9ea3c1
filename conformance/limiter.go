package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A Limiter is what a limiter of any kind is seen as: by functions, so that an adapter is a
// few lines. Acquire or Try is needed; checks that need one that is nil are skipped, and
// the result says so. All are called on goroutines of the checks: t.Fatal and t.Skip are
// wrong in them, and are named as the failure.
type Limiter struct {
	// Acquire waits for a slot until there is one or ctx is over. release gives it back; the
	// checks call it once, but for the one that does it twice on purpose. With an error
	// there is nothing to release, and release is not looked at. Leave Acquire nil if the
	// limiter has no form that waits.
	Acquire func(ctx context.Context) (release func(), err error)

	// AcquireCost is Acquire for several units of the limit at once.
	AcquireCost func(ctx context.Context, cost int) (release func(), err error)

	// Try takes a slot if one is free, and never waits.
	Try func() (release func(), ok bool)

	// Do runs fn in a slot. It returns what fn does, or another error without running it.
	// What becomes of a panic is the limiter's business: it may go on, or become an error.
	Do func(ctx context.Context, fn func(context.Context) error) error

	// Resize changes the limit while it is in use.
	Resize func(limit int)

	// InUse and Waiting return how many hold a slot and how many wait for one. They make
	// the checks sharper and, in real time, quicker.
	InUse, Waiting func() int

	// Close ends the service: those that wait are told no, or are served as slots are given
	// back, and newcomers are refused. It may wait for what runs, or not. It is called once of
	// each limiter that was made: at the end of the check, if not by it. A limiter that has
	// goroutines or files of its own ends them there.
	Close func()
}

// errFull is a Try that found nothing.
var errFull = errors.New("no slot is free")

// take is Acquire, or Try where there is none.
func (l *Limiter) take(ctx context.Context) (func(), error) {
	if l.Acquire != nil {
		return l.Acquire(ctx)
	}
	release, ok := l.Try()
	if !ok {
		return nil, errFull
	}
	return release, nil
}

// LimiterOptions say how a limiter is checked. The zero value is right for most.
type LimiterOptions struct {
	// NoQueue makes a limiter like the one that is checked in which nobody may wait. nil:
	// there is no such setting, and no-queue is skipped.
	NoQueue func(limit int) Limiter

	// Bubble runs the checks in bubbles of testing/synctest: without sleeping, and with no
	// chance to miss anything. It is for a limiter that waits on channels, timers and
	// condition variables only, and whose goroutines end, by Close if need be. A limiter that
	// hangs there may end the whole test with a panic about a deadlock. TestLimiter only.
	Bubble bool

	// Part is for tests that must be quick: each check makes a Part-th of its rounds, 1 to
	// 100, and many-cancelled has a Part-th of 100,000 callers wait at once. Default 1, all of
	// them, which takes a few seconds and for a moment half a gigabyte.
	Part int

	// Skip maps names of checks that are not run to the reason: what is documented
	// otherwise. The reason is in the result.
	Skip map[string]string

	// Seed makes what is random the same again. Default: another one each time, which
	// TestLimiter logs.
	Seed uint64

	// Patience is how long one step may take, or nobody of many get on, before it counts as a
	// deadlock. It is not for a whole check: one that has taken 10 s makes at least 8 of its
	// rounds, and says how many. Default 10 s, which is enough for a limiter that needs some
	// tens of milliseconds for each slot.
	Patience time.Duration
}

func (o LimiterOptions) settings() settings {
	s := settings{seed: o.Seed, patience: o.Patience, part: o.Part, skip: o.Skip}
	s.fill(limiterChecks)
	return s
}

func (o LimiterOptions) env(s settings, limiters func(limit int) Limiter) *env {
	return &env{settings: s, factory: limiters, noQueue: o.NoQueue}
}

// usable returns how it is that no check could run, or "": a limiter has no form, or is not
// made. It is one sentence then, and not one of each check.
func (o LimiterOptions) usable(s settings, limiters func(limit int) Limiter) string {
	s.skip = nil
	return o.env(s, limiters).run(Check{Name: "usable", missing: needsNothing, run: func(*env) error { return nil }}).Detail
}

// LimiterChecks returns the checks for limiters, in the order in which they run.
func LimiterChecks() []Check { return append([]Check(nil), limiterChecks...) }

// TestLimiter runs each of LimiterChecks as a subtest, one after the other. limiters returns
// a limiter in which so many may run at once, always a new one, with a queue that takes
// 100,000 callers, or a Part-th, and lets them wait for a minute; for 0, and only for 0, it may panic with
// what the limiter says of such a limit. A limit that adapts has to be kept at that value. A
// limiter that cannot be made, or has neither Acquire nor Try, ends the test in one sentence.
func TestLimiter(t *testing.T, limiters func(limit int) Limiter, opts LimiterOptions) {
	s := opts.settings()
	t.Logf("seed %d", s.seed)
	if why := opts.usable(s, limiters); why != "" {
		t.Fatal(why)
	}
	for _, c := range limiterChecks {
		t.Run(c.Name, func(t *testing.T) {
			e := opts.env(s, limiters)
			if !opts.Bubble || c.real {
				tell(t, e.run(c))
				return
			}
			over := make(chan struct{})
			defer close(over)
			go e.outside(c, over)
			synctest.Test(t, func(t *testing.T) {
				e.bubble = true
				tell(t, e.run(c))
			})
		})
	}
}

// outside watches a bubble, in which time does not go on as long as somebody waits for a
// mutex: nobody inside could say so.
func (e *env) outside(c Check, over <-chan struct{}) {
	t := time.NewTicker(6 * e.patience)
	defer t.Stop()
	for last := e.beats.Load(); ; {
		select {
		case <-over:
			return
		case <-t.C:
		}
		now := e.beats.Load()
		if now == last {
			panic(fmt.Sprintf("conformance: %s has no end in a bubble: does the limiter wait on a mutex or the network?%s", c.Name, stuck()))
		}
		last = now
	}
}

func tell(t *testing.T, r Result) {
	t.Helper()
	switch r.Verdict {
	case Passed:
		if r.Detail != "" {
			t.Log(r.Detail)
		}
	case Skipped:
		t.Skip(r.Detail)
	case Failed:
		t.Errorf("%s\nwhat it proves: %s\nseen at: %v", r.Detail, r.Check.Proves, r.Check.Seen)
	}
}

// RunLimiter is TestLimiter without a test: it returns what became of each check, for a
// table over several limiters. Of one that cannot be made, or has neither Acquire nor Try,
// the first check says so and the others are skipped.
func RunLimiter(limiters func(limit int) Limiter, opts LimiterOptions) []Result {
	s := opts.settings()
	return table(limiterChecks, opts.usable(s, limiters), func(c Check) Result {
		return opts.env(s, limiters).run(c)
	})
}
