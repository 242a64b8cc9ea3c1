package goodput

import (
	"fmt"
	"strings"
	"time"
)

// State returns what the limiter is doing in words.
func (s *Stats) State() string {
	switch {
	case s.Draining && s.Running == 0 && s.Waiting == 0:
		return "drained"
	case s.Draining:
		return "draining"
	case s.Stats.Absent:
		return "absent: there is nothing to run work on"
	case s.Limit == 0:
		return "paused: the limit is 0"
	case s.Load > 1 && s.Waiting == 0 && s.InUse < s.Limit && s.rateBinds():
		return "the allowance is used up as it comes: slots are free, and what comes beyond it is refused at once"
	case s.Running == 0 && s.Waiting == 0:
		return "idle"
	case s.Observe:
		return fmt.Sprintf("observing: %d in use where %d may be, nothing is refused", s.InUse, s.Limit)
	case !s.Derivation.Reachable && s.Waiting > 0:
		return "unreachable: the service alone takes longer than the objective, the queue only keeps the slots busy"
	case s.LimitSearch && (s.Waiting > 0 || s.InUse >= s.Limit):
		return fmt.Sprintf("searching for the capacity: all of %d slots are busy, and there may be more", s.Limit)
	case s.Overload && s.rateBinds():
		return "saturated and doing its job: the allowance is used up as it comes, the queue is short, the rest is refused at once"
	case s.Overload:
		return "saturated and doing its job: the slots are busy, the queue is short, the rest is refused at once"
	case s.Waiting > 0:
		return "burst: the queue absorbs it"
	case s.InUse >= s.Limit:
		return "at the admission boundary: every slot is busy, nobody waits"
	}
	return "busy: slots are free, nobody waits"
}

// Explain returns a few lines about what the limiter is doing now and why: the
// state, the arithmetic of the depth, the limit, the order, the load, the five
// tenants that ask for most, who is shed, and the refusals so far by reason.
func (l *Limiter) Explain() string {
	s := l.Stats()
	cfg := l.settings.Load().cfg
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", s.Name, s.State())
	fmt.Fprintf(&b, "  limit    %d (%v); %d in use by %d requests\n", s.Limit, cfg.Limit, s.InUse, s.Running)
	explainAbsent(&b, &s)
	explainLimit(&b, &s, cfg.Limit)
	fmt.Fprintf(&b, "  depth    %s\n", s.Derivation)
	if s.Depth < s.Derivation.Depth {
		busy := "the slots busy"
		if s.rateBinds() {
			busy = "the allowance in use"
		}
		fmt.Fprintf(&b, "           %d in force, what keeps %s at load %.3g; more would only add latency\n", s.Depth, busy, s.Load)
	}
	explainElsewhere(&b, &s)
	fmt.Fprintf(&b, "  queue    %d waiting", s.Waiting)
	if s.Waiting > 0 {
		fmt.Fprintf(&b, ", cost %d, %d bytes, the oldest for %v", s.WaitingCost, s.WaitingBytes, s.Age.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "; order %v\n", s.Order)
	fmt.Fprintf(&b, "  load     %.2f over the last %v, fading: %s/s offered, %s/s can be served\n",
		s.Load, s.Derivation.Objective, perSecond(s.Demand), perSecond(s.Capacity))
	explainPressure(&b, &s)
	explainShares(&b, &s, &cfg, l.Tenants(explained))
	fmt.Fprintf(&b, "  ended    %d of %d arrivals%s\n", ended(&s), s.Arrivals, counts(s.Outcomes[:], func(i int) string { return Outcome(i).String() }))
	if refused := counts(s.Refusals[:], func(i int) string { return Reason(i).String() }); refused != "" {
		fmt.Fprintf(&b, "  refused %s; retry after %v\n", strings.TrimPrefix(refused, ":"), s.RetryAfter)
	}
	if s.Observe {
		would := counts(s.Shadow.Refusals[:], func(i int) string {
			if Reason(i) == Client {
				return "waiting when it ended" // it really ran, and was faster than the shadow's queue
			}
			return Reason(i).String()
		})
		if would == "" {
			would = ": nobody"
		}
		fmt.Fprintf(&b, "  observe  nothing is refused; would have been%s\n", would)
	}
	return b.String()
}

// perSecond is a number per second to three figures, without an exponent.
func perSecond(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// explainElsewhere says which part of the time for which slots are held is not the
// service's own: it is nothing until a dependency has been marked.
func explainElsewhere(b *strings.Builder, s *Stats) {
	hold := s.Derivation.Mean
	if s.Elsewhere < 0.001 || hold <= 0 {
		return
	}
	away := time.Duration(s.Elsewhere * float64(hold))
	fmt.Fprintf(b, "  held     %v on average, %v of it (%.0f %%) downstream of this limiter: not its own time, and no reason to lower the limit\n",
		short(hold), short(away), 100*s.Elsewhere)
}

func ended(s *Stats) (n uint64) {
	for _, c := range s.Outcomes {
		n += c
	}
	return n
}

// counts lists those that are not zero, each after a space, all after a colon.
func counts(n []uint64, name func(int) string) string {
	var b strings.Builder
	for i, c := range n {
		if c > 0 {
			fmt.Fprintf(&b, " %s %d", name(i), c)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return ":" + b.String()
}
