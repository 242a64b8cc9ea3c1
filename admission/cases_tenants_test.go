package admission

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// What broke in other systems where several tenants share, as far as it concerns
// decisions. Named after the cases in the collection.

// A tenant that queues a thousand is not worked off before another one starts: that
// one has its turn at the next end of a request. Named tenants and ids without a row
// alike. (C099)
func TestC099BurstOfOneTenant(t *testing.T) {
	for _, second := range []string{"b", "stranger"} {
		c := benchCore(t, Config{Limit: limit.Fixed(4), Depth: 2000, MaxWait: time.Hour, Tenants: &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}})
		var share Share
		for range 1000 {
			if d := c.Offer(0, Request{Deadline: Never, Tenant: "a"}); d.Verdict == Admitted {
				share = d.Share
			}
		}
		w := c.Offer(0, Request{Deadline: Never, Tenant: second}).Waiter
		ends := 0
		for w.Verdict() == Queued {
			c.Release(0, End{Share: share, Outcome: Completed})
			ends++
		}
		if ends > 1 {
			t.Errorf("%s starts after %d of a", second, ends)
		}
	}
}

// Weights that are no weights are refused where they are written, and clamped and counted
// where a program sets them; none of them comes first or divides by zero. 0 in a
// configuration is the default. (C101)
func TestC101WeightsThatAreNone(t *testing.T) {
	for _, w := range []float64{math.NaN(), -1, math.Inf(1), math.Inf(-1), 1e-13, 1e13, math.SmallestNonzeroFloat64} {
		_, err := New(Config{Limit: limit.Fixed(1), Tenants: &Tenants{Rows: []Tenant{{ID: "zoo", Weight: w}}}})
		if err == nil || !strings.Contains(err.Error(), "zoo") || !strings.Contains(err.Error(), fmt.Sprint(w)) {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	for _, w := range []float64{math.NaN(), -1, 0, math.Inf(1), math.Inf(-1), 1e300} {
		c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 3000, MaxWait: time.Hour, Tenants: &Tenants{
			Rows: []Tenant{{ID: "zero"}, {ID: "b"}, {ID: "c"}},
		}})
		c.SetWeight(0, "zero", w)
		if got := c.table["zero"].Weight; !(got >= 1e-6 && got <= 1e6) || c.Stats(0).Tenants.Clamped != 1 {
			t.Errorf("weight %v became %v, %d clamped", w, got, c.Stats(0).Tenants.Clamped)
		}
		share := c.Offer(0, Request{Deadline: Never, Tenant: "b"}).Share
		for range 200 { // the other two wait before it comes
			c.Offer(0, Request{Deadline: Never, Tenant: "b"})
			c.Offer(0, Request{Deadline: Never, Tenant: "c"})
		}
		for range 200 {
			c.Offer(0, Request{Deadline: Never, Tenant: "zero"})
		}
		got := map[string]int{}
		for range 300 {
			c.Release(0, End{Share: share, Outcome: Completed})
			n := c.Next()
			share = n.Share()
			got[n.flow.row.ID]++
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		// By their weights, to a request; the heaviest has all of its 200 first.
		want := map[string]int{"b": 149, "c": 150, "zero": 1}
		switch {
		case math.IsNaN(w):
			want = map[string]int{"b": 100, "c": 100, "zero": 100}
		case w > 1:
			want = map[string]int{"b": 50, "c": 50, "zero": 200}
		}
		for id, n := range want {
			if got[id] < n-1 || got[id] > n+1 {
				t.Errorf("weight %v: %s was granted %d, want %d", w, id, got[id], n)
			}
		}
	}
}

// Weights that are tiny and equal share evenly, and no tenant starves for where it
// stands in the table. (C103)
func TestC103EqualTinyWeights(t *testing.T) {
	tenants := &Tenants{Others: Tenant{Weight: 1e-12}}
	for _, id := range []string{"a", "b", "c"} {
		tenants.Rows = append(tenants.Rows, Tenant{ID: id, Weight: 1e-12})
	}
	c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 5000, MaxWait: time.Hour, Tenants: tenants})
	share := c.Offer(0, Request{Deadline: Never, Tenant: "a"}).Share
	for _, row := range tenants.Rows {
		for range 1000 {
			c.Offer(0, Request{Deadline: Never, Tenant: row.ID})
		}
	}
	got := map[string]int{}
	for i := range 3000 {
		c.Release(0, End{Share: share, Outcome: Completed})
		w := c.Next()
		share = w.Share()
		got[w.flow.row.ID]++
		for _, row := range tenants.Rows {
			if n := got[row.ID]; n < i/3-1 || n > i/3+2 {
				t.Fatalf("after %d grants: %v", i+1, got)
			}
		}
	}
}

// A tenant counts as waiting as long as something of it waits, however long that is: an
// hour of backlog later the shares are still even. (C105)
func TestC105WaitingHasNoEnd(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Depth: 10_000, MaxWait: MaxObjective, Order: FIFO, Tenants: &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}})
	now := time.Duration(0)
	share := c.Offer(now, Request{Deadline: Never, Tenant: "a"}).Share
	for _, id := range []string{"a", "b"} {
		for range 3000 {
			c.Offer(now, Request{Deadline: Never, Tenant: id, Arrival: now})
		}
	}
	got := map[string]int{}
	for i := range 6000 {
		if now += 7 * time.Second; i%100 == 0 { // 11 hours
			c.Stats(now)
		}
		c.Release(now, End{Share: share, Outcome: Completed})
		w := c.Next()
		share = w.Share()
		got[w.flow.row.ID]++
		if d := got["a"] - got["b"]; d < -1 || d > 1 {
			t.Fatalf("after %v: %v", now, got)
		}
	}
}

// A million ids that nobody knows cost what one does, together have one ceiling and one
// quota, and leave those that are known alone. (C106)
func TestC106UnknownIdsCostNothing(t *testing.T) {
	ids := 1_000_000
	if raceEnabled || testing.Short() {
		ids = 50_000
	}
	c := benchCore(t, Config{Limit: limit.Fixed(60), Tenants: &Tenants{Rows: []Tenant{{ID: "known"}}}})
	var before, after runtime.MemStats
	name := []byte("id-0000000000")
	play := func(n int) {
		for i := range n {
			now := time.Duration(i) * 600 * time.Microsecond // 10 min
			for j, v := len(name)-1, i; j > 2; j, v = j-1, v/10 {
				name[j] = byte('0' + v%10)
			}
			d := c.Offer(now, Request{Deadline: Never, Tenant: string(name)})
			if d.Verdict != Admitted {
				t.Fatalf("%d: %+v", i, d)
			}
			c.Release(now, End{Share: d.Share, Outcome: Completed})
		}
	}
	play(10_000)
	runtime.GC()
	runtime.ReadMemStats(&before)
	play(ids)
	runtime.GC()
	runtime.ReadMemStats(&after)
	// A table with an entry for each would have 50 MB; the test's own printing is 4 KB.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<10 {
		t.Errorf("%d ids left %d bytes", ids, grown)
	}
	if s := c.Stats(time.Hour); s.Tenants.Active > 2 || len(c.rows) != 3 || len(c.table) != 1 {
		t.Errorf("%+v, %d rows, %d known", s.Tenants, len(c.rows), len(c.table))
	}
}

// A tenant that has used up its quota floods with other ids and comes back: it has no
// row that could be pushed out, and neither have ids without one, whose quota is one
// for all of them. (C108)
func TestC108FloodGivesNoQuotaBack(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(60), Tenants: &Tenants{
		Rows: []Tenant{{ID: "a", Quota: Quota{Rate: 1, Burst: 5}}}, Others: Tenant{Quota: Quota{Rate: 1, Burst: 20}},
	}})
	admitted := func(id string) int {
		d := c.Offer(0, Request{Deadline: Never, Tenant: id})
		if d.Verdict != Admitted {
			if d.Reason != OverQuota || d.RetryAfter <= 0 {
				t.Fatalf("%s: %+v", id, d)
			}
			return 0
		}
		c.Release(0, End{Share: d.Share, Outcome: Completed})
		return 1
	}
	n := 0
	for range 10 {
		n += admitted("a")
	}
	flood := 0
	for i := range 100_000 {
		flood += admitted(fmt.Sprint("flood", i))
	}
	for range 10 {
		n += admitted("a")
	}
	if n != 5 || flood != 20 {
		t.Errorf("a had %d of its 5, the flood %d of 20", n, flood)
	}
}

// All ids without a row together obey one limit, whether it is one id in parallel or a
// thousand. (C109)
func TestC109UnknownIdsObeyOneLimit(t *testing.T) {
	for _, distinct := range []bool{false, true} {
		c := benchCore(t, Config{Limit: limit.Fixed(500), Depth: 2000, MaxWait: time.Hour, Tenants: &Tenants{
			Rows: []Tenant{{ID: "a"}}, Others: Tenant{MaxInUse: 10},
		}})
		admitted := 0
		for i := range 1000 {
			id := "one"
			if distinct {
				id = fmt.Sprint("id", i)
			}
			if c.Offer(0, Request{Deadline: Never, Tenant: id}).Verdict == Admitted {
				admitted++
			}
		}
		if d := c.Offer(0, Request{Deadline: Never, Tenant: "a"}); d.Verdict != Admitted {
			t.Errorf("a waits behind what waits for a ceiling: %+v", d)
		}
		if s := c.Stats(0); admitted != 10 || s.InUse != 11 || s.Waiting != 990 || s.Tenants.Capped != 990 {
			t.Errorf("distinct %v: %d admitted, %d in use, %d waiting, %d for a ceiling", distinct, admitted, s.InUse, s.Waiting, s.Tenants.Capped)
		}
	}
}
