package retry

import (
	"fmt"
	"strings"
)

// Stats is what a Policy shows of itself. All but Budget only grow; when no call runs
// Calls is the sum of Stops and of those whose function panicked. Attempts less Kept is
// what was sent, by Calls less Untried and Unsent.
type Stats struct {
	Name     string
	Calls    uint64
	Untried  uint64        // of Calls, those whose context was over before the first attempt
	Unsent   uint64        // of Calls, those whose first attempt was kept here
	Attempts uint64        // of Calls but Untried: the first ones, and retries and hedges
	Kept     uint64        // of Attempts, those that were kept here: see Call.Kept
	Stops    [Stops]uint64 // calls by how they ended; StopAnswered is the good one
	Budget   BudgetStats   // also of others that share it
}

// Retries returns the attempts beyond the first ones, those that were kept here included.
func (s *Stats) Retries() uint64 {
	tried := s.Calls - s.Untried
	return max(s.Attempts, tried) - tried
}

// Stats returns what has happened since p was first used.
func (p *Policy) Stats() Stats {
	s := Stats{Name: p.Name, Budget: p.settings().budget.Stats()}
	for i := range s.Stops {
		s.Stops[i] = p.stops[i].Load()
	}
	s.Kept = p.kept.Load()
	s.Unsent = p.unsent.Load()
	s.Untried = p.untried.Load()
	s.Attempts = p.attempts.Load()
	s.Calls = p.calls.Load()
	return s
}

// Explain says in lines what p does, and what came of it.
func (p *Policy) Explain() string {
	set, s := p.settings(), p.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "attempts: at most %d, the n-th retry after 0 to min(%v x 2^(n-1), %v)", set.attempts, set.backoff, set.maxBackoff)
	if p.PerAttempt > 0 {
		fmt.Fprintf(&b, ", each within %v", p.PerAttempt)
	}
	if p.Total > 0 {
		fmt.Fprintf(&b, ", all within %v", p.Total)
	}
	fmt.Fprintf(&b, "\nhints: a server is waited for up to %v\n", set.maxAfter)
	if p.Multiply {
		b.WriteString("nested: attempts multiply with those of a call outside\n")
	} else {
		b.WriteString("nested: one attempt inside an attempt of a call outside\n")
	}
	fmt.Fprintf(&b, "budget: %v, %.6g left\n", s.Budget, s.Budget.Left)
	s.explain(&b)
	return b.String()
}

// explain says what came of the calls. s is no snapshot of one instant, so what is taken
// off may be more than there is.
func (s *Stats) explain(b *strings.Builder) {
	sent := max(s.Attempts, s.Kept) - s.Kept
	by := max(s.Calls, s.Untried+s.Unsent) - s.Untried - s.Unsent
	ratio := 1.0
	if by > 0 {
		ratio = float64(sent) / float64(by)
	}
	fmt.Fprintf(b, "so far: %s, %s made by %d of them (x %.3f)", plural(s.Calls, "call"), plural(sent, "attempt"), by, ratio)
	if s.Kept > 0 {
		fmt.Fprintf(b, ", %s kept here and not sent", plural(s.Kept, "attempt"))
	}
	sep := "\ncalls ended: "
	for i, n := range s.Stops {
		if n > 0 {
			fmt.Fprintf(b, "%s%d %v", sep, n, Stop(i))
			sep = ", "
		}
	}
	b.WriteByte('\n')
}

// plural returns "1 call", "60 calls".
func plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
