package plan

import (
	"fmt"
	"strings"
)

// Text returns the plan of a topology for a terminal of 80 columns.
func (a *Layers) Text() string {
	p := &page{}
	p.line("%s, from the door inwards; end-to-end deadline %s.\n", plural(len(a.Layers), "layer"), brief(a.Deadline))
	p.line("%-18s %9s %9s %8s %12s %8s %8s", "layer", "replicas", "limit", "held", "requests/s", "wait", "calls")
	for i, l := range a.Layers {
		held, rate := "-", "-"
		if l.Hold != nil {
			held = brief(l.Hold.Held)
		}
		if l.Rate > 0 {
			rate = figures(l.Rate)
		}
		replicas, limit := a.in.Layers[i].sizes()
		p.line("%-18s %9s %9s %8s %12s %8s %8s", l.Name, replicas, limit, held, rate, brief(l.Wait), figures(l.Calls))
	}
	p.prose("", "held: a slot, for the work of the layer and for all that is further in, on average, if nobody waits there. "+
		"requests/s: at the door, slots / held of the fewest replicas together. wait: the longest. calls: at the next layer for one that arrives, if all fail.")
	p.line("")
	a.sums(p)
	for i, l := range a.Layers {
		if l.Limiter != nil {
			p.line("")
			p.prose(l.Name+": ", a.about(i))
		}
	}
	tell(p, a.Findings)
	if len(a.Findings) == 0 {
		p.line("\nNothing is wrong with it.")
	}
	return p.String()
}

// sizes returns the replicas and the limit as the columns of a table say them.
func (l Layer) sizes() (replicas, limit string) {
	replicas = (Range{max(l.Replicas.Min, 1), max(l.Replicas.Max, 1)}).String()
	if l.Surge > 0 {
		replicas += fmt.Sprintf("+%d", l.Surge)
	}
	if l.Limit == 0 {
		return replicas, "-"
	}
	limit = fmt.Sprint(l.Limit)
	if l.limits() > 1 {
		limit += fmt.Sprintf(" x %d", l.limits())
	}
	return replicas, limit
}

// about says how the limiter of layer i comes to its numbers.
func (a *Layers) about(i int) string {
	l, one := a.in.Layers[i], a.Layers[i]
	p, h := one.Limiter, one.Hold
	text := "Service " + p.serviceSaid() + "."
	if h.next != "" {
		text = fmt.Sprintf("A slot is held for %s = %s.", h.Said(), brief(p.ServiceMean))
		if p.ServiceAssumed {
			text += fmt.Sprintf(" Its own work is taken as %s, since its shape is not said.", Service{Mean: seconds(h.Own)})
		}
	}
	if n := l.copies(); n > 1 {
		text += fmt.Sprintf(" Each of the %d limiters:", n)
	}
	text += " " + p.DepthReason + "."
	switch {
	case h.nobodyWaits():
		text += fmt.Sprintf(" Nobody waits here: at most %d come at once for its %s.", h.Outside, plural(h.Slots, "slot"))
	default:
		text += fmt.Sprintf(" In force at 1.5x / 3x / 10x: %d / %d / %d.", p.Standing[0].Depth, p.Standing[1].Depth, p.Standing[2].Depth)
	}
	return text
}

// copies is how many limiters a layer has, of the fewest replicas.
func (l Layer) copies() int {
	fewest, _ := l.replicas()
	return fewest * l.limits()
}

// bound says what bounds the whole, with its arithmetic.
func (a *Layers) bound() string {
	n := a.layer(a.Narrowest)
	text := fmt.Sprintf("%s: %s / %s held", n.Name, plural(n.Hold.Slots, "slot"), brief(n.Hold.Held))
	if n.needs > 1 {
		text += fmt.Sprintf(" / %s calls for each request", figures(n.needs))
	}
	if a.Rate < 0.99*n.Rate {
		text += fmt.Sprintf(" = %s, less what layers that are about as narrow wait for one another", perSecond(n.Rate))
	}
	return text
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
			text += fmt.Sprintf("; %s with %s of work", brief(a.Waits+a.Services), brief(a.Services))
		}
		p.fact("waits", brief(a.Waits), fmt.Sprintf("%s; the deadline is %s%s", text, brief(a.Deadline), strings.Join(reasons, "")))
	}
	if len(calls) > 0 {
		text := strings.Join(calls, " x ") + " calls at the bottom for one request at the door, if all fail"
		if all := a.in.attempts(); float64(all) > a.Calls {
			text += fmt.Sprintf("; without retry budgets %d", all)
		}
		p.fact("retries", figures(a.Calls)+"x", text)
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
		p.fact("NARROWEST", perSecond(a.Rate), a.bound())
	}
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
