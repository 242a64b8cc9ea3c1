package admission

import (
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// An upstream that is down fails in a millisecond. The queue does not become 50
// times as deep for that, or it would be so when the upstream is back: what a
// place in it promises is a service, not a failure.
func TestFastFailuresDoNotDeepen(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(60), Objective: 400 * ms})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	window := func(n int, service, hold time.Duration) {
		var b Batch
		for range n {
			b.Add(service, hold, 1, 0)
		}
		now += 50 * ms
		c.Observe(now, &b)
	}
	for range 200 {
		window(60, 50*ms, 50*ms)
	}
	healthy := c.Stats(now).Derivation.Depth
	for range 12_000 { // ten minutes
		window(300, 0, ms)
	}
	if d := c.Stats(now).Derivation; d.Depth != healthy || d.Mean.Round(ms) != 50*ms {
		t.Errorf("after an outage: %v, healthy %d deep", d, healthy)
	}
	// What fails slowly does hold its slot.
	for range 200 {
		window(6, 0, 2*time.Second)
	}
	if d := c.Stats(now).Derivation; d.Mean < 500*ms {
		t.Errorf("2 s timeouts: %v", d)
	}
	for range 400 { // and an outage is forgotten like everything else
		window(60, 50*ms, 50*ms)
	}
	if d := c.Stats(now).Derivation; d.Mean.Round(ms) != 50*ms {
		t.Errorf("healthy again: %v", d)
	}
}

// Units of cost are not requests: they depart together, and the service of a
// request is that of its size. The same work in other units meets the same
// objective.
func TestCostKeepsTheObjective(t *testing.T) {
	for _, seed := range runsOf() {
		for _, cost := range []int{1, 8} {
			l := flagship(3, 2*time.Second, seed)
			l.cost = cost
			l.rate = func(at time.Duration) float64 { // long bursts: the depth matters
				if at%(3*time.Second) < 700*ms {
					return 3
				}
				return 0.3
			}
			r := l.run(t)
			t.Logf("seed %d, cost %d: %s, deepest %d", seed, cost, r.row(), r.deepest)
			if q := p(.99, r.latency); q > 400*ms {
				t.Errorf("seed %d, cost %d: p99 %v", seed, cost, q)
			}
		}
	}
}

// A law with a slice in it could not be compared with another.
type incomparable struct{ _ []int }

func (incomparable) Start() (int, error)      { return 1, nil }
func (incomparable) Begin(uint64) limit.State { return limit.Fixed(1) }

func TestLawMustBeComparable(t *testing.T) {
	if err := (Config{Limit: incomparable{}}).Validate(); err == nil {
		t.Error("accepted")
	}
}

// The prior is about a request, whatever its size is counted in: work of size
// 1000 is not taken for a thousand requests until there are samples.
func TestPriorIsOfARequest(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(1), Objective: time.Second, Service: 50 * ms})
	if err != nil {
		t.Fatal(err)
	}
	work := Request{Size: 1000, Deadline: 10 * time.Second}
	if d := c.Offer(0, work); d.Verdict != Admitted {
		t.Fatalf("idle: %v", d.Reason)
	}
	for n := range 120 {
		now := time.Duration(n) * 10 * ms
		work.Deadline = now + 10*time.Second
		d := c.Offer(now, work)
		if d.Verdict != Queued || d.Service > 400*ms {
			t.Fatalf("after %d samples: %v %v, service %v", n, d.Verdict, d.Reason, d.Service)
		}
		c.Cancel(now, d.Waiter, Client)
		var b Batch
		b.Add(50*ms, 50*ms, 1, 1000)
		c.Observe(now, &b)
	}
}

// What the rule of thumb would give is about the service as it is now: not, for
// another second, about the prior that samples have replaced. 8 slots of 4 ms
// always: the rule of 80 takes 80 x 0.5 ms + 4 ms.
func TestRuleLatencyFollowsTheService(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(8), Objective: 40 * ms})
	if err != nil {
		t.Fatal(err)
	}
	for now := 5 * ms; now <= 500*ms; now += 5 * ms {
		var b Batch
		for range 10 {
			b.Add(4*ms, 4*ms, 1, 0)
		}
		c.Observe(now, &b)
		d := c.Stats(now).Derivation
		if d.Prior == 0 && d.RuleLatency.Round(ms/10) != 44*ms {
			t.Fatalf("after %v: %v", now, d)
		}
	}
	if d := c.Stats(500 * ms).Derivation; d.Prior != 0 || d.Rule != 80 {
		t.Errorf("after 500ms: %v", d)
	}
}
