package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What tenants are promised (I13), looked at from outside: who was granted what while who
// waited. Nothing here knows of tags and virtual time.

// A sender keeps requests waiting, now and then none.
type sender struct {
	id     string
	weight float64
	most   int // cost of a request: 1 to most
	peers  int // those of the same number are compared
	prio   Priority
	quiet  float64 // how often it sends nothing though others do

	waits   int // requests
	served  int // requests
	granted float64
	lo, hi  []float64 // by the other senders, of granted/weight less theirs while both wait; NaN: they do not
}

// A market is senders in front of one core, whose slots become free at random.
type market struct {
	testing.TB
	core    *Core
	rng     *rand.Rand
	all     []*sender
	running []End
	now     time.Duration
	keep    int // requests that a sender has waiting
	grants  int
	on      func(*sender, int) // after each grant
}

func newMarket(t testing.TB, cfg Config, seed uint64, all ...*sender) *market {
	t.Helper()
	t.Logf("seed %d", seed)
	cfg.Depth, cfg.MaxWait, cfg.Order = maxItems, MaxObjective, FIFO
	m := &market{TB: t, keep: 2, core: benchCore(t, cfg), rng: rand.New(rand.NewPCG(seed, 0)), all: all}
	for _, s := range all {
		s.lo, s.hi = make([]float64, len(all)), make([]float64, len(all))
		for j := range all {
			s.lo[j] = math.NaN()
		}
	}
	return m
}

// offer sends one request of s.
func (m *market) offer(s *sender) {
	cost := 1 + m.rng.IntN(s.most)
	d := m.core.Offer(m.now, Request{Cost: cost, Deadline: Never, Tenant: s.id, Priority: s.prio})
	switch d.Verdict {
	case Admitted:
		m.granted(s, cost, d.Share)
	case Queued:
		d.Waiter.Ref = s
		s.waits++
	default:
		m.Fatalf("%s is refused: %v", s.id, d.Reason)
	}
	m.collect()
}

func (m *market) collect() {
	for w := m.core.Next(); w != nil; w = m.core.Next() {
		s := w.Ref.(*sender)
		m.granted(s, w.Cost(), w.Share())
		s.waits--
		m.core.Recycle(w)
	}
}

func (m *market) granted(s *sender, cost int, share Share) {
	m.grants++
	m.running = append(m.running, End{Cost: cost, Share: share, Outcome: Completed})
	s.granted += float64(cost) / s.weight
	s.served++
	if m.on != nil {
		m.on(s, cost)
	}
}

// end has one of those that run end, whichever.
func (m *market) end() {
	i := m.rng.IntN(len(m.running))
	e := m.running[i]
	m.running[i] = m.running[len(m.running)-1]
	m.running = m.running[:len(m.running)-1]
	m.now += ms
	m.core.Release(m.now, e)
	m.collect()
}

// compare holds the bound of all pairs that wait. The largest and the smallest difference
// within a time are the worst two ends that an interval of it can have, so all intervals
// are looked at.
func (m *market) compare() {
	m.Helper()
	for i, f := range m.all {
		for j, g := range m.all[:i] {
			if f.waits == 0 || g.waits == 0 {
				f.lo[j] = math.NaN()
				continue
			}
			d := f.granted - g.granted
			if math.IsNaN(f.lo[j]) {
				f.lo[j], f.hi[j] = d, d
			}
			f.lo[j], f.hi[j] = min(f.lo[j], d), max(f.hi[j], d)
			bound := float64(f.most)/f.weight + float64(g.most)/g.weight
			// The sums of this test are rounded as well: 10^-16 of them for each grant.
			rounding := 1e-16 * float64(m.grants) * (f.granted + g.granted)
			if f.peers == g.peers && f.hi[j]-f.lo[j] > bound+rounding {
				m.Fatalf("after %d grants %s and %s differ by %v, at most %v", m.grants, f.id, g.id, f.hi[j]-f.lo[j], bound)
			}
		}
	}
}

// weigh changes a weight: what is compared begins anew.
func (m *market) weigh(s *sender, w float64) {
	s.weight = w
	m.core.SetWeight(m.now, s.id, w)
	m.collect()
	for i, f := range m.all {
		for j := range i {
			if f == s || m.all[j] == s {
				f.lo[j] = math.NaN()
			}
		}
	}
}

// refill brings senders that are in the mood to what they like to have waiting.
func (m *market) refill(idle float64) {
	for _, s := range m.all {
		if m.rng.Float64() < max(idle, s.quiet) {
			continue
		}
		for i := 0; i < m.keep && s.waits < m.keep; i++ {
			m.offer(s)
		}
	}
}

// I13: over any time in which two tenants wait, whatever the slots do and whoever else
// comes and goes, what they are granted over their weights differs by at most the largest
// request of each, from the instant on at which a weight was changed. Ids without a row that are in different buckets share evenly what
// the others get. A tenant at its ceiling is not compared.
func TestFairnessBound(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tenants := &Tenants{Buckets: 64, Hand: 1, Others: Tenant{Weight: math.Pow(10, 6*rng.Float64()-3)}}
		all := []*sender{}
		for i := range 5 {
			s := &sender{id: fmt.Sprint("t", i), weight: math.Pow(10, 6*rng.Float64()-3), most: 1 + rng.IntN(1000)}
			row := Tenant{ID: s.id, Weight: s.weight}
			if i == 4 {
				row.MaxInUse, s.peers = 1000, 1
			}
			tenants.Rows = append(tenants.Rows, row)
			all = append(all, s)
		}
		for _, id := range []string{"guest", "visitor", "stranger"} { // three buckets
			all = append(all, &sender{id: id, weight: 1, most: 1 + rng.IntN(1000), peers: 2})
		}
		m := newMarket(t, Config{Limit: limit.Fixed(4000), Tenants: tenants}, seed, all...)
		idle := []float64{0, 0.02, 0.3}[seed%3]
		for i := range 3000 {
			if i%300 == 299 {
				m.weigh(all[rng.IntN(4)], math.Pow(10, 6*rng.Float64()-3))
			}
			m.refill(idle)
			m.compare()
			m.end()
			m.compare()
		}
		if err := m.core.Check(); err != nil {
			t.Fatal(err)
		}
		if seed%3 == 0 && m.grants < 3000 {
			t.Errorf("seed %d: only %d were granted", seed, m.grants)
		}
	}
}

// The same at the ends of what weights and costs may be, for a million grants: virtual
// time is moved back to zero again and again, and rounding does not add up.
func TestFairnessBoundAtTheExtremes(t *testing.T) {
	grants := 1_000_000
	if raceEnabled || testing.Short() {
		grants = 200_000
	}
	tenants := &Tenants{Rows: []Tenant{{ID: "light", Weight: 1e-3}, {ID: "lighter", Weight: 1e-3}, {ID: "heavy", Weight: 1e3}, {ID: "middle", Weight: 7}}}
	all := []*sender{
		{id: "light", weight: 1e-3, most: limit.Max / 2},
		{id: "lighter", weight: 1e-3, most: limit.Max / 32},
		{id: "heavy", weight: 1e3, most: limit.Max / 2, quiet: 0.999},
		{id: "middle", weight: 7, most: 3, quiet: 0.99},
	}
	m := newMarket(t, Config{Limit: limit.Fixed(limit.Max), Tenants: tenants}, 6, all...)
	m.keep = 24 // so that what one end frees takes nobody's last
	back, v := 0, 0.0
	for m.grants < grants {
		m.refill(0.1)
		m.compare()
		if now := m.core.lanes[Default-1].v; now < v {
			back++
		}
		v = m.core.lanes[Default-1].v
		if len(m.running) > 0 {
			m.end()
			m.compare()
		}
	}
	if back < grants/200_000 {
		t.Errorf("virtual time was moved back only %d times", back)
	}
	for _, s := range all {
		if s.served < grants/10_000 {
			t.Errorf("%s was granted only %d", s.id, s.served)
		}
	}
	t.Logf("moved back %d times", back)
	if err := m.core.Check(); err != nil {
		t.Fatal(err)
	}
}

// Weights say who gets how much, as long as all want all. What is due to rounding is a
// request of each.
func TestWeights(t *testing.T) {
	for name, weights := range map[string][]float64{
		"3:1": {3, 1}, "defaults": {0, 0, 1}, "tiny": {1e-12, 1e-12, 3e-12}, "huge": {1e12, 5e11}, "1:1:a millionth": {1, 1, 1e-6},
	} {
		t.Run(name, func(t *testing.T) {
			tenants, sum := &Tenants{Others: Tenant{Weight: weights[0]}}, 0.0
			var all []*sender
			for i, w := range weights {
				id := fmt.Sprint("t", i)
				tenants.Rows = append(tenants.Rows, Tenant{ID: id, Weight: w})
				all = append(all, &sender{id: id, weight: 1, most: 5, peers: i})
				sum += tenants.Rows[i].weight()
			}
			m := newMarket(t, Config{Limit: limit.Fixed(20), Tenants: tenants}, 4, all...)
			m.keep = 20 // the slots that one end frees never take all that wait
			m.refill(0)
			for _, s := range all {
				s.granted = 0
			}
			total := 0
			m.on = func(_ *sender, cost int) { total += cost }
			for range 40_000 {
				m.refill(0)
				m.end()
			}
			for i, s := range all {
				// By the bound each is within a request of its own and the weighted requests
				// of the others, which add up to no more than a request of each.
				want := float64(total) * tenants.Rows[i].weight() / sum
				if off := math.Abs(s.granted - want); off > float64(5*len(all)) {
					t.Errorf("%s of weight %v had %v, want %v", s.id, weights[i], s.granted, want)
				}
			}
		})
	}
}

// Nobody starves. With L priorities below it, a priority in which somebody waits is one of
// N grants: 32 may pass over it; those above it that were passed over as often go first;
// each one below takes one in 33, and its reserve of all and what it has saved of it, 8
// requests. So N <= 33 + above + L + 8 L + N (L/33 + reserves below). Critical is
// passed over by nobody. Within a priority a tenant of weight w waits, by the bound of
// fairness, while each other one of weight u is granted u/w + 1 requests of the same cost.
func TestNobodyStarves(t *testing.T) {
	for _, reserve := range []Reserve{{}, {Background: 0.1}, {Default: 0.3, Sheddable: 0.3}, {Critical: 0.25, Default: 0.25, Sheddable: 0.25, Background: 0.25}} {
		weights := map[string]float64{"a": 1, "b": 4, "c": 0.5}
		tenants := &Tenants{}
		for _, id := range []string{"a", "b", "c"} {
			tenants.Rows = append(tenants.Rows, Tenant{ID: id, Weight: weights[id]})
		}
		var all []*sender
		var bound [priorities]float64
		for p := Critical; p <= Background; p++ {
			for _, row := range tenants.Rows {
				all = append(all, &sender{id: row.ID, weight: row.Weight, most: 1, prio: p})
			}
			const passed = 32
			below, n, part := float64(Background-p), 1.0, 0.0
			if p > Critical {
				n += passed + float64(p-Critical-1)
			}
			parts := reserve.of()
			for _, r := range parts[p:] {
				part += r
				if r > 0 {
					n += 8
				}
			}
			bound[p-1] = (n + below) / (1 - below/(passed+1) - part)
		}
		m := newMarket(t, Config{Limit: limit.Fixed(3), Tenants: tenants, Reserve: reserve}, 5, all...)
		m.refill(0)
		var count [priorities]int // grants of each priority
		var last [priorities]int  // grants of all when it had its latest
		turn := map[*sender]int{} // grants of its priority when a sender had its latest
		m.grants = 0
		m.on = func(s *sender, _ int) {
			i := s.prio - 1
			count[i]++
			if gap := float64(m.grants - last[i]); gap > bound[i] {
				t.Fatalf("%+v: %s had to wait for %v grants, at most %.1f", reserve, s.prio, gap, bound[i])
			}
			last[i] = m.grants
			others := 1.0
			for id, u := range weights {
				if id != s.id {
					others += u/s.weight + 1
				}
			}
			if gap := count[i] - turn[s]; float64(gap) > others {
				t.Fatalf("%+v: %s of %s had to wait for %d grants, at most %v", reserve, s.id, s.prio, gap, others)
			}
			turn[s] = count[i]
		}
		for range 20_000 {
			m.end()
			m.refill(0)
		}
		for i, n := range count {
			if float64(n) < 20_000/bound[i]-1 {
				t.Errorf("%+v: %s was granted %d", reserve, Priority(i+1), n)
			}
		}
	}
}

// Whoever had a small weight for a moment does not pay for it afterwards: what it was
// granted then is charged by the weight in force.
func TestWeightOfAMoment(t *testing.T) {
	for name, set := range map[string]func(c *Core, now time.Duration, w float64){
		"SetWeight": func(c *Core, now time.Duration, w float64) { c.SetWeight(now, "a", w) },
		"Reconfigure": func(c *Core, now time.Duration, w float64) {
			cfg := c.cfg
			cfg.Tenants = &Tenants{Rows: []Tenant{{ID: "a", Weight: w}, {ID: "b"}}}
			if err := c.Reconfigure(now, cfg); err != nil {
				t.Fatal(err)
			}
		},
	} {
		c := benchCore(t, Config{
			Limit: limit.Fixed(1), Depth: 1000, MaxWait: MaxObjective, Order: FIFO,
			Tenants: &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}},
		})
		now, of := time.Duration(0), map[Share]string{}
		offer := func(id string) {
			d := c.Offer(now, Request{Tenant: id, Deadline: Never})
			if d.Waiter != nil {
				d.Waiter.Ref = id
			} else {
				of[d.Share] = id
			}
		}
		for range 100 {
			offer("a")
			offer("b")
		}
		running := c.shareOf(&c.table["a"].flows[Default-1])
		grants := func(n int) map[string]int {
			served := map[string]int{}
			for range n {
				now += ms
				c.Release(now, End{Outcome: Completed, Share: running})
				w := c.Next()
				running = w.Share()
				served[w.Ref.(string)]++
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
			}
			return served
		}
		set(c, now, 1e-5)
		grants(10)
		set(c, now, 1)
		if got := grants(100); got["a"] < 48 || got["b"] < 48 {
			t.Errorf("%s: of 100 grants a has %d and b %d, of equal weights again", name, got["a"], got["b"])
		}
	}
}
