package goodput

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/admission"
)

// A GroupConfig describes a Group.
type GroupConfig struct {
	// Name names the group in sentences: at most 128 bytes. Default "group".
	Name string

	// Units is how many units of cost run at once in all members together: what the
	// resource behind them has. 1 to 2^20, at least 1 for each member. Required.
	Units int

	// Members are 1 to 64. Required.
	Members []Member
}

// A Member is one limiter of a Group. Its nominal share is what it has when all want
// more: the same number of units for each unit of weight, within Min and Max. A request
// that costs more than that is refused as too costly, unless so much is borrowed.
type Member struct {
	// Config is that of the limiter. Its Limit is nil, because the group grants it, its
	// Name is different from those of the others, and it does not Observe.
	Config Config

	// Weight is relative to those of the others: 1e-12 to 1e12, the heaviest at most
	// 1e6 times the lightest. Default 1.
	Weight float64

	// Min is how many units are never lent: 0, the default, to Units. What is lent comes
	// back when it is wanted, but only as work of the others ends; a class that must
	// not wait for that has a Min.
	Min int

	// Max is how many units it may use, borrowed ones included: at least Min, default
	// Units.
	Max int
}

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (c GroupConfig) Validate() error {
	if err := (Config{Name: c.Name, Limit: admission.Granted{}}).Validate(); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	names := map[string]bool{}
	for i, m := range c.Members {
		cfg := m.Config
		name := cmp.Or(cfg.Name, DefaultName)
		switch {
		case cfg.Limit != nil:
			return fmt.Errorf("member %q has a limit, %v: in a group it is granted, leave it out", name, cfg.Limit)
		case cfg.Observe:
			return fmt.Errorf("member %q observes: a group cannot keep its units where nothing is refused", name)
		case names[name]:
			return fmt.Errorf("two members are called %q", name)
		}
		names[name] = true
		cfg.Limit = admission.Granted{}
		if err := cfg.Validate(); err != nil {
			return fmt.Errorf("member %d, %q: %w", i+1, name, err)
		}
	}
	return c.budget().Validate()
}

func (c GroupConfig) budget() admission.BudgetConfig {
	b := admission.BudgetConfig{Units: c.Units}
	for _, m := range c.Members {
		b.Members = append(b.Members, admission.Member{Name: cmp.Or(m.Config.Name, DefaultName), Weight: m.Weight, Min: m.Min, Max: m.Max})
	}
	return b
}

// A Group is several limiters before one resource, which share its units: classes of
// work that must not wait in one queue, and must not leave slots idle that another one
// could use. What a member does not use is lent to those that want more, and taken
// back at once when it wants it again: nothing is revoked, but each unit that a
// borrower releases goes to whom it belongs. So a member has its share again within one
// service time, the longest of what the others run, and never more runs in all of
// them together than Units.
//
// Each member is an ordinary Limiter with a queue, a depth and an objective of its own.
// While nobody wants more than it has, members know nothing of one another, and their
// fast paths are those of limiters without a group. The group has no goroutine that stays:
// at most one, which ends once nobody asks for another round, and at most one timer,
// which ends within an objective. So it needs no Close. Stats of a member has as its Limit
// the larger of its nominal share and what it may use, which is what its depth is derived
// from; Stats of the group has both.
//
// # No two locks
//
// A member that wants units, or has some that others want, plays a round once it has
// unlocked: see admission.Budget. The round takes the lock of the group to
// learn the next step, gives it back, takes that of one member to do the step, gives it
// back, and takes that of the group to report. So one lock is held at any time, of the
// group or of one member, and never two. What makes that safe is not a lock but the order: a
// unit is counted as held from before its new owner hears of it until after its old owner
// has let go.
//
// One goroutine at a time plays rounds. Others that ask meanwhile leave a note and go on,
// and the one that plays finds it: nobody waits for anybody.
type Group struct {
	name     string
	limiters []*Limiter

	// What Budget.Hungry said, as a duration since the epoch of the members. Invariant: not
	// 0 while a round looks at members, so that whoever changes after it was looked at asks.
	hungry atomic.Int64

	mu     sync.Mutex
	budget *admission.Budget
	alarm  *time.Timer // plays a round when Budget.Hungry says that there may be more to have
	busy   bool        // somebody plays a round
	again  bool        // and is to play another one
}

// A member is what a limiter knows of its group; guarded by the lock of the limiter.
type member struct {
	group *Group
	index int
	stake admission.Stake
	quiet bool // the group itself is visiting: what has changed it knows
}

// NewGroup returns a group. It panics with the sentence of GroupConfig.Validate if cfg is
// invalid; callers whose configuration comes from outside call Validate first.
func NewGroup(cfg GroupConfig) *Group {
	if err := cfg.Validate(); err != nil {
		panic("goodput: " + err.Error())
	}
	budget, err := admission.NewBudget(cfg.budget())
	if err != nil {
		panic("goodput: " + err.Error())
	}
	if cfg.Name == "" {
		cfg.Name = "group"
	}
	g := &Group{name: cfg.Name, budget: budget}
	epoch := time.Now().Add(-1)
	for i, m := range cfg.Members {
		m.Config.Limit = admission.Granted{}
		l := New(m.Config)
		l.epoch = epoch // of all the same: hungry is an instant of each
		l.member = &member{group: g, index: i}
		g.limiters = append(g.limiters, l)
	}
	g.balance() // brings the nominal shares
	return g
}

// Name returns GroupConfig.Name.
func (g *Group) Name() string { return g.name }

// Limiter returns the member of that name; nil if there is none.
func (g *Group) Limiter(name string) *Limiter {
	for _, l := range g.limiters {
		if l.Name() == name {
			return l
		}
	}
	return nil
}

// SetUnits changes how many units there are, within the range of GroupConfig.Units. What
// runs goes on; if that is more, nothing grows until enough of it has ended. If another
// goroutine is just playing a round, that brings the change, within microseconds.
func (g *Group) SetUnits(n int) error {
	g.mu.Lock()
	err := g.budget.SetUnits(n)
	g.mu.Unlock()
	if err != nil {
		return fmt.Errorf("goodput: %w", err)
	}
	g.balance()
	return nil
}

// turns is how many rounds a caller plays for the others before it hands over to a
// goroutine that ends with the last of them. A round costs a microsecond for each member,
// so a request loses less than it would in a queue of one.
const turns = 8

// balance plays rounds until nobody asks for one, or leaves a note for whoever does. No
// lock may be held.
func (g *Group) balance() {
	g.mu.Lock()
	busy := g.busy
	g.busy, g.again = true, true
	g.mu.Unlock()
	if busy {
		return
	}
	for range turns {
		if !g.round() {
			return
		}
	}
	go func() {
		for g.round() {
		}
	}()
}

// round plays a round and reports whether there is to be another. If not, the next who
// asks plays it.
func (g *Group) round() bool {
	g.hungry.Store(int64(admission.Never))
	g.mu.Lock() // not deferred: a panic of a member comes while it is unlocked
	g.again = false
	for i, terms, ok := g.budget.Next(); ok; i, terms, ok = g.budget.Next() {
		g.mu.Unlock()
		claim := g.limiters[i].take(terms)
		g.mu.Lock()
		g.budget.Hear(i, claim)
	}
	hungry := g.budget.Hungry()
	g.hungry.Store(int64(hungry))
	g.wake(hungry)
	more := g.again || !g.budget.Settled()
	g.busy = more
	g.mu.Unlock()
	return more
}

// wake has a round played at the given instant, if there is one: who was refused and does
// not come again wants nothing from then on, and those that wait for its units would learn
// of it only with their own next release. The caller holds the lock.
func (g *Group) wake(at time.Duration) {
	if at == 0 || at == admission.Never {
		return
	}
	after := max(at-g.limiters[0].now(), time.Millisecond)
	if g.alarm == nil {
		g.alarm = time.AfterFunc(after, g.balance)
		return
	}
	g.alarm.Reset(after)
}

// take brings terms of the group into force.
func (l *Limiter) take(terms admission.Terms) admission.Claim {
	now := l.enter()
	claim := l.member.stake.Take(now, l.core, terms)
	l.member.quiet = true
	l.leave(now)
	return claim
}

// asks reports whether what the limiter has done concerns the others of its group. The
// caller holds the lock, and asks the group once it has unlocked.
func (m *member) asks(now time.Duration, core *admission.Core) bool {
	if m.quiet {
		m.quiet = false
		return false
	}
	return m.stake.Asks(now, m.stake.Look(now, core), time.Duration(m.group.hungry.Load()))
}

// keepsMembership fills in the limit of a member that is configured again.
func (l *Limiter) keepsMembership(cfg *Config) error {
	switch {
	case l.member == nil:
		return nil
	case cfg.Limit != nil:
		return fmt.Errorf("goodput: the limit of %q is granted by group %q: leave out the limit %v", l.Name(), l.member.group.name, cfg.Limit)
	case cmp.Or(cfg.Name, DefaultName) != l.Name():
		return fmt.Errorf("goodput: member %q of group %q cannot be renamed to %q", l.Name(), l.member.group.name, cfg.Name)
	}
	cfg.Limit = admission.Granted{}
	return nil
}
