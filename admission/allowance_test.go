package admission

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A meteredGrant is a grant under an allowance: when, how much, and what may have come by
// then since it was last turned on.
type meteredGrant struct {
	at      time.Duration
	cost    float64 // less than 0 if a call turned out to cost less
	accrued float64 // rate x time so far
	bursts  int     // that were in force by then
	era     int     // of an allowance without a break
}

// A meteredRun offers without end and writes down what is granted.
type meteredRun struct {
	rng     *rand.Rand
	core    *Core
	cfg     Config
	now     time.Duration
	last    time.Duration // up to when accrued is right
	accrued float64
	era     int
	eras    int
	bursts  []float64 // that were in force
	grants  []meteredGrant
	running []End
	taken   float64 // of all grants
}

func (m *meteredRun) clock() {
	m.accrued += m.cfg.Allowance.Rate * (m.core.now - m.last).Seconds()
	m.last = m.core.now
}

func (m *meteredRun) grant(cost int, share Share) {
	m.clock()
	m.grants = append(m.grants, meteredGrant{m.core.now, float64(cost), m.accrued, len(m.bursts), m.era})
	m.running = append(m.running, End{Cost: cost, Outcome: Completed, Share: share})
	m.taken += float64(cost)
}

func (m *meteredRun) collect() {
	for w := m.core.Next(); w != nil; w = m.core.Next() {
		if w.Verdict() == Admitted {
			m.grant(w.Cost(), w.Share())
		}
	}
}

func (m *meteredRun) configure(q Quota) {
	m.core.Dispatch(m.now) // what the old one has come to
	m.collect()
	m.clock()
	switch off := m.cfg.Allowance.Rate == 0; {
	case q.Rate == 0:
		m.era = 0
	case off: // one that was none is full
		m.eras++
		m.era = m.eras
	}
	m.cfg.Allowance = q
	m.bursts = append(m.bursts, q.burst())
	if err := m.core.Reconfigure(m.now, m.cfg); err != nil {
		panic(err)
	}
}

func (m *meteredRun) quota() Quota {
	q := Quota{Rate: math.Pow(10, -3+9*m.rng.Float64())}
	if m.rng.IntN(3) > 0 {
		q.Burst = math.Pow(10, 3.5*m.rng.Float64())
	}
	return q
}

func (m *meteredRun) step() {
	switch k := m.rng.IntN(100); {
	case k < 55:
		r := Request{Cost: 1 + int(math.Pow(1000, m.rng.Float64())), Deadline: Never, Arrival: m.now, Priority: Priority(m.rng.IntN(5)), NoWait: m.rng.IntN(10) == 0}
		if d := m.core.Offer(m.now, r); d.Verdict == Admitted {
			m.grant(r.Cost, d.Share)
		}
	case k < 70:
		if at := m.core.RefillAt(); at < m.now+time.Hour {
			m.now = max(at, m.now)
			m.core.Dispatch(m.now)
		}
	case k < 85 && len(m.running) > 0:
		e := take(&m.running, m.rng.IntN(len(m.running)))
		if m.rng.IntN(8) == 0 {
			e.Charge = 1 + m.rng.IntN(1000)
		}
		if more := e.correction(); more < 0 {
			m.core.tick(m.now)
			m.clock()
			m.grants = append(m.grants, meteredGrant{m.core.now, float64(more), m.accrued, len(m.bursts), m.era})
		}
		m.core.Release(m.now, e)
	case k < 95:
		m.now += time.Duration(math.Pow(10, 10*m.rng.Float64())) // to 10 s
	case k < 96:
		m.now = max(0, m.now-time.Second) // a clock that goes back
	case k < 97:
		m.cfg.Limit = limit.Fixed([]int{0, 100, 2000, limit.Max}[m.rng.IntN(4)])
		n, _ := m.cfg.Limit.Start()
		if err := m.core.SetLimit(m.now, n); err != nil {
			panic(err)
		}
	case k < 98 && m.rng.IntN(4) == 0:
		m.configure(Quota{})
	case k < 98:
		m.configure(m.quota())
	default:
		var b Batch
		b.Add(time.Duration(1+m.rng.IntN(1000))*ms, 0, 1+m.rng.IntN(100), 0)
		m.core.Observe(m.now, &b)
	}
	m.collect()
}

// I19, by brute force: in every span of every run, from each grant to each later one, no
// more is granted than a burst and what comes in the time between, whatever the costs and
// the rates are, and whatever changes meanwhile.
func TestAllowanceInAnySpan(t *testing.T) {
	runs := 150
	if raceEnabled || testing.Short() {
		runs = 20
	}
	spans, most := 0, 0.0
	for seed := range uint64(runs) {
		m := &meteredRun{rng: rand.New(rand.NewPCG(seed, 19))}
		m.cfg = Config{Limit: limit.Fixed(2000), Objective: MaxObjective, Overflow: Block, Allowance: m.quota()}
		m.core, _ = New(m.cfg)
		m.era, m.eras = 1, 1
		m.bursts = []float64{m.cfg.Allowance.burst()}
		for range 1500 {
			m.step()
			if err := m.core.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for i, from := range m.grants {
			if from.era == 0 {
				continue
			}
			sum := 0.0
			for _, to := range m.grants[i:] {
				if to.era != from.era {
					break
				}
				sum += to.cost
				burst := slices.Max(m.bursts[from.bursts-1 : to.bursts])
				bound := burst + to.accrued - from.accrued
				// A grant may owe rounding x cost; the sums here are rounded as often as
				// there are grants.
				if sum > bound+1e-6*(1+bound) {
					t.Fatalf("seed %d: %v granted from %v to %v, a burst of %v and %v at %v are %v",
						seed, sum, from.at, to.at, burst, m.cfg.Allowance.Rate, to.accrued-from.accrued, bound)
				}
				spans++
				most = max(most, sum/bound)
			}
		}
	}
	t.Logf("%d spans; the fullest had %.4f of its bound", spans, most)
	if most < 0.999 {
		t.Errorf("the fullest span had %v of its bound: the test never comes near it", most)
	}
}

// All of it is used: while somebody always waits and slots are plenty, what is granted is
// the burst and the rate times the time, less what the first still lacks, and the core says
// to the nanosecond when to call.
func TestAllowanceIsUsed(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		q := Quota{Rate: math.Pow(10, -3+9*rng.Float64()), Burst: max(1, 1000*rng.Float64())}
		c, err := New(Config{Limit: limit.Fixed(limit.Max), Objective: MaxObjective, Depth: 1000, Overflow: Block, Allowance: q})
		if err != nil {
			t.Fatal(err)
		}
		now, granted, calls := time.Duration(0), 0, 0
		for range 200 {
			cost := 1 + rng.IntN(int(min(q.Burst, q.Rate*70_000))) // nobody waits for more than a day
			d := c.Offer(now, Request{Cost: cost, Deadline: Never, Arrival: now})
			granted += cost
			if d.Verdict == Queued {
				now = awaitGrant(t, c, d.Waiter, now)
				calls++
			} else if d.Verdict == Refused {
				t.Fatalf("%+v: %v", q, d.Reason)
			}
			c.Release(now, End{Cost: cost, Outcome: Completed})
		}
		// Each instant is rounded up to a nanosecond, and a grant may owe 1e-9 of itself.
		most := q.Burst + q.Rate*now.Seconds()
		slack := float64(calls)*q.Rate*1e-9 + 1e-6*most
		if g := float64(granted); g > most+slack || calls > 0 && g < q.Rate*now.Seconds()-slack {
			t.Errorf("%+v: %v granted in %v, of at most %v", q, g, now, most)
		}
	}
}

// awaitGrant calls the core when it says, and not before, for a waiter that is alone.
func awaitGrant(t *testing.T, c *Core, w *Waiter, now time.Duration) time.Duration {
	t.Helper()
	q, at := c.cfg.Allowance, c.RefillAt()
	if at <= now {
		t.Fatalf("%+v: the allowance is there at %v, now is %v", q, at, now)
	}
	// A grant may owe 1e-9 of its cost, which comes in cost/rate nanoseconds.
	if early := at - 2 - time.Duration(1.01*float64(w.Cost())/q.Rate); early > now {
		if c.Dispatch(early); c.Next() != nil {
			t.Fatalf("%+v: cost %d is granted at %v, before %v", q, w.Cost(), early, at)
		}
	}
	if c.Dispatch(at); c.Next() != w || w.Verdict() != Admitted {
		t.Fatalf("%+v: cost %d is not granted at %v", q, w.Cost(), at)
	}
	return at
}

// A request under an allowance meets what any request meets, and each of these would be
// forgotten in its own place.
func TestAllowanceAtTheDoor(t *testing.T) {
	start := func(change func(*Config)) *Core {
		cfg := Config{Limit: limit.Fixed(8), Objective: time.Second, Service: 50 * ms, Allowance: Quota{Rate: 10, Burst: 4}}
		if change != nil {
			change(&cfg)
		}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	offer := func(c *Core, r Request) Decision {
		r.Deadline = Never
		return c.Offer(c.now, r)
	}
	if d := offer(start(nil), Request{Cost: 5}); d.Reason != TooCostly {
		t.Errorf("more than the burst: %+v", d)
	}
	c := start(nil)
	if d := offer(c, Request{Cost: 4}); d.Verdict != Admitted {
		t.Errorf("all of the burst: %+v", d)
	}
	if d := offer(c, Request{NoWait: true}); d.Reason != QueueFull {
		t.Errorf("who would not wait: %+v", d)
	}
	if d := offer(c, Request{Exempt: true}); !d.Exempt || c.allowance.level(0) != 0 {
		t.Errorf("a probe: %+v, %v left", d, c.allowance.level(0))
	}
	late, soon := offer(c, Request{Priority: Background}), offer(c, Request{Priority: Critical})
	c.Dispatch(c.RefillAt())
	if w := c.Next(); w != soon.Waiter || w.Verdict() != Admitted || late.Waiter.Verdict() != Queued {
		t.Error("critical did not have it first")
	}
	if n := start(func(c *Config) { c.Allowance = Quota{} }).Lend(); n != 8 {
		t.Errorf("%d lent without an allowance", n)
	}
	if n := start(nil).Lend(); n != 0 {
		t.Errorf("%d lent", n)
	}
	// Of a tenant and of all: who is over its quota is refused, who is over the allowance
	// waits, and a charge is on both accounts.
	c = start(func(c *Config) {
		c.Tenants = &Tenants{Rows: []Tenant{{ID: "a", Quota: Quota{Rate: 1, Burst: 2}}}}
	})
	a := offer(c, Request{Tenant: "a"})
	if offer(c, Request{Tenant: "a"}); offer(c, Request{Tenant: "a"}).Reason != OverQuota {
		t.Error("a third of a tenant with a burst of 2 is not over its quota")
	}
	c.Release(0, End{Outcome: Completed, Share: a.Share, Charge: 3})
	if left := c.Stats(0).AllowanceLeft; left != 0 {
		t.Errorf("4, less 2, less a charge of 2 more, leave %v", left)
	}
	if d := offer(c, Request{Tenant: "b"}); d.Verdict != Queued || d.PredictedWait != 100*ms {
		t.Errorf("beyond the allowance: %+v", d)
	}
}

// Both ends of the ranges, and what is beyond.
func TestAllowanceRanges(t *testing.T) {
	for _, c := range []struct {
		q    Quota
		says string
	}{
		{Quota{}, ""},
		{Quota{Rate: 1e-6}, ""},
		{Quota{Rate: 1e9, Burst: 1e9}, ""},
		{Quota{Rate: 1, Burst: 1}, ""},
		{Quota{Rate: 9e-7}, "allowance of 9e-07 per second is out of range: 1e-06 to 1e+09, or 0 for none"},
		{Quota{Rate: 1.1e9}, "allowance of 1.1e+09 per second is out of range: 1e-06 to 1e+09, or 0 for none"},
		{Quota{Rate: -1}, "allowance of -1 per second is out of range: 1e-06 to 1e+09, or 0 for none"},
		{Quota{Rate: math.NaN()}, "allowance of NaN per second is out of range: 1e-06 to 1e+09, or 0 for none"},
		{Quota{Rate: 1, Burst: 0.5}, "allowance burst 0.5 is out of range: 1 to 1e+09, or 0 for one second of its rate"},
		{Quota{Rate: 1, Burst: math.Inf(1)}, "allowance burst +Inf is out of range: 1 to 1e+09, or 0 for one second of its rate"},
		{Quota{Burst: 5}, "allowance burst 5 has no rate: say how many units per second follow"},
	} {
		err := Config{Limit: limit.Fixed(1), Allowance: c.q}.Validate()
		if (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%+v: %v, want %q", c.q, err, c.says)
		}
	}
}

// An allowance of one in eleven days is no "0/s", and who is refused is not asked back in a
// second.
func TestSlowAllowance(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(8), Allowance: Quota{Rate: 1e-6, Burst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Offer(0, Request{Deadline: Never}); d.Verdict != Admitted {
		t.Fatalf("%v of a full account", d.Verdict)
	}
	c.Release(time.Millisecond, End{Outcome: Completed})
	if got := c.Stats(time.Millisecond).Derivation.String(); !strings.Contains(got, "1e-06/s allowed") {
		t.Error(got)
	}
	if got := c.RetryAfter(QueueFull); got != 20*time.Second {
		t.Errorf("retry after %v, want the most there is, 20s", got)
	}
}
