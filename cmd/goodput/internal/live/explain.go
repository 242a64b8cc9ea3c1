package live

import "github.com/goodput/goodput"

// shownGroups is how many kinds of refusals a text has: a screen has 24 lines.
const shownGroups = 5

// Explained is what a limiter says of itself, as JSON has it: in a tick and in /api/v1/explain.
// now is of the latest tick; nil: there are no rates yet.
func Explained(e goodput.Explanation, now *Now) Explanation {
	decided := knobs(e.Refused)
	x := Explanation{
		Limiter: e.Limiter, Condition: e.Condition.String(), State: e.State,
		Facts: []Fact{}, RefusedBy: groups(e.Refused, decided), Refused: []Refusal{},
	}
	for _, f := range now.facts(e.Facts) {
		x.Facts = append(x.Facts, Fact{f.Topic, f.Text})
	}
	for i, r := range e.Refused {
		x.Refused = append(x.Refused, Refusal{
			AgoSeconds: r.Ago.Seconds(), Count: r.Count,
			Outcome: r.Outcome.String(), Reason: r.Reason.String(), Text: r.Error(), Knob: decided[i],
			WaitedSeconds: r.Waited.Seconds(), RetryAfterSeconds: r.RetryAfter.Seconds(),
		})
	}
	return x
}

// Text is the same for a person with curl: what goodput.Explanation prints, with what is so now,
// and in the words of a policy file.
func Text(e goodput.Explanation, now *Now) string {
	e.Facts = now.facts(e.Facts)
	by := groups(e.Refused, knobs(e.Refused))
	text := ""
	for i := range by[:min(len(by), shownGroups)] {
		if i > 0 {
			text += "\n"
		}
		text += by[i].words()
	}
	if text != "" {
		e.Facts = append(e.Facts, goodput.Fact{Topic: "last", Text: text})
	}
	e.Refused = nil // they are in that
	return e.String()
}
