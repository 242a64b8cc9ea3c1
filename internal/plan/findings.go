package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/admission"
)

// Level is how bad a finding is.
type Level string

const (
	// Error is a plan that cannot do what it is for: the answer is no.
	Error Level = "error"
	// Warning is a plan that will do it on paper.
	Warning Level = "warning"
)

// A Finding is something to change, with the arithmetic that shows it and the
// smallest change that ends it.
type Finding struct {
	Level Level  `json:"level"`
	Code  string `json:"code"`
	Where string `json:"where,omitempty"` // the layer or resource; empty for the only limiter
	Text  string `json:"text"`
	Fix   string `json:"fix"`
}

// OK reports whether no finding is an error.
func OK(findings []Finding) bool {
	for _, f := range findings {
		if f.Level == Error {
			return false
		}
	}
	return true
}

// The thresholds of warnings about mixtures. The slowest tenth of an exponential
// service does 0.1 (1 + ln 10) = 33 % of all work, and a limiter is fine with it;
// of a lognormal with CV 2 it does 50 %. Between them somebody should look.
const (
	slowTenth    = 0.4
	classesApart = 10.0 // means that differ by more than this want a limit each
)

// findings are what is wrong with one limiter, the worst first.
func (l *Limiter) findings() []Finding {
	out := []Finding{} // never null in JSON
	add := func(level Level, code, text, fix string) {
		out = append(out, Finding{Level: level, Code: code, Text: text, Fix: fix})
	}
	p := quantileName(l.Percentile)
	if !l.Reachable {
		// The smallest objective that leaves room for what keeps the slots busy.
		least := ceilMillis(l.P99Response)
		add(Error, "objective_unreachable",
			fmt.Sprintf("objective %s %s cannot be met at any depth: the service alone takes %s at %s.", p, brief(l.Objective), brief(l.ServiceP99), p),
			fmt.Sprintf("raise the objective: %s is the least, without a queue, and %s leaves room for the %d that keep the slots busy; or make the slowest %s of the requests faster.",
				brief(ceilMillis(l.ServiceP99)), brief(least), l.Depth, miss(l.Percentile)))
	}
	if !l.DeadlineReachable {
		add(Error, "deadline_below_service",
			fmt.Sprintf("deadline %s is shorter than the %s of the service, %s: %s of the requests end too late even if nobody waits.",
				brief(l.Deadline), p, brief(l.ServiceP99), percent(l.server.longer(l.Deadline))),
			fmt.Sprintf("raise the deadline to %s, or bound the work of a request at %s.", brief(ceilMillis(l.ServiceP99)), brief(l.Deadline)))
	}
	for _, j := range []*Judgement{l.Given, l.Proposed} {
		if j == nil || j.Fits {
			continue
		}
		what, level := "depth", Error
		switch {
		case j == l.Proposed:
			what = "proposed depth"
		case l.Proposed != nil:
			level = Warning // it is about to change: the question is to what
		}
		add(level, "depth_misses_objective",
			fmt.Sprintf("%s %d: the last in line responds after %s at %s, the objective is %s. It waits %d / %s = %s before its service starts.",
				what, j.Depth, brief(j.P99Response), p, brief(l.Objective), j.Depth, perSecond(l.CompletionRate), brief(j.LastWait)),
			fmt.Sprintf("a depth of %d, or an objective of %s.", l.Depth, brief(ceilMillis(j.P99Response))))
	}
	if l.in.Objective > l.in.Deadline {
		add(Warning, "objective_over_deadline",
			fmt.Sprintf("objective %s is longer than deadline %s: a queue of %d is for answers nobody waits for.", brief(l.Objective), brief(l.Deadline), l.Depth),
			fmt.Sprintf("an objective of at most %s: %d deep.", brief(l.Deadline), l.DeadlineDepth))
	}
	if l.Depth > admission.DefaultMaxItems {
		add(Warning, "depth_over_max_items",
			fmt.Sprintf("the derived depth is %d, and a limiter lets %d wait, whatever the depth, unless it is told otherwise.", l.Depth, admission.DefaultMaxItems),
			fmt.Sprintf("set the most that may wait to %d if so many are wanted: each is a goroutine.", l.Depth))
	}
	if f, ok := l.classMix(); ok {
		out = append(out, f)
	}
	if b := l.Burst; b.Refused > 0 {
		add(Warning, "burst_exceeds_depth",
			fmt.Sprintf("the burst of %gx for %s brings (%s - %s) x %s = %d more than is served, and %d may wait: %s of its requests are refused.",
				b.Factor, brief(b.Length), perSecond(b.Offered), perSecond(l.CompletionRate), brief(b.Length), b.Needed, l.Depth, percent(b.Share)),
			l.burstFix())
	}
	if r, loop := l.in.RetryInterval, l.in.Loop; r > 0 && loop >= r {
		out = append(out, slowLoop("", loop.Seconds(), r.Seconds()))
	}
	return out
}

// classMix finds work that should not share a limit.
func (l *Limiter) classMix() (Finding, bool) {
	f := Finding{Level: Warning, Code: "class_mix"}
	if len(l.in.Classes) == 1 {
		part := l.server.slowest(0.1)
		if part <= slowTenth {
			return f, false
		}
		f.Text = fmt.Sprintf("the slowest tenth of the requests does %s of the work (CV %.3g): that is usually two classes that share a limit, and the short ones wait for the long ones.",
			percent(part), l.ServiceCV)
		f.Fix = "give the slow requests a limiter of their own; then plan each."
		return f, true
	}
	extra := time.Duration(0) // that each holds its slot for, beside its own work
	if l.in.within != nil {
		extra = seconds(l.in.within.extra)
	}
	slow, fast := l.in.Classes[0], l.in.Classes[0]
	slow.Service.Mean += extra
	fast.Service.Mean += extra
	var total, all float64
	for _, c := range l.in.Classes {
		c.Service.Mean += extra
		if c.Service.Mean > slow.Service.Mean {
			slow = c
		}
		if c.Service.Mean < fast.Service.Mean {
			fast = c
		}
		total += c.Share
		all += c.Share * c.Service.Mean.Seconds()
	}
	apart := float64(slow.Service.Mean) / float64(fast.Service.Mean)
	if apart <= classesApart {
		return f, false
	}
	held := slow.Share * slow.Service.Mean.Seconds() / all
	f.Text = fmt.Sprintf("%s takes %.3g times as long as %s and shares its limit: it is %s of the requests and holds %s of the slots, %.3g of %d (share x mean / mean of all = %s x %s / %s).",
		slow.Name, apart, fast.Name, percent(slow.Share/total), percent(held), held*float64(l.Limit), l.Limit,
		percent(slow.Share/total), brief(slow.Service.Mean.Seconds()), brief(all/total))
	if l.Limit == 1 {
		f.Fix = "two limiters, with a slot each."
		return f, true
	}
	slots := min(max(int(math.Round(held*float64(l.Limit))), 1), l.Limit-1)
	f.Fix = fmt.Sprintf("two limiters: %s for %s, %d for the rest.", plural(slots, "slot"), slow.Name, l.Limit-slots)
	return f, true
}

// burstFix is the smallest change that keeps a burst: more slots, since depth
// beyond the derived one breaks the objective.
func (l *Limiter) burstFix() string {
	b := l.Burst
	// Slots L' serve at L'/mean and derive about the depth per slot of now:
	// (offered - L'/mean) length <= depth/limit L'.
	perSlot := float64(l.Depth) / float64(l.Limit)
	slots := math.Ceil(b.Offered * b.Length / (b.Length/l.ServiceMean + perSlot))
	return fmt.Sprintf("about %.0f slots if the resource has them, or accept it: a depth of %d would answer the last in line after %s at %s.",
		slots, b.Needed, brief(l.server.respond(b.Needed)), quantileName(l.Percentile))
}

// slowLoop is the warning about a loop that lags behind its clients.
func slowLoop(where string, loop, retry float64) Finding {
	return Finding{
		Warning, "loop_slower_than_retries", where,
		fmt.Sprintf("the limit is decided every %s and clients are back after %s: each decision answers a load that has already come back %.3g times, and the two swing against each other.",
			brief(loop), brief(retry), math.Floor(loop/retry)),
		fmt.Sprintf("decide within %s, half the retry interval, or have clients wait longer than %s, with jitter.", brief(retry/2), brief(loop)),
	}
}

// ceilMillis rounds up to a millisecond.
func ceilMillis(s float64) float64 { return math.Ceil(s*1000-1e-6) / 1000 }
