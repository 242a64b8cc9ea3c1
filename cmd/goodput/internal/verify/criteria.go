package verify

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The criteria about who is served: how many, and how soon. Those about what is said to
// everybody else are in criteria_told.go.

// criteria are Names, each with its judgement.
var criteria = []criterion{
	{Below, false, func(s Settings) string {
		return fmt.Sprintf("at half of the capacity at most %v %% are refused, late or unanswered, and the p99 is within %s", 100*maxLossBelow, span(s.Objective))
	}, judgeBelow},
	{Goodput, false, func(Settings) string {
		return fmt.Sprintf("in time >= %v %% of the capacity, at each load above it", 100*minGoodput)
	}, judgeGoodput},
	{Flat, false, func(s Settings) string {
		from := ""
		if s.Attempts > 1 {
			from = ", from the start of its last attempt,"
		}
		return fmt.Sprintf("the p99 of whoever got a slot%s is within %s, and at no load more than %v times that at a lower one", from, span(s.Objective), maxRise)
	}, judgeFlat},
	{Refusals, false, func(Settings) string {
		return fmt.Sprintf("the share that is refused does not fall as the load rises, and of those that are not served at least %v %% are told no", 100*minTold)
	}, judgeRefusals},
	{Prompt, false, func(s Settings) string {
		return "the p99 of the time to a refusal is within " + span(s.Objective)
	}, judgePrompt},
	{Hanging, false, func(s Settings) string {
		return fmt.Sprintf("at most %v %% have no answer at all after %s", 100*maxHanging, span(s.Deadline))
	}, judgeHanging},
	{Late, false, func(s Settings) string {
		return fmt.Sprintf("of what is served at most %v %% comes after %s, when its caller has left", 100*maxLate, span(s.Deadline))
	}, judgeLate},
	{Statuses, true, func(Settings) string {
		return "each answer is like those of the idle service, or a refusal: 429, 503, or 504 with Goodput-Rejected"
	}, judgeStatuses},
	{RetryAfter, true, func(Settings) string {
		return fmt.Sprintf("each Retry-After can be read, is not 0, and at most %v h", maxRetryAfter.Hours())
	}, judgeRetryAfter},
	{Connections, false, func(Settings) string {
		return fmt.Sprintf("at most %v %% of the requests of a load get no connection, or lose it", 100*maxLost)
	}, judgeConnections},
	{Recovery, false, func(Settings) string {
		return fmt.Sprintf("95 %% of the callers are in time again within %s after a load above the capacity", span(maxRecovery))
	}, judgeRecovery},
}

// maxLossBelow: with 4 slots and 8 places to wait 0.03 % are lost at half of the capacity; 2 %
// is what 12 slots without a queue do not lose (B(12, 6) = 1.1 %), and 10 do (1.8 %: just so).
const maxLossBelow = 0.02

func judgeBelow(e evidence) finding {
	if e.nothing() {
		return e.unserved()
	}
	return over(e.below(), func(s Step) finding {
		lost := portion{s.Result.Offered - s.Result.InTime, s.Result.Offered}
		if p99, ok := quantileOf(s.Result.Latency, 0.99); ok && slots(s.Result) >= minSlots && p99 > e.Settings.Objective && lost.is() <= maxLossBelow {
			return finding{measured: "a p99 of " + span(p99), why: fmt.Sprintf("at %s, where there is room for everybody, one in a hundred takes %s or more, and the "+
				"objective is %s: no queue does that, the service itself does. It needs another objective, or to be faster",
				loadOf(s.Load), span(p99), span(e.Settings.Objective))}
		}
		return finding{
			met: lost.is() <= maxLossBelow, measured: lost.String(),
			why: fmt.Sprintf("at %s, where there is room for everybody, %s of %s were not answered in time: %s. %s",
				loadOf(s.Load), digits(lost.n), digits(lost.of), fates(s.Result), ailing(s.Result,
					"A bound is smaller than what independent callers need at the same instant, or it is not for what the service can do at once")),
		}.by(lost.is()-maxLossBelow, lost.err())
	})
}

// since says that the goodput of r is that of the settled load, where the in time of all of it is
// another figure.
func since(r *load.Result, capacity float64) string {
	if r.Goodput(capacity) == r.Ratio(capacity) {
		return ""
	}
	return fmt.Sprintf(" from %s after the begin on to the end of the load", span(r.Plan.Settled()))
}

// ailing is what most of those that were not in time say: that the service is out of order, or
// else what is to be said of an overload.
func ailing(r *load.Result, overload string) string {
	if broken := r.Failed + r.Unlike + r.Errors; 2*broken > r.Offered-r.InTime {
		return "Most of these are errors, and no bound mends those: look at what the service answers"
	}
	return overload
}

// minGoodput: what admits with a queue that fits its objective reaches 99 %. 95 % is what 40
// slots without any queue reach at 1.5x: of those a / (1 - a), a = 1 / 1.5, are idle, 2 of 40.
const minGoodput = 0.95

func judgeGoodput(e evidence) finding {
	if e.nothing() {
		return e.unserved()
	}
	c := e.Capacity
	return over(e.past(), func(s Step) finding {
		got := s.Result.Goodput(c.PerSecond)
		// Answers in time counted as Poisson, which a service that is always busy stays
		// below, and the error of the capacity.
		err := got * math.Hypot(1/math.Sqrt(max(float64(s.Result.Settled()), 1)), c.Error/c.PerSecond)
		why := fmt.Sprintf("at %s %s/s came in time%s, and the service can do %s/s: of all, %s. %s",
			loadOf(s.Load), asRate.show(got*c.PerSecond), since(s.Result, c.PerSecond), asRate.show(c.PerSecond), fates(s.Result),
			ailing(s.Result, "It refuses what it could do, or spends its time on what nobody waits for any more"))
		if c.Given {
			why += ". The capacity was given: if it can do less in truth, this is why"
		}
		return finding{met: got >= minGoodput, measured: withError(got, err), why: why}.by(minGoodput-got, err)
	})
}

// maxRise is how much longer the p99 may be than at a lower load. From 1.5x to 10x a wait that
// is in proportion to the load becomes 6.7 times as long, and one that grows with its fourth
// root 1.6 times. A queue with a bound is not always full at 1.5x, and at 10x it is: this
// project's limiter, with an objective of 10 fixed services and 4 slots, goes from 68 to 100
// ms, 1.46 times, and stays there. Noise is less: the p99 of 500 of an exponential tail has a
// standard error of 10 % (sqrt(0.99 x 0.01 / 500) / 0.01 / ln 100), that of 2,000 one of 5 %.
const maxRise = 1.5

func judgeFlat(e evidence) finding {
	var lowest *Step // of those before, by p99
	return over(e.past(), func(s Step) finding {
		n := slots(s.Result)
		p99, ok := quantileOf(s.Result.Latency, 0.99)
		if !ok || n < minSlots {
			return finding{measured: "too few", why: fmt.Sprintf("at %s only %s got a slot, too few for a p99: what the others are told is in the other criteria", loadOf(s.Load), digits(n))}
		}
		before := lowest
		if least := p99Of(lowest); lowest == nil || p99 < least {
			lowest = &s
		}
		err := rankError(s.Result.Latency, n)
		f := finding{measured: span(p99)}
		if err > 0 {
			f.measured += " ± " + span(err)
		}
		// Whoever gave up counts as the deadline, where it left: the p99 is no less than that.
		if p99 >= s.Result.Plan.Deadline {
			f.measured = "≥" + span(p99)
			f.why = fmt.Sprintf("at %s more than one in a hundred of %s that were not refused had no answer after %s, when callers leave: more is let in than "+
				"can be answered in time. Bound the queue by the time that it takes, not by what fits into memory", loadOf(s.Load), digits(n), span(p99))
			return f.by(math.Inf(1), 0)
		}
		if more := p99 - e.Settings.Objective; more > 0 {
			f.why = fmt.Sprintf("at %s one in a hundred of %s that were not refused waited %s or more, and the objective is %s: the queue is longer than it allows",
				loadOf(s.Load), digits(n), span(p99), span(e.Settings.Objective)) + e.overtaken() + generatorIn(more, s)
			return f.by(more.Seconds(), err.Seconds())
		}
		f.met = true
		if before == nil {
			return f
		}
		if more := p99 - maxP99(before, &s); more > 0 {
			f.met = false
			f.why = fmt.Sprintf("the p99 is %s at %s and %s at %s: whoever is served pays for those that are not. A wait that depends on how many come has no bound of its own",
				span(p99Of(before)), loadOf(before.Load), span(p99), loadOf(s.Load))
			f = f.by(more.Seconds(), math.Hypot(err.Seconds(), maxRise*rankError(before.Result.Latency, slots(before.Result)).Seconds()))
		}
		return f
	})
}

// overtaken is the other cause of a long wait, where callers ask again: with less time left each
// time they come before whoever asked once, if the service serves the earliest deadline first.
func (e evidence) overtaken() string {
	if e.Settings.Attempts <= 1 {
		return ""
	}
	return ", or who asks again, with less time left, is let pass before who has waited (earliest deadline first): a run with --attempts 1 tells"
}

// generatorIn says so if what is too much is no more than what the generator itself was late.
func generatorIn(more time.Duration, s Step) string {
	late, _ := quantileOf(s.Result.Late, 0.99)
	if late < more {
		return ""
	}
	return fmt.Sprintf(". The generator was %s late at p99, and that is in it", span(late))
}

// maxP99 is what the p99 of s may be after one of before at a lower load. Latencies count from
// when a request was due, so what the generator was late is not of the service.
func maxP99(before, s *Step) time.Duration {
	late, _ := quantileOf(s.Result.Late, 0.99)
	return time.Duration(maxRise*float64(p99Of(before))) + late
}

// p99Of is that of whoever got a slot; 0 of no step.
func p99Of(s *Step) time.Duration {
	if s == nil {
		return 0
	}
	d, _ := quantileOf(s.Result.Latency, 0.99)
	return d
}

// rankError is the standard error of a p99 of n: the rank of a quantile q has one of
// sqrt(q (1 - q) / n), and half of the distance between the durations there is that of the
// duration.
func rankError(h *load.Histogram, n int64) time.Duration {
	off := math.Sqrt(0.99 * 0.01 / float64(n))
	low, _ := quantileOf(h, 0.99-off)
	high, _ := quantileOf(h, 0.99+off)
	return (high - low) / 2
}

// minTold: of those that are not served in time nearly all are to know. 5 % are left for the
// 1 % of the admitted that a p99 lets be late: at 1.5x that is 1 % of 1 in 0.5 too many, 2 %.
const minTold = 0.95

func judgeRefusals(e evidence) finding {
	highest, at := portion{0, 1}, ""
	shown := over(e.ordered, func(s Step) finding {
		refused := portion{s.Result.Refused, s.Result.Offered}
		f := finding{met: !math.IsNaN(refused.is()), measured: refused.String(), why: fmt.Sprintf("at %s nobody came", loadOf(s.Load))}
		// Two shares that are the same differ by two standard errors in one of 44 runs.
		noise := 2 * math.Hypot(refused.err(), highest.err())
		if refused.is() < highest.is()-noise {
			f.met = false
			f.why = fmt.Sprintf("%s were refused at %s, and only %s at %s, where more cannot be served: somewhere else they wait, and waiting is the overload",
				highest, at, refused, loadOf(s.Load))
			f = f.by(highest.is()-refused.is(), 0) // beyond the noise of both
		}
		if refused.is() > highest.is() {
			highest, at = refused, loadOf(s.Load)
		}
		if s.Load > 1 && f.met {
			f = told(s, f.measured)
		}
		return f
	})
	if len(e.past()) == 0 {
		return unmeasured
	}
	return shown
}

// told looks whether those that were not served in time were told no.
func told(s Step, measured string) finding {
	r := s.Result
	unserved := r.Offered - r.InTime
	if unserved <= 0 {
		return finding{met: true, measured: measured}
	}
	// Just above 1x few are too many, and 1 % of all that are left hanging, which no-hanging
	// allows, are more than 5 % of those.
	untold := unserved - r.Refused
	p := portion{r.Refused, unserved}
	if p.is() >= minTold || float64(untold) <= maxHanging*float64(r.Offered) {
		return finding{met: true, measured: measured}
	}
	return finding{measured: measured, why: fmt.Sprintf("at %s %s of %s were not served in time, and %s of them were told no; of all, %s. "+
		"Who is not told waits, and tries again on top of it: put a bound before the queue, and say no at the door",
		loadOf(s.Load), digits(unserved), digits(r.Offered), digits(r.Refused), fates(r))}.by(minTold-p.is(), p.err())
}
