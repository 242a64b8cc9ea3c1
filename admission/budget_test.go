package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A pool is cores that share a budget, and the driver of both.
type pool struct {
	t       *testing.T
	now     time.Duration
	budget  *Budget
	cores   []*Core
	stakes  []Stake
	hungry  time.Duration
	rounds  int
	waiters [][]*Waiter
	running [][]int // costs
}

func newPool(t *testing.T, cfg BudgetConfig, core func(i int) Config) *pool {
	t.Helper()
	b, err := NewBudget(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &pool{t: t, budget: b, stakes: make([]Stake, len(cfg.Members))}
	p.waiters, p.running = make([][]*Waiter, len(cfg.Members)), make([][]int, len(cfg.Members))
	for i := range cfg.Members {
		c := core(i)
		c.Limit = Granted{}
		one, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.cores = append(p.cores, one)
	}
	p.round()
	return p
}

// patient is a core that queues whatever comes.
func patient(int) Config { return Config{Depth: 1000, Order: FIFO, MaxWait: time.Hour} }

// round plays rounds until the budget is settled; then nobody asks for another.
func (p *pool) round() {
	p.t.Helper()
	for n := 0; ; n++ {
		if n == 10 {
			p.t.Fatalf("round after round: %+v", p.budget.members)
		}
		p.rounds++
		for i, terms, ok := p.budget.Next(); ok; i, terms, ok = p.budget.Next() {
			claim := p.stakes[i].Take(p.now, p.cores[i], terms)
			p.collect(i)
			p.budget.Hear(i, claim)
			p.check()
		}
		p.hungry = p.budget.Hungry()
		if p.budget.Settled() {
			break
		}
	}
	for i := range p.cores {
		if p.stakes[i].Asks(p.now, p.stakes[i].Look(p.now, p.cores[i]), p.hungry) {
			p.t.Fatalf("member %d asks although all is settled: %+v", i, p.budget.members)
		}
	}
}

// after is what follows each call of core i.
func (p *pool) after(i int) {
	p.t.Helper()
	p.collect(i)
	if p.stakes[i].Asks(p.now, p.stakes[i].Look(p.now, p.cores[i]), p.hungry) {
		p.round()
	}
	p.check()
}

func (p *pool) collect(i int) {
	for w := p.cores[i].Next(); w != nil; w = p.cores[i].Next() {
		if w.Verdict() == Admitted {
			p.running[i] = append(p.running[i], w.Cost())
		}
	}
	p.waiters[i] = deleteDecided(p.waiters[i])
}

func deleteDecided(list []*Waiter) []*Waiter {
	kept := list[:0]
	for _, w := range list {
		if w.Verdict() == Queued {
			kept = append(kept, w)
		}
	}
	return kept
}

// offer sends n requests of the given cost to member i.
func (p *pool) offer(i, n, cost int) {
	p.t.Helper()
	for range n {
		switch d := p.cores[i].Offer(p.now, Request{Cost: cost, Deadline: Never, Arrival: p.now}); d.Verdict {
		case Admitted:
			p.running[i] = append(p.running[i], cost)
		case Queued:
			p.waiters[i] = append(p.waiters[i], d.Waiter)
		}
		p.after(i)
	}
}

// release ends the n that run longest of member i.
func (p *pool) release(i, n int) {
	p.t.Helper()
	for ; n > 0 && len(p.running[i]) > 0; n-- {
		cost := p.running[i][0]
		p.running[i] = p.running[i][1:]
		p.cores[i].Release(p.now, End{Cost: cost, Outcome: Completed})
		p.after(i)
	}
}

func (p *pool) cancel(i int) {
	p.t.Helper()
	if len(p.waiters[i]) > 0 {
		p.cores[i].Cancel(p.now, p.waiters[i][0], Client)
		p.after(i)
	}
}

// use returns what member i runs and what it may use.
func (p *pool) use(i int) (inUse, limit int) {
	for _, cost := range p.running[i] {
		inUse += cost
	}
	return inUse, p.stakes[i].Terms().Limit
}

// check asserts the invariants of budget and cores, and the sum by what really runs.
func (p *pool) check() {
	p.t.Helper()
	if err := p.budget.Check(); err != nil {
		p.t.Fatal(err)
	}
	sum := 0
	for i := range p.cores {
		if err := p.cores[i].Check(); err != nil {
			p.t.Fatal(err)
		}
		inUse, limit := p.use(i)
		if claim := p.stakes[i].Look(p.now, p.cores[i]); claim.InUse != inUse {
			p.t.Fatalf("member %d says that %d are in use, and %d are", i, claim.InUse, inUse)
		}
		sum += max(inUse, limit)
	}
	if sum > p.budget.ceiling {
		p.t.Fatalf("B1: %d in use or allowed, of %d with a ceiling of %d: %+v", sum, p.budget.units, p.budget.ceiling, p.budget.members)
	}
}

// want asserts what every member runs and may use, as "runs/limit".
func (p *pool) want(step, want string) {
	p.t.Helper()
	var all []string
	for i := range p.cores {
		inUse, limit := p.use(i)
		all = append(all, fmt.Sprintf("%d/%d", inUse, limit))
	}
	if got := strings.Join(all, " "); got != want {
		p.t.Errorf("%s: %s, want %s", step, got, want)
	}
}

func two(units int) BudgetConfig {
	return BudgetConfig{Units: units, Members: []Member{{Name: "a"}, {Name: "b"}}}
}

// The story: lend, take back, each unit as it is released, and lend again.
func TestBudgetLendsAndTakesBack(t *testing.T) {
	p := newPool(t, two(10), patient)
	p.want("at first", "0/5 0/5")
	p.offer(1, 5, 1)
	p.want("b runs its share", "0/5 5/5")
	p.offer(1, 1, 1)
	p.want("b wants one more: that, and half of what is idle", "0/2 6/8")
	p.offer(1, 10, 1)
	p.want("b has all", "0/0 10/10")
	p.offer(0, 2, 1)
	p.want("a wants two back: b is cut at once", "0/0 10/8")
	p.release(1, 1)
	p.want("b ends one: it goes to a", "1/1 9/8")
	p.offer(0, 20, 1)
	p.want("a wants its share", "1/1 9/5")
	p.release(1, 3)
	p.want("and gets it", "4/4 6/5")
	p.release(1, 2)
	p.want("b goes on with its own", "5/5 5/5")
	rounds := p.rounds
	p.release(0, 5)
	p.release(1, 5)
	p.offer(0, 20, 1)
	if p.rounds != rounds {
		t.Errorf("%d rounds while both have what they can get, want none", p.rounds-rounds)
	}
	p.want("both are busy", "5/5 5/5")
	p.release(0, 100)
	p.offer(1, 1, 1)
	p.want("a has ended, and b may have more again", "0/2 6/8")
}

// What is never lent, and what is not borrowed.
func TestBudgetKeepsMinAndMax(t *testing.T) {
	p := newPool(t, BudgetConfig{Units: 10, Members: []Member{{Min: 2}, {}, {Max: 4}}}, patient)
	p.want("at first", "0/4 0/3 0/3")
	p.offer(2, 10, 1)
	p.want("at its max", "0/3 0/3 4/4")
	p.offer(1, 10, 1)
	p.want("the rest but the min of the first", "0/2 4/4 4/4")
	p.offer(0, 2, 1)
	p.want("which is there at once", "2/2 4/4 4/4")
	p.offer(0, 1, 1)
	p.want("its third belongs to it, and somebody gives up its fourth", "2/2 4/4 4/3")
	p.release(2, 1)
	p.want("when it is free", "3/3 4/4 3/3")
}

// Nobody waits for a unit of somebody who is gone.
func TestBudgetDrain(t *testing.T) {
	p := newPool(t, BudgetConfig{Units: 10, Members: []Member{{Min: 4}, {}}}, patient)
	p.offer(0, 2, 1)
	p.offer(1, 20, 1)
	p.want("the min is kept", "2/4 6/6")
	p.cores[0].Drain(p.now, false)
	p.after(0)
	p.want("but by those that leave", "2/2 8/8")
	p.release(0, 2)
	p.want("all", "0/0 10/10")
}

// A member that cannot queue asks by being refused, for one objective.
func TestBudgetHearsOfRefusals(t *testing.T) {
	p := newPool(t, two(4), func(i int) Config {
		if i == 0 {
			return Config{Depth: NoQueue}
		}
		return patient(i)
	})
	p.offer(1, 8, 1)
	p.want("b has all", "0/0 4/4")
	p.offer(0, 1, 1)
	p.want("a was refused", "0/0 4/3")
	p.release(1, 1)
	p.want("and finds a slot when it comes again", "0/1 3/3")
	p.offer(0, 1, 1)
	p.want("which it takes, and still wants one", "1/1 3/2")
	p.release(0, 1)
	p.release(1, 1)
	p.want("which is kept for it", "0/1 3/3")
	p.now += DefaultObjective
	p.release(1, 1) // any call of somebody hungry
	p.want("until it has not come for an objective", "0/0 4/4")
}

// A cut refuses who waits and costs more than is left to its member, which then wants no
// more than it has. When it wants more again, that is news.
func TestBudgetHearsOfWhoHasBecomeTooCostly(t *testing.T) {
	p := newPool(t, two(8), patient)
	p.offer(1, 6, 1)
	p.release(1, 2)
	p.offer(1, 1, 6)
	p.want("b has all, of which a big one needs more than is free", "0/0 4/8")
	p.offer(0, 1, 4)
	p.want("a wants its share, and the big one does not fit any more", "4/4 4/4")
	p.release(0, 1)
	p.offer(1, 1, 1)
	p.want("b wants one more, and a has ended: that, and half of what is idle", "0/2 5/6")
}

// The units follow those that are released after they were lowered, and never grow.
func TestBudgetSetUnits(t *testing.T) {
	p := newPool(t, two(10), patient)
	for _, i := range []int{0, 1, 0, 1} {
		p.offer(i, 5, 1)
	}
	if err := p.budget.SetUnits(4); err != nil {
		t.Fatal(err)
	}
	p.round()
	p.want("lowered", "5/2 5/2")
	p.release(0, 2)
	p.want("nothing is granted", "3/2 5/2")
	p.release(0, 2)
	p.want("a goes on with its share", "2/2 5/2")
	p.release(1, 4)
	p.want("both", "2/2 2/2")
	if err := p.budget.SetUnits(20); err != nil {
		t.Fatal(err)
	}
	p.round()
	p.want("raised", "6/10 6/10")
	if err := p.budget.SetUnits(1); err == nil || !strings.Contains(err.Error(), "fewer than the members") {
		t.Errorf("1 unit for two: %v", err)
	}
}

// A costly request waits for as much as its share, not for what is in force.
func TestBudgetCost(t *testing.T) {
	p := newPool(t, two(8), patient)
	p.offer(1, 16, 1)
	p.want("b has all", "0/0 8/8")
	p.offer(0, 1, 4)
	p.want("a wants four at once", "0/0 8/4")
	p.release(1, 3)
	p.want("three do not do", "0/3 5/4")
	p.release(1, 1)
	p.want("four do", "4/4 4/4")
	if d := p.cores[0].Offer(p.now, Request{Cost: 5, Deadline: Never}); d.Reason != TooCostly {
		t.Errorf("5 of a share of 4: %v", d.Reason)
	}
}

// A member whose share is lent queues as deep as its share serves, and predicts that
// what others have of it must depart first.
func TestBudgetLenderQueues(t *testing.T) {
	p := newPool(t, two(20), func(i int) Config {
		if i == 0 {
			return Config{Objective: time.Second, Service: 100 * time.Millisecond}
		}
		return patient(i)
	})
	deep := p.cores[0].Stats(p.now).Depth
	p.offer(1, 40, 1)
	p.want("b has all", "0/0 20/20")
	if s := p.cores[0].Stats(p.now); s.Depth != deep || deep < 20 {
		t.Errorf("%d deep with 10 units and %d with none, want the same, 20 or more", deep, s.Depth)
	}
	d := p.cores[0].Offer(p.now, Request{Deadline: time.Minute})
	// As if its 10 slots were busy: one of them must depart, 100 ms / 10.
	if d.Verdict != Queued || d.PredictedWait != 10*time.Millisecond {
		t.Errorf("verdict %d, %v, predicted wait %v, want queued for 10ms", d.Verdict, d.Reason, d.PredictedWait)
	}
	p.waiters[0] = append(p.waiters[0], d.Waiter)
	p.after(0)
	p.release(1, 1)
	p.want("and gets the first unit that is free", "1/1 19/19")
}

// C101: no weight is a share of nothing, and what is no number is no weight.
func TestBudgetConfigSaysWhatIsWrong(t *testing.T) {
	members := func(m ...Member) BudgetConfig { return BudgetConfig{Units: 10, Members: m} }
	for want, cfg := range map[string]BudgetConfig{
		"units 0 are out of range":                                   {},
		"members are 0: 1 to 64":                                     members(),
		"units 1 are fewer than the members, 2":                      two(1),
		`weight NaN of member "a" is out of range`:                   members(Member{Name: "a", Weight: math.NaN()}),
		"weight -1 of member 1 is out of range":                      members(Member{Weight: -1}),
		"weight +Inf of member 2 is out of range":                    members(Member{}, Member{Weight: math.Inf(1)}),
		"weight 1e+300 of member 1 is out of range":                  members(Member{Weight: 1e300}),
		"weight 1e+07 of member 2 is more than":                      members(Member{}, Member{Weight: 1e7}),
		"min -1 of member 1 is out of range: 0 to the units":         members(Member{Min: -1}),
		"min 11 of member 1 is out of range":                         members(Member{Min: 11}),
		"max -1 of member 1 is out of range":                         members(Member{Max: -1}),
		"min 5 of member 1 is more than its max, 4":                  members(Member{Min: 5, Max: 4}),
		"units 10 are fewer than what the members have at least, 11": members(Member{Min: 10}, Member{}),
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", cfg, err, want)
		}
		if _, err := NewBudget(cfg); err == nil {
			t.Errorf("%+v makes a budget", cfg)
		}
	}
}

// Shares by weight, whole and complete; C103: tiny ones are as good as others.
func TestBudgetNominal(t *testing.T) {
	for _, c := range []struct {
		units   int
		members []Member
		want    string
	}{
		{60, []Member{{}, {}}, "[30 30]"},
		{60, []Member{{Weight: 3}, {Weight: 1}}, "[45 15]"},
		{10, []Member{{}, {}, {}}, "[4 3 3]"},
		{9, []Member{{Weight: 0}, {Weight: 1}, {Weight: 1}}, "[3 3 3]"},
		{10, []Member{{Weight: 1e-12}, {Weight: 1e-12}, {Weight: 1e-12}}, "[4 3 3]"},
		{10, []Member{{Weight: 1e6}, {Weight: 1}, {Weight: 1}}, "[8 1 1]"},
		{60, []Member{{Min: 40}, {}, {}}, "[40 10 10]"},
		{60, []Member{{Max: 10}, {}, {Weight: 4}}, "[10 10 40]"},
		{60, []Member{{Max: 10}, {Max: 20}}, "[10 20]"},
		{3, []Member{{Weight: 100}, {}, {}}, "[1 1 1]"},
		{1 << 20, []Member{{Weight: 1}, {Weight: 2}}, "[349525 699051]"},
	} {
		b, err := NewBudget(BudgetConfig{Units: c.units, Members: c.members})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i := range b.members {
			got = append(got, b.members[i].nominal)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d units for %+v: %v, want %s", c.units, c.members, got, c.want)
		}
	}
}

// oneByOne is divide without arithmetic.
func oneByOne(total int, parts []part) {
	for i := range parts {
		parts[i].units = parts[i].lo
		total -= parts[i].lo
	}
	for ; total > 0; total-- {
		best := -1
		for i, p := range parts {
			if p.units < p.hi && (best < 0 || p.next() < parts[best].next()) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		parts[best].units++
	}
}

func TestDivideIsOneByOne(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		parts := make([]part, 1+rng.IntN(6))
		lo := 0
		for i := range parts {
			p := &parts[i]
			p.lo = rng.IntN(20)
			p.hi = p.lo + rng.IntN(30)
			p.base = rng.IntN(30)
			p.weight = []float64{1, 1, 2, 3, 0.1, 1e6, 1e-12, 1 + rng.Float64()}[rng.IntN(8)]
			lo += p.lo
		}
		total := lo + rng.IntN(100)
		want := append([]part(nil), parts...)
		oneByOne(total, want)
		if divide(total, parts); fmt.Sprint(units(parts)) != fmt.Sprint(units(want)) {
			t.Fatalf("seed %d: %d of %+v: %v, want %v", seed, total, parts, units(parts), units(want))
		}
	}
}

func units(parts []part) (all []int) {
	for _, p := range parts {
		all = append(all, p.units)
	}
	return all
}
