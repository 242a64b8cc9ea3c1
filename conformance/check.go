package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Verdict is how a check ended.
type Verdict uint8

// Verdicts of a check.
const (
	Passed  Verdict = iota
	Failed          // Result.Detail says what was seen
	Skipped         // it does not apply: Result.Detail says why
)

// String returns the word for it.
func (v Verdict) String() string {
	switch v {
	case Passed:
		return "passed"
	case Failed:
		return "failed"
	default:
		return "skipped"
	}
}

// A Check is one thing that a limiter must do. The lists are LimiterChecks and
// HandlerChecks; no two checks of a list have the same name.
type Check struct {
	Name   string   // of lower-case words and hyphens, fit for the name of a subtest
	Proves string   // what holds if it passes, in a sentence
	Seen   []string // where others have met the failure: owner/repository#number

	missing func(*env) string // what has to be there and is not, or ""
	real    bool              // it is about memory or real goroutines, which a bubble has not
	over    []string          // the protocols that it runs over; nil: it needs none
	run     func(*env) error
}

// A Result is what became of one check.
type Result struct {
	Check   Check
	Verdict Verdict
	Detail  string // of a failure the seed and what was seen, of a skip why, of a pass at times what the limiter does of several things allowed, or how few rounds a slow one was given
}

// String returns a line such as "lost-wakeup: failed: burst 12 of 4000 did not end".
func (r Result) String() string {
	s := r.Check.Name + ": " + r.Verdict.String()
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	return s
}

// table runs all checks, or none of them and says why in the first.
func table(checks []Check, why string, run func(Check) Result) (all []Result) {
	for i, c := range checks {
		switch {
		case why == "":
			all = append(all, run(c))
		case i == 0:
			all = append(all, Result{c, Failed, why})
		default:
			all = append(all, Result{c, Skipped, "not run, as " + checks[0].Name + " says why"})
		}
	}
	return all
}

// A skip is what a check returns that finds out only as it runs that it does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// A note is what a check returns that has passed and has something to say.
type note string

func (n note) Error() string { return string(n) }

// settings are what both kinds of options have in common.
type settings struct {
	seed     uint64
	patience time.Duration
	grace    time.Duration // how long is waited for what must not happen
	whole    time.Duration // when a check starts to make fewer rounds
	part     int           // each check does a part-th of its rounds
	skip     map[string]string
}

// times is how many of n rounds are made.
func (s *settings) times(n int) int { return max(n/s.part, 1) }

// defaultPatience is how long nobody may get on before it counts as a deadlock. No step
// takes 100 ms on an idle machine; a machine that runs other tests under the race
// detector has been seen to be 50 times slower.
const defaultPatience = 10 * time.Second

// defaultGrace is 100 times what most need. What is right passes however short it is; what
// is wrong may be missed on a machine that stands still so long.
const defaultGrace = 10 * time.Millisecond

// maxPart leaves ten rounds of a thousand.
const maxPart = 100

// fill puts the defaults in, and panics if a name to skip is none of checks: a check
// that was renamed would otherwise be skipped by nobody without a word.
func (s *settings) fill(checks []Check) {
	if s.seed == 0 {
		s.seed = rand.Uint64()
	}
	if s.patience == 0 {
		s.patience = defaultPatience
	}
	if s.patience < 0 {
		panic(fmt.Sprintf("conformance: Patience is %v: it is 0 for %v, or above", s.patience, defaultPatience))
	}
	if s.grace == 0 {
		s.grace = defaultGrace
	}
	if s.whole == 0 {
		s.whole = wholeTime
	}
	if s.part == 0 {
		s.part = 1
	}
	if s.part < 0 || s.part > maxPart {
		panic(fmt.Sprintf("conformance: Part is %d: it is 1, the default, to %d", s.part, maxPart))
	}
	for name := range s.skip {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name }) {
			panic(fmt.Sprintf("conformance: Skip has %q, which is none of %s", name, names(checks)))
		}
	}
}

func names(checks []Check) string {
	var all []string
	for _, c := range checks {
		all = append(all, c.Name)
	}
	return strings.Join(all, ", ")
}
