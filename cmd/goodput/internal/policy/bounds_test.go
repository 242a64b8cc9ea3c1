package policy

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// The ranges that are repeated here, so that an error has a place in the file, are those of
// the library: it takes each bound and refuses what is next to it.
func TestBoundsAreThoseOfTheLibrary(t *testing.T) {
	above := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	below := func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	// Of two weights, because the other one has to be near.
	weights := func(row, others float64) admission.Config {
		return admission.Config{Tenants: &admission.Tenants{
			Rows: []admission.Tenant{{ID: "a", Weight: row}}, Others: admission.Tenant{Weight: others},
		}}
	}
	shared := func(row admission.Tenant) admission.Config {
		row.ID = "a"
		return admission.Config{Tenants: &admission.Tenants{Rows: []admission.Tenant{row}}}
	}
	named := func(n int, id string) admission.Config {
		c := admission.Config{Tenants: &admission.Tenants{}}
		for i := range n {
			c.Tenants.Rows = append(c.Tenants.Rows, admission.Tenant{ID: id + strconv.Itoa(i)})
		}
		return c
	}
	quota := func(rate, burst float64) admission.Config {
		return shared(admission.Tenant{Quota: admission.Quota{Rate: rate, Burst: burst}})
	}
	allowed := func(rate, burst float64) admission.Config {
		return admission.Config{Allowance: admission.Quota{Rate: rate, Burst: burst}}
	}
	buckets := func(n, hand int) admission.Config {
		return admission.Config{Tenants: &admission.Tenants{Buckets: n, Hand: hand}}
	}
	reserve := func(critical, rest float64) admission.Config {
		return admission.Config{Reserve: admission.Reserve{Critical: critical, Default: rest}}
	}
	for name, c := range map[string]struct{ at, beyond admission.Config }{
		"maxRows":       {named(maxRows, ""), named(maxRows+1, "")},
		"maxID":         {named(1, strings.Repeat("x", maxID-1)), named(1, strings.Repeat("x", maxID))},
		"minWeight":     {weights(minWeight, minWeight), weights(below(minWeight), minWeight)},
		"maxWeight":     {weights(maxWeight, maxWeight), weights(above(maxWeight), maxWeight)},
		"maxRatio":      {weights(maxRatio, 1), weights(above(maxRatio), 1)},
		"limit.Max":     {shared(admission.Tenant{MaxInUse: limit.Max}), shared(admission.Tenant{MaxInUse: limit.Max + 1})},
		"max_queue":     {shared(admission.Tenant{MaxQueue: 1}), shared(admission.Tenant{MaxQueue: above(1)})},
		"minRate":       {quota(minRate, 0), quota(below(minRate), 0)},
		"maxRate":       {quota(maxRate, 0), quota(above(maxRate), 0)},
		"least burst":   {quota(1, 1), quota(1, below(1))},
		"most burst":    {quota(1, maxRate), quota(1, above(maxRate))},
		"least allowed": {allowed(minRate, 0), allowed(below(minRate), 0)},
		"most allowed":  {allowed(maxRate, maxRate), allowed(maxRate, above(maxRate))},
		"maxBuckets":    {buckets(maxBuckets, 1), buckets(maxBuckets+1, 1)},
		"maxHand":       {buckets(maxBuckets, maxHand), buckets(maxBuckets, maxHand+1)},
		"reserves":      {reserve(0.5, 0.5+rounding/2), reserve(0.5, 0.5+2*rounding)},
		"a reserve":     {reserve(1, 0), reserve(above(1), 0)},
		"maxBelow":      {reserve(0, maxBelow+rounding/2), reserve(0, maxBelow+2*rounding)},
		"shortest":      {admission.Config{Objective: shortest}, admission.Config{Objective: shortest - 1}},
		"longest":       {admission.Config{Objective: longest}, admission.Config{Objective: longest + 1}},
		"longest wait":  {admission.Config{MaxWait: longest}, admission.Config{MaxWait: longest + 1}},
		"service":       {admission.Config{Service: time.Second}, admission.Config{Service: time.Second + 1}},
		"depth":         {admission.Config{Depth: maxItems}, admission.Config{Depth: maxItems + 1}},
		"maxItems":      {admission.Config{MaxItems: maxItems}, admission.Config{MaxItems: maxItems + 1}},
		"minPercentile": {admission.Config{Percentile: minPercentile}, admission.Config{Percentile: below(minPercentile)}},
		"maxPercentile": {admission.Config{Percentile: maxPercentile}, admission.Config{Percentile: above(maxPercentile)}},
		"maxExempt":     {admission.Config{Exempt: maxExempt}, admission.Config{Exempt: maxExempt + 1}},
	} {
		c.at.Limit, c.beyond.Limit = limit.Fixed(1), limit.Fixed(1)
		if err := c.at.Validate(); err != nil {
			t.Errorf("%s: the library does not take it: %v", name, err)
		}
		if c.beyond.Validate() == nil {
			t.Errorf("%s: the library takes more", name)
		}
	}
}
