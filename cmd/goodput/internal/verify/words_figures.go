package verify

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The figures of a step, once for all forms of a report: a row of the tables, and a key of
// the JSON. Keys end in their unit, and tables show the same number in the unit that people
// say: milliseconds and percent.

// A value is a figure of a step.
type value struct {
	x       float64 // NaN: there is none
	atLeast bool    // it is where the looking ended: the true one is no less
}

var noValue = value{x: math.NaN()}

func (v value) there() bool { return !math.IsNaN(v.x) && !math.IsInf(v.x, 0) }

// show is v in unit u; a dash where there is none.
func (v value) show(u unit) string {
	switch {
	case !v.there():
		return "–"
	case v.atLeast:
		return "≥" + u.show(v.x)
	}
	return u.show(v.x)
}

// A unit is how a number is shown: times what, and with how many decimals.
type unit struct {
	name     string
	scale    float64
	decimals func(x float64) int // of the scaled number
}

var (
	asRate    = unit{"/s", 1, three}
	asPercent = unit{"%", 100, func(float64) int { return 1 }}
	asMillis  = unit{"ms", 1000, three}
	asSeconds = unit{"s", 1, three}
	asTimes   = unit{"", 1, func(float64) int { return 2 }}
)

// three decimals leave three figures, and at most two decimals: 436, 60.1, 0.53. A histogram
// of the generator knows three.
func three(x float64) int {
	switch {
	case math.Abs(x) >= 99.95:
		return 0
	case math.Abs(x) >= 9.995:
		return 1
	}
	return 2
}

func (u unit) show(x float64) string {
	x *= u.scale
	if x == 0 {
		return "0"
	}
	return strconv.FormatFloat(x, 'f', u.decimals(x), 64)
}

// A figure is one number of each step.
type figure struct {
	key       string
	name      string
	unit      unit
	criterion string // that is about it; "" for none
	rare      bool   // tables leave it out while it is nothing at every step
	of        func(*Report, *Step) value
}

var allFigures = []figure{
	{"offered_per_second", "offered", asRate, "", false, rateOf(func(l *load.Result) int64 { return l.Offered })},
	{"sent_per_second", "sent", asRate, "", false, rateOf(func(l *load.Result) int64 { return l.Sent })},
	{"in_time_per_second", "in time", asRate, "", false, rateOf(func(l *load.Result) int64 { return l.InTime })},
	{"goodput_ratio", "goodput", asPercent, Goodput, false, goodputOf},
	{"refused_per_second", "refused", asRate, "", false, rateOf(func(l *load.Result) int64 { return l.Refused })},
	{"refused_ratio", "refused", asPercent, Refusals, false, func(_ *Report, s *Step) value { return shareOf(s.Result.Refused, s.Result.Offered) }},
	{"late_per_second", "just late", asRate, "", true, rateOf(lateOf)},
	{"gave_up_per_second", "gave up", asRate, Hanging, false, rateOf(func(l *load.Result) int64 { return l.TimedOut })},
	{"foreign_per_second", "foreign answers", asRate, Statuses, true, rateOf(func(l *load.Result) int64 { return l.Unlike })},
	{"failed_per_second", "failed (5xx)", asRate, "", false, rateOf(func(l *load.Result) int64 { return l.Failed })},
	{"connection_errors_per_second", "connection lost", asRate, Connections, false, rateOf(func(l *load.Result) int64 { return l.Errors })},
	{"not_sent_per_second", "not sent", asRate, "", true, rateOf(func(l *load.Result) int64 { return l.Dropped })},
	{"interrupted_per_second", "interrupted", asRate, "", true, rateOf(func(l *load.Result) int64 { return l.Aborted })},
	{"attempts_per_request", "attempts each", asTimes, "", true, attemptsEach},
	{"latency_p50_seconds", "p50", asMillis, "", false, percentile(latenciesOf, 0.50)},
	{"latency_p99_seconds", "p99", asMillis, Flat, false, percentile(latenciesOf, 0.99)},
	{"latency_p999_seconds", "p99.9", asMillis, "", false, percentile(latenciesOf, 0.999)},
	{"refusal_p50_seconds", "refusal p50", asMillis, "", false, percentile(refusalsOf, 0.50)},
	{"refusal_p99_seconds", "refusal p99", asMillis, Prompt, false, percentile(refusalsOf, 0.99)},
	{"retry_after_least_seconds", "Retry-After least", asSeconds, "", false, retryAfterOf(func(a *load.RetryAfter) value { return value{x: a.Min.Seconds()} })},
	{"retry_after_most_seconds", "Retry-After most", asSeconds, "", false, retryAfterOf(func(a *load.RetryAfter) value { return value{x: a.Max.Seconds()} })},
	{"retry_after_absent_ratio", "  refused without", asPercent, "", true, func(_ *Report, s *Step) value { return shareOf(s.Result.RetryAfter.Absent, s.Result.AttemptsRefused()) }},
	{"retry_after_odd_ratio", "  0 or malformed", asPercent, RetryAfter, true, func(_ *Report, s *Step) value {
		return shareOf(s.Result.RetryAfter.Zero+s.Result.RetryAfter.Malformed, s.Result.AttemptsRefused())
	}},
	{"served_too_late_ratio", "served too late", asPercent, Late, true, servedTooLate},
	{"recovery_seconds", "recovery", asSeconds, Recovery, false, recoveryOf},
	{"generator_late_p50_seconds", "sent late p50", asMillis, "", false, percentile(latenessOf, 0.50)},
	{"generator_late_p99_seconds", "sent late p99", asMillis, "", false, percentile(latenessOf, 0.99)},
	{"generator_late_max_seconds", "sent late at most", asMillis, "", false, percentile(latenessOf, 1)},
}

func rateOf(count func(*load.Result) int64) func(*Report, *Step) value {
	return func(_ *Report, s *Step) value {
		if s.Result.Plan.Duration <= 0 {
			return noValue
		}
		return value{x: s.Result.PerSecond(count(s.Result))}
	}
}

// late are those that were answered just after the deadline, before their callers were gone:
// Unlike are in Completed too, and have a row of their own.
func lateOf(l *load.Result) int64 { return max(l.Completed-l.InTime-l.Unlike, 0) }

// servedTooLate is what no-late-answers judges.
func servedTooLate(_ *Report, s *Step) value {
	p := tooLate(s.Result)
	return shareOf(p.n, p.of)
}

// share is none of nothing.
func shareOf(n, of int64) value {
	if of == 0 {
		return noValue
	}
	return value{x: float64(n) / float64(of)}
}

func goodputOf(r *Report, s *Step) value {
	if r.Capacity.PerSecond <= 0 || s.Result.Offered == 0 {
		return noValue
	}
	return value{x: s.Result.Goodput(r.Capacity.PerSecond)}
}

func attemptsEach(_ *Report, s *Step) value {
	if s.Result.Attempts <= s.Result.Sent {
		return noValue
	}
	return shareOf(s.Result.Attempts, s.Result.Sent)
}

func latenciesOf(l *load.Result) (*load.Histogram, time.Duration) { return l.Latency, l.Plan.Deadline }
func refusalsOf(l *load.Result) (*load.Histogram, time.Duration)  { return l.Refusal, 0 }
func latenessOf(l *load.Result) (*load.Histogram, time.Duration)  { return l.Late, 0 }

// beyond is how many durations lie beyond a percentile that is shown: with fewer it is the
// luck of a few. A p99 takes 500, a p99.9 5,000.
const beyond = 5

// quantile is the q-quantile of a histogram, at least what it says where it reaches the
// deadline at which callers leave.
func percentile(of func(*load.Result) (*load.Histogram, time.Duration), q float64) func(*Report, *Step) value {
	return func(_ *Report, s *Step) value {
		h, deadline := of(s.Result)
		if h == nil || h.Count() == 0 || q < 1 && float64(h.Count())*(1-q) < beyond*(1-1e-9) {
			return noValue
		}
		d, _ := h.Quantile(q)
		return value{x: d.Round(time.Microsecond).Seconds(), atLeast: deadline > 0 && d >= deadline}
	}
}

func retryAfterOf(of func(*load.RetryAfter) value) func(*Report, *Step) value {
	return func(_ *Report, s *Step) value {
		if len(s.Result.RetryAfter.Values) == 0 {
			return noValue
		}
		return of(&s.Result.RetryAfter)
	}
}

func recoveryOf(_ *Report, s *Step) value {
	switch {
	case s.Calm == nil:
		return noValue
	case s.Recovery < 0:
		return value{x: s.Calm.Plan.Duration.Seconds(), atLeast: true}
	}
	return value{x: s.Recovery.Seconds()}
}

// A row is a line of the table of steps.
type row struct {
	Key, Name, Unit string
	Cells           []string // one a step
	Failed          bool     // a criterion about it is not met
}

// rows are the table of steps. After the refused come the forms of a refusal, and the
// reasons for it.
func (r *Report) rows() (out []row) {
	failed := map[string]bool{}
	for _, c := range r.Criteria {
		failed[c.Name] = !c.Met
	}
	steps := r.steps()
	for _, f := range allFigures {
		line, worth := row{Key: f.key, Name: f.name, Unit: f.unit.name, Failed: failed[f.criterion]}, !f.rare
		for i := range steps {
			v := f.of(r, &steps[i])
			line.Cells = append(line.Cells, v.show(f.unit))
			worth = worth || v.there() && v.x != 0
		}
		if worth {
			out = append(out, line)
		}
		if f.key == "refused_ratio" {
			out = append(out, formRows(steps)...)
			out = append(out, reasonRows(steps)...)
		}
	}
	return out
}

// steps are those of r, none without a Result.
func (r *Report) steps() []Step {
	out := slices.Clone(r.Steps)
	for i := range out {
		if out[i].Result == nil {
			out[i].Result = &load.Result{}
		}
	}
	return out
}

// formRows are refusals by status, and by whether Goodput-Rejected is there.
func formRows(steps []Step) (out []row) {
	all := map[load.Told]int64{}
	for _, s := range steps {
		for told, n := range s.Result.Refusals {
			all[told] += n
		}
	}
	for _, told := range toldInOrder(all) {
		line := row{Key: "refusals", Name: "  " + formOf(told), Unit: asRate.name}
		for _, s := range steps {
			n := s.Result.Refusals[told]
			line.Cells = append(line.Cells, rateOf(func(*load.Result) int64 { return n })(nil, &s).show(asRate))
		}
		out = append(out, line)
	}
	return out
}

// toldInOrder are the forms of refusals by status, marked ones first.
func toldInOrder(all map[load.Told]int64) []load.Told {
	var keys []load.Told
	for told := range all {
		keys = append(keys, told)
	}
	slices.SortFunc(keys, func(a, b load.Told) int {
		if a.Status == b.Status && a.Marked != b.Marked {
			if a.Marked {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Status, b.Status)
	})
	return keys
}

func formOf(t load.Told) string {
	if t.Marked {
		return fmt.Sprintf("%d marked", t.Status)
	}
	return fmt.Sprintf("%d plain", t.Status)
}

func reasonRows(steps []Step) (out []row) {
	all := map[string]int64{}
	for _, s := range steps {
		for reason, n := range s.Result.Reasons {
			all[reason] += n
		}
	}
	for _, reason := range byCount(all) {
		line := row{Key: "reasons", Name: "  " + reasonOf(reason), Unit: asRate.name}
		for _, s := range steps {
			n := s.Result.Reasons[reason]
			line.Cells = append(line.Cells, rateOf(func(*load.Result) int64 { return n })(nil, &s).show(asRate))
		}
		out = append(out, line)
	}
	return out
}

// byCount are the keys of all, most frequent first.
func byCount[K cmp.Ordered](all map[K]int64) []K {
	var keys []K
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	return keys
}

// reasonOf is a word from the wire, which may be none.
func reasonOf(word string) string {
	if word == "" {
		return "no reason given"
	}
	return short(word)
}

// probeHeads are the columns of the search for the capacity.
var probeHeads = []string{"offered /s", "in time /s", "refused /s", "gave up /s", "failed /s", "p50 ms", "p99 ms"}

// probes are the search for the capacity, in its order.
func (r *Report) probes() (out [][]string) {
	for _, p := range r.Capacity.Probes {
		s := p.step()
		line := []string{asRate.show(p.Rate)}
		for _, key := range []string{"in_time_per_second", "refused_per_second", "gave_up_per_second"} {
			line = append(line, figureOf(key).of(r, s).show(asRate))
		}
		lost := rateOf(func(l *load.Result) int64 { return l.Failed + l.Errors + l.Dropped })
		line = append(line, lost(r, s).show(asRate))
		for _, key := range []string{"latency_p50_seconds", "latency_p99_seconds"} {
			line = append(line, figureOf(key).of(r, s).show(asMillis))
		}
		out = append(out, line)
	}
	return out
}

// step is p as a load whose figures are asked for.
func (p Probe) step() *Step {
	if p.Result == nil {
		return &Step{Rate: p.Rate, Result: &load.Result{}}
	}
	return &Step{Rate: p.Rate, Result: p.Result}
}

func figureOf(key string) figure {
	return allFigures[slices.IndexFunc(allFigures, func(f figure) bool { return f.key == key })]
}
