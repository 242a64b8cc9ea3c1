package admission

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// Accounts at their edges.

// What turns out to have been cheap after virtual time was moved back to zero leaves its
// tenant where it is, and not before zero.
func TestChargeAfterTheOriginMoved(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(limit.Max), Depth: 1 << 22, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "a"}, {ID: "light", Weight: 1e-3}, {ID: "heavy", Weight: 1e3}},
	}})
	offer := func(id string, cost int) Decision {
		return c.Offer(0, Request{Deadline: Never, Tenant: id, Cost: cost})
	}
	dear := offer("a", 1000).Share
	var last Share
	for v := 0.0; ; { // each turn of light is half a billion for a weight of 1
		d := offer("light", limit.Max/2)
		now := c.lanes[Default-1].v
		if now < v {
			last = d.Share
			break
		}
		v = now
		c.Release(0, End{Cost: limit.Max / 2, Share: d.Share, Outcome: Completed})
	}
	if d := offer("a", limit.Max); d.Verdict != Queued {
		t.Fatal(d.Reason)
	}
	c.Release(0, End{Cost: 1000, Charge: 1, Share: dear, Outcome: Completed})
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	c.Release(0, End{Cost: limit.Max / 2, Share: last, Outcome: Completed})
	if s := c.Stats(0); s.InUse != limit.Max || s.Waiting != 0 {
		t.Errorf("%d in use, %d waiting", s.InUse, s.Waiting)
	}
}

// However many tenants come and go while their work runs, each slot is given back to
// whom it belongs, or the reload is refused in words.
func TestManyRowsInFlight(t *testing.T) {
	cfg := Config{Limit: limit.Fixed(20_000), Objective: 400 * ms}
	tenants := func(letter string) *Tenants {
		all := &Tenants{}
		for i := range maxRows {
			all.Rows = append(all.Rows, Tenant{ID: fmt.Sprint(letter, i)})
		}
		return all
	}
	cfg.Tenants = tenants("a")
	c := benchCore(t, cfg)
	var running []Share
	for _, letter := range []string{"a", "b", "c"} {
		cfg.Tenants = tenants(letter)
		if err := c.Reconfigure(0, cfg); err != nil {
			t.Log(err)
			continue
		}
		for _, row := range cfg.Tenants.Rows {
			running = append(running, c.Offer(0, Request{Deadline: Never, Tenant: row.ID}).Share)
		}
	}
	for _, s := range running {
		c.Release(0, End{Share: s, Outcome: Completed})
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for _, s := range c.TopTenants(0, 3*maxRows) {
		if s.InUse != 0 {
			t.Fatalf("%q still has %d in use", s.ID, s.InUse)
		}
	}
}

// A newer one is not predicted to wait behind the one whose place it takes.
func TestNewerIsNotBehindWhatItReplaces(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Service: 10 * ms, Depth: 10, Overflow: LatestOnly})
	c.Offer(0, Request{Deadline: Never})
	first := c.Offer(0, Request{Deadline: 70 * ms, Key: "k"})
	second := c.Offer(0, Request{Deadline: 70 * ms, Key: "k"})
	if second.Verdict != Queued || second.PredictedWait != first.PredictedWait {
		t.Errorf("the first is predicted to wait %v, the one in its place %v: %v", first.PredictedWait, second.PredictedWait, second.Reason)
	}
}

// What a tenant would be served is told before it asks: of two of equal weight, one of
// which asks for three times what there is, the other one half. 1 % is for what the meter
// still holds of the time before.
func TestEntitledBeforeItAsks(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(20), Service: 50 * ms, Tenants: &Tenants{
		Rows: []Tenant{{ID: "flood"}, {ID: "quiet"}, {ID: "small", Weight: 0.25}},
	}})
	now := time.Duration(0)
	for ; now < 6*time.Second; now += 2500 * time.Microsecond { // 400 per second can be served
		for range 3 {
			c.Offer(now, Request{Deadline: Never, Tenant: "flood", Arrival: now})
		}
	}
	want := map[string]float64{"flood": 400, "quiet": 200, "small": 80}
	for _, s := range c.TopTenants(now, 9) {
		if w := want[s.ID]; w > 0 && math.Abs(s.Entitled-w) > 0.01*w {
			t.Errorf("%s would be served %v per second, want %v", s.ID, s.Entitled, w)
		}
	}
}

// What waits for the ceiling of one tenant is before nobody else, whatever its priority; nor
// is what a flood of an id without a row has waiting before a quiet one.
func TestCeilingHoldsUpNobodyElse(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(4), Service: 10 * ms, Depth: 1000, MaxWait: time.Hour, Tenants: &Tenants{
		Rows: []Tenant{{ID: "a", MaxInUse: 1}, {ID: "b"}},
	}})
	offer := func(id string, p Priority, deadline time.Duration) Decision {
		return c.Offer(0, Request{Deadline: deadline, Tenant: id, Priority: p})
	}
	for range 200 {
		offer("a", Critical, Never)
	}
	for range 3 {
		offer("b", Default, Never)
	}
	// 400 per second are served, and it is next.
	if d := offer("b", Default, 200*ms); d.Verdict != Queued || d.PredictedWait != 2500*time.Microsecond {
		t.Errorf("b: %v %v after %v", d.Verdict, d.Reason, d.PredictedWait)
	}
	for range 100 {
		offer("flood", Default, Never)
	}
	// The one of b, each of the eight buckets of the flood once, and itself.
	if d := offer("quiet", Default, 200*ms); d.Verdict != Queued || d.PredictedWait > 10*2500*time.Microsecond {
		t.Errorf("a quiet id: %v %v after %v", d.Verdict, d.Reason, d.PredictedWait)
	}
}
