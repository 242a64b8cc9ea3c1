package figures

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goodput/goodput/bench/live"
)

// liveRivals are the contestants over real HTTP.
var liveRivals = []rival{
	{"goodput-auto", "", "limit.Auto{}", "the default: nobody tells it the slots"},
	{"goodput-told", "", "limit.Fixed(slots)", "what a limit that finds itself is measured by"},
	{"failsafe-cold", modFailsafe, "adaptivelimiter, 1 to 200, first 20", "its defaults; with its queue it did no better"},
	{"failsafe-told", modFailsafe, "the same, first the slots", "begun where it should end, in its favour"},
	{"kratos-bbr", modAegis, "bbr.NewLimiter()", "its defaults: sheds above 80 % of the processors"},
	{"gozero-shedder", modGoZero, "load.NewAdaptiveShedder()", "its defaults: sheds above 90 %"},
}

// overHTTP is the comparison of limits that find themselves, over real HTTP.
func overHTTP(p *page, r *Run) {
	if r.Live == nil {
		return
	}
	p.say("## Over real HTTP: limits that find themselves")
	p.say("Client, limiter and service in one process, HTTP/2 over loopback, open loop, latency from the instant at which a request was due. The service has 60 slots in which work sleeps, 50 ms, exponential, and a queue that the limiter does not see; nobody is told the slots but those called told. From a cold start, one run each (seed %d), which varies by 1 %%. The shedders look at the processors, which are idle where work sleeps: that is no fault of theirs, and it is what most services that wait for others look like.", r.Live.Data[0].Seed)
	contestants(p, &r.Live.Head, liveRivals)
	p.head(2, "load", "contestant", "goodput, 2 s", "goodput, 400 ms", "p50 ms", "p99 ms", "refused %", "late %", "limit", "model")
	for _, res := range r.live(isCold) {
		model := "-"
		if res.Model != nil {
			model = fmt.Sprintf("%.3f ± %.3f", res.Model.Mean, res.Model.Deviation)
		}
		p.row(strings.TrimPrefix(res.Plan, "cold "), res.Contestant, share(res.Ratio), share(res.Quick), fmt.Sprintf("%.0f", res.P50), fmt.Sprintf("%.0f", res.P99),
			fmt.Sprintf("%.1f", 100*res.Refused), fmt.Sprintf("%.1f", 100*res.Late), limitOf(res.Limit), model)
	}
	p.end()
	p.say("*Model* is the same requests in simulated time, with the work as long as the sleeps of the run.")
	if all := r.live(isStep); len(all) > 0 {
		p.say("### %s", all[0].Plan)
		p.head(1, "contestant", "slots", "goodput, 2 s", "goodput, 400 ms", "first 10 s", "95 % after s", "limit")
		for _, res := range all {
			for _, ph := range res.Phases {
				limit := "-"
				if res.Limit != nil {
					limit = fmt.Sprintf("%.0f", ph.Limit)
				}
				p.row(res.Contestant, fmt.Sprint(ph.Slots), share(ph.Ratio), share(ph.Quick), share(ph.First), after(ph.Settle), limit)
			}
		}
		p.end()
	}
	if all := r.live(isStall); len(all) > 0 {
		p.say("### %s, clients that ask three times", all[0].Plan)
		p.head(1, "contestant", "before it", "after it", "every second is answered again after s")
		for _, res := range all {
			p.row(res.Contestant, share(res.Phases[0].Ratio), share(res.Phases[2].Ratio), after(res.Recovered))
		}
		p.end()
	}
	liveLosses(p, r)
	voids(p, r.Live.Data)
}

func limitOf(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *v)
}

// liveLosses says which rival has more goodput than the better of ours, in a load.
func liveLosses(p *page, r *Run) {
	best := map[string]*live.Result{}
	ours := map[string]float64{}
	var plans []string
	for _, res := range r.live(isCold) {
		if !slices.Contains(plans, res.Plan) {
			plans = append(plans, res.Plan)
		}
		if strings.HasPrefix(res.Contestant, "goodput-") {
			ours[res.Plan] = max(ours[res.Plan], res.Ratio)
		} else if b := best[res.Plan]; b == nil || res.Ratio > b.Ratio {
			best[res.Plan] = res
		}
	}
	var lost []string
	for _, plan := range plans {
		if b := best[plan]; b != nil && ours[plan] > 0 && b.Ratio-ours[plan] > 0.01 {
			lost = append(lost, fmt.Sprintf("%s, %s answers %s of what could be, goodput %s", plan, b.Contestant, share(b.Ratio), share(ours[plan])))
		}
	}
	for _, plan := range plans {
		if ours[plan] == 0 {
			p.say("%s: goodput's own runs are void, so nothing is compared.", plan)
		}
	}
	losses(p, lost, "Less than a percent is left out: runs vary by as much.")
}

// voids says which runs say nothing, and why.
func voids(p *page, results []*live.Result) {
	var lines []string
	for _, res := range results {
		if res.Void != "" {
			lines = append(lines, fmt.Sprintf("- %s, %s: %s", res.Plan, res.Contestant, res.Void))
		}
	}
	if len(lines) > 0 {
		p.say("Void, and played in vain until the tries were used up:")
		p.say("%s", strings.Join(lines, "\n"))
	}
}

// versionsOf are all that a part has, in words.
func versionsOf(versions map[string]string) string {
	var words []string
	for _, n := range slices.Sorted(maps.Keys(versions)) {
		words = append(words, n+" "+versions[n])
	}
	return strings.Join(words, ", ")
}

// demos is what the demo shows.
func demos(p *page, r *Run) {
	if r.Demo == nil {
		return
	}
	p.say("## The demo")
	p.say("One overload twice over real HTTP/1.1 and HTTP/2: 60 slots of 50 ms, callers that leave after 2 s, an objective of 400 ms; directly, then through goodput.")
	p.head(2, "goodput demo", "run", "offered/s", "goodput", "p50 ms", "p99 ms", "refused/s", "told no after ms (p50)", "most waiting")
	for _, d := range r.Demo.Data {
		for _, one := range d.Runs {
			p.row("`"+strings.TrimSpace("demo "+d.Flags)+"`", one.Name, fmt.Sprintf("%.0f", one.Offered), share(one.Ratio), ms(one.P50), ms(one.P99), fmt.Sprintf("%.0f", one.Refused), ms(one.RefusalP50), number(float64(one.PeakQueue)))
		}
	}
	p.end()
	for _, d := range r.Demo.Data {
		if d.Void != "" {
			p.say("`demo %s` is no clean measurement: %s.", d.Flags, strings.TrimSuffix(d.Void, "."))
		}
	}
}

// ms formats seconds as milliseconds.
func ms(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", 1e3**s)
}
