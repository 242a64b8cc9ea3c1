package plan

import (
	"fmt"
	"strings"
)

// Text returns the plan of a topology for a terminal of 80 columns.
func (a *Layers) Text() string {
	p := &page{}
	p.line("%s, from the door inwards; end-to-end deadline %s.\n", plural(len(a.Layers), "layer"), brief(a.Deadline))
	p.line("%-20s %10s %8s %12s %9s %9s", "layer", "replicas", "limit", "requests/s", "wait", "calls")
	for i, l := range a.Layers {
		in := a.in.Layers[i]
		replicas := (Range{max(in.Replicas.Min, 1), max(in.Replicas.Max, 1)}).String()
		if in.Surge > 0 {
			replicas += fmt.Sprintf("+%d", in.Surge)
		}
		limit, rate := "-", "-"
		if in.Limit > 0 {
			limit = fmt.Sprint(in.Limit)
			if in.limits() > 1 {
				limit += fmt.Sprintf(" x %d", in.limits())
			}
		}
		if l.Rate > 0 {
			rate = figures(l.Rate)
		}
		p.line("%-20s %10s %8s %12s %9s %9s", l.Name, replicas, limit, rate, brief(l.Wait), figures(l.Calls))
	}
	p.prose("", "requests/s: at the door, that the fewest replicas complete. calls: at the next layer for one that arrives, if all fail.")
	p.line("")
	a.sums(p)
	for _, l := range a.Layers {
		if l.Limiter != nil {
			p.line("")
			p.prose(l.Name+": ", fmt.Sprintf("%s. Service %s. In force at 1.5x / 3x / 10x: %d / %d / %d.", l.Limiter.DepthReason, l.Limiter.serviceSaid(),
				l.Limiter.Standing[0].Depth, l.Limiter.Standing[1].Depth, l.Limiter.Standing[2].Depth))
		}
	}
	tell(p, a.Findings)
	if len(a.Findings) == 0 {
		p.line("\nNothing is wrong with it.")
	}
	return p.String()
}

// sums are what only all layers together show.
func (a *Layers) sums(p *page) {
	var waits, calls, reasons []string
	for i, l := range a.Layers {
		if l.Wait > 0 {
			waits = append(waits, brief(l.Wait))
		}
		if l.Wait > 0 && a.in.Layers[i].Wait == 0 {
			reasons = append(reasons, "; "+l.Name+": "+l.WaitReason)
		}
		if l.Calls > 1 {
			calls = append(calls, figures(l.Calls))
		}
	}
	if len(waits) > 0 {
		text := strings.Join(waits, " + ")
		if a.Services > 0 {
			text += fmt.Sprintf("; %s with %s of mean service", brief(a.Waits+a.Services), brief(a.Services))
		}
		p.fact("waits", brief(a.Waits), fmt.Sprintf("%s; the deadline is %s%s", text, brief(a.Deadline), strings.Join(reasons, "")))
	}
	if len(calls) > 0 {
		p.fact("retries", figures(a.Calls)+"x", strings.Join(calls, " x ")+" calls at the bottom for one request at the door, if all fail")
	}
	for _, u := range a.Resources {
		if u.Sum == "" {
			p.fact(u.Name, "unused", "no layer names it")
			continue
		}
		text := fmt.Sprintf("of %d: %s", u.Limit, u.Sum)
		if strings.Contains(u.Range, "-") {
			text = fmt.Sprintf("of %d (out of %s): %s", u.Limit, u.Range, u.Sum)
		}
		p.fact(u.Name, fmt.Sprint(u.Demand), text)
	}
	for _, t := range a.Tails {
		p.fact(t.Layer+" fan-out", percent(t.Slow), fmt.Sprintf("of the requests are slow with 1 %% of %d calls; the p99 is the %s of a call", t.Calls, fineQuantile(t.Quantile)))
	}
	if a.Narrowest != "" {
		p.fact("narrowest", perSecond(a.Rate), a.Narrowest)
	}
}

// Markdown returns the agreement sheets of the layers, after what holds for all.
func (a *Layers) Markdown(again string) string {
	p := &page{}
	p.line("# Agreement: %s, end-to-end deadline %s\n", plural(len(a.Layers), "layer"), brief(a.Deadline))
	p.line("| layer | requests/s | wait, at most | calls, if all fail |\n|---|---|---|---|")
	for _, l := range a.Layers {
		rate := "-"
		if l.Rate > 0 {
			rate = perSecond(l.Rate)
		}
		p.line("| %s | %s | %s | %s |", l.Name, rate, brief(l.Wait), figures(l.Calls))
	}
	for _, u := range a.Resources {
		p.line("\n%s: %d of %d (%s).", u.Name, u.Demand, u.Limit, u.Sum)
	}
	p.line("")
	for _, f := range a.Findings {
		where := ""
		if f.Where != "" {
			where = f.Where + ": "
		}
		p.line("- Open, %s: %s%s To fix it: %s", f.Level, where, f.Text, f.Fix)
	}
	p.line("\nMade with `%s`.", again)
	for _, l := range a.Layers {
		if l.Limiter != nil {
			sheet := strings.Replace(l.Limiter.Markdown(again), "# Agreement: what", "# "+l.Name+": what", 1)
			p.line("\n%s", strings.ReplaceAll("\n"+sheet, "\n#", "\n##")[1:])
		}
	}
	return p.String()
}

// GoComment returns a comment for each layer that has a plan.
func (a *Layers) GoComment(again string) string {
	var b strings.Builder
	for _, l := range a.Layers {
		if l.Limiter != nil {
			fmt.Fprintf(&b, "// %s:\n%s\n", l.Name, l.Limiter.GoComment(again))
		}
	}
	if b.Len() == 0 {
		return "// No layer has a limit and a service: there is no depth to comment.\n"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
