package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
)

// withTenants gives each run of r n tenants, of which the first sends most, and the
// first class users.
func withTenants(r *Report, n int) *Report {
	for i := range r.Policies {
		for k, run := range r.Policies[i].Runs {
			run.Tenants = nil
			for j := range n {
				t := sim.TenantResult{Entitled: 18_000}
				t.Name = fmt.Sprintf("tenant-%d", j+1)
				t.Requests = uint64(200_000/(j+1) + 100*k)
				t.InTime = t.Requests / uint64(i+2)
				t.Refused = t.Requests - t.InTime
				t.Asked, t.Granted = 2*t.Requests, 2*t.InTime
				t.Reasons[admission.OverQuota], t.Reasons[admission.Replaced] = t.Refused/3, t.Refused-t.Refused/3
				t.Latency = run.Total.Latency
				run.Tenants = append(run.Tenants, t)
			}
			run.Total.Cohorts = &[admission.Cohorts]sim.Cohort{{Requests: run.Total.Requests, InTime: run.Total.InTime}}
		}
	}
	return r
}

// What each tenant asked for, was entitled to and got, and the reason that most of the
// refused were told: the quota and the newer one are reasons as any other.
func TestTextOfTenants(t *testing.T) {
	golden(t, "tenants.txt", []byte(show(t, withTenants(sample(2, 2), 3), Columns, false)))
	for _, l := range strings.Split(show(t, withTenants(sample(2, 2), 40), Columns, true), "\n") {
		if strings.Contains(l, "tenant-13") {
			t.Errorf("more than a terminal shows: %s", l)
		}
	}
	if got := show(t, withTenants(sample(1, 1), 40), Columns, false); !strings.Contains(got, "  and 28 more: --output has them\n") {
		t.Errorf("what is left out is not said:\n%s", got)
	}
	if got := show(t, withTenants(sample(1, 1), 1), Columns, false); strings.Contains(got, "entitled") {
		t.Errorf("one tenant is everybody, and has a table:\n%s", got)
	}
}

// The page has a row for each tenant, with all reasons.
func TestPageOfTenants(t *testing.T) {
	got := html(t, withTenants(sample(2, 1), 40))
	for _, want := range []string{"<caption>Tenants, mean of the runs</caption>", "tenant-40", "quota 33", "replaced 66", "or one in ten or less: goodput 0.0 %, fifo 100.0 %."} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if got := html(t, sample(2, 1)); strings.Contains(got, "<caption>Tenants") {
		t.Error("a table of no tenants")
	}
}

// A run with other tenants than the first cannot be averaged with it.
func TestTenantsOfEachRun(t *testing.T) {
	r := withTenants(sample(2, 2), 3)
	r.Policies[1].Runs[1].Tenants = r.Policies[1].Runs[1].Tenants[:2]
	if err := r.check(); err == nil || !strings.Contains(err.Error(), `run 2 of policy "fifo" has 2 tenants and the first of all 3`) {
		t.Errorf("%v", err)
	}
}
