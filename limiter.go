package goodput

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/limit"
)

// A Limiter is one limit plus one bounded queue in front of one resource. It is
// made by New, is safe for concurrent use, must not be copied, and needs no
// Close.
//
// Every slow operation is the same six steps, written once in enter and leave:
//
//	lock; recall what was lent; one call of the core;
//	collect who was decided and lend again; unlock; wake
//
// The clock is read after locking, so the core sees time in order; goroutines
// are woken after unlocking, so they do not run into the lock. No lock is ever
// held together with another, and no logging and no waiting happens under one.
//
// The only code of the user that runs under the lock is the law: limit.Law.Next
// once a window, Start in Reconfigure. A panic of a law or of the core leaves the
// limiter locked, on purpose: it is a bug and not a state, and what the core
// knows at that point is not to be trusted.
type Limiter struct {
	// Read by every request, written rarely.
	epoch    time.Time                // instants are time since then, monotonic
	settings atomic.Pointer[settings] // replaced by SetLimit and Reconfigure
	rec      recorder
	observe  atomic.Bool // Config.Observe; written under the lock, before anything else is decided
	seed     uint64      // of its law, fixed for life

	lent lent

	mu       sync.Mutex
	core     *admission.Core
	draining bool                             // nothing is lent any more: newcomers must meet the core
	drained  chan struct{}                    // closed when nothing waits or runs; nil while nobody drains
	gone     [admission.Reasons]uint64        // arrivals whose context was cancelled already
	refusals [admission.Reasons]*refusalValue // shared at the door, each at most a window old
	built    [admission.Reasons]time.Duration // when each of them was
	refused  refused                          // the last of them
	wait     [waits]hist.Histogram            // Stats.Wait
	accounts accounts                         // what tenants need
	waiting  line                             // Invariant: nobody is in it while the limiter observes
	watched  watched                          // the requests that are observed
	refill   refill                           // of Config.Allowance
	member   *member                          // what it knows of its group; nil without one, fixed for life
	journal  func(call)                       // tests: every call of the core; nil otherwise
	noLend   bool                             // tests: every request meets the core
}

// New returns a limiter. It panics with the sentence of Config.Validate if cfg
// is invalid; callers whose configuration comes from outside call Validate first.
func New(cfg Config) *Limiter {
	if err := cfg.Validate(); err != nil {
		panic("goodput: " + err.Error())
	}
	seed := rand.Uint64()
	core, err := admission.New(cfg.seeded(seed))
	if err != nil {
		panic("goodput: " + err.Error())
	}
	l := &Limiter{
		seed:  seed,
		epoch: time.Now().Add(-1), // so that no instant is 0
		core:  core,
	}
	l.observe.Store(cfg.Observe)
	l.settings.Store(newSettings(cfg))
	l.refill.at = admission.Never
	l.rec.init()
	l.lent.init()
	now := l.enter()
	l.holdLaw(now, cfg.Observe)
	l.leave(now)
	return l
}

// Name returns Config.Name.
func (l *Limiter) Name() string { return l.settings.Load().cfg.Name }

// enter locks, reads the clock and takes back what was lent.
func (l *Limiter) enter() time.Duration {
	l.mu.Lock()
	now := l.now()
	l.recall(now)
	return now
}

// leave collects who was decided, lends, unlocks and wakes. If the window is
// over it goes on with another operation, which hands in what was measured.
func (l *Limiter) leave(now time.Duration) {
	l.rec.follow(l.core.Epoch(), now)
	told := l.collect(now)
	ask := l.member != nil && l.member.asks(now, l.core)
	l.lend()
	if l.core.RefillAt() != l.refill.at {
		l.awaitRefill(now)
	}
	drained := l.takeDrained(now)
	l.mu.Unlock()
	if drained != nil {
		close(drained)
	}
	wake(told)
	l.endWindow(now)
	if ask {
		l.member.group.balance()
	}
}

// recall ends the loan, if there is one. Only completed work of one unit ends
// on the fast path, so the word tells all of it:
//
//	ended = free - lent + admitted
func (l *Limiter) recall(now time.Duration) {
	if !l.lent.isOpen() {
		return
	}
	free, admitted := l.lent.close()
	s := admission.Settlement{Free: free, Admitted: admitted}
	s.Ended[Completed] = int64(free) - int64(l.lent.size) + admitted
	l.rec.admitted += uint64(admitted)
	l.settleCall(now, s)
}

// lend lends what is free to the fast path. In observe mode every request meets
// the core, because the core must not decide about it.
func (l *Limiter) lend() {
	if l.observe.Load() || l.draining || l.noLend {
		return
	}
	if n := l.lendCall(); n > 0 {
		l.lent.open(n)
	}
}

// SetLimit replaces the law of the limit by limit.Fixed(n), also one that adapts, until
// Reconfigure says another. What runs goes on;
// if that is more than n, nobody is admitted until enough of it has ended. 0
// admits nobody, which pauses a resource without losing who waits. The limit of a
// member of a group is granted by it, and SetLimit an error: see Group.SetUnits.
func (l *Limiter) SetLimit(n int) error {
	if l.member != nil {
		return fmt.Errorf("goodput: the limit of %q is granted by group %q: set the units of that", l.Name(), l.member.group.name)
	}
	if _, err := limit.Fixed(n).Start(); err != nil {
		return fmt.Errorf("goodput: %w", err)
	}
	now := l.enter()
	err := l.setLimitCall(now, n)
	if err == nil {
		cfg := l.settings.Load().cfg
		cfg.Limit = limit.Fixed(n)
		l.adopt(cfg)
	}
	l.leave(now)
	return err
}

// Reconfigure replaces the configuration. A law that equals the one in force goes on with what
// it has learnt, and another one begins anew. Who waits keeps its place, who runs
// keeps its slots, and the counters go on. A new bound on waiting holds for who
// comes from now on.
//
// Another Observe switches that mode: see SetObserve.
//
// A member of a group keeps its name, and its limit, which the group grants: cfg says
// none, and does not Observe.
func (l *Limiter) Reconfigure(cfg Config) error {
	if err := l.keepsMembership(&cfg); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("goodput: %w", err)
	}
	if err := l.mayObserve(cfg.Observe); err != nil {
		return err
	}
	now := l.enter()
	var free *waiter
	if cfg.Observe { // before a lower cap refuses somebody
		free = l.switched(now, true)
	}
	err := l.reconfigureCall(now, cfg.seeded(l.seed)) // none: Validate has seen it
	if err == nil {
		l.switched(now, cfg.Observe)
		l.adopt(cfg)
	}
	l.leave(now)
	wake(free)
	return err
}

// adopt makes cfg what the fast path and refusals see.
func (l *Limiter) adopt(cfg Config) {
	l.settings.Store(newSettings(cfg))
	clear(l.refusals[:])
}
