package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
)

// A Tenant is what became of one tenant under a policy, over its runs. Rates are units
// of cost per second of the window.
type Tenant struct {
	Name     string
	Asked    Figure // the cost of its requests, a request counted once however often it is tried
	Entitled Figure // what a fair division of all that was granted gives it
	Granted  Figure // the cost of what got a slot
	Ratio    Figure // share of its requests that were answered in time
	Refused  Figure // share of its requests whose last attempt was refused
	P99      Figure // from arrival to answer, of all attempts that got a slot
}

// tenants are those that are told apart: none if there is but one.
func (p Policy) tenants() (out []Tenant) {
	all := p.Runs[0].Tenants
	if len(all) < 2 {
		return nil
	}
	for i := range all {
		over := func(f func(t *sim.TenantResult, window time.Duration) float64) Figure {
			return p.over(func(r *sim.Result) float64 { return f(&r.Tenants[i], r.Window) })
		}
		out = append(out, Tenant{
			Name:     all[i].Name,
			Asked:    over(func(t *sim.TenantResult, window time.Duration) float64 { return perSecond(t.Asked, window) }),
			Entitled: over(func(t *sim.TenantResult, window time.Duration) float64 { return t.Entitled / window.Seconds() }),
			Granted:  over(func(t *sim.TenantResult, window time.Duration) float64 { return perSecond(t.Granted, window) }),
			Ratio:    over(func(t *sim.TenantResult, _ time.Duration) float64 { return share(t.InTime, t.Requests) }),
			Refused:  over(func(t *sim.TenantResult, _ time.Duration) float64 { return share(t.Refused, t.Requests) }),
			P99:      over(func(t *sim.TenantResult, _ time.Duration) float64 { return quantile(&t.Latency, 0.99) }),
		})
	}
	return out
}

// reasonsOf are those for which attempts of t were refused, in the order of package
// admission.
func reasonsOf(t *sim.Tally) (out []pair) {
	for k, n := range t.Reasons {
		if n > 0 {
			out = append(out, pair{admission.Reason(k).String(), thousands(n)})
		}
	}
	return out
}

// mostly is the reason for which most of the attempts of t were refused.
func mostly(t *sim.Tally) string {
	most := 0
	for k, n := range t.Reasons {
		if n > t.Reasons[most] {
			most = k
		}
	}
	return admission.Reason(most).String() // nothing if there are none: None has no word
}

// tenantColumns are those of the table in a terminal, 47 of 80 wide with their names
// before them and a reason behind.
var tenantColumns = []column{
	{Heads: [2]string{"asked", "/s"}, width: 8, unit: rate},
	{Heads: [2]string{"entitled", "/s"}, width: 9, unit: rate},
	{Heads: [2]string{"granted", "/s"}, width: 8, unit: rate},
	{Heads: [2]string{"in time", "%"}, width: 8, unit: percent},
	{Heads: [2]string{"refused", "%"}, width: 8, unit: percent},
	{Heads: [2]string{"p99", "ms"}, width: 8, unit: millis},
}

func (t Tenant) figures() []Figure {
	return []Figure{t.Asked, t.Entitled, t.Granted, t.Ratio, t.Refused, t.P99}
}

// shownTenants is how many tenants a terminal shows of a policy; the page and the JSON
// have all that a result has, 64.
const shownTenants = 12

// tenants writes what became of each tenant under each policy.
func (t *text) tenants(r *Report) {
	if len(r.Policies[0].tenants()) == 0 {
		return
	}
	t.gap()
	for i, first := range []string{"tenant", ""} {
		heads := make([]string, len(tenantColumns))
		for k, c := range tenantColumns {
			heads[k] = c.Heads[i]
		}
		t.line(t.bold(strings.TrimRight(pad(first, minName)+cells(tenantColumns, heads)+"  "+[]string{"mostly", "refused as"}[i], " ")))
	}
	for _, p := range r.Policies {
		t.line(cut(clean(p.Name), t.width))
		all := p.tenants()
		for i, one := range all[:min(len(all), shownTenants)] {
			means, spreads := make([]string, len(tenantColumns)), make([]string, len(tenantColumns))
			for k, x := range one.figures() {
				means[k], spreads[k] = x.plain(tenantColumns[k].unit), x.spread(tenantColumns[k].unit)
			}
			name := pad(cut("  "+clean(one.Name), minName-1), minName)
			t.line(strings.TrimRight(name+cells(tenantColumns, means)+"  "+mostly(&p.Runs[0].Tenants[i].Tally), " "))
			if len(p.Runs) > 1 {
				t.line(t.dim(strings.TrimRight(pad("", minName)+cells(tenantColumns, spreads), " ")))
			}
		}
		if n := len(all) - shownTenants; n > 0 {
			t.line(fmt.Sprintf("  and %d more: --output has them", n))
		}
	}
	for _, l := range wrap(aboutTenants, t.width) {
		t.line(t.dim(l))
	}
}

// aboutTenants explains the table.
const aboutTenants = "asked, entitled, granted: units of cost, of requests, of a fair division of all " +
	"that was granted, and of what got a slot. Entitled is what was asked, or less by weight, whatever the priorities are."

// steady is the share of the requests that come from users who are served almost always
// or almost never, over the runs; none without users.
func (p Policy) steady() Figure {
	return p.over(func(r *sim.Result) float64 {
		if x, ok := r.Total.Steady(); ok {
			return x
		}
		return math.NaN()
	})
}

// users says how much of who is served is decided by who asks, under each policy, or
// nothing if there are no users.
func (r *Report) users() string {
	var all []string
	for _, p := range r.Policies {
		if f := p.steady(); f.Runs > 0 {
			all = append(all, p.Name+" "+strings.TrimSpace(f.plain(percent)+" "+f.spread(percent))+" %")
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "Requests of users who are served nine times in ten or more, or one in ten or less: " + strings.Join(all, ", ") + "."
}
