package plan

import (
	"fmt"
	"strings"
)

// Markdown returns the agreement on a topology: what the whole does and refuses,
// then what each layer has to do for it.
func (a *Layers) Markdown(again string) string {
	p := &page{}
	p.line("# Agreement: %s, end-to-end deadline %s\n", plural(len(a.Layers), "layer"), brief(a.Deadline))
	a.sheetTable(p)
	if a.Rate > 0 {
		p.line("The whole does %s at the door, as much as its narrowest layer: %s.\n", perSecond(a.Rate), a.bound())
		p.line("| load | offered at the door | answered | refused |\n|---|---|---|---|")
		for _, load := range Loads {
			p.line("| %gx | %s | %s | %s, %s |", load, perSecond(load*a.Rate), perSecond(a.Rate), perSecond((load-1)*a.Rate), percent(1-1/load))
		}
		p.line("")
	}
	if a.Waits > 0 {
		p.line("A request waits %s at most, all layers together, and %s with the work; the deadline is %s.\n", brief(a.Waits), brief(a.Waits+a.Services), brief(a.Deadline))
	}
	if calls := a.factors(); len(calls) > 0 {
		product := figures(a.Calls)
		if len(calls) > 1 {
			product = strings.Join(calls, " x ") + " = " + product
		}
		p.line("Retries: while everything fails, one request at the door becomes %s calls at the bottom.\n", product)
	}
	for _, u := range a.Resources {
		p.line("%s: %d of %d (%s).\n", u.Name, u.Demand, u.Limit, u.Sum)
	}
	agreed := []string{
		"Lower priority is refused before higher, and health checks never. Among equals nobody is chosen: whoever finds the queue full is refused.",
		"A refusal is not an error: it is counted apart.",
		"During an overload nobody makes a queue deeper or raises a limit.",
		a.retriesAgreed(),
	}
	if a.Rate > 0 {
		agreed = append([]string{fmt.Sprintf(
			"Up to %s at the door, for all replicas together, nothing is refused but what a burst leaves over. Beyond, the rest is refused, at once, and told so: 503 with Retry-After, marked as not executed.",
			perSecond(a.Rate))}, agreed...)
	}
	agree(p, agreed, a.Findings)
	sign(p)
	p.line("Made with `%s`.", again)
	for i, l := range a.Layers {
		if l.Limiter != nil {
			a.section(p, i)
		}
	}
	return p.String()
}

// sheetTable has a row for each layer.
func (a *Layers) sheetTable(p *page) {
	p.line("| layer | replicas | limit of each | a slot is held | requests/s at the door, all replicas | wait, at most | calls, if all fail |\n|---|---|---|---|---|---|---|")
	for i, l := range a.Layers {
		held, rate := "-", "-"
		if l.Hold != nil {
			held = brief(l.Hold.Held)
		}
		if l.Rate > 0 {
			rate = perSecond(l.Rate)
		}
		replicas, limit := a.in.Layers[i].sizes()
		p.line("| %s | %s | %s | %s | %s | %s | %s |", l.Name, replicas, limit, held, rate, brief(l.Wait), figures(l.Calls))
	}
	p.line("\nHeld and requests/s are those of a layer by itself, while nobody waits further in.\n")
}

// factors are the calls of the layers that retry.
func (a *Layers) factors() []string {
	var calls []string
	for _, l := range a.Layers {
		if l.Calls > 1 {
			calls = append(calls, figures(l.Calls))
		}
	}
	return calls
}

// retriesAgreed is what callers sign for.
func (a *Layers) retriesAgreed() string {
	text := "Clients wait for Retry-After, with jitter, and try a bounded number of times."
	for i, l := range a.Layers {
		in := a.in.Layers[i]
		if in.attempts() < 2 {
			continue
		}
		text += fmt.Sprintf(" %s tries at most %d times in all at what is further in", l.Name, in.attempts())
		if in.RetryBudget > 0 {
			text += fmt.Sprintf(", and %s retries for each first attempt", figures(in.RetryBudget))
		}
		text += "."
	}
	return text
}

// section is what one layer does for the whole.
func (a *Layers) section(p *page, i int) {
	one := a.Layers[i]
	l, h, n := one.Limiter, one.Hold, a.in.Layers[i].copies()
	who := "its only limiter"
	if n > 1 {
		who = fmt.Sprintf("each of its %d limiters", n)
	}
	p.line("\n## %s: %s\n", one.Name, who)
	p.line("| | |\n|---|---|")
	whole := a.Rate * one.needs / float64(n) // of each limiter, when the whole does what it can
	capacity := fmt.Sprintf("%s = %s / %s", perSecond(l.CompletionRate), plural(l.Limit, "slot"), brief(l.ServiceMean))
	if n > 1 {
		capacity += fmt.Sprintf("; %s in all", perSecond(l.CompletionRate*float64(n)))
	}
	if whole < 0.99*l.CompletionRate {
		why := a.Narrowest + " bounds the whole"
		if a.Narrowest == one.Name {
			why = "layers that are about as narrow wait for one another"
		}
		capacity += fmt.Sprintf(". It gets no more than %s done: %s", perSecond(whole), why)
	}
	p.line("| capacity | %s |", capacity)
	said := l.serviceSaid()
	if h.next != "" {
		said = fmt.Sprintf("%s = %s", h.Said(), brief(l.ServiceMean))
	}
	p.line("| a slot is held for | %s |", said)
	l.sheetRows(p, "here, all that is further in included, ", h.nobodyWaits())
	p.line("")
	switch left := h.Outside - h.Slots; {
	case h.nobodyWaits():
		p.line("No overload gets here: at most %d requests come at once for %s. Nobody waits, and nobody is refused.", h.Outside, plural(h.Slots, "slot"))
	case h.Outside > 0 && left <= l.Depth*n:
		p.line("No overload gets here: at most %d requests come at once for %s, and the other %d fit the queue. Nobody is refused.", h.Outside, plural(h.Slots, "slot"), left)
	case whole < 0.95*l.CompletionRate:
		p.line("It admits up to %s, of which no more than %s are answered: the rest is refused further in.", perSecond(l.CompletionRate), perSecond(whole))
	default:
		if n > 1 {
			p.line("Of each of the %d:\n", n)
		}
		l.sheetTable(p)
	}
}
