package verify

import (
	"fmt"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// What a report says in words, once for all of its forms. Much of it comes from whoever
// answered: header values, errors, reasons. It is shown as what it is, and never for long.

// maxWords bounds what is shown of one string of a stranger: two lines of a terminal.
const maxWords = 160

// Verdict is the answer in two words: what a report begins with.
func (r *Report) Verdict() string {
	switch {
	case r.Void != "" || len(r.Criteria) == 0:
		return "no answer"
	case r.Certified():
		return "certified"
	}
	return "not certified"
}

// reason is what is said after the verdict.
func (r *Report) reason() string {
	failed := r.names()
	switch {
	case r.Void != "":
		return strings.TrimSuffix(r.Void, ".")
	case len(r.Criteria) == 0:
		return "nothing was judged"
	case len(failed) == 0:
		return fmt.Sprintf("all %d criteria are met, %s", len(r.Criteria), r.upTo())
	case len(failed) == 1:
		return fmt.Sprintf("1 of %d criteria is not met: %s", len(r.Criteria), failed[0])
	}
	return fmt.Sprintf("%d of %d criteria are not met: %s", len(failed), len(r.Criteria), strings.Join(failed, ", "))
}

// upTo says how far the loads went.
func (r *Report) upTo() string {
	most := 0.0
	for _, s := range r.Steps {
		most = max(most, s.Load)
	}
	return fmt.Sprintf("up to %s the capacity of %s/s", loadOf(most), asRate.show(r.Capacity.PerSecond))
}

// failed are the criteria that are not met.
func (r *Report) failed() (out []Criterion) {
	for _, c := range r.Criteria {
		if !c.Met {
			out = append(out, c)
		}
	}
	return out
}

// Seen is what was measured, as it is said.
func (c Criterion) Seen() string { return seen(c.Measured) }

// Seen is what was measured, as it is said.
func (c Open) Seen() string { return seen(c.Measured) }

func seen(measured string) string {
	if measured == "" || measured == unmeasured.measured {
		return measured
	}
	return "measured: " + measured
}

// unjudgedHead is what is said before the criteria without a verdict.
func (r *Report) unjudgedHead() string {
	what := "nothing was measured"
	if seen, _ := r.open(); seen != nil {
		what = "what was measured does not stand"
	}
	return fmt.Sprintf("%d of %d criteria: %s", len(r.Unjudged), len(r.Unjudged)+len(r.Criteria), what)
}

// open are the criteria without a verdict, and the names of those about which nothing was seen.
// Why is empty where it is what the report has just said: a reason is said once.
func (r *Report) open() (seen []Open, unseen string) {
	said := r.Void // in the first lines
	var names []string
	for _, c := range r.Unjudged {
		if c.Measured == unmeasured.measured {
			names = append(names, c.Name)
			continue
		}
		why := c.Why
		if c.Why = ""; why != said {
			c.Why = "does not stand: " + strings.TrimSuffix(why, ".") + "."
		}
		said, seen = why, append(seen, c)
	}
	if names != nil {
		unseen = "not measured: " + strings.Join(names, ", ")
	}
	return seen, unseen
}

// names are the names of those.
func (r *Report) names() (out []string) {
	for _, c := range r.failed() {
		out = append(out, c.Name)
	}
	return out
}

// advice is what to do first about a verdict that is not yes: "" if there is nothing to say
// that the criteria do not.
func (r *Report) advice() string {
	if r.Void != "" && len(r.Steps) > 0 {
		s := "What is below was seen all the same, for finding out why; do not judge the service by it."
		if r.tardy() && evidenceOf(r).void() == "" { // else the reason is another one
			busy := "The machine that sends was too busy: close what else runs on it, or send from another one, and run this again. "
			if r.Local {
				busy = "The machine that sends was too busy, and it is the machine of the service too: what one takes the other has not. Close what else runs on it, " +
					"send from another one, or lower the highest of --steps, and run this again. "
			}
			s = busy + s
		}
		return s
	}
	names := map[string]bool{}
	for _, name := range r.names() {
		names[name] = true
	}
	var refused, waited, offered int64
	for _, s := range r.steps() {
		if s.Load > 1 {
			refused, offered = refused+s.Result.Refused, offered+s.Result.Offered
			waited += s.Result.TimedOut + lateOf(s.Result)
		}
	}
	// Who is protected refuses a third of the smallest load that is judged. Under a
	// hundredth of that is nobody. A tenth that waited in vain is a queue: the capacity that
	// was found has an error of a hundredth.
	if (names[Goodput] || names[Flat]) && refused*300 < offered && waited*10 > offered {
		return "Past its capacity this service tells nobody no: the queue grows until answers come after their callers have left. " +
			"Put admission control in front of it (goodput serve, or the library in five lines), and run this again."
	}
	return ""
}

// tardy reports whether the generator was late by more than its own bound.
func (r *Report) tardy() bool {
	for _, s := range r.steps() {
		for _, l := range []*load.Result{s.Result, s.Calm} {
			if l == nil || l.Late == nil || l.Plan.Tolerance <= 0 {
				continue
			}
			if late, ok := l.Late.Quantile(0.99); ok && late > l.Plan.Tolerance {
				return true
			}
		}
	}
	return false
}

// Line is r in one line, for whoever wrote the report to a file and is told nothing else.
func (r *Report) Line() string {
	s := r.Verdict() + ": " + r.reason()
	steps := r.steps()
	for i := len(steps) - 1; i >= 0 && r.Void == ""; i-- { // what is void does not stand
		if v := goodputOf(r, &steps[i]); v.there() {
			s += fmt.Sprintf("; goodput at %s is %s %%", loadOf(steps[i].Load), v.show(asPercent))
			break
		}
	}
	return clean(s)
}

// legend explains what the table has no room for.
func (r *Report) legend() []string {
	settled := load.Plan{Deadline: r.Settings.Deadline, Duration: r.Settings.Length}.Settled()
	all := []string{
		"goodput: answered in time, of min(offered, capacity); above the capacity at most by what came from " + span(settled) +
			" after the begin of a load to its end. gave up: no answer at the deadline, " +
			span(r.Settings.Deadline) + ". connection lost: no connection, or it broke.",
		"p50, p99, p99.9: from the instant at which a request was due to the end of its answer, over all that were not refused; " +
			"whoever gave up counts as the deadline, so ≥ is at least. refusal: until the no. A percentile with fewer than 5 beyond it is not shown.",
	}
	marked, after, just, late := false, false, false, false
	for _, s := range r.steps() {
		for told := range s.Result.Refusals {
			marked = marked || told.Marked
		}
		after = after || s.Calm != nil
		just, late = just || lateOf(s.Result) > 0, late || tooLate(s.Result).n > 0
	}
	if r.Settings.Attempts > 1 {
		all = append(all, "refused, in time, goodput and latencies are per request: a caller that asks again is one, and its last answer counts. "+
			"Its latency is from the start of its last attempt, since the wait before that is its own; in time is from when it was due. "+
			"Statuses, marked and plain refusals, reasons and Retry-After are per attempt, so that these add up to more than the refused.")
	}
	if marked {
		all = append(all, "marked: with Goodput-Rejected, which says that the work was not begun. plain: a refusal by its status alone.")
	}
	if just {
		all = append(all, "just late: answered after the deadline, in the moment before its caller was gone; who had left before the answer is in gave up.")
	}
	if late {
		all = append(all, "served too late: of all that was served, the part that came after the deadline: just late, and of those that gave up "+
			"as large a part as of the few that stayed on the line to see.")
	}
	if after {
		all = append(all, "recovery: from the end of a load above capacity until 95 % of the arrivals of the next second are in time, and of all that follow.")
	}
	return append(all, "sent late: how late the generator itself was; that is in the latencies too.")
}

// seen are lines about what a table cannot show.
func (r *Report) seen() (all []string) {
	statuses, which := map[int]int64{}, "all loads"
	var followed load.Followed
	for _, s := range r.steps() {
		for status, n := range s.Result.Status {
			statuses[status] += n
		}
		if s.Calm != nil {
			which = "all loads and those after them"
			for status, n := range s.Calm.Status {
				statuses[status] += n
			}
		}
		f := s.Result.Followed
		followed = load.Followed{
			Asked: followed.Asked + f.Asked, Served: followed.Served + f.Served,
			Refused: followed.Refused + f.Refused, Never: followed.Never + f.Never,
		}
	}
	if counts := counted(statuses); counts != nil {
		all = append(all, "Answers by status, "+which+": "+named(counts)+".")
	}
	if followed.Asked > 0 {
		all = append(all, fmt.Sprintf("Of those that gave up %s stayed on the line: %s got the answer all the same, %s a no, %s nothing.",
			digits(followed.Asked), digits(followed.Served), digits(followed.Refused), digits(followed.Never)))
	}
	return append(all, r.firsts()...)
}

// counted are statuses with how many there were, most frequent first.
func counted[N int | int64](statuses map[int]N) (all []string) {
	wide := map[int]int64{}
	for status, n := range statuses {
		wide[status] = int64(n)
	}
	for _, status := range byCount(wide) {
		all = append(all, fmt.Sprintf("%d × %s", status, digits(wide[status])))
	}
	return all
}

// firsts are the first of each thing that went wrong.
func (r *Report) firsts() (all []string) {
	add := func(known *bool, format string, args ...any) {
		if !*known {
			*known, all = true, append(all, fmt.Sprintf(format, args...))
		}
	}
	var lost, foreign, odd bool
	for _, s := range r.steps() {
		l, at := s.Result, loadOf(s.Load)
		if l.FirstError != nil {
			add(&lost, "First request without an answer, at %s: %s", at, short(l.FirstError.Error()))
		}
		if a := l.FirstUnlike; l.Unlike > 0 {
			add(&foreign, "First answer that is none of the idle service, at %s: status %d, %s of %s.", at, a.Status, size(a.Content.Size), typeOf(a.Content.Type))
		}
		if l.RetryAfter.FirstOdd != "" {
			add(&odd, "First Retry-After that is 0 or malformed, at %s: %q", at, short(l.RetryAfter.FirstOdd))
		}
	}
	return all
}

// idle is the service with one request at a time, in a sentence.
func (r *Report) idle() string {
	if r.Idle.Requests == 0 {
		return ""
	}
	s := "one request"
	if r.Idle.Requests > 1 {
		s = digits(int64(r.Idle.Requests)) + " requests one after another"
	}
	if r.Idle.Max <= 0 { // it served none of them
		if all := counted(r.Idle.Status); all != nil {
			return s + ", and no answer of the service: " + named(all) + "."
		}
		return s + ", and no answer."
	}
	if r.Idle.Requests == 1 {
		s += ", answered within " + span(r.Idle.Max) + "."
	} else {
		s += fmt.Sprintf(": half of them within %s, all within %s.", span(r.Idle.P50), span(r.Idle.Max))
	}
	if r.Idle.Content != "" {
		s += " Its answers: " + sentence(r.Idle.Content)
	}
	return s
}

// capacity is what was found, and how.
func (r *Report) capacity() string {
	c := r.Capacity
	s := asRate.show(c.PerSecond) + "/s"
	switch {
	case c.PerSecond <= 0 && c.Why == "" && len(c.Probes) == 0:
		s = "not looked for."
	case c.PerSecond <= 0:
		s = "none was found."
	case c.Given && c.Why == "":
		s += ", as given."
	case c.Given:
		s += "."
	case c.Error > 0:
		s += " ± " + two(c.Error) + ", the most that it answers in time."
	default:
		s += ", the most that it answers in time."
	}
	if c.Why != "" {
		s += " " + sentence(c.Why)
	}
	return s
}

// settings are what was asked for, in a sentence.
func (r *Report) settings() string {
	x := r.Settings
	said := []string{orDash(x.Method)}
	if x.Protocol != "" { // it is known once there is a connection
		said[0] += " over " + short(x.Protocol)
	}
	said = append(said, fmt.Sprintf("callers leave after %s", span(x.Deadline)), fmt.Sprintf("objective %s for the p99 of what is not refused", span(x.Objective)))
	length := fmt.Sprintf("each load for %s", span(x.Length))
	if x.Calm > 0 {
		length += fmt.Sprintf(", those above capacity followed by half of the capacity for %s", span(x.Calm))
	}
	said = append(said, length, fmt.Sprintf("arrivals %s, seed %d", orDash(x.Arrivals), x.Seed))
	if x.Attempts > 1 {
		how := "with backoff of their own"
		if x.Obey {
			how = "as Retry-After says"
		}
		said = append(said, fmt.Sprintf("up to %d attempts, %s", x.Attempts, how))
	}
	if len(x.Expect) > 0 {
		said = append(said, "answers of the service have status "+strings.Join(texts(x.Expect), ", "))
	}
	if x.AnyBody {
		said = append(said, "their bodies may be any of the media types of the idle service")
	}
	if x.MaxRate > 0 || x.MaxRequests > 0 {
		said = append(said, fmt.Sprintf("at most %s/s and %s requests", asRate.show(x.MaxRate), digits(x.MaxRequests)))
	}
	return strings.Join(said, "; ") + "."
}

func texts(all []int) (out []string) {
	for _, n := range all {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

// when says when the run was and how long it took.
func (r *Report) when() string {
	if r.Began.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s, took %s", r.Began.UTC().Format("2 January 2006 15:04:05 UTC"), span(r.Took))
}
