package admission

import (
	"math/rand/v2"
	"testing"
	"time"
)

// dumb asserts of a pool, after a round or when nobody asked for one, what B2 promises,
// by looks alone.
func (p *pool) dumb() {
	p.t.Helper()
	sum, owed, missing, wants := 0, 0, 0, false
	for i := range p.cores {
		m := &p.budget.members[i]
		inUse, limit := p.use(i)
		claim := p.stakes[i].Look(p.now, p.cores[i])
		sum += max(inUse, limit)
		owed += max(inUse-limit, 0)
		missing += max(min(claim.Wanted, m.nominal)-limit, 0)
		wants = wants || min(claim.Wanted, m.most(p.budget.units)) > limit
	}
	if missing > max(owed, sum-p.budget.units) {
		p.t.Fatalf("B2: members lack %d of their shares, and others run only %d too many: %+v", missing, owed, p.budget.members)
	}
	if !wants {
		return
	}
	if sum < p.budget.units {
		p.t.Fatalf("B2: %d of %d are with nobody, and somebody wants more: %+v", p.budget.units-sum, p.budget.units, p.budget.members)
	}
	for i := range p.cores {
		claim, floor := p.stakes[i].Look(p.now, p.cores[i]), p.budget.members[i].Min
		if claim.Draining {
			floor = 0
		}
		if _, limit := p.use(i); limit > max(claim.Wanted, floor) {
			p.t.Fatalf("B2: member %d has %d and wants %d, and somebody wants more: %+v", i, limit, claim.Wanted, p.budget.members)
		}
	}
}

// heard plays rounds until one of them leaves all claims as they were. A cut refuses who
// waits and costs more than its member may still use; what that leaves to be wanted is
// known to the next plan, and until then no unit is free that it could concern: B2.
func (p *pool) heard() {
	p.t.Helper()
	was := make([]Claim, len(p.cores))
	for changed, n := true, 0; changed; n++ {
		if n == 10 {
			p.t.Fatalf("round after round, and the claims still change: %+v", p.budget.members)
		}
		for i := range was {
			was[i] = p.stakes[i].Look(p.now, p.cores[i])
		}
		p.round()
		changed = false
		for i := range was {
			changed = changed || was[i] != p.budget.members[i].claim
		}
	}
}

// targets asserts that a round aims at what giving out one unit after the other would
// give: first to all what they want of their nominal shares, then of what is left to
// whoever has least for its weight.
func (p *pool) targets() {
	p.t.Helper()
	p.heard()
	b := p.budget
	want, total := make([]part, len(b.members)), 0
	for i := range b.members {
		m := &b.members[i]
		lo := m.Min
		if m.claim.Draining {
			lo = 0
		}
		hi := max(lo, min(m.claim.Wanted, m.most(b.units)))
		want[i] = part{lo: max(lo, min(hi, m.nominal)), hi: hi, weight: m.weight()}
		total += hi
	}
	if total <= b.units {
		return // nobody lacks anything: dumb says the rest
	}
	oneByOne(b.units, want)
	for i := range b.members {
		if b.members[i].target != want[i].units {
			p.t.Fatalf("member %d should have %d, the budget aims at %d: %+v", i, want[i].units, b.members[i].target, b.members)
		}
	}
}

// play does to a pool what the bytes say.
func (p *pool) play(ops []byte) {
	p.t.Helper()
	for len(ops) >= 2 {
		i, n := int(ops[0])%len(p.cores), int(ops[1])
		switch ops[0] / 16 {
		case 0, 1, 2, 3, 4:
			p.offer(i, 1+n%4, 1+n/64)
		case 5:
			p.offer(i, 1+n%24, 1)
		case 6, 7, 8, 9, 10, 11:
			p.release(i, 1+n%6)
		case 12:
			p.cancel(i)
		case 13:
			p.now += time.Duration(n) * 10 * time.Millisecond
			p.targets()
		case 14:
			if p.budget.SetUnits(len(p.cores)*3+n%32) == nil {
				p.round()
			}
		case 15:
			if n == 0 {
				p.cores[i].Drain(p.now, false)
				p.after(i)
			}
		}
		p.dumb()
		ops = ops[2:]
	}
	p.targets()
}

// crowdOf makes a pool of 2 to 4 members, the third of which has no queue.
func crowdOf(t *testing.T, n byte) *pool {
	cfg := BudgetConfig{Units: 24, Members: []Member{{Weight: 2}, {Min: 2}, {Max: 9}, {Weight: 0.5, Min: 1, Max: 20}}[:2+n%3]}
	return newPool(t, cfg, func(i int) Config {
		if i == 2 {
			return Config{Depth: NoQueue}
		}
		return patient(i)
	})
}

func TestBudgetIsTheModel(t *testing.T) {
	random := func(seed uint64, n byte) {
		t.Helper()
		rng := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 300)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		t.Logf("seed %d, %d members", seed, 2+n%3)
		crowdOf(t, n).play(ops)
	}
	// Rounds whose cuts refuse who has become too costly, which are one in 5000.
	random(14212061261223116305, 2)
	random(9657603675550463770, 0)
	for n := range 100 {
		random(rand.Uint64(), byte(n))
	}
}

func FuzzBudget(f *testing.F) {
	f.Add(byte(0), []byte{0x50, 20, 0x51, 20, 0x60, 3, 0x61, 3, 0xe0, 0, 0x60, 4, 0xd0, 100})
	f.Add(byte(1), []byte{0x52, 9, 0x50, 23, 0x52, 2, 0x60, 5, 0xf1, 0, 0x61, 1})
	f.Fuzz(func(t *testing.T, n byte, ops []byte) {
		if len(ops) > 600 {
			ops = ops[:600]
		}
		crowdOf(t, n).play(ops)
	})
}
