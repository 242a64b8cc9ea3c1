package admission

import (
	"math"
	"testing"

	"github.com/goodput/goodput/limit"
)

// The forecast by hand: 60 slots of 50 ms are 1,200 units a second, and each tenant asks,
// by default, for what is said.
func TestForecast(t *testing.T) {
	type asks map[string]float64
	for name, tc := range map[string]struct {
		rows     []Tenant
		reserve  Reserve
		asks     asks
		critical float64 // asked for by nobody in particular, the others
		served   asks
		entitled asks
	}{
		"all fits": {
			rows: []Tenant{{ID: "a"}, {ID: "b"}}, asks: asks{"a": 300, "b": 600},
			served: asks{"a": 300, "b": 600}, entitled: asks{"a": 600, "b": 900},
		},
		"one asks for too much": {
			rows: []Tenant{{ID: "a"}, {ID: "b"}}, asks: asks{"a": 300, "b": 6000},
			served: asks{"a": 300, "b": 900}, entitled: asks{"a": 450, "b": 900},
		},
		"by weight": {
			rows: []Tenant{{ID: "a", Weight: 3}, {ID: "b"}}, asks: asks{"a": 6000, "b": 6000},
			served: asks{"a": 900, "b": 300}, entitled: asks{"a": 900, "b": 300},
		},
		"a ceiling": {
			rows: []Tenant{{ID: "a", MaxInUse: 15}, {ID: "b"}}, asks: asks{"a": 6000, "b": 6000},
			served: asks{"a": 300, "b": 900}, entitled: asks{"a": 300, "b": 900},
		},
		"above and a reserve": {
			rows: []Tenant{{ID: "a"}}, reserve: Reserve{Default: 0.25}, asks: asks{"a": 6000}, critical: 6000,
			served: asks{"a": 300}, entitled: asks{"a": 300},
		},
		"who does not ask would be one more": {
			rows: []Tenant{{ID: "a"}, {ID: "b"}}, asks: asks{"a": 6000},
			served: asks{"a": 1200}, entitled: asks{"a": 1200, "b": 600},
		},
	} {
		c := benchCore(t, Config{Limit: limit.Fixed(60), Service: 50 * ms, Reserve: tc.reserve, Tenants: &Tenants{Rows: tc.rows}})
		c.overload = true
		for _, row := range tc.rows {
			r := c.table[row.ID]
			r.rate[Default-1] = tc.asks[row.ID]
			c.load.rate += tc.asks[row.ID]
			c.activate(r)
		}
		if tc.critical > 0 {
			o := c.rows[c.rest]
			o.rate[Critical-1] = tc.critical
			c.load.rate += tc.critical
			c.activate(o)
		}
		c.apportion()
		for id, want := range tc.served {
			if got := c.table[id].served[Default-1]; math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s: %s is served %v, want %v", name, id, got, want)
			}
			if greedy := c.table[id].greedy[Default-1]; greedy != (tc.asks[id] > 1.5*want) {
				t.Errorf("%s: %s asks for too much: %v", name, id, greedy)
			}
		}
		for id, want := range tc.entitled {
			if got := c.entitled(&c.table[id].flows[Default-1]); math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s: %s is entitled to %v, want %v", name, id, got, want)
			}
		}
	}
}

// A tenant that seems to ask for a little more than its share is not believed at
// once: 20 % of 120 requests a second over 400 ms is less than two standard errors.
func TestForecastDoubts(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(60), Service: 50 * ms, Tenants: &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b", Weight: 9}}}})
	c.overload = true
	a, b := c.table["a"], c.table["b"]
	b.rate[Default-1] = 12000
	c.activate(a)
	c.activate(b)
	for rate, want := range map[float64]bool{119: false, 140: false, 160: true, 1200: true} {
		a.rate[Default-1] = rate
		c.load.rate = 12000 + rate
		c.apportion()
		if got := a.greedy[Default-1]; got != want {
			t.Errorf("at %v of 120 a second: over its share %v, want %v", rate, got, want)
		}
	}
}

func TestQuotaBurst(t *testing.T) {
	for q, want := range map[Quota]float64{{Rate: 20}: 20, {Rate: 0.5}: 1, {Rate: 20, Burst: 3}: 3} {
		if got := q.burst(); got != want {
			t.Errorf("%+v: a burst of %v, want %v", q, got, want)
		}
	}
}

// The probabilities of Kubernetes' priority and fairness, for 64 queues and hands of 8.
func TestSquished(t *testing.T) {
	for floods, want := range map[int]float64{1: 2.26e-10, 4: 4.89e-4, 16: 0.359} {
		if got := new(Tenants).Squished(floods); math.Abs(got/want-1) > 0.01 {
			t.Errorf("beside %d that flood: %.4g, want %.4g", floods, got, want)
		}
	}
}
