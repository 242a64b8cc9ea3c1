package goodputhttp

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// DependencyStats is a snapshot of what a Dependency counts itself; how long its answers
// take and what they were is in the statistics of its Limiter. Counters never fall.
type DependencyStats struct {
	Name string

	Calls     uint64 // of RoundTrip
	Attempts  uint64 // requests that were sent, hedges included
	Retries   uint64 // attempts after a failed one
	Hedges    uint64 // second attempts beside a slow one
	HedgeWins uint64 // of them, those whose answer was taken
	Shed      uint64 // attempts that the service, or one behind it, refused as overloaded

	Throttled  uint64 // attempts kept here by Throttle
	Refused    uint64 // attempts kept here by Limiter
	OutOfTime  uint64 // attempts kept here because nothing was left of the deadline
	OpenBodies int    // responses that are being read now
}

type clientCounts struct {
	calls, attempts, retries, hedges, hedgeWins, shed atomic.Uint64
	throttled, refused, late                          atomic.Uint64
	running                                           atomic.Int64 // RoundTrips, and hedges that outlive theirs
}

// Stats returns the numbers of now.
func (d *Dependency) Stats() DependencyStats {
	c := &d.counts
	return DependencyStats{
		Name:       d.name(),
		Calls:      c.calls.Load(),
		Attempts:   c.attempts.Load(),
		Retries:    c.retries.Load(),
		Hedges:     c.hedges.Load(),
		HedgeWins:  c.hedgeWins.Load(),
		Shed:       c.shed.Load(),
		Throttled:  c.throttled.Load(),
		Refused:    c.refused.Load(),
		OutOfTime:  c.late.Load(),
		OpenBodies: d.open.count(),
	}
}

// Explain returns a few lines about what became of the calls, and what Retry, Throttle and
// Limiter say of themselves. What was kept here was not sent, so the service has no part in
// it: the retry policy calls it kept too.
func (d *Dependency) Explain() string {
	s := d.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s sent, %s open\n", s.Name, plural(s.Calls, "call", "calls"), plural(s.Attempts, "attempt", "attempts"), plural(s.OpenBodies, "body", "bodies"))
	fmt.Fprintf(&b, "  again    %s sent", plural(s.Retries, "retry", "retries"))
	if d.Hedge != nil {
		fmt.Fprintf(&b, ", %s sent of which %d won; a hedge starts ", plural(s.Hedges, "hedge", "hedges"), s.HedgeWins)
		if delay := d.Hedge.Delay(); delay > 0 {
			fmt.Fprintf(&b, "after %v", delay.Round(time.Microsecond))
		} else {
			fmt.Fprintf(&b, "once %d answers are known", hedgeFirst)
		}
	}
	fmt.Fprintf(&b, "\n  refused  %d of the attempts sent, by the service or one behind it\n", s.Shed)
	fmt.Fprintf(&b, "  kept     %s here and not sent: %d by the throttle, %d by the limiter, %d with no time left\n",
		plural(s.Throttled+s.Refused+s.OutOfTime, "attempt", "attempts"), s.Throttled, s.Refused, s.OutOfTime)
	if d.Throttle != nil {
		fmt.Fprintf(&b, "  throttle %v\n", d.Throttle.Stats())
	}
	if d.Retry != nil {
		lines := strings.TrimSuffix(d.Retry.Explain(), "\n")
		fmt.Fprintf(&b, "  retry    %s\n", strings.ReplaceAll(lines, "\n", "\n           "))
	}
	if d.Limiter != nil {
		b.WriteString(d.Limiter.Explain())
	}
	return b.String()
}

// plural returns "1 body", "60 bodies".
func plural[N int | uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
