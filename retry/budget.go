package retry

import (
	"fmt"
	"sync"
	"time"

	"github.com/goodput/goodput/internal/attempts"
)

// Defaults and ranges of a Budget.
const (
	defaultRatio   = 0.1              // SRE, chapter 21: "each client keeps track of the ratio of requests that correspond to retries ... below 10 %"
	defaultReserve = 10               // of 10 s: 1/s, for a client that sends less than 10/s
	defaultWindow  = 10 * time.Second // of a Budget and of a Throttle
	leastWindow    = time.Second
	mostWindow     = 10 * time.Minute
	mostReserve    = 1000
)

// A Budget bounds the retries of all calls that share it to a part of their number, so
// that an outage is not made worse by its victims:
//
//	retries <= max(Ratio x calls, Reserve)
//
// in each Window, of which up to a tenth may be missing. So a client that makes 12
// calls per second or more, 100 in 9 s, sends at most 1.1 times as many attempts, whatever
// fails; one that makes fewer adds at most Reserve/Window = 1/s. Over a long time T it is at
// most Ratio x calls + Reserve x (T/Window + 1). A thousand clients of one call per
// second each may thus add 1,000/s: give those a Reserve of 1, which makes 100/s of it.
//
// The zero value is ready to use: one retry per ten calls of the last ten seconds, or
// ten. It is safe for concurrent use, and out of range it panics with the sentence of
// Validate.
type Budget struct {
	Ratio   float64       // retries per call: 0.001 to 1, default 0.1
	Reserve int           // retries per window that need no calls: 1 to 1000, default 10
	Window  time.Duration // how long a call counts: 1 s to 10 min, default 10 s

	mu      sync.Mutex
	core    attempts.Budget
	epoch   time.Time
	granted uint64
	refused uint64
}

// Validate returns one sentence about the first field that is out of range, or nil.
func (b *Budget) Validate() error {
	switch {
	case b.Ratio != 0 && !(b.Ratio >= 0.001 && b.Ratio <= 1): // NaN too
		return fmt.Errorf("retry: Budget.Ratio is %v, want 0.001 to 1", b.Ratio)
	case b.Reserve < 0 || b.Reserve > mostReserve:
		return fmt.Errorf("retry: Budget.Reserve is %d, want 1 to %d", b.Reserve, mostReserve)
	}
	return checkWindow("Budget", b.Window)
}

func checkWindow(what string, w time.Duration) error {
	if w != 0 && (w < leastWindow || w > mostWindow) {
		return fmt.Errorf("retry: %s.Window is %v, want %v to %v", what, w, leastWindow, mostWindow)
	}
	return nil
}

// enter locks b and returns the time for its core, which it makes at first.
func (b *Budget) enter() time.Duration {
	b.mu.Lock()
	if b.epoch.IsZero() {
		if err := b.Validate(); err != nil {
			b.mu.Unlock()
			panic(err.Error())
		}
		b.core = attempts.Budget{Ratio: b.Ratio, Reserve: b.Reserve, Window: b.Window}
		if b.core.Ratio == 0 {
			b.core.Ratio = defaultRatio
		}
		if b.core.Reserve == 0 {
			b.core.Reserve = defaultReserve
		}
		if b.core.Window == 0 {
			b.core.Window = defaultWindow
		}
		b.epoch = time.Now()
	}
	return time.Since(b.epoch)
}

// Request counts a call. Policy.Begin does it.
func (b *Budget) Request() {
	now := b.enter()
	defer b.mu.Unlock()
	b.core.Request(now)
}

// Spend takes one retry and reports whether there was one. Call.Again does it.
func (b *Budget) Spend() bool {
	now := b.enter()
	defer b.mu.Unlock()
	if !b.core.Spend(now) {
		b.refused++
		return false
	}
	b.granted++
	return true
}

// Left returns how many retries there are now.
func (b *Budget) Left() float64 {
	now := b.enter()
	defer b.mu.Unlock()
	return b.core.Left(now)
}

// BudgetStats is what a Budget shows of itself. Granted and Refused only grow.
type BudgetStats struct {
	Ratio   float64
	Reserve int
	Window  time.Duration

	Calls   uint64 // in the window
	Retries uint64 // in the window
	Left    float64

	Granted uint64 // retries since the start, those included that were given back because nothing was sent
	Refused uint64 // retries that there were not, since the start
}

// Stats returns the state of b.
func (b *Budget) Stats() BudgetStats {
	now := b.enter()
	defer b.mu.Unlock()
	s := BudgetStats{
		Ratio: b.core.Ratio, Reserve: b.core.Reserve, Window: b.core.Window,
		Left: b.core.Left(now), Granted: b.granted, Refused: b.refused,
	}
	s.Calls, s.Retries = b.core.Counts(now)
	return s
}

// String returns the arithmetic.
func (s BudgetStats) String() string {
	return fmt.Sprintf("%d of max(%.6g x %s, %d) retries in %v", s.Retries, s.Ratio, plural(s.Calls, "call"), s.Reserve, s.Window)
}
