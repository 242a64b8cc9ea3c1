package admission

import (
	"fmt"
	"math"
)

// What the duel does with tenants.

// ids send the requests: of some there are rows now and then, of others never.
var ids = []string{"a", "a", "b", "c", "d", "", "x1", "x2", "x3"}

// shares gives a third of the configurations tenants, and a quarter reserves. Weights are
// powers of two, so that virtual times are exact and ties are ties; rates of quotas are
// such that no quota ever has exactly enough.
func (d *duel) shares(cfg *Config) {
	if d.pick(4) == 0 {
		cfg.Reserve = []Reserve{
			{Default: 0.5},
			{Critical: 0.25, Default: 0.25, Sheddable: 0.25, Background: 0.25},
			{Background: 0.125},
			{Critical: 0.5, Sheddable: 0.125},
		}[d.pick(4)]
	}
	if had := d.cfg.Tenants != nil; had && d.pick(8) == 0 || !had && d.pick(3) > 0 {
		return
	}
	t := &Tenants{Buckets: []int{1, 2, 5, 0}[d.pick(4)], Others: d.tenant("")}
	if t.Buckets > 1 {
		t.Hand = d.pick(3)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		if d.pick(3) > 0 {
			t.Rows = append(t.Rows, d.tenant(id))
		}
	}
	cfg.Tenants = t
}

func (d *duel) tenant(id string) Tenant {
	t := Tenant{
		ID: id, Weight: []float64{0, 1, 2, 4, 0.25}[d.pick(5)], MaxInUse: []int{0, 0, 1, 2, 3}[d.pick(5)],
		MaxQueue: []float64{0, 0, 0, 0.5, 0.1}[d.pick(5)], Highest: []Priority{0, 0, 0, Default, Sheddable}[d.pick(5)],
	}
	if d.pick(3) == 0 {
		t.Quota = []Quota{{Rate: 31.4159}, {Rate: 7.3137, Burst: 9.1}, {Rate: 301.77, Burst: 4.3}}[d.pick(3)]
	}
	return t
}

// setWeight keeps the weights that are in force between two calls powers of two; one that
// has to be clamped is replaced at once.
func (d *duel) setWeight(enter func()) error {
	id := ids[d.pick(len(ids))]
	for _, w := range []float64{
		[]float64{1, math.NaN(), -1, math.Inf(1), 0, 1e-13}[d.pick(6)],
		[]float64{1, 2, 0.5, 512, 1.0 / 512}[d.pick(5)],
	} {
		d.last = fmt.Sprintf("at %v weight of %q %v", d.now, id, w)
		d.core.SetWeight(d.now, id, w)
		enter()
		d.model.setWeight(id, w)
	}
	return nil
}

// compareAccounts looks at what TopTenants says.
func (d *duel) compareAccounts() error {
	if d.cfg.Tenants == nil || d.names%8 != 0 {
		return nil
	}
	all := d.core.TopTenants(d.now, 100)
	if len(all) != 1+len(d.cfg.Tenants.Rows) {
		return fmt.Errorf("%d tenants have accounts, configured are %d and the others", len(all), len(d.cfg.Tenants.Rows))
	}
	for _, got := range all {
		o := d.model.named[got.ID]
		if o == nil {
			o = d.model.rest
		}
		o.fill(d.model.now)
		cost := d.model.cost(func(p *place) bool { return p.owner == o })
		if got.Weight != o.Weight || got.InUse != o.inUse || got.Waiting != d.model.holds(o) || got.WaitingCost != cost ||
			got.Arrivals != o.arrivals || got.Refused != o.refused || got.Quotaed != o.overQuota || got.Granted != uint64(max(o.granted, 0)) ||
			o.Quota.Rate > 0 && math.Abs(got.Left-o.left) > 1e-6 {
			return fmt.Errorf("core  %+v\nmodel %+v", got, *o)
		}
	}
	return nil
}

// story tells what a difference needs to be understood.
func (d *duel) story(err error) string {
	s := fmt.Sprintf("%+v\n", d.cfg)
	if d.cfg.Tenants != nil {
		s += fmt.Sprintf("%+v\n", *d.cfg.Tenants)
	}
	for _, p := range d.model.queue {
		s += fmt.Sprintf("\twaits: %q/%d %v cost %d, attempt %d, cohort %d, arrival %v, %+v\n",
			p.Tenant, p.bucket, p.Priority, p.Cost, p.Attempt, p.Cohort, p.Arrival, *p.turn())
	}
	return s + err.Error()
}
