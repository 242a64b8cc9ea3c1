package retry

import (
	"fmt"
	"strings"
)

// Stats is what a Policy shows of itself. All but Budget only grow; when no call runs
// Calls is the sum of Stops and of those whose function panicked.
type Stats struct {
	Name     string
	Calls    uint64
	Untried  uint64        // of Calls, those whose context was over before the first attempt
	Attempts uint64        // of the other Calls, the first ones, and retries and hedges
	Stops    [Stops]uint64 // calls by how they ended; Answered is the good one
	Budget   BudgetStats   // also of others that share it
}

// Retries returns the attempts beyond the first ones.
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
	ratio := 1.0
	if tried := s.Calls - s.Untried; tried > 0 {
		ratio = float64(s.Attempts) / float64(tried)
	}
	fmt.Fprintf(&b, "so far: %d calls, %d attempts (x %.3f)", s.Calls, s.Attempts, ratio)
	for i, n := range s.Stops {
		if n > 0 {
			fmt.Fprintf(&b, ", %d %v", n, Stop(i))
		}
	}
	return b.String() + "\n"
}
