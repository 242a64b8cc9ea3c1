package policy

import (
	"cmp"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// Ranges, in the words of admission.Tenants.
const (
	maxRows    = 4096
	maxID      = 128
	minWeight  = 1e-12
	maxWeight  = 1e12
	maxRatio   = 1e6 // of the heaviest weight to the lightest
	minRate    = 1e-6
	maxRate    = 1e9
	maxBuckets = 1024
	maxHand    = 16

	// Of the reserves below critical together: one grant in 33 is what the guard against
	// starvation leaves to those above.
	maxBelow = 32.0 / 33
	rounding = 1e-9 // a sum of parts may be above a bound by that
)

// from critical on, in the order of admission.Priority.
var priorities = words(admission.Critical, admission.Default, admission.Sheddable, admission.Background)

// tenants reads the shares of those who send: rows alone, or rows with what there is
// beside them, or none, which takes back what was said before.
//
//	tenants: [{id: acme, weight: 3}]
//	tenants: {rows: [{id: acme, weight: 3}], others: {max_in_use: 10}, buckets: 128, hand: 4}
func tenants(n strictyaml.Node) *admission.Tenants {
	t := &admission.Tenants{}
	switch {
	case n.Raw() == "none":
		return nil
	case n.IsList():
		rows(n, t)
		return t
	case n.IsText():
		n.Fail("tenants %q is not understood: a list of rows, such as [{id: acme, weight: 3}], keys with values, or none", n.Raw())
		return nil
	}
	m := n.Map()
	defer m.Done()
	rows(m.Get("rows"), t)
	if o := m.Get("others"); o.Present() {
		m := o.Map()
		tenant(m, &t.Others)
		m.Done()
	}
	set(&t.Buckets, m.Get("buckets"), func(n strictyaml.Node) int { return int(n.Whole(1, maxBuckets)) })
	set(&t.Hand, m.Get("hand"), func(n strictyaml.Node) int { return int(n.Whole(1, maxHand)) })
	if o := m.Get("others"); o.Present() {
		m := o.Map()
		ratio(m.Get("weight"), t.Others.Weight, t.Rows)
	}
	return t
}

// rows reads those that are known by name. What contradicts something in another row
// is said here, where both are known.
func rows(n strictyaml.Node, t *admission.Tenants) {
	first := map[string]strictyaml.Node{}
	for _, n := range n.List(maxRows) {
		m := n.Map()
		id := m.Need("id", "acme")
		row := admission.Tenant{ID: id.Text(maxID)}
		if other, twice := first[row.ID]; twice && row.ID != "" {
			id.Clash(other, "tenant %q has two rows", row.ID)
		} else {
			first[row.ID] = id
		}
		tenant(m, &row)
		ratio(m.Get("weight"), row.Weight, t.Rows)
		m.Done()
		t.Rows = append(t.Rows, row)
	}
}

// ratio reports a weight that is too far from that of a row: virtual time could not
// tell the heaviest's requests apart.
func ratio(n strictyaml.Node, weight float64, rows []admission.Tenant) {
	for _, row := range rows {
		w := cmp.Or(row.Weight, 1)
		if weight > 0 && (weight > maxRatio*w || w > maxRatio*weight) {
			n.Fail("weight %g and weight %g of tenant %q are more than %.0e times apart", weight, w, row.ID, maxRatio)
			return
		}
	}
}

// tenant reads what a row and the others have alike.
func tenant(m *strictyaml.Map, row *admission.Tenant) {
	set(&row.Weight, m.Get("weight"), func(n strictyaml.Node) float64 { return n.Number(minWeight, maxWeight) })
	set(&row.MaxInUse, m.Get("max_in_use"), func(n strictyaml.Node) int { return int(n.Whole(1, limit.Max)) })
	set(&row.MaxQueue, m.Get("max_queue"), func(n strictyaml.Node) float64 { return n.Part(0.0001) })
	set(&row.Highest, m.Get("highest"), func(n strictyaml.Node) admission.Priority {
		return admission.Critical + admission.Priority(n.Word(priorities...))
	})
	set(&row.Quota, m.Get("quota"), quota)
}

// quota reads a rate, or a rate with a burst.
func quota(n strictyaml.Node) (q admission.Quota) {
	if n.IsText() {
		q.Rate = n.Rate(minRate, maxRate)
		return q
	}
	m := n.Map()
	defer m.Done()
	q.Rate = m.Need("rate", "100/s").Rate(minRate, maxRate)
	set(&q.Burst, m.Get("burst"), func(n strictyaml.Node) float64 { return n.Number(1, maxRate) })
	return q
}

// reserve reads the part of what is granted that is left to each priority, or none.
func reserve(n strictyaml.Node) (r admission.Reserve) {
	if n.Raw() == "none" {
		return r
	}
	m := n.Map()
	defer m.Done()
	sum := 0.0
	for i, field := range []*float64{&r.Critical, &r.Default, &r.Sheddable, &r.Background} {
		set(field, m.Get(priorities[i]), func(n strictyaml.Node) float64 { return n.Part(0) })
		sum += *field
	}
	switch below := sum - r.Critical; {
	case sum > 1+rounding:
		n.Fail("the reserves add up to %.6g: at most 1, they are parts of what is granted", sum)
	case below > maxBelow+rounding:
		n.Fail("the reserves below critical add up to %.4g: at most 32/33, or nothing critical is ever served", below)
	default:
		return r
	}
	return admission.Reserve{}
}
