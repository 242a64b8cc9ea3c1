package admission

import (
	"fmt"
	"math"
	"time"
)

// A Budget is a number of units of cost that several cores share, each with a limit and
// a queue of its own. What a member does not use of its nominal share is lent to those
// that want more, and taken back at once when it wants it again: their limits are cut,
// what they run goes on, and each unit that they release goes to whom it belongs. So
// it is back within one service time, the longest of what the borrowers run.
//
// # How it moves units
//
// A Budget decides and does nothing. Its driver keeps a Stake beside each core, asks it
// after every call of the core whether anything concerns the others, and if so plays a
// round:
//
//	for i, terms, ok := b.Next(); ok; i, terms, ok = b.Next() {
//		b.Hear(i, stake[i].Take(now, core[i], terms))
//	}
//
// A round looks at every member, cuts limits, and only then, of what has become free,
// raises others. At every instant, also between two steps of a round:
//
//   - B1 The sum over the members of max(limit, in use) is at most Units. After Units
//     have been lowered it is at most what it was then, and does not grow.
//   - B2 A member that wants its nominal share has it, but for what others still run
//     of it; no unit is with somebody who does not want it while another wants more.
//
// Each step concerns one member, so its lock is enough; a driver with locks holds none
// of two members at once, and none of the budget while it holds a member's. No member
// asks for a round unless it wants more than it has, gives back what it has borrowed, or
// has more than it wants while another is hungry.
//
// # Whole units
//
// Shares are whole: where they do not come out even, each next unit goes to the member
// that has least for its weight with it (D'Hondt), the first of equals. A member that
// wants no more than its nominal share never has to give a unit to rounding.
type Budget struct {
	units   int
	ceiling int // of what is held (B1): the units, or what was held when they were lowered; falls with it
	members []stance
	parts   []part // scratch of divide
	phase   phase
	at      int // the next member of the phase
}

// A stance is how a member stands.
type stance struct {
	Member
	nominal int // its share when all want more. Invariant: at least 1 and Min, at most Max; the sum is at most the units
	limit   int // in force, or about to be
	held    int // max(limit, in use) as far as anybody knows. Invariant: the sum is at most the ceiling (B1)
	target  int // of the limit, once all have what is theirs
	cut     int // what the limit is lowered to: the target, or less while too much runs. See squeeze
	told    int // Terms.Enough
	stale   bool
	claim   Claim
}

// A phase is what a round is doing.
type phase uint8

const (
	looks  phase = iota // ask every member how it is
	cuts                // lower limits
	raises              // of what is free, raise others
)

// NewBudget returns a budget whose members have their nominal shares, or the sentence
// of BudgetConfig.Validate. The first round gives them to the cores.
func NewBudget(cfg BudgetConfig) (*Budget, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := &Budget{members: make([]stance, len(cfg.Members)), parts: make([]part, len(cfg.Members))}
	for i, m := range cfg.Members {
		b.members[i].Member = m
	}
	b.resize(cfg.Units)
	for i := range b.members {
		m := &b.members[i]
		m.limit, m.held, m.target, m.told, m.stale = m.nominal, m.nominal, m.nominal, m.nominal, true
	}
	b.ceiling = b.units
	return b, nil
}

// SetUnits replaces the units. The next round moves what that changes. The error is a
// sentence of BudgetConfig.Validate.
func (b *Budget) SetUnits(n int) error {
	cfg := BudgetConfig{Units: n}
	for i := range b.members {
		cfg.Members = append(cfg.Members, b.members[i].Member)
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	b.resize(n)
	b.ceiling = max(n, b.sum())
	return nil
}

// resize divides n units into nominal shares.
func (b *Budget) resize(n int) {
	b.units = n
	for i := range b.members {
		m := &b.members[i]
		b.parts[i] = part{lo: max(m.Min, 1), hi: max(m.most(n), 1), weight: m.weight()}
	}
	divide(n, b.parts)
	for i := range b.members {
		m := &b.members[i]
		m.stale = m.stale || m.nominal != b.parts[i].units
		m.nominal = b.parts[i].units
	}
}

// most is Max with its default.
func (m *Member) most(units int) int {
	if m.Max == 0 {
		return units
	}
	return min(m.Max, units)
}

// Units returns the units in force.
func (b *Budget) Units() int { return b.units }

// Members returns the members with their defaults.
func (b *Budget) Members() []Member {
	all := make([]Member, len(b.members))
	for i := range b.members {
		all[i] = b.members[i].Member
		all[i].Weight, all[i].Max = all[i].weight(), all[i].most(b.units)
	}
	return all
}

// sum is what the members hold.
func (b *Budget) sum() (sum int) {
	for i := range b.members {
		sum += b.members[i].held
	}
	return sum
}

// Next returns the member whose turn it is in the round, and what it may do from now
// on; false at the end of the round. The driver brings that to its Stake and reports
// by Hear before it goes on.
func (b *Budget) Next() (i int, t Terms, ok bool) {
	for {
		if b.at == len(b.members) {
			b.at = 0
			switch b.phase {
			case looks:
				b.phase = cuts
				b.plan()
			case cuts:
				b.phase = raises
				b.grant()
			default:
				b.phase = looks
				return 0, Terms{}, false
			}
		}
		i, b.at = b.at, b.at+1
		m := &b.members[i]
		switch b.phase {
		case looks:
			return i, m.terms(), true
		case cuts:
			if m.cut < m.limit {
				m.limit, m.stale = m.cut, false
				return i, m.terms(), true // held stays: what runs is not known yet
			}
		default:
			if m.stale {
				m.stale = false
				return i, m.terms(), true
			}
		}
	}
}

func (m *stance) terms() Terms {
	return Terms{Limit: m.limit, Nominal: m.nominal, Floor: m.Min, Enough: m.told}
}

// Hear takes what member i says of itself once it has its terms. It panics if more runs
// than ever was granted.
func (b *Budget) Hear(i int, c Claim) {
	m := &b.members[i]
	if c.InUse > m.held {
		panic(fmt.Sprintf("admission: B1: member %s has %d in use and was granted %d", m.called(i), c.InUse, m.held))
	}
	m.claim = c
	m.held = max(m.limit, c.InUse)
	b.ceiling = max(b.units, min(b.ceiling, b.sum()))
}

// plan decides what the limits should be.
//
// If there are units enough for what all want, each has that and, of the rest, the
// same amount for each unit of weight, so that the next requests of anybody find a
// free slot without a round. If not, each has what it wants or, if that is more than
// all others of its kind get, an equal amount for each unit of weight: max-min fairness
// (Bertsekas, Gallager, "Data Networks", 6.5.2).
func (b *Budget) plan() {
	wanted := 0
	for i := range b.members {
		m := &b.members[i]
		lo := m.Min
		if m.claim.Draining {
			lo = 0
		}
		hi := max(lo, min(m.claim.Wanted, m.most(b.units)))
		b.parts[i] = part{lo: max(lo, min(hi, m.nominal)), hi: hi, weight: m.weight()}
		wanted += hi
	}
	if wanted <= b.units {
		for i := range b.members {
			m, p := &b.members[i], &b.parts[i]
			p.lo, p.base = p.hi, min(m.claim.Wanted, p.hi)
			if !m.claim.Draining {
				p.hi = m.most(b.units)
			}
		}
	}
	divide(b.units, b.parts)
	for i := range b.members {
		m := &b.members[i]
		m.target = b.parts[i].units
		told := m.enough()
		m.stale = m.stale || m.told != told
		m.told = told
		m.cut = m.target
	}
	if b.sum() > b.units {
		b.squeeze()
	}
}

// enough is what Terms.Enough should be.
func (m *stance) enough() int {
	if m.claim.Wanted > m.target {
		return math.MaxInt // to want more changes nothing
	}
	return m.target
}

// squeeze is for when the units have been lowered below what is held: then nobody may
// grow into its target before enough of the others has ended, so that what is free of the
// units, if anything, is all that limits leave above what runs.
func (b *Budget) squeeze() {
	running := 0
	for i := range b.members {
		m := &b.members[i]
		running += m.claim.InUse
		b.parts[i] = part{lo: m.claim.InUse, hi: max(m.claim.InUse, m.target), weight: m.weight()}
	}
	divide(max(b.units, running), b.parts)
	for i := range b.members {
		m := &b.members[i]
		m.cut = min(m.target, b.parts[i].units)
	}
}

// grant raises limits of what is free: first of those that have less of their nominal
// share than they should, then of the others. It counts as held from here on.
func (b *Budget) grant() {
	total := max(b.units, b.sum())
	for i := range b.members {
		m := &b.members[i]
		b.parts[i] = part{lo: m.held, hi: max(m.held, min(m.target, m.nominal)), weight: m.weight()}
	}
	divide(total, b.parts)
	for i := range b.members {
		p := &b.parts[i]
		p.lo, p.hi = p.units, max(p.units, b.members[i].target)
	}
	divide(total, b.parts)
	for i := range b.members {
		m := &b.members[i]
		n := min(b.parts[i].units, m.target) // who runs more than its target waits for that to end
		m.stale = m.stale || m.limit != n
		m.limit, m.held = n, b.parts[i].units
	}
}

// Hungry tells every Stake, after a round, whether somebody wants more than it has: 0
// if nobody does, and else the instant from which those that do ask again, Never if
// there is none.
func (b *Budget) Hungry() time.Duration {
	hungry, until := false, Never
	for i := range b.members {
		m := &b.members[i]
		hungry = hungry || min(m.claim.Wanted, m.most(b.units)) > m.limit
		if m.claim.Until > 0 {
			until = min(until, m.claim.Until)
		}
	}
	if !hungry {
		return 0
	}
	return until
}

// Settled reports, after a round, that nobody has changed its mind in it in a way that
// takes another. A cut refuses who waits and costs more than the member may still use:
// one that wanted more than it could get then no longer does, and when it does again
// that is news.
func (b *Budget) Settled() bool {
	hungry := b.Hungry()
	for i := range b.members {
		m := &b.members[i]
		if t := m.terms(); t.asks(-1, m.claim, hungry) || m.enough() != m.told {
			return false
		}
	}
	return true
}

// Check returns the first invariant that does not hold.
func (b *Budget) Check() error {
	nominal := 0
	for i := range b.members {
		m := &b.members[i]
		nominal += m.nominal
		switch {
		case m.held < m.limit || m.held < m.claim.InUse:
			return fmt.Errorf("B1: member %s holds %d, of a limit of %d with %d in use", m.called(i), m.held, m.limit, m.claim.InUse)
		case m.nominal < max(m.Min, 1) || m.nominal > max(m.most(b.units), 1):
			return fmt.Errorf("B2: member %s has a nominal share of %d, of %d to %d", m.called(i), m.nominal, m.Min, m.most(b.units))
		}
	}
	if sum := b.sum(); sum > b.ceiling || b.ceiling < b.units {
		return fmt.Errorf("B1: %d are held of %d, with a ceiling of %d", sum, b.units, b.ceiling)
	}
	if nominal > b.units {
		return fmt.Errorf("B2: the nominal shares add up to %d of %d", nominal, b.units)
	}
	return nil
}
