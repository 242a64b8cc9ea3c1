package conformance

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// goid is the number of the goroutine, which nobody should ask for.
func goid() string {
	buf := make([]byte, 64)
	id, _, _ := bytes.Cut(bytes.TrimPrefix(buf[:runtime.Stack(buf, false)], []byte("goroutine ")), []byte(" "))
	return string(id)
}

// tries are how often a check may miss what it is for: on a machine that stands still for
// longer than the grace it does, as it says.
const tries = 3

// failing runs a check that should fail: all of it, and a hang is one soon.
func failing(c Check, limiters, noQueue func(int) Limiter) (r Result) {
	opts := LimiterOptions{NoQueue: noQueue, Patience: 300 * time.Millisecond}
	if c.real {
		opts.Part = 10 // 10,000 that leave 200 bytes each are four times the slack
	}
	for try := 0; try < tries && r.Verdict != Failed; try++ {
		r = opts.env(opts.settings(), limiters).run(c)
	}
	return r
}

// passing runs a check that should pass, in a bubble if it can.
func passing(t *testing.T, c Check, limiters, noQueue func(int) Limiter) Result {
	if !c.real {
		return inBubble(t, c, limiters, func(e *env) { e.noQueue = noQueue })
	}
	opts := LimiterOptions{Patience: time.Minute, Part: maxPart}
	return opts.env(opts.settings(), limiters).run(c)
}

func unbounded(limit int) Limiter { return Limiter{Acquire: channel(limit).Acquire} }

// brokenLimiters name the checks that fail, in their order.
var brokenLimiters = []struct {
	name     string
	limiters func(int) Limiter
	noQueue  func(int) Limiter
	fails    []string
}{
	{"12 of 10", broken(faults{overAdmits: true}), nil, []string{"limit"}},
	{"0 is unlimited", broken(faults{zeroUnlimited: true}), nil, []string{"limit-zero"}},
	{"Try waits", broken(faults{tryWaits: true}), nil, []string{"try", "one-limit"}},
	{"Try never", broken(faults{tryNever: true}), nil, []string{"try", "one-limit"}},
	{"size 0 is unbounded", broken(faults{}), unbounded, []string{"no-queue"}},
	{"a panic keeps its slot", broken(faults{panicLoses: true}), nil, []string{"panic"}},
	{"a second release", broken(faults{doubleFrees: true}), nil, []string{"double-release"}},
	{"ignored before", broken(faults{ignoresBefore: true}), nil, []string{"cancelled-before"}},
	{"ignored before Do", broken(faults{doIgnores: true}), nil, []string{"cancelled-before"}},
	{"nobody waits", broken(faults{countsNobody: true}), nil, []string{"counts"}},
	{"all are in use", broken(faults{countsAll: true}), nil, []string{"counts"}},
	{"told late", broken(faults{toldLate: true}), nil, []string{"cancel-waiting"}},
	{"the dead are served", broken(faults{servesDead: true}), nil, []string{"deadline-waiting"}},
	{"lost on cancel", broken(faults{losesOnCancel: true}), nil, []string{"cancel-race"}},
	{"the next sleeps", broken(faults{frontSleeps: true}), nil, []string{"cancelled-front"}},
	{"the large one blocks", broken(faults{largeBlocks: true}), nil, []string{"cancelled-large"}},
	{"one in 3,000", broken(faults{forgets: true}), nil, []string{"lost-wakeup"}},
	{"newest first", broken(faults{newestFirst: true}), nil, []string{"starvation"}},
	{"remembers all", broken(faults{remembers: true}), nil, []string{"many-cancelled"}},
	{"goroutines stay", broken(faults{leavesGo: true}), nil, []string{"many-cancelled"}},
	{"wakes one", broken(faults{upWakesOne: true}), nil, []string{"resize-up"}},
	{"counts anew", broken(faults{downForgets: true}), nil, []string{"resize-down"}},
	{"those that wait are forgotten", broken(faults{closeLeaves: true}), nil, []string{"close"}},
	{"newcomers after the end", broken(faults{closeOpen: true}), nil, []string{"close"}},
	{"Try after the end", broken(faults{closeTries: true}), nil, []string{"close"}},
	{"Do runs whatever runs", broken(faults{doUnbounded: true}), nil, []string{"do", "cancelled-before", "close"}},
	{"an error keeps its slot", broken(faults{doKeeps: true}), nil, []string{"do", "panic"}},
	{"a context of its own", broken(faults{doAlone: true}), nil, []string{"do"}},
	{"Try counts for itself", broken(faults{tryCounts: true}), nil, []string{"one-limit", "close"}},
	{"AcquireCost counts for itself", broken(faults{costCounts: true}), nil, []string{"one-limit", "close"}},
	{"its own goroutine only", broken(faults{ownerOnly: true}), nil, []string{"other-goroutine"}},
}

// Each fault fails the check that is for it, and no other but those that it names: a form
// that takes no slot shows wherever that form is used.
func TestBrokenLimitersFail(t *testing.T) {
	for _, tt := range brokenLimiters {
		t.Run(tt.name, func(t *testing.T) {
			var failed []string
			for _, c := range limiterChecks {
				var r Result
				if own := slices.Contains(tt.fails, c.Name); own {
					r = failing(c, tt.limiters, tt.noQueue)
				} else {
					r = passing(t, c, tt.limiters, tt.noQueue)
				}
				if r.Verdict == Failed {
					failed = append(failed, r.Check.Name)
					first, _, _ := strings.Cut(r.Detail, "\n")
					t.Logf("%s: %s", r.Check.Name, first)
				}
			}
			if !slices.Equal(failed, tt.fails) {
				t.Errorf("fails %v, want %v", failed, tt.fails)
			}
		})
	}
}

// A check that nothing fails proves nothing.
func TestEachCheckIsFailed(t *testing.T) {
	var failed []string
	for _, b := range brokenLimiters {
		failed = append(failed, b.fails...)
	}
	for _, c := range limiterChecks {
		if !slices.Contains(failed, c.Name) {
			t.Errorf("no broken limiter fails %s", c.Name)
		}
	}
	failed = nil
	for _, b := range brokenByFault {
		failed = append(failed, b.fails...)
	}
	for _, c := range handlerChecks {
		if !slices.Contains(failed, c.Name) {
			t.Errorf("no broken handler fails %s", c.Name)
		}
	}
}
