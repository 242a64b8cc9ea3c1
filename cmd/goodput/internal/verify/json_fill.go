package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

func (r *Report) document() documentJSON {
	d := documentJSON{
		Version: JSONVersion, Program: r.Program, Command: r.Command, Target: r.Target, Took: secs(r.Took),
		Verdict: r.Verdict(), Certified: r.Certified(), Void: known(r.Void), Line: r.Line(), Advice: r.advice(),
		Criteria: []askedJSON{}, Unjudged: []openJSON{}, Steps: []stepJSON{},
		Seen: all(r.seen()), Notes: all(r.Notes), Legend: r.legend(), Bin: secs(load.BinLength),
		Idle: idleJSON{
			Requests: r.Idle.Requests, Statuses: []statusJSON{}, P50: secs(r.Idle.P50), Max: secs(r.Idle.Max), Content: r.Idle.Content,
		},
		Capacity: capacityJSON{
			PerSecond: numberJSON(r.Capacity.PerSecond), Error: numberJSON(r.Capacity.Error), Given: r.Capacity.Given, Why: r.Capacity.Why,
			Probes: []probeJSON{},
		},
		Settings: settingsOf(r.Settings),
	}
	if !r.Began.IsZero() {
		d.Began = known(r.Began.UTC().Format(time.RFC3339))
	}
	for _, c := range r.Criteria {
		d.Criteria = append(d.Criteria, askedJSON(c))
	}
	for _, c := range r.Unjudged {
		d.Unjudged = append(d.Unjudged, openJSON(c))
	}
	for _, code := range slices.Sorted(maps.Keys(r.Idle.Status)) {
		d.Idle.Statuses = append(d.Idle.Statuses, statusJSON{code, int64(r.Idle.Status[code])})
	}
	for _, p := range r.Capacity.Probes {
		out := probeJSON{Rate: numberJSON(p.Rate)}
		out.Figures, out.AtLeast = r.figures(p.step())
		d.Capacity.Probes = append(d.Capacity.Probes, out)
	}
	for _, s := range r.steps() {
		d.Steps = append(d.Steps, r.step(s))
	}
	return d
}

// known is nil for "".
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// all is s, and [] where it is nil.
func all(s []string) []string { return append([]string{}, s...) }

func settingsOf(s Settings) settingsJSON {
	out := settingsJSON{
		Method: s.Method, Protocol: s.Protocol, Deadline: secs(s.Deadline), Objective: secs(s.Objective),
		Loads: []numberJSON{}, Length: secs(s.Length), Calm: secs(s.Calm), Arrivals: s.Arrivals, Attempts: s.Attempts,
		Obey: s.Obey, Expect: append([]int{}, s.Expect...), AnyBody: s.AnyBody, Seed: s.Seed, MaxRate: numberJSON(s.MaxRate), MaxRequests: s.MaxRequests,
	}
	for _, l := range s.Loads {
		out.Loads = append(out.Loads, numberJSON(l))
	}
	return out
}

// figures are those of the table, and the names of those that are lower bounds.
func (r *Report) figures(s *Step) (out figuresJSON, atLeast []string) {
	atLeast = []string{}
	for _, f := range allFigures {
		v := f.of(r, s)
		out = append(out, pairJSON{f.key, numberJSON(v.x)})
		if v.atLeast {
			atLeast = append(atLeast, f.key)
		}
	}
	return out, atLeast
}

func (r *Report) step(s Step) stepJSON {
	l := s.Result
	out := stepJSON{
		Load: numberJSON(s.Load), Rate: numberJSON(s.Rate),
		Refusals: []refusalJSON{}, Reasons: []reasonJSON{}, Statuses: []statusJSON{},
		After:    delaysOf(l.RetryAfter),
		Earlier:  earlierJSON(l.Earlier),
		Followed: followedJSON(l.Followed),
		Series:   seriesOf(l),
	}
	out.Figures, out.AtLeast = r.figures(&s)
	for _, told := range toldInOrder(l.Refusals) {
		n := l.Refusals[told]
		out.Refusals = append(out.Refusals, refusalJSON{formOf(told), told.Status, told.Marked, n, eachSecond(n, &s)})
	}
	for _, reason := range byCount(l.Reasons) {
		n := l.Reasons[reason]
		out.Reasons = append(out.Reasons, reasonJSON{reasonOf(reason), n, eachSecond(n, &s)})
	}
	for _, code := range slices.Sorted(maps.Keys(l.Status)) {
		out.Statuses = append(out.Statuses, statusJSON{code, l.Status[code]})
	}
	if l.FirstError != nil {
		out.Error = known(short(l.FirstError.Error()))
	}
	if a := l.FirstUnlike; l.Unlike > 0 {
		out.Foreign = &foreignJSON{a.Status, short(a.Content.Type), a.Content.Size}
	}
	if s.Calm != nil {
		recovered, after := s.Recovery >= 0, seriesOf(s.Calm)
		out.Recovered, out.Calm = &recovered, &after
	}
	return out
}

// eachSecond is n a second.
func eachSecond(n int64, s *Step) numberJSON {
	return numberJSON(rateOf(func(*load.Result) int64 { return n })(nil, s).x)
}

func delaysOf(a load.RetryAfter) delaysJSON {
	out := delaysJSON{Absent: a.Absent, Zero: a.Zero, Malformed: a.Malformed, Values: []delayJSON{}, FirstOdd: known(short(a.FirstOdd))}
	for d, n := range a.Values {
		out.Values = append(out.Values, delayJSON{secs(d), n})
	}
	slices.SortFunc(out.Values, func(a, b delayJSON) int { return cmp.Compare(a.After, b.After) })
	return out
}

func seriesOf(l *load.Result) seriesJSON {
	pick := func(f func(load.Bin) int64) []int64 {
		out := []int64{}
		for _, b := range l.Bins {
			out = append(out, f(b))
		}
		return out
	}
	return seriesJSON{
		Duration: secs(l.Plan.Duration),
		Offered:  pick(func(b load.Bin) int64 { return b.Offered }),
		InTime:   pick(func(b load.Bin) int64 { return b.InTime }),
		Late:     pick(func(b load.Bin) int64 { return b.Late }),
		Refused:  pick(func(b load.Bin) int64 { return b.Refused }),
		GaveUp:   pick(func(b load.Bin) int64 { return b.TimedOut }),
		Failed:   pick(func(b load.Bin) int64 { return b.Failed }),
	}
}
