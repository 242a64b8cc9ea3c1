package plan

import (
	"fmt"
	"math"
	"strings"
)

// Markdown returns the agreement sheet: what will be refused in an overload and
// what that gains, to be signed before there is one. again is the command that
// makes the plan anew.
func (l *Limiter) Markdown(again string) string {
	p := &page{}
	rate := perSecond(l.CompletionRate)
	p.line("# Agreement: what we refuse when more comes than we can serve\n")
	p.line("| | |\n|---|---|")
	p.line("| capacity | %s = %s / %s mean service (%s) |", rate, plural(l.Limit, "slot"), brief(l.ServiceMean), l.serviceSaid())
	l.sheetRows(p, "", false)
	p.line("")
	l.sheetTable(p)
	agree(p, []string{
		fmt.Sprintf("Up to %s nothing is refused but what a burst leaves over. Beyond, the rest is refused, at once, and told so: 503 with Retry-After, marked as not executed.", rate),
		"Lower priority is refused before higher, and health checks never. Among equals nobody is chosen: whoever finds the queue full is refused.",
		fmt.Sprintf("A refusal is not an error: it is counted apart, and wakes nobody as long as %s are answered in time.", rate),
		"During an overload nobody makes the queue deeper or raises the limit. " + l.deeper(),
		l.retriesAgreed(),
	}, l.Findings)
	sign(p)
	p.line("Made with `%s`. Valid while the mean service time is within 25 %% of %s; 50 %% slower, the depth is %s.",
		again, brief(l.ServiceMean), l.slowerDepth())
	return p.String()
}

// sheetRows are the rows about the queue. of says what the objective is of, where
// that is not plain; where nobody waits, there is no burst and no memory.
func (l *Limiter) sheetRows(p *page, of string, nobody bool) {
	p.line("| objective | %s of wait and service %swithin %s, for all that are admitted |", quantileName(l.Percentile), of, brief(l.Objective))
	p.line("| deadline | %s: then nobody wants the answer |", brief(l.Deadline))
	p.line("| queue | %d deep, derived: `%s` |", l.Depth, l.DepthReason)
	if nobody {
		return
	}
	p.line("| bursts | %gx the capacity for %s without a refusal: %d / (%s - %s) |", l.Burst.Factor, brief(l.Burst.Absorbed), l.Depth, perSecond(l.Burst.Offered), perSecond(l.CompletionRate))
	if m := l.Memory; m != nil {
		p.line("| memory | %s waiting (%d x %s), %s with those that run |", size(m.Waiting), l.Depth, size(m.Request), size(m.Total))
	}
}

// agree writes what is agreed on, and apart from it what is not settled.
func agree(p *page, agreed []string, findings []Finding) {
	p.line("## What we agree on\n")
	for i, text := range agreed {
		p.line("%d. %s", i+1, text)
	}
	p.line("")
	if len(findings) == 0 {
		return
	}
	p.line("## Still open: to be settled before anybody signs\n")
	for _, f := range findings {
		head := strings.ToUpper(string(f.Level[:1])) + string(f.Level[1:])
		if f.Where != "" {
			head += ", " + f.Where
		}
		p.line("- %s: %s To fix it: %s", head, f.Text, f.Fix)
	}
	p.line("")
}

// sign writes the lines for names.
func sign(p *page) {
	p.line("| role | name | date |\n|---|---|---|\n| owner of the service | | |\n| owner of the callers | | |\n| on call | | |\n")
}

// retriesAgreed is what callers sign for.
func (l *Limiter) retriesAgreed() string {
	text := "Clients wait for Retry-After, with jitter, and try a bounded number of times."
	if l.Retries == nil {
		return text
	}
	back := ""
	if r := l.in.RetryInterval; r > 0 {
		back = fmt.Sprintf(", %s apart", brief(r.Seconds()))
	}
	return fmt.Sprintf("Clients wait for Retry-After, with jitter, and try at most %d times in all%s. While all of the refused do, %s.", l.Retries.Attempts, back, l.Retries.becomes())
}

// said is what retries make of the loads.
func (r *Retries) said() string {
	return fmt.Sprintf("With clients that try %d times in all, %s: 1 / (1 - (1 - 1/load)^(1/%d)).", r.Attempts, r.becomes(), r.Attempts)
}

func (r *Retries) becomes() string {
	var becomes []string
	for _, v := range r.Load {
		becomes = append(becomes, fmt.Sprintf("%gx becomes %.3gx", v.Load, v.Becomes))
	}
	return strings.Join(becomes, ", ")
}

// sheetTable compares with a queue without a bound, which is what happens where
// nobody has decided anything.
func (l *Limiter) sheetTable(p *page) {
	q := quantileName(l.Percentile)
	if len(l.Expected) == 0 {
		p.line("Offered and refused at 1.5x, 3x and 10x: 33 %%, 67 %% and 90 %% are refused, which is 1 - 1/load.\n")
		l.sheetRetries(p)
		return
	}
	p.line("| load | offered | answered in time | refused | response p50 / %s | refusal told within (p50) | without a bound on the queue, every answer is late from |", q)
	p.line("|---|---|---|---|---|---|---|")
	for _, e := range l.Expected {
		inTime, refused := e.shown()
		p.line("| %gx | %s | %s, %s of capacity | %s, %s | %s / %s | %s | %s |", e.Load, perSecond(e.Offered), perSecond(inTime),
			percent(round3(e.Goodput)), perSecond(refused), percent(round3(e.Refused/e.Offered)), brief(e.P50Response), brief(e.P99Response),
			told(e.P50Told), l.unbounded(e.Load))
	}
	p.line("\nFrom a simulation of the admission core (seed %d). Without a bound, whoever arrives t after the start waits (load - 1) t, so from t = (deadline - mean service) / (load - 1) on every answer is late.\n", Seed)
	l.sheetRetries(p)
}

func (l *Limiter) sheetRetries(p *page) {
	if l.Retries != nil {
		p.line("That is without retries. %s\n", l.Retries.said())
	}
}

// shown returns the rates in time and refused for a table: three figures of the
// first, and of the second what makes them and the late ones add up to the offered.
// Less late than the third figure of the offered is none.
func (e Expected) shown() (inTime, refused float64) {
	third := math.Pow(10, math.Floor(math.Log10(e.Offered))-2)
	late := math.Floor(max(0, e.Offered-e.InTime-e.Refused)/third) * third
	inTime = round3(e.InTime)
	whole := min(1, third/10) // as offered is printed
	return inTime, max(0, math.Round((e.Offered-inTime-late)/whole)*whole)
}

// unbounded says from when on an unbounded queue answers nobody in time.
func (l *Limiter) unbounded(load float64) string {
	t := (l.Deadline - l.ServiceMean) / (load - 1)
	if t <= 0 {
		return "the start"
	}
	return fmt.Sprintf("%s on", brief(t))
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
	return fmt.Sprintf("In a queue %d deep the last in line waits %s; within the objective: %s; in time: %s.", j.Depth, brief(j.LastWait), share(j.InObjective), share(j.InTime))
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
