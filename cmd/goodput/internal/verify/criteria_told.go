package verify

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The criteria about what a service says, and how soon it is itself again.

func judgePrompt(e evidence) finding {
	return over(e.past(), func(s Step) finding {
		p99, ok := quantileOf(s.Result.Refusal, 0.99)
		if !ok {
			return finding{met: true, measured: "no refusals"} // refusals-rise is about that
		}
		err := rankError(s.Result.Refusal, s.Result.Refusal.Count())
		return finding{
			met: p99 <= e.Settings.Objective, measured: span(p99),
			why: fmt.Sprintf("at %s one in a hundred of %s refusals took %s or more, and the objective is %s: a no that comes when the answer is due "+
				"leaves no time to ask elsewhere. Decide before the wait, not after it",
				loadOf(s.Load), digits(s.Result.Refusal.Count()), span(p99), span(e.Settings.Objective)),
		}.by((p99 - e.Settings.Objective).Seconds(), err.Seconds())
	})
}

// maxHanging: 1 % is what the p99 of those that are served leaves, if all were.
const maxHanging = 0.01

func judgeHanging(e evidence) finding {
	return over(e.apart(), func(s Step) finding {
		hung := portion{s.Result.TimedOut, s.Result.Offered}
		return finding{
			met: hung.is() <= maxHanging, measured: hung.String(),
			why: fmt.Sprintf("at %s %s of %s had neither an answer nor a no after %s, when they gave up: each held a connection and memory all that time, here and there. "+
				"Refuse at once what cannot be served", loadOf(s.Load), digits(hung.n), digits(hung.of), span(s.Result.Plan.Deadline)),
		}.by(hung.is()-maxHanging, hung.err())
	})
}

// maxLate: 1 % of what is served is what a p99 within the deadline leaves. More is work for
// nobody, in the place of work for somebody.
const maxLate = 0.01

func judgeLate(e evidence) finding {
	return over(e.apart(), func(s Step) finding {
		r := s.Result
		p := tooLate(r)
		if p.of == 0 {
			return finding{met: !e.nothing(), measured: "nothing served", why: "nothing was served at " + loadOf(s.Load)} // goodput is about that
		}
		how := ""
		if r.Followed.Served > 0 {
			how = fmt.Sprintf(" (of %s that gave up and stayed on the line %s were served all the same)", digits(r.Followed.Asked), digits(r.Followed.Served))
		}
		return finding{
			met: p.is() <= maxLate, measured: p.String(),
			why: fmt.Sprintf("at %s about %s of %s answers came after %s%s: the service works for callers that have left, and in that time serves nobody else. "+
				"Drop what has expired before it begins, and whatever can no longer be finished in time",
				loadOf(s.Load), digits(p.n), digits(p.of), span(r.Plan.Deadline), how),
		}.by(p.is()-maxLate, p.err())
	})
}

// tooLate is what was served after the deadline, of all that was served. Those that gave up have
// left; a few were asked to stay on the line, and stand for the rest. A guess from few of few: but
// as long as those that gave up are no more than 1 % of the served there are not too many,
// whatever it says.
func tooLate(r *load.Result) portion {
	after := lateOf(r) + stillServed(r)
	return portion{after, r.InTime + after}
}

// stillServed estimates how many of those that gave up were served after that.
func stillServed(r *load.Result) int64 {
	if r.Followed.Asked <= 0 {
		return 0
	}
	return int64(float64(r.TimedOut)*float64(r.Followed.Served)/float64(r.Followed.Asked) + 0.5)
}

// Callers that ask again hear more than one answer. Who is served, in time or at all, is a matter
// of each caller and its last answer; what was said, and whether a connection held, is one of each
// attempt: a 500 or a Retry-After of 0 that another attempt hides was on the wire.

// judgeStatuses allows none: what a client does about an answer that it does not know is
// beyond the service, whether it is one in ten thousand or not.
func judgeStatuses(e evidence) finding {
	var foreign, offered int64
	f := finding{met: true}
	for _, v := range e.sights() {
		n, what := foreignOf(v.Result)
		if n > 0 && f.why == "" {
			f.why = fmt.Sprintf("%s %s of %s answers were neither those of the idle service nor a refusal that clients know: %s. "+
				"They are taken for answers, cached, or never tried again. Refuse with 503 or 429%s", v.at, digits(n), digits(v.asked()), what, e.changing(v.Result))
		}
		foreign, offered = foreign+n, offered+v.asked()
	}
	if offered == 0 {
		return unmeasured
	}
	f.met = foreign == 0
	f.measured = fmt.Sprintf("%s of %s are neither", digits(foreign), digits(offered))
	return f
}

// changing says what to do if nothing but the body made an answer foreign.
func (e evidence) changing(r *load.Result) string {
	status := r.FirstUnlike.Status
	known := slices.Contains(e.Settings.Expect, status) || len(e.Settings.Expect) == 0 && e.Idle.Status[status] > 0
	if r.Unlike == 0 || !known || e.Settings.AnyBody {
		return ""
	}
	return fmt.Sprintf("; or, if a %d is no refusal here and the body changes from one answer to the next, say --any-body", status)
}

// maxKinds is how many kinds of answers a sentence names: a service may have a hundred.
const maxKinds = 4

// foreignOf counts what is neither an answer nor a refusal, and describes it.
func foreignOf(r *load.Result) (n int64, what string) {
	var kinds []string
	add := func(more int64, format string, args ...any) {
		if more > 0 {
			n += more
			kinds = append(kinds, digits(more)+" "+fmt.Sprintf(format, args...))
		}
	}
	a := r.FirstUnlike
	add(r.Unlike, "with another body or status (the first: %d, %s of %s)", a.Status, size(a.Content.Size), typeOf(a.Content.Type))
	for _, form := range toldInOrder(r.Refusals) {
		if !understood(form) {
			add(r.Refusals[form], "that say Goodput-Rejected with status %d", form.Status)
		}
	}
	failed := r.Failed + r.Earlier.Failed
	for _, status := range byCount(r.Status) {
		if plain := min(unrefused(r, status), failed); status >= 500 {
			add(plain, "with status %d", status)
			failed -= max(plain, 0)
		}
	}
	add(failed, "with a status of 500 or more")
	return n, named(kinds)
}

// named are the first of some kinds, and how many more there are.
func named(kinds []string) string {
	if more := len(kinds) - maxKinds; more > 0 {
		kinds = append(kinds[:maxKinds:maxKinds], fmt.Sprintf("and %d kinds more", more))
	}
	return strings.Join(kinds, ", ")
}

// unrefused are the answers of a status that are no refusals.
func unrefused(r *load.Result, status int) int64 {
	return r.Status[status] - r.Refusals[load.Told{Status: status}] - r.Refusals[load.Told{Status: status, Marked: true}]
}

// understood reports whether clients take an answer for "not now": 429 (RFC 6585, 4) and 503
// (RFC 9110, 15.6.4) by themselves, and 504 if it says that the work was not begun. 200 says
// that it was done.
func understood(t load.Told) bool {
	return t.Status == 429 || t.Status == 503 || t.Status == 504 && t.Marked
}

// maxRetryAfter: an hour is longer than any overload for which a client should keep a request.
const maxRetryAfter = time.Hour

func judgeRetryAfter(e evidence) finding {
	sights := e.sights()
	if len(sights) == 0 {
		return unmeasured
	}
	all := retryAfters(sights)
	f := finding{met: all.Zero == 0 && all.Malformed == 0 && all.Max <= maxRetryAfter, measured: "no refusals"}
	switch {
	case all.refused > 0 && all.said == 0 && all.Absent > 0:
		f.measured = fmt.Sprintf("none in %s refusals", digits(all.refused))
	case all.said > 0:
		f.measured = fmt.Sprintf("%s to %s in %s refusals", span(all.Min), span(all.Max), digits(all.said))
		if all.Absent > 0 {
			f.measured += ", none in " + digits(all.Absent)
		}
	}
	if n := all.Zero + all.Malformed; n > 0 {
		f.measured = fmt.Sprintf("of %s refusals %s have one that is 0 or cannot be read", digits(all.refused), digits(n))
		f.why = fmt.Sprintf("%s refusals say to come back at once, or something that is neither a whole number of seconds nor a date to come (the first: %q): "+
			"those who obey come back into the same overload. Say 1 or more, spread over a few seconds", digits(n), short(all.FirstOdd))
		return f
	}
	f.why = fmt.Sprintf("a Retry-After of %.4g h is more than %v h: whoever obeys is lost for an overload of seconds", all.Max.Hours(), maxRetryAfter.Hours())
	return f
}

// hints are the Retry-After of several loads.
type hints struct {
	load.RetryAfter
	refused, said int64
}

func retryAfters(all []sight) (sum hints) {
	sum.Values = map[time.Duration]int64{}
	for _, v := range all {
		a := v.Result.RetryAfter
		sum.refused += v.AttemptsRefused()
		sum.Absent += a.Absent
		sum.Zero += a.Zero
		sum.Malformed += a.Malformed
		for d, n := range a.Values {
			if sum.said == 0 || d < sum.Min {
				sum.Min = d
			}
			sum.Max = max(sum.Max, d)
			sum.said += n
			sum.Values[d] += n
		}
		sum.Max = max(sum.Max, a.Max) // Values are rounded to the nearest beyond a few
		if sum.FirstOdd == "" {
			sum.FirstOdd = a.FirstOdd
		}
	}
	return sum
}

// minHerd is from how many refusals on one value for all of them is no accident: of two
// values that are equally likely one does not come 100 times (2^-99).
const minHerd = 100

// notes are about what is no failure, and worth a thought.
func (e evidence) notes() (all []string) {
	h := retryAfters(e.sights())
	switch {
	case h.refused > 0 && h.Absent >= h.refused && h.said == 0:
		all = append(all, "No refusal has a Retry-After: clients choose for themselves when to come back, many of them at once.")
	case h.said >= minHerd && len(h.Values) == 1:
		all = append(all, fmt.Sprintf("All %s refusals say the same Retry-After, %s: who was refused together comes back together. Spread it.", digits(h.said), span(h.Max)))
	}
	return all
}

// maxLost: a connection that is lost says neither yes nor no, so a client that tries again may
// do the work twice. 1 in 1,000 are a tenth of the 1 in 100 that a p99 lets be late: what a
// service loses on a quiet day, when idle connections close under a request. One is allowed in
// any load, however short: it is no share.
const maxLost = 0.001

func judgeConnections(e evidence) finding {
	var lost, offered int64
	var found []finding
	for _, v := range e.sights() {
		p := portion{v.Errors + v.Earlier.Lost, v.asked()}
		if p.n > 1 && !(p.is() <= maxLost) {
			found = append(found, finding{why: fmt.Sprintf("%s %s of %s requests got no connection, or it broke before the answer (the first: %s): whether the work was done nobody knows. "+
				"Accept, and say no with 503", v.at, digits(p.n), digits(p.of), errorOf(v.Result))}.by(p.is()-maxLost, p.err()))
		}
		lost, offered = lost+p.n, offered+p.of
	}
	if offered == 0 {
		return unmeasured
	}
	f := worst(found)
	f.measured = fmt.Sprintf("%s of %s lost", digits(lost), digits(offered))
	return f
}

func errorOf(r *load.Result) string {
	if r.FirstError == nil {
		return "unknown"
	}
	return short(r.FirstError.Error())
}

// maxRecovery: the mission of this program is 1 s in virtual time; a service that has a queue
// within its deadline has drained that after one, and a client that is refused comes back
// within 1 to 2 s. Who takes longer than that is waited for by people.
const maxRecovery = 2 * time.Second

func judgeRecovery(e evidence) finding {
	return over(e.past(), func(s Step) finding {
		if s.Calm == nil {
			return unmeasured
		}
		if s.Recovery < 0 {
			return finding{miss: math.Inf(1), measured: fmt.Sprintf("not within %s", span(s.Calm.Plan.Duration)), why: fmt.Sprintf(
				"after %s half of the capacity was offered for %s, and callers were not in time again: %s of %s were not, %s. "+
					"What the overload left behind keeps the service busy, or it still refuses because of it: such a service may stay down until somebody restarts it",
				loadOf(s.Load), span(s.Calm.Plan.Duration), digits(s.Calm.Offered-s.Calm.InTime), digits(s.Calm.Offered), fates(s.Calm))}
		}
		return finding{
			met: s.Recovery <= maxRecovery, miss: (s.Recovery - maxRecovery).Seconds(), measured: span(s.Recovery),
			why: fmt.Sprintf("after %s it took %s until callers were in time again at half of the capacity (%s of %s were not in time): "+
				"every short peak is that much longer than it was", loadOf(s.Load), span(s.Recovery), digits(s.Calm.Offered-s.Calm.InTime), digits(s.Calm.Offered)),
		}
	})
}
