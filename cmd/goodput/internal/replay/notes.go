package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
)

// Rule is the depth by the rule of thumb: what the slots serve in the objective.
func (s *Survey) Rule(slots int, objective time.Duration) int {
	if s.Sampled == 0 {
		return 1
	}
	return int(min(max(math.Round(float64(slots)*objective.Seconds()/s.Mean().Seconds()), 1), admission.DefaultMaxItems))
}

// About says what is played, in two sentences.
func (s *Survey) About(o Options) string {
	load := s.Load(o.Slots)
	text := fmt.Sprintf("%s in %s, mean service %s", number(s.Used, "%d request", "%d requests"), brief(s.Span()), brief(s.Mean()))
	if cost := s.held * float64(time.Second) / s.work; math.Abs(cost-1) > 1e-6 {
		text += fmt.Sprintf(" of %.3g slots", cost)
	}
	text += fmt.Sprintf(": %.2f times what %s can serve, on average.", load, number(int64(o.Slots), "%d slot", "%d slots"))
	if o.Load > 0 {
		text += fmt.Sprintf(" Time is divided by %.3g, so that %g times the capacity is offered.", o.Load/load, o.Load)
	}
	return text
}

// Notes say how many lines were used, which were not and why, and what each file
// was taken to be. rules are the classes that were asked for.
func (s *Survey) Notes(sum *accesslog.Summary, rules []accesslog.Class) []string {
	notes := []string{fmt.Sprintf("Of %s %s played: %s a service time. %s",
		number(sum.Lines, "%d line", "%d lines"), number(s.Used, "%d is", "%d are"), number(s.Sampled, "%d has", "%d have"),
		number(s.Drawn, "%d was refused, or its caller left before an answer: it gets a service time drawn from the others.",
			"%d were refused, or their callers left before an answer: they get a service time drawn from the others."))}
	add := func(n int64, one, more string) {
		if n > 0 {
			notes = append(notes, number(n, one, more))
		}
	}
	var broken, headers, others, probes, unordered int64
	for i := range sum.Files {
		f := &sum.Files[i]
		broken += f.Verdicts[accesslog.Malformed]
		headers += f.Verdicts[accesslog.Header] + f.Verdicts[accesslog.Skip] - f.OtherClass - f.Probes
		others += f.OtherClass
		probes += f.Probes
		if !f.Own() { // ours are in the order of the ends
			unordered += f.OutOfOrder
		}
	}
	add(broken, "Of %d line no request can be read; it is skipped.", "Of %d lines no request can be read; they are skipped.")
	add(others, "%d request is of another class, or of none, and is left out.", "%d requests are of another class, or of none, and are left out.")
	add(probes, "%d probe is left out: no limit is about it.", "%d probes are left out: no limit is about them.")
	add(headers, "%d line is a header, empty or of another program.", "%d lines are headers, empty or of another program.")
	for _, c := range rules {
		if !slices.Contains(s.classes, c.Name) {
			notes = append(notes, fmt.Sprintf("No request is of class %s, %s.", c.Name, c.Path))
		}
	}
	add(s.Answered, "%d request was answered without the service and is left out.", "%d requests were answered without the service and are left out.")
	add(s.Streams, "%d upgraded connection is left out: it holds no slot while it is open.", "%d upgraded connections are left out: they hold no slot while they are open.")
	add(s.Floors, "%d service time is a lower bound: the request was cut off, or logged early.", "%d service times are lower bounds: the request was cut off, or logged early.")
	add(s.Budgets, "%d request says how long its caller waits, and is played with that.", "%d requests say how long their callers wait, and are played with that.")
	add(s.Who, "%d request names a tenant or a priority, and is played without.", "%d requests name a tenant or a priority, and are played without: all of them are alike.")
	add(s.Cut, fmt.Sprintf("%%d request took %v or longer: it is played as that.", longest), fmt.Sprintf("%%d requests took %v or longer: they are played as that.", longest))
	add(sum.Duplicates, "%d duplicate line was dropped.", "%d duplicate lines were dropped.")
	add(unordered, "%d line was out of order and has been sorted.", "%d lines were out of order and have been sorted.")
	for i := range sum.Files {
		f := &sum.Files[i]
		notes = append(notes, fmt.Sprintf("%s: %s: %s.", f.Name, f.Format, f.Rule))
		if f.Own() && len(s.classes) > 1 {
			notes = append(notes, fmt.Sprintf("%s: the requests of %d classes are played through one limiter, and each had its own: --class NAME plays one of them.", f.Name, len(s.classes)))
		}
		if f.Spread > 0 {
			notes = append(notes, fmt.Sprintf("%s: its stamps are whole seconds, or whatever --spread says. %s spread over them at random; bursts shorter than that are not in the log.",
				f.Name, number(f.Spread, "%d arrival is", "%d arrivals are")))
		}
		for _, n := range f.Notes {
			notes = append(notes, fmt.Sprintf("%s:%d: %s, %s; the first: %s", f.Name, n.First, n.Why, number(n.Lines, "%d line", "%d lines"), n.Example))
		}
	}
	return append(notes, sum.Warnings...)
}

// number is n in the words for one, or for more.
func number(n int64, one, more string) string {
	if n == 1 {
		more = one
	}
	return fmt.Sprintf(more, n)
}

// brief prints a duration to three figures.
func brief(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	unit := time.Duration(math.Pow(10, max(0, math.Floor(math.Log10(float64(d)))-2)))
	return d.Round(unit).String()
}
