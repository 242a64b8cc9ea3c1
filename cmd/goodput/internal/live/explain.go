package live

import "github.com/goodput/goodput"

// Explained is what a limiter says of itself, as JSON has it: in a tick and in /api/v1/explain.
func Explained(e goodput.Explanation) Explanation {
	x := Explanation{Limiter: e.Limiter, Condition: e.Condition.String(), State: e.State, Facts: []Fact{}, Refused: []Refusal{}}
	for _, f := range e.Facts {
		x.Facts = append(x.Facts, Fact{f.Topic, f.Text})
	}
	for _, r := range e.Refused {
		x.Refused = append(x.Refused, Refusal{
			AgoSeconds: r.Ago.Seconds(), Count: r.Count,
			Outcome: r.Outcome.String(), Reason: r.Reason.String(), Text: r.Error(), Knob: r.Knob(),
			WaitedSeconds: r.Waited.Seconds(), RetryAfterSeconds: r.RetryAfter.Seconds(),
		})
	}
	return x
}
