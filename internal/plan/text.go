package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// width is that of a terminal.
const width = 80

// A page collects lines of at most width columns.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// prose writes text in lines that fit, the first after head and the others
// indented as far.
func (p *page) prose(head, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	column := utf8.RuneCountInString(head)
	p.WriteString(head)
	for i, word := range words(text) {
		n := utf8.RuneCountInString(word)
		if i > 0 && column+1+n > width {
			p.WriteString("\n" + indent)
			column = len(indent)
		} else if i > 0 {
			p.WriteByte(' ')
			column++
		}
		p.WriteString(word)
		column += n
	}
	p.WriteByte('\n')
}

// words splits text where a line may end: a formula is not torn at its signs.
func words(text string) []string {
	var out []string
	glue := false
	for _, w := range strings.Fields(text) {
		sign := false
		switch w {
		case "/", "x", "<=", ">":
			sign = true
		}
		if last := len(out) - 1; last >= 0 && (glue || sign || w == "%") {
			out[last] += " " + w
		} else {
			out = append(out, w)
		}
		glue = sign || w == "="
	}
	return out
}

// fact writes a label, a value and the reason of it.
func (p *page) fact(label, value, reason string) {
	p.prose(fmt.Sprintf("%-19s %12s  ", label, value), reason)
}

// Text returns the plan as a table for a terminal of 80 columns.
func (l *Limiter) Text() string {
	p := &page{}
	title := fmt.Sprintf("%s, service %s, objective %s %s, deadline %s.", plural(l.Limit, "slot"), l.Service,
		quantileName(l.Percentile), brief(l.Objective), brief(l.Deadline))
	if l.defaulted != "" {
		title += " " + l.defaulted
	}
	if l.ServiceAssumed {
		title += " The shape of the service is assumed: :fixed, :exp, :lognormal:CV or :p99:DURATION after its mean says it."
	}
	p.prose("", title)
	p.line("")
	l.facts(p)
	l.overload(p)
	l.depthsAsked(p)
	l.ifWrong(p)
	tell(p, l.Findings)
	return p.String()
}

// facts are the numbers with their formulas.
func (l *Limiter) facts(p *page) {
	q := quantileName(l.Percentile)
	rate := perSecond(l.CompletionRate)
	p.fact("completion rate", rate, fmt.Sprintf("%s / %s mean service", plural(l.Limit, "slot"), brief(l.ServiceMean)))
	p.fact("ceiling depth", fmt.Sprint(l.CeilingDepth), fmt.Sprintf("%s x %s deadline: no time left for the work", rate, brief(l.Deadline)))
	p.fact("rule of thumb", fmt.Sprint(l.RuleDepth), fmt.Sprintf("%s x %s: that is the mean wait; %s would be %s", rate, brief(l.Objective), q, brief(l.RuleP99)))
	if l.Reachable {
		p.fact("DERIVED DEPTH", fmt.Sprint(l.Depth), fmt.Sprintf("largest d with P(d departures + service > %s) <= %s; service %s %s", brief(l.Objective), miss(l.Percentile), q, brief(l.ServiceP99)))
	} else {
		p.fact("DERIVED DEPTH", fmt.Sprint(l.Depth), fmt.Sprintf("objective unreachable, service %s is %s: only what keeps the slots busy at 1.5x", q, brief(l.ServiceP99)))
	}
	if l.in.Deadline != l.in.Objective {
		depth := fmt.Sprint(l.DeadlineDepth)
		if !l.DeadlineReachable {
			depth = "unreachable"
		}
		p.fact("depth for deadline", depth, fmt.Sprintf("the same for %s", brief(l.Deadline)))
	}
	p.fact("last in line", brief(l.P99Response), fmt.Sprintf("%s response in a full queue of %d; mean wait %s = %d / %s", q, l.Depth, brief(l.LastWait), l.Depth, rate))
	var depths, loads []string
	for _, s := range l.Standing {
		depths, loads = append(depths, fmt.Sprint(s.Depth)), append(loads, fmt.Sprintf("%gx", s.Load))
	}
	p.fact("standing depth", strings.Join(depths, " / "), fmt.Sprintf("at %s for more than %s (2 objectives): least that keeps 99.9 %% of the slots busy", strings.Join(loads, " / "), brief(2*l.Objective)))
	b := l.Burst
	p.fact("absorbed burst", brief(b.Absorbed), fmt.Sprintf("of %gx: %d / (%s - %s)", b.Factor, l.Depth, perSecond(b.Offered), rate))
	if b.Length > 0 {
		p.fact("", fmt.Sprint(b.Needed), fmt.Sprintf("deep for %gx during %s: (%s - %s) x %s; %s of it refused", b.Factor, brief(b.Length), perSecond(b.Offered), rate, brief(b.Length), percent(b.Share)))
	}
	if m := l.Memory; m != nil {
		p.fact("memory", size(m.Waiting), fmt.Sprintf("%d x %s waiting; %s with the %d that run", l.Depth, size(m.Request), size(m.Total), l.Limit))
	}
	p.line("")
}

// overload is the table of what lasts.
func (l *Limiter) overload(p *page) {
	q := quantileName(l.Percentile)
	if len(l.Expected) == 0 {
		p.prose("", fmt.Sprintf("An overload is not simulated here: %d times %s are more than %d requests even for one slot, or more than %d windows of the core. Try simulate.", settle+minMeasured, brief(l.unit()), maxRequests, maxWindows))
		p.line("")
		return
	}
	e := l.Expected[0]
	of := ""
	if e.Slots < l.Limit {
		// Fewer slots wait longer at the same load: see extent.
		of = fmt.Sprintf("; to be quick, %s stand for the %d: they were offered %d/%d of the load, and the rates are those of all %d again; fewer slots wait longer, so the waits of all %d are a little shorter than these",
			plural(e.Slots, "slot"), l.Limit, e.Slots, l.Limit, l.Limit, l.Limit)
	}
	p.prose("", fmt.Sprintf("An overload that lasts, played by the core itself (seed %d%s):", Seed, of))
	p.line("%6s %9s %9s %17s %8s %7s %8s %7s", "load", "offered", "in time", "refused", "wait p50", q, "resp p50", q)
	for _, e := range l.Expected {
		inTime, refused := e.shown()
		p.line("%5gx %9s %9s %9s %7s  %7s %7s  %7s %7s", e.Load, perSecond(e.Offered), perSecond(inTime), perSecond(refused),
			percent(round3(e.Refused/e.Offered)), brief(e.P50Wait), brief(e.P99Wait), brief(e.P50Response), brief(e.P99Response))
	}
	if l.Retries != nil {
		p.prose("", fmt.Sprintf("That is without retries. %s Only refusals that are cheap survive it.", l.Retries.said()))
	}
	p.line("")
}

// depthsAsked is what the given and the proposed depth do.
func (l *Limiter) depthsAsked(p *page) {
	for _, j := range []struct {
		what string
		*Judgement
	}{{"as it is", l.Given}, {"as proposed", l.Proposed}} {
		if j.Judgement == nil {
			continue
		}
		held := ""
		if j.Waiting > 0 {
			held = fmt.Sprintf(" It holds %s.", size(j.Waiting))
		}
		p.prose("", fmt.Sprintf("Depth %d, %s, once it is full: the last in line waits %s (%d / %s), responds after %s at %s. Within the objective of %s: %s; in time for the deadline of %s: %s.%s",
			j.Depth, j.what, brief(j.LastWait), j.Depth, perSecond(l.CompletionRate), brief(j.P99Response), quantileName(l.Percentile),
			brief(l.Objective), share(j.InObjective), brief(l.Deadline), share(j.InTime), held))
	}
	for _, s := range l.Change {
		p.prose("", s)
	}
	if l.Given != nil || l.Proposed != nil {
		p.line("")
	}
}

// ifWrong is the table of what changes if the service is not what was said.
func (l *Limiter) ifWrong(p *page) {
	q := quantileName(l.Percentile)
	p.line("If the service is not what was said:")
	p.line("  %-18s %13s %13s %13s %15s", "", "rate", "right depth", q+" if kept", "slots needed")
	for _, s := range l.Sensitivity {
		depth := fmt.Sprint(s.Depth)
		if !s.Reachable {
			depth = "unreachable"
		}
		p.line("  %-18s %13s %13s %13s %15d", s.Case, perSecond(s.Rate), depth, brief(s.P99Response), s.Slots)
	}
	p.prose("", fmt.Sprintf("Right depth: derived anew. %s if kept: of the last in line if the depth stays %d. Slots needed: for %s.", q, l.Depth, perSecond(l.CompletionRate)))
	z := l.Sizing
	text := fmt.Sprintf("Slots = rate x mean service = %s x %s = %d.", perSecond(l.CompletionRate), brief(l.ServiceMean), z.SlotsByMean)
	if z.SlotsByQuantile > z.SlotsByMean {
		text += fmt.Sprintf(" With the %s, %s, in the place of the mean it would be %d, or for %s a rate of %s: slots are held for the mean; deadlines are about the %s.",
			q, brief(l.ServiceP99), z.SlotsByQuantile, plural(l.Limit, "slot"), perSecond(z.RateByQuantile), q)
	}
	p.prose("", text)
}

// tell writes the findings.
func tell(p *page, findings []Finding) {
	for _, f := range findings {
		where := ""
		if f.Where != "" {
			where = f.Where + ": "
		}
		p.line("")
		p.prose(string(f.Level)+": ", where+f.Text)
		p.prose(strings.Repeat(" ", len(f.Level)+2)+"fix: ", f.Fix)
	}
}

// round3 keeps three figures: what a short simulation has.
func round3(f float64) float64 {
	if f == 0 {
		return 0
	}
	var r float64
	fmt.Sscanf(fmt.Sprintf("%.3g", f), "%g", &r)
	return r
}
