package goodput

import (
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput/admission"
)

// explained is how many tenants Explain shows: what fits a screen, and who asks for most
// is who matters.
const explained = 5

// explainShares says what there is for all, who has what, and who is shed: nothing without
// an allowance, tenants, reserves and an overload.
func explainShares(f *facts, s *Stats, cfg *Config, top []TenantState) {
	explainAllowance(f, s)
	if cfg.Tenants != nil {
		t := &s.Stats.Tenants
		capped := ""
		if t.Capped > 0 {
			capped = fmt.Sprintf("; cost %d waits for a ceiling of its own", t.Capped)
		}
		f.add("tenants", "%d with a row; %d ask, %d for more than their share%s", t.Rows, t.Active, t.Over, capped)
		for i := range top {
			f.also("%s", tenantWords(&top[i], s))
		}
		if more := t.Active - len(top); more > 0 {
			f.also("and %d that ask for less", more)
		}
	}
	if parts := reserveWords(cfg.Reserve); parts != "" {
		f.add("reserve", "%s of what is granted", parts)
	}
	if s.ShedCohort > 0 {
		f.add("shed", "%v, users from cohort %d of %d on: %.3g/s offered where %.3g/s are left for it",
			s.ShedPriority, s.ShedCohort, admission.Cohorts, s.ShedOffered, s.ShedServed)
	}
}

// tenantWords says what one tenant has, what it asks for and what it would get.
// The account is that of the core, which has admitted and refused as the shadow.
func tenantWords(t *TenantState, s *Stats) string {
	var b strings.Builder
	name := fmt.Sprintf("%q", t.ID)
	if t.ID == "" {
		name = "the others"
	}
	use, refused := "in use", "refused"
	switch {
	case s.Observe:
		use, refused = "would be in use", "refused, or would be"
	case s.Shadow.Arrivals > 0:
		refused = "refused, or would have been while it observed"
	}
	fmt.Fprintf(&b, "%s: weight %.3g, %d %s", name, t.Weight, t.InUse, use)
	if t.MaxInUse < s.Limit {
		fmt.Fprintf(&b, " of at most %d", t.MaxInUse)
	}
	fmt.Fprintf(&b, ", %d waiting; %s/s offered, %s/s entitled", t.Waiting, perSecond(t.Offered), perSecond(t.Entitled))
	if t.Over {
		b.WriteString(": over its share")
		if t.Level > 0 {
			fmt.Fprintf(&b, " of %.3g x %.3g/s", t.Weight, t.Level)
		}
	}
	if t.Quota.Rate > 0 {
		fmt.Fprintf(&b, "; %s, %.3g left", quotaWords(t.Quota), t.Left)
		if lacks := 1 - t.Left; lacks > 0 {
			next := time.Duration(min(lacks/t.Quota.Rate, 1e9) * float64(time.Second)) // 30 years fit
			fmt.Fprintf(&b, ", the next unit in %v", next.Round(time.Millisecond))
		}
	}
	if t.Refused > 0 {
		fmt.Fprintf(&b, "; %d of %d %s", t.Refused, t.Arrivals, refused)
		if t.Quotaed > 0 {
			fmt.Fprintf(&b, ", %d for the quota", t.Quotaed)
		}
	}
	return b.String()
}

func reserveWords(r Reserve) string {
	var parts []string
	for _, p := range []struct {
		part float64
		of   Priority
	}{{r.Critical, Critical}, {r.Default, Default}, {r.Sheddable, Sheddable}, {r.Background, Background}} {
		if p.part > 0 {
			parts = append(parts, fmt.Sprintf("%.3g %% for %v", 100*p.part, p.of))
		}
	}
	return strings.Join(parts, ", ")
}
