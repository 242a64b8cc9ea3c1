package admission

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What waits for the ceiling of its tenant holds up nobody, with its bodies neither: it
// gives way where those fill the memory.
func TestParkedBodiesGiveWay(t *testing.T) {
	c := benchCore(t, Config{
		Limit: limit.Fixed(20), Depth: 1000, MaxBytes: 64, MaxWait: time.Hour,
		Tenants: &Tenants{Rows: []Tenant{{ID: "batch", MaxInUse: 10, Highest: Background}, {ID: "acme"}}},
	})
	for range 10 + 16 {
		c.Offer(0, Request{Deadline: Never, Tenant: "batch", Bytes: 4})
	}
	for range 10 {
		c.Offer(0, Request{Deadline: Never, Tenant: "acme"})
	}
	d := c.Offer(0, Request{Deadline: Never, Tenant: "acme", Priority: Critical, Bytes: 4})
	if d.Verdict != Queued {
		t.Fatalf("critical work is refused as %v, because of background work that may not run", d.Reason)
	}
	if w := c.Next(); w == nil || w.Reason() != Displaced {
		t.Errorf("nobody gave way")
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// A reserve is a part of the derived depth, also where requests with a deadline are
// bound by their odds alone.
func TestReserveOfATightQueue(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Service: 50 * ms, MaxItems: 10, Reserve: Reserve{Background: 0.01}})
	offer := func(p Priority) Decision {
		return c.Offer(0, Request{Deadline: 399 * ms, Priority: p})
	}
	for range 12 {
		offer(Background)
	}
	if !c.derivation.Tight || c.waiting < 2 {
		t.Fatalf("%d wait, tight %v", c.waiting, c.derivation.Tight)
	}
	for c.waiting < 10 && offer(Background).Verdict == Queued {
	}
	if d := offer(Critical); d.Verdict != Queued {
		t.Errorf("with %d in background waiting critical work is refused as %v", c.waiting, d.Reason)
	}
}

// The rates of a tenant of which something runs for ever fade to nothing, not to what
// makes the forecast of everybody infinite.
func TestForecastStaysFinite(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(10), Tenants: &Tenants{Rows: []Tenant{{ID: "stream"}, {ID: "other"}}}})
	c.Offer(0, Request{Deadline: Never, Tenant: "stream"})
	now := time.Duration(0)
	for now < 400*time.Second {
		now += 10 * ms
		if now < 286*time.Second {
			d := c.Offer(now, Request{Deadline: Never, Tenant: "other"})
			c.Release(now, End{Outcome: Completed, Share: d.Share})
		}
		for _, s := range c.TopTenants(now, 3) {
			if bad := s.Offered + s.Entitled; math.IsNaN(bad) || math.IsInf(bad, 0) {
				t.Fatalf("after %v: %+v", now, s)
			}
		}
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
