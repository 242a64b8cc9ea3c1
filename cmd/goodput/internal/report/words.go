package report

import (
	"fmt"
	"strings"

	"github.com/goodput/goodput/internal/sim"
)

// What the figures are in words: the sentence beside the rule of thumb, the line for
// a terminal, and the legend. A sentence says what is largest, and never a figure
// that is shown as nothing with a detail of it.

// measured is the sentence beside the rule of thumb, about the first policy.
func (r *Report) measured() string {
	if r.Measured != "" {
		return r.Measured
	}
	p := r.Policies[0]
	f := p.Figures()
	said := append([]string{p.Name + " answers " + r.inTime(f)}, r.fates(f)...)
	missed := p.missed()
	if missed == "" && f.P99.Runs > 0 {
		said = append(said, fmt.Sprintf("of what got a slot p99 is %s ms", f.P99.plain(millis)))
	}
	s := strings.Join(said, "; ") + "."
	if missed != "" {
		s += " Objective missed: " + missed + "."
	}
	return s
}

// inTime is "1195/s in time, 99.6 % of what the slots can do": the ratio is of
// min(offered, capacity), and which of the two that is has a name. It is not what is
// possible: who knows the size of each request answers more of them.
func (r *Report) inTime(f Figures) string {
	s := f.Goodput.plain(rate) + "/s in time"
	if f.Ratio.Runs > 0 {
		s += fmt.Sprintf(", %s %% of %s", f.Ratio.plain(percent), f.possible())
	}
	return s
}

func (f Figures) possible() string {
	if f.Offered.Mean < f.Capacity.Mean {
		return "what was offered"
	}
	return "what the slots can do"
}

// fates are what became of the others: the refused, and whatever there is more of.
func (r *Report) fates(f Figures) (said []string) {
	if more(f.Failed, f.Refused) {
		s := f.Failed.plain(percent) + " % failed"
		if r.layered() {
			s += ", refused or lost behind the first limiter"
		}
		said = append(said, s)
	}
	if seen(f.Kept.Mean) {
		said = append(said, f.Kept.plain(percent)+" % are kept at home by their clients")
	}
	if more(f.Late, f.Refused) {
		said = append(said, f.Late.plain(percent)+" % are late or given up")
	}
	s := f.Refused.plain(percent) + " % are refused"
	switch {
	case f.Told.Runs == 0:
	case f.Told.Mean < 10e-6: // is shown as 0.01 ms or less
		s += ", half of them at once"
	default:
		s += fmt.Sprintf(", half of them within %s ms", f.Told.plain(millis))
	}
	return append(said, s)
}

func more(x, than Figure) bool { return seen(x.Mean) && x.Mean > than.Mean }

// layered reports whether requests may meet a second limiter.
func (r *Report) layered() bool { return len(r.Policies[0].Runs[0].Tiers) > 1 }

// missed says that p did not meet its objective, or nothing: if it did, if it has
// none, or if there are requests that do not arrive at the first tier, whose
// objective that is. By less than 1 % it is not missed: a histogram knows no better.
func (p Policy) missed() string {
	first := p.Runs[0]
	if len(first.Tiers) == 0 || first.Tiers[0].Stats == nil || first.Tiers[0].Arrivals < first.Total.Attempts {
		return ""
	}
	d := first.Tiers[0].Stats.Derivation
	got := p.over(func(r *sim.Result) float64 { return quantile(&r.Total.Latency, d.Percentile) })
	if d.Objective <= 0 || got.Runs == 0 || got.Mean <= 1.01*d.Objective.Seconds() {
		return ""
	}
	at := fmt.Sprintf("p%g", 100*d.Percentile)
	s := fmt.Sprintf("%s of what got a slot is %s ms, and not %s ms or less; the service alone takes %s ms at %s",
		at, got.plain(millis), millis.show(d.Objective.Seconds()), millis.show(d.Service.Seconds()), at)
	if d.Tight {
		s += ". With so few slots those with a deadline within the objective queue by their odds, and some that then take long end late"
	}
	return s
}

// Verdict is r in one line, for whoever wrote the report to a file and is told
// nothing else: the first policy's goodput, its objective if it is missed, and how
// many of the criteria are met.
func Verdict(r *Report) string {
	if err := r.check(); err != nil {
		return err.Error()
	}
	p := r.Policies[0]
	said := []string{p.Name + " answers " + r.inTime(p.Figures())}
	if p.missed() != "" {
		said = append(said, "objective missed")
	}
	if n := len(r.Criteria); n > 0 {
		said = append(said, fmt.Sprintf("%d of %d criteria met", r.met(), n))
	}
	s := strings.Join(said, "; ")
	if r.Scenario != "" {
		s = r.Scenario + ": " + s
	}
	return clean(s)
}

// met is how many of the criteria are.
func (r *Report) met() (n int) {
	for _, c := range r.Criteria {
		if c.Met {
			n++
		}
	}
	return n
}

// A ceiling is a bound that is named beside the policies.
type ceiling struct {
	Name  string
	Ratio float64 // goodput ratio
	Rate  float64 // requests per second
}

// ceilings are those that are known, capacity first. Rates are those of the first
// policy: all met the same load.
func (r *Report) ceilings() (out []ceiling) {
	f := r.Policies[0].Figures()
	possible := min(f.Offered.Mean, f.Capacity.Mean)
	add := func(name string, ratio float64) {
		if ratio > 0 && f.Ratio.Runs > 0 {
			out = append(out, ceiling{name, ratio, ratio * possible})
		}
	}
	if f.Offered.Mean < f.Capacity.Mean {
		add("all that was offered", 1)
	} else {
		add("capacity", 1)
	}
	c := r.Ceilings
	add("no queue (Erlang B)", c.NoQueue)
	add("size-aware", c.SizeAware)
	add("clairvoyant", c.Clairvoyant)
	return out
}

// legend explains the columns, which have no room to, and the lines below them: a
// sentence or two for each thing that there is.
func (r *Report) legend() []string {
	columns := "goodput %: answered in time, of min(offered, capacity). "
	if r.fails() {
		columns += "failed: lost"
		if r.layered() {
			columns += ", or refused behind the first limiter"
		}
		columns += ". "
	}
	if r.keeps() {
		columns += "kept: at home, by clients that the server refuses too often; their callers are told no without a call. "
	}
	columns += "p50, p99: from arrival to answer, of what got a slot. " +
		"told: from arrival to a refusal. queue: most that waited in one limiter, in all of the run"
	if r.deeper() {
		columns += "; more than the depth that is shown waited while it was another, as before the service is measured"
	}
	all := []string{columns + "."}
	if r.Policies[0].classes() != nil {
		all = append(all, "goodput % of a class: answered in time, of its own requests.")
	}
	if r.Ceilings.NoQueue > 0 {
		all = append(all, "no queue: what refusing at once reaches.")
	}
	if c := r.Ceilings; c.SizeAware > 0 || c.Clairvoyant > 0 {
		all = append(all, fmt.Sprintf("size-aware, clairvoyant: of %s jobs, and jobs are counted, not work: who serves only the shortest "+
			"serves more of them than capacity. size-aware is what the mean capacity is enough for, without bursts and deadlines: "+
			"all, up to a load of 1. clairvoyant is who knows each of these arrivals, with its deadline. "+
			"No policy above exceeds either, so the lower one counts.", thousand(c.Jobs)))
	}
	if r.Ceilings.Clairvoyant > 0 && !r.Ceilings.Exact {
		all = append(all, "clairvoyant is a bound here, somewhat above what even it could do.")
	}
	return all
}

// thousand is n, in thousands where that is exact enough for a legend.
func thousand(n int) string {
	if n >= 10_000 {
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// fails reports whether requests were lost, under any policy.
func (r *Report) fails() bool {
	return r.some(func(f Figures) bool { return seen(f.Failed.Mean) })
}

// keeps reports whether clients kept requests at home, under any policy.
func (r *Report) keeps() bool {
	return r.some(func(f Figures) bool { return seen(f.Kept.Mean) })
}

// apart reports whether a request that was answered in time took another time than
// an attempt that got a slot, by more than a bucket of the histogram is wide.
func (f Figures) apart() bool {
	const bucket = 1.1
	return f.GoodP50.Runs > 0 && f.P50.Runs > 0 &&
		(f.GoodP50.Mean > bucket*f.P50.Mean || f.P50.Mean > bucket*f.GoodP50.Mean)
}

func (r *Report) some(is func(Figures) bool) bool {
	for _, p := range r.Policies {
		if is(p.Figures()) {
			return true
		}
	}
	return false
}

// deeper reports whether more waited in a limiter of ours than its depth is at the
// end. Below four slots, or beside a service that takes all of the objective, it may be
// so by design, and its derivation says it.
func (r *Report) deeper() bool {
	for _, p := range r.Policies {
		for _, t := range p.Runs[0].Tiers {
			if t.Stats == nil || t.Stats.Derivation.Tight || t.Stats.Derivation.Chances {
				continue
			}
			if t.PeakQueue > t.Stats.Derivation.Depth {
				return true
			}
		}
	}
	return false
}
