package retry

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Defaults and ranges of a Policy.
const (
	defaultAttempts   = 3                     // one request and two retries: SRE, chapter 21, "Per-Request Retry Budget"
	mostAttempts      = 10                    // beyond that, waiting is another system's job: an outbox
	defaultBackoff    = 50 * time.Millisecond // some round trips, and a client is asked again in 25 ms on average
	mostBackoff       = time.Hour             // whoever waits longer has no caller
	defaultMaxBackoff = 10 * time.Second      // an outage that has lasted so long lasts a little longer
	mostMaxBackoff    = 24 * time.Hour        // a day is past any call
	defaultMaxAfter   = time.Minute           // twice the longest that a limiter of ours says
	mostMaxAfter      = 365 * 24 * time.Hour  // what a hint is cut to
	mostTime          = 7 * 24 * time.Hour    // of PerAttempt and Total
)

// A Policy describes the attempts of the calls of one dependency. Make it once and share
// it: its budget is that of all calls made with it, and one made per request bounds nothing.
// The zero value of each field means its documented default, so the zero Policy is ready to
// use. It is safe for concurrent use and must not be copied or changed once it is in use:
// what is out of range then panics with the sentence of Validate.
type Policy struct {
	// Name is that of the dependency, for errors and metrics.
	Name string

	// Attempts in all, the first one included: 1 to 10, default 3.
	Attempts int

	// Backoff is the bound of the wait before the second attempt; it doubles with each
	// further one, and the wait is drawn evenly from 0 to it. 1 ns to 1 h, default 50 ms.
	Backoff time.Duration

	// MaxBackoff caps the bound: 1 ns to 24 h, default 10 s, at least Backoff.
	MaxBackoff time.Duration

	// PerAttempt bounds each attempt: 0 to 7 days. 0, the default: an attempt may use all
	// that is left.
	PerAttempt time.Duration

	// Total bounds the call with all its attempts and waits: 0 to 7 days. The deadline of
	// its context counts as well: the earlier of the two is in force, from the first
	// attempt on, and no attempt ever gets a fresh one. Default 0: the context alone.
	Total time.Duration

	// MaxAfter is the longest hint of a server (Retry-After, pushback) that is waited
	// for, before its jitter of up to a half; a longer one ends the call, with the hint in
	// the Error. 1 ns to 365 days, default 60 s.
	MaxAfter time.Duration

	// Budget bounds the retries of all calls together. nil, the default: one of its own,
	// with the defaults of Budget. Share one between policies that load the same service.
	Budget *Budget

	// Classify says what a failed attempt allows. nil, the default: Fault.Verdict.
	Classify func(Fault) Verdict

	// Multiply lets a call that is made inside an attempt of another one make all its
	// attempts: three layers of four are 4 x 4 x 4 = 64 for one request. By default it
	// makes one, and the outermost call alone repeats: 4.
	Multiply bool

	own      Budget
	draw     func() float64 // of tests; nil: the source of the process
	calls    atomic.Uint64
	attempts atomic.Uint64
	untried  atomic.Uint64 // calls that were over before the first attempt
	unsent   atomic.Uint64 // calls whose first attempt was kept here
	kept     atomic.Uint64 // attempts that were
	stops    [Stops]atomic.Uint64
}

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (p *Policy) Validate() error {
	s := p.settings()
	switch {
	case s.attempts < 1 || s.attempts > mostAttempts:
		return fmt.Errorf("retry: Policy.Attempts is %d, want 1 to %d", p.Attempts, mostAttempts)
	case s.backoff < 1 || s.backoff > mostBackoff:
		return fmt.Errorf("retry: Policy.Backoff is %v, want 1ns to %v", p.Backoff, mostBackoff)
	case s.maxBackoff < 1 || s.maxBackoff > mostMaxBackoff:
		return fmt.Errorf("retry: Policy.MaxBackoff is %v, want 1ns to %v", p.MaxBackoff, mostMaxBackoff)
	case s.maxBackoff < s.backoff:
		return fmt.Errorf("retry: Policy.MaxBackoff is %v, want at least Backoff, which is %v", s.maxBackoff, s.backoff)
	case p.PerAttempt < 0 || p.PerAttempt > mostTime:
		return fmt.Errorf("retry: Policy.PerAttempt is %v, want 0 to %v", p.PerAttempt, mostTime)
	case p.Total < 0 || p.Total > mostTime:
		return fmt.Errorf("retry: Policy.Total is %v, want 0 to %v", p.Total, mostTime)
	case s.maxAfter < 1 || s.maxAfter > mostMaxAfter:
		return fmt.Errorf("retry: Policy.MaxAfter is %v, want 1ns to %v", p.MaxAfter, mostMaxAfter)
	}
	return s.budget.Validate()
}

// checked returns the settings of p and panics if they make no sense.
func (p *Policy) checked() settings {
	if err := p.Validate(); err != nil {
		panic(err.Error())
	}
	return p.settings()
}

// settings are the fields with their defaults.
type settings struct {
	attempts                      int
	backoff, maxBackoff, maxAfter time.Duration
	budget                        *Budget
}

func (p *Policy) settings() settings {
	s := settings{p.Attempts, p.Backoff, p.MaxBackoff, p.MaxAfter, p.Budget}
	if s.attempts == 0 {
		s.attempts = defaultAttempts
	}
	if s.backoff == 0 {
		s.backoff = defaultBackoff
	}
	if s.maxBackoff == 0 {
		s.maxBackoff = max(defaultMaxBackoff, s.backoff)
	}
	if s.maxAfter == 0 {
		s.maxAfter = defaultMaxAfter
	}
	if s.budget == nil {
		s.budget = &p.own
	}
	return s
}
