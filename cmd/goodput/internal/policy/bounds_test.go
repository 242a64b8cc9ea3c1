package policy

import (
	"math"
	"reflect"
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

// So are those of the constants of laws, each in the words of its key; the names of the
// keys are all there are.
func TestBoundsOfLawsAreThoseOfTheLibrary(t *testing.T) {
	up := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	down := func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	fields := 0
	for name, c := range map[string]struct{ at, beyond [2]limit.Law }{
		"aimd backoff": {
			[2]limit.Law{limit.AIMD{Backoff: 0.5}, limit.AIMD{Backoff: 0.99}},
			[2]limit.Law{limit.AIMD{Backoff: down(0.5)}, limit.AIMD{Backoff: up(0.99)}},
		},
		"aimd timeout": {
			[2]limit.Law{limit.AIMD{Timeout: shortest}, limit.AIMD{Timeout: lawSpell}},
			[2]limit.Law{limit.AIMD{Timeout: shortest - 1}, limit.AIMD{Timeout: lawSpell + 1}},
		},
		"aimd window": {
			[2]limit.Law{limit.AIMD{Window: lawWindow}, limit.AIMD{Window: lawSpell}},
			[2]limit.Law{limit.AIMD{Window: lawWindow - 1}, limit.AIMD{Window: lawSpell + 1}},
		},
		"vegas alpha": {
			[2]limit.Law{limit.Vegas{Alpha: 0.1}, limit.Vegas{Alpha: 100}},
			[2]limit.Law{limit.Vegas{Alpha: down(0.1)}, limit.Vegas{Alpha: up(100)}},
		},
		"vegas beta": {
			[2]limit.Law{limit.Vegas{Alpha: 0.1, Beta: 0.1}, limit.Vegas{Beta: 100}},
			[2]limit.Law{limit.Vegas{Alpha: 0.1, Beta: down(0.1)}, limit.Vegas{Beta: up(100)}},
		},
		"vegas smoothing": {
			[2]limit.Law{limit.Vegas{Smoothing: 0.01}, limit.Vegas{Smoothing: 1}},
			[2]limit.Law{limit.Vegas{Smoothing: down(0.01)}, limit.Vegas{Smoothing: up(1)}},
		},
		"vegas probe": {
			[2]limit.Law{limit.Vegas{Probe: 1}, limit.Vegas{Probe: lawWhole}},
			[2]limit.Law{limit.Vegas{Probe: -1}, limit.Vegas{Probe: lawWhole + 1}}, // 0 is the default
		},
		"vegas window": {
			[2]limit.Law{limit.Vegas{Window: lawWindow}, limit.Vegas{Window: lawSpell}},
			[2]limit.Law{limit.Vegas{Window: lawWindow - 1}, limit.Vegas{Window: lawSpell + 1}},
		},
		"gradient2 queue": {
			[2]limit.Law{limit.Gradient2{Queue: 1}, limit.Gradient2{Queue: lawWhole}},
			[2]limit.Law{limit.Gradient2{Queue: -1}, limit.Gradient2{Queue: lawWhole + 1}},
		},
		"gradient2 tolerance": {
			[2]limit.Law{limit.Gradient2{Tolerance: 1}, limit.Gradient2{Tolerance: 100}},
			[2]limit.Law{limit.Gradient2{Tolerance: down(1)}, limit.Gradient2{Tolerance: up(100)}},
		},
		"gradient2 smoothing": {
			[2]limit.Law{limit.Gradient2{Smoothing: 0.01}, limit.Gradient2{Smoothing: 1}},
			[2]limit.Law{limit.Gradient2{Smoothing: down(0.01)}, limit.Gradient2{Smoothing: up(1)}},
		},
		"gradient2 long": {
			[2]limit.Law{limit.Gradient2{Long: 10}, limit.Gradient2{Long: lawWhole}},
			[2]limit.Law{limit.Gradient2{Long: 9}, limit.Gradient2{Long: lawWhole + 1}},
		},
		"gradient2 drift": {
			[2]limit.Law{limit.Gradient2{Drift: 0.1}, limit.Gradient2{Drift: 1}},
			[2]limit.Law{limit.Gradient2{Drift: down(0.1)}, limit.Gradient2{Drift: up(1)}},
		},
		"gradient2 window": {
			[2]limit.Law{limit.Gradient2{Window: lawWindow}, limit.Gradient2{Window: lawSpell}},
			[2]limit.Law{limit.Gradient2{Window: lawWindow - 1}, limit.Gradient2{Window: lawSpell + 1}},
		},
	} {
		fields++
		for i := range c.at {
			if _, err := c.at[i].Start(); err != nil {
				t.Errorf("%s: the library does not take %+v: %v", name, c.at[i], err)
			}
			if _, err := c.beyond[i].Start(); err == nil {
				t.Errorf("%s: the library takes %+v", name, c.beyond[i])
			}
		}
	}
	const common = 3 // From, Min, Max
	all := 0
	for _, law := range []limit.Law{limit.AIMD{}, limit.Vegas{}, limit.Gradient2{}} {
		all += reflect.TypeOf(law).NumField() - common
	}
	const own = common + 1 // Shared, which has no range
	if n := reflect.TypeFor[limit.Auto]().NumField(); fields != all || n != own {
		t.Errorf("the laws have %d constants and auto %d, a file %d and %d", all, n, fields, own)
	}
}
