package admission

import "testing"

// Every outcome that is an end is there, and every reason once, with the outcome that it has:
// a new one that somebody adds is shown by whoever shows ends.
func TestEndsHaveEveryOutcomeAndReasonOnce(t *testing.T) {
	var s Stats
	var sum uint64
	for i := range s.Refusals[1:] {
		s.Refusals[i+1] = 1 << i
		sum += 1 << i
	}
	for _, o := range []Outcome{Completed, Late, Failed, Abandoned} {
		s.Outcomes[o] = uint64(o) << 40
		sum += uint64(o) << 40
	}
	s.Outcomes[Rejected] = 7 // is in its reasons already
	var got uint64
	outcomes := map[Outcome]bool{}
	for _, e := range s.Ends() {
		got += e.Count
		outcomes[e.Outcome] = true
		if e.Reason != None && e.Reason.Outcome() != e.Outcome {
			t.Errorf("%v is %v, want %v", e.Reason, e.Outcome, e.Reason.Outcome())
		}
	}
	if got != sum {
		t.Errorf("the ends are %d, want %d: one is missing or there twice", got, sum)
	}
	if len(outcomes) != Outcomes-1 || outcomes[Pending] {
		t.Errorf("the outcomes are %v, want all %d that are ends", outcomes, Outcomes-1)
	}
}
