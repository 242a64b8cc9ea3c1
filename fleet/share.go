package fleet

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// A Share keeps the limit of one process at its share of a Split while the fleet changes.
// It shrinks at once and grows late: in force is the smallest share of all places that it
// has been at within Settle, and before that, without a Surge, 0.
//
// # Why the limits never add up to more than the budget
//
// Let news be up to D old: a place that a process is told of names at least everybody who
// ran D before and is still counted. Let a process go on for up to G when it is no longer
// counted, and hold a slot for up to H. Settle is at least D + G + H.
//
// Take an instant t, and all who had a limit above 0 at any instant since t - H: call them
// A. They started Settle or more before t. Look at the place at which each of them was at
// t - G - H. It names everybody who had started by t - G - H - D and was still counted: all
// of A, and perhaps others. By Divide, one more in the list gives nobody else more; so by
// that place alone each has at most what a list of exactly A would give it, and those add up
// to the budget. A limit since t - H is the smallest of several such shares, of which this is
// one. So the limits add up to no more than the budget, and neither does what is held, since
// each slot was taken under one of those limits.
//
// With a Surge the argument is shorter. A place is never short of more than Surge instances
// that run, and the split is made as though those were there.
//
// It breaks with a Settle that is too short or a Surge that is exceeded: by at most the
// shares of those that were not foreseen. A partition, in which no news comes, is unbounded
// D: it does no harm as long as nobody starts meanwhile.
type Share struct {
	apply  func(units int) error
	split  Split
	settle time.Duration

	mu    sync.Mutex
	units int // of the place that it is at
	force int // what apply was last told without an error
	timer *time.Timer
	err   error // of the last apply
	over  bool

	applied, failed uint64 // calls of apply

	// past are the smaller shares of earlier places, smallest first, each until its time is
	// over. A later share that is smaller removes them.
	past []past
}

type past struct {
	until time.Time
	units int
}

// New tells apply the share of the process at p and returns a Share that follows where it
// is. apply sets the limit, as lim.SetLimit of a goodput.Limiter does. It is called with the
// units from New and Set, and from a timer; one call at a time, only if they have changed,
// and again a second after it returned an error. It must not call methods of the Share. For several
// limiters of one process it is the SetUnits of a goodput.Group; that takes no fewer units
// than it has members, so it needs a Surge.
//
// Without a Surge a new process has 0 units for Settle, until all others have made room:
// State().Settled belongs in its readiness probe.
func New(apply func(units int) error, split Split, p Place) (*Share, error) {
	if apply == nil {
		return nil, errors.New("fleet: there is nothing to apply a share to: apply is nil")
	}
	if err := split.Validate(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	s := &Share{apply: apply, split: split, settle: split.settle(), units: split.Share(p), force: -1}
	if split.Surge == 0 && s.units > 0 {
		s.past = []past{{until: time.Now().Add(s.settle)}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.adjust(time.Now()); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// Set says where the process is now. A smaller share is applied before Set returns, a larger
// one after Settle. Set may be called as often as the number is looked up; what does not
// change costs nothing. The error is about p, or that of apply; then the old place or limit
// stays.
func (s *Share) Set(p Place) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	units := s.split.Share(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errors.New("fleet: the share was stopped")
	}
	now := time.Now()
	if units != s.units {
		s.past = append(s.past, past{now.Add(s.settle), s.units})
		s.units = units
		for n := len(s.past); n > 0 && s.past[n-1].units >= units; n-- {
			s.past = s.past[:n-1]
		}
	}
	return s.adjust(now)
}

// adjust applies what is in force at now and arms the timer for the next change. The caller
// holds the lock.
func (s *Share) adjust(now time.Time) error {
	for len(s.past) > 0 && !s.past[0].until.After(now) {
		s.past = s.past[1:]
	}
	want, wait := s.units, time.Duration(math.MaxInt64)
	if len(s.past) > 0 {
		want, wait = s.past[0].units, s.past[0].until.Sub(now)
		s.arm(wait)
	}
	if want == s.force {
		return nil
	}
	if s.err = s.apply(want); s.err != nil {
		s.failed++
		s.err = fmt.Errorf("fleet: a share of %d units was not applied: %w", want, s.err)
		if wait > again {
			s.arm(again)
		}
		return s.err
	}
	s.force = want
	s.applied++
	return nil
}

// again is when what was not applied is tried again. Until then the old limit is in force,
// which is too large if it was to shrink: a second is short beside any Settle in use.
const again = time.Second

func (s *Share) arm(wait time.Duration) {
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.tick)
	} else {
		s.timer.Reset(wait)
	}
}

// tick is the timer: one that is too early or too late finds nothing to change.
func (s *Share) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.adjust(time.Now()) //nolint:errcheck // State has it
	}
}

// A State is where a Share is.
type State struct {
	Units   int   // in force: what apply was last told
	Share   int   // of the place that it is at: what Units grow to
	Settled bool  // Units is Share
	Err     error // of the last apply; nil if it went well

	Budget          int    // of the Split: of all processes together
	Applied, Failed uint64 // how often apply was called so far, without an error and with one
}

// State returns where it is.
func (s *Share) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{
		Units: s.force, Share: s.units, Settled: s.force == s.units, Err: s.err,
		Budget: s.split.Budget, Applied: s.applied, Failed: s.failed,
	}
}

// Stop ends its timer: the limit stays as it is. A process that ends lets its limiter drain
// (goodput.Limiter.Drain) and needs no Stop.
func (s *Share) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

func (s *Share) stop() {
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
