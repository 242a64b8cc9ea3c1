package plan

import (
	"fmt"
	"strings"
)

// Markdown returns the agreement sheet: what will be refused in an overload and
// what that gains, to be signed before there is one. again is the command that
// makes the plan anew.
func (l *Limiter) Markdown(again string) string {
	p := &page{}
	q := quantileName(l.Percentile)
	rate := perSecond(l.CompletionRate)
	p.line("# Agreement: what we refuse when more comes than we can serve\n")
	p.line("| | |\n|---|---|")
	p.line("| capacity | %s = %s / %s mean service (%s) |", rate, plural(l.Limit, "slot"), brief(l.ServiceMean), l.serviceSaid())
	p.line("| objective | %s of wait and service within %s, for all that are admitted |", q, brief(l.Objective))
	p.line("| deadline | %s: then nobody wants the answer |", brief(l.Deadline))
	p.line("| queue | %d deep, derived: `%s` |", l.Depth, l.DepthReason)
	p.line("| bursts | %gx the capacity for %s without a refusal: %d / (%s - %s) |", l.Burst.Factor, brief(l.Burst.Absorbed), l.Depth, perSecond(l.Burst.Offered), rate)
	if m := l.Memory; m != nil {
		p.line("| memory | %s waiting (%d x %s), %s with those that run |", size(m.Waiting), l.Depth, size(m.Request), size(m.Total))
	}
	p.line("")
	l.sheetTable(p)
	p.line("## What we agree on\n")
	p.line("1. Up to %s nothing is refused but what a burst leaves over. Beyond, the rest is refused, at once, and told so: 503 with Retry-After, marked as not executed.", rate)
	p.line("2. Lower priority is refused before higher, and health checks never. Among equals nobody is chosen: whoever finds the queue full is refused.")
	p.line("3. A refusal is not an error: it is counted apart, and wakes nobody as long as %s are answered in time.", rate)
	p.line("4. During an overload nobody makes the queue deeper or raises the limit. %s", l.deeper())
	p.line("5. Clients wait for Retry-After, with jitter, and try a bounded number of times.")
	n := 6
	for _, f := range l.Findings {
		p.line("%d. Open, %s: %s To fix it: %s", n, f.Level, f.Text, f.Fix)
		n++
	}
	p.line("\n| role | name | date |\n|---|---|---|\n| owner of the service | | |\n| owner of the callers | | |\n| on call | | |\n")
	p.line("Made with `%s`. Valid while the mean service time is within 25 %% of %s; 50 %% slower, the depth is %s.",
		again, brief(l.ServiceMean), l.slowerDepth())
	return p.String()
}

// sheetTable compares with a queue without a bound, which is what happens where
// nobody has decided anything.
func (l *Limiter) sheetTable(p *page) {
	q := quantileName(l.Percentile)
	if len(l.Expected) == 0 {
		p.line("Offered and refused at 1.5x, 3x and 10x: 33 %%, 67 %% and 90 %% are refused, which is 1 - 1/load.\n")
		return
	}
	p.line("| load | offered | answered in time | refused | response p50 / %s | refusal told within (p50) | gained: a queue without a bound |", q)
	p.line("|---|---|---|---|---|---|---|")
	for _, e := range l.Expected {
		p.line("| %gx | %s | %s, %s of capacity | %s, %s | %s / %s | %s | %s |", e.Load, perSecond(e.Offered), perSecond(round3(e.InTime)),
			percent(round3(e.Goodput)), perSecond(round3(e.Refused)), percent(round3(e.Refused/e.Offered)), brief(e.P50Response), brief(e.P99Response),
			told(e.P50Told), l.unbounded(e.Load))
	}
	p.line("\nFrom a simulation of the admission core (seed %d). Without a bound, whoever arrives t after the start waits (load - 1) t, so from t = (deadline - mean service) / (load - 1) on every answer is late.\n", Seed)
}

// unbounded says when an unbounded queue has answered its last request in time.
func (l *Limiter) unbounded(load float64) string {
	t := (l.Deadline - l.ServiceMean) / (load - 1)
	if t <= 0 {
		return "nothing is in time"
	}
	return fmt.Sprintf("nothing is in time of what arrives later than %s", brief(t))
}

// told is the time to a refusal, "at once" below what a network adds.
func told(s float64) string {
	if s < 0.001 {
		return "1ms"
	}
	return brief(s)
}

// deeper says what more depth would do.
func (l *Limiter) deeper() string {
	if len(l.Change) > 0 {
		return strings.Join(l.Change, " ")
	}
	j := l.Proposed
	if j == nil {
		j = l.Given
	}
	if j == nil {
		j = l.judge(max(2*l.Depth, l.CeilingDepth, 1))
	}
	return fmt.Sprintf("At %d the last in line waits %s; within the objective: %s; in time: %s.", j.Depth, brief(j.LastWait), share(j.InObjective), share(j.InTime))
}

// serviceSaid is the service in words, with what nobody said.
func (l *Limiter) serviceSaid() string {
	if l.ServiceAssumed {
		return l.Service + ", assumed"
	}
	return l.Service
}

// slowerDepth is the derived depth when the service is half as slow again.
func (l *Limiter) slowerDepth() string {
	s := l.Sensitivity[1]
	if !s.Reachable {
		return fmt.Sprintf("%d, and the objective out of reach", s.Depth)
	}
	return fmt.Sprint(s.Depth)
}

// GoComment returns the comment to paste beside the constant. again is the
// command that makes the plan anew.
func (l *Limiter) GoComment(again string) string {
	c := &page{}
	c.prose("", l.DepthReason+".")
	c.prose("", fmt.Sprintf("Service: %s. The last in line waits %s, %d / %s.", l.serviceSaid(), brief(l.LastWait), l.Depth, perSecond(l.CompletionRate)))
	text := fmt.Sprintf("%d = %s x %s leaves no time for the work. Half as slow again, the depth is %s.",
		l.CeilingDepth, perSecond(l.CompletionRate), brief(l.Deadline), l.slowerDepth())
	if l.Memory != nil {
		text += fmt.Sprintf(" Full, it holds %s: %d x %s.", size(l.Memory.Waiting), l.Depth, size(l.Memory.Request))
	}
	c.prose("", text)
	var out strings.Builder
	for line := range strings.Lines(c.String()) {
		out.WriteString("// " + line)
	}
	out.WriteString("//\n//\t" + again + "\n")
	return out.String()
}
