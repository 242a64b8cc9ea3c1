package metrics

import "github.com/goodput/goodput"

// An End is one way for a request to end, and how many did.
type End struct {
	Outcome string
	Reason  string // "" if it started
	Count   uint64
}

// started are the outcomes of requests that ran.
var started = []goodput.Outcome{goodput.Completed, goodput.Late, goodput.Failed, goodput.Abandoned}

// Ends returns every end in a fixed order, those at 0 included, from the counts
// by outcome and by reason of one snapshot. Each request is in exactly one: a
// reason has one outcome, and who started has no reason.
func Ends(outcomes, refusals []uint64) []End {
	ends := make([]End, 0, len(started)+len(refusals))
	for _, o := range started {
		ends = append(ends, End{o.String(), "", outcomes[o]})
	}
	for i := 1; i < len(refusals); i++ { // 0 is no reason
		r := goodput.Reason(i)
		ends = append(ends, End{r.Outcome().String(), r.String(), refusals[i]})
	}
	return ends
}
