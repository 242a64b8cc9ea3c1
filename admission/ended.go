package admission

// An Ended is one of the ways in which a request ends, and how many did. Each request is in
// exactly one: a reason has one outcome, and who started has no reason.
type Ended struct {
	Outcome Outcome
	Reason  Reason // None if it started
	Count   uint64
}

// ran are the outcomes of requests that started.
var ran = [...]Outcome{Completed, Late, Failed, Abandoned}

// Ends returns the ways to end in a fixed order, those at 0 included: whoever shows them, as
// series or in a table, shows the same ones from the start. Arrivals is the sum of their
// counts, and of those that wait or run.
func (s *Stats) Ends() []Ended {
	ends := make([]Ended, 0, len(ran)+Reasons-1)
	for _, o := range ran {
		ends = append(ends, Ended{o, None, s.Outcomes[o]})
	}
	for i := 1; i < Reasons; i++ { // 0 is None
		r := Reason(i)
		ends = append(ends, Ended{r.Outcome(), r, s.Refusals[r]})
	}
	return ends
}
